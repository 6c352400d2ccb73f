//! Tokens of a formula.

use std::ops::Range;

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    Number(f64),
    /// A name, unescaped.
    Name(String),
    /// A literal such as `#smt_on`, without the `#`, in lower case.
    Literal(String),
    /// An operator, a bracket or a comma.
    Mark(char),
    End,
}

/// A token and its byte range.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlacedToken {
    pub(super) token: Token,
    pub(super) position: Range<usize>,
}

/// A fault and its position.
pub(super) struct FormulaFault {
    pub(super) position: Range<usize>,
    pub(super) reason: String,
}

const MARKS: &str = "|^&<>+-*/%(),";

/// The tokens of a formula, followed by an end marker.
pub(super) fn tokens(text: &str) -> Result<Vec<PlacedToken>, FormulaFault> {
    let mut tokens = Vec::new();
    let mut start = 0;
    while let Some(first) = text.get(start..).and_then(|rest| rest.chars().next()) {
        let rest = text.get(start..).unwrap_or_default();
        if first.is_whitespace() {
            start += first.len_utf8();
            continue;
        }
        let (token, length) = match first {
            '#' => literal(rest),
            mark if MARKS.contains(mark) => (Token::Mark(mark), 1),
            _ => number_or_name(rest),
        };
        // If no token begins here (a length of 0), the range is that of the invalid character.
        let end = start + length.max(first.len_utf8());
        if length == 0 {
            return Err(FormulaFault {
                position: start..end,
                reason: format!("`{first}' is not valid in a formula"),
            });
        }
        tokens.push(PlacedToken {
            token,
            position: start..end,
        });
        start = end;
    }
    tokens.push(PlacedToken {
        token: Token::End,
        position: text.len()..text.len(),
    });
    Ok(tokens)
}

/// The literal at the beginning of `text`, and its length; a length of 0 if no name follows the `#`.
fn literal(text: &str) -> (Token, usize) {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    let name = text.get(1..).unwrap_or_default();
    let length = name.find(|c| !is_part(c)).unwrap_or(name.len());
    let name = name.get(..length).unwrap_or_default();
    match name.is_empty() {
        // The length of 0 is the error; `End` is only a placeholder.
        true => (Token::End, 0),
        false => (Token::Literal(name.to_lowercase()), length + 1),
    }
}

/// The number or the name at the beginning of `text`, whichever is longer, and its length; the number if they are equally long, a
/// length of 0 if there is neither. A name may begin with digits (`3dnow_ops`), and a number may have a sign in its exponent
/// (`1e-3`), where a name would end.
fn number_or_name(text: &str) -> (Token, usize) {
    let (name, name_length) = name(text);
    match number(text) {
        Some((value, length)) if length >= name_length => (Token::Number(value), length),
        _ => (Token::Name(name), name_length),
    }
}

/// The number at the beginning of `text`, such as `64`, `.5` or `1.5e-3`, and its length.
fn number(text: &str) -> Option<(f64, usize)> {
    let digits_end = |from: usize| {
        let rest = text.get(from..).unwrap_or_default();
        from + rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len())
    };
    let has_one_of = |at: usize, expected: &[u8]| {
        let byte = text.as_bytes().get(at);
        byte.is_some_and(|byte| expected.contains(byte))
    };
    let integer_end = digits_end(0);
    let mut end = match has_one_of(integer_end, b".") {
        true => digits_end(integer_end + 1),
        false => integer_end,
    };
    if has_one_of(end, b"eE") {
        let sign = usize::from(has_one_of(end + 1, b"-+"));
        let exponent_end = digits_end(end + 1 + sign);
        if exponent_end > end + 1 + sign {
            end = exponent_end;
        }
    }
    let value = text.get(..end)?.parse().ok()?;
    Some((value, end))
}

/// The unescaped name at the beginning of `text`, and its length in the text; a length of 0 if there is none. In formulas, `@` is
/// written for `/`, and a backslash before any other character that would end the name.
fn name(text: &str) -> (String, usize) {
    let (mut name, mut length) = (String::new(), 0);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                let Some(escaped) = letters.next() else { break };
                name.push(escaped);
                length += 1 + escaped.len_utf8();
            }
            '@' => {
                name.push('/');
                length += 1;
            }
            letter if letter.is_ascii_alphanumeric() || "_.:?".contains(letter) => {
                name.push(letter);
                length += 1;
            }
            _ => break,
        }
    }
    (name, length)
}
