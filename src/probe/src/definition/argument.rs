//! Arguments: the values recorded by a probe.

use std::fmt;

use super::SyntaxError;
use super::is_identifier;
use super::point::{number, signed_number};
use super::words::Word;
use crate::event::field_name;

/// Maximum number of elements of a recorded array, as in the kernel.
const MAX_ARRAY_ELEMENTS: u64 = 64;

/// One value to record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Argument {
    /// The text as written, without quotes.
    pub text: String,
    /// The field's name, if the user chose one.
    pub name: Option<String>,
    /// The value.
    pub value: ArgumentValue,
    /// The type after the colon.
    pub kind: Option<String>,
    /// Whether `@user` follows: the value's pointers refer to user memory.
    pub is_user: bool,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentValue {
    /// Syntax passed to the kernel: `%ax`, `$retval`, `@SYMBOL`, `+8(%di)`, `\5`.
    Raw(String),
    /// A variable of the program or kernel, with an access path.
    Variable {
        /// Its name.
        name: String,
        /// The access path.
        members: Vec<Member>,
    },
    /// `$params`: all parameters of the function.
    Parameters,
    /// `$vars`: all variables available at the probe point.
    Variables,
}

/// A step of an access path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Member {
    /// `.name`.
    Field(String),
    /// `->name`.
    Pointed(String),
    /// `[index]`.
    Element(i64),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(f, ".{name}"),
            Self::Pointed(name) => write!(f, "->{name}"),
            Self::Element(index) => write!(f, "[{index}]"),
        }
    }
}

impl Argument {
    /// Whether it requires debug information.
    #[must_use]
    pub fn needs_debug_info(&self) -> bool {
        !matches!(self.value, ArgumentValue::Raw(_))
    }

    /// Returns the field's name, in characters that the kernel accepts: the name that the user chose, or the name of the last
    /// member that has one. Otherwise it is the name of the variable, to which a given type is added (`n_u8`) unless an element
    /// is accessed. `None` for kernel syntax, whose field the kernel numbers (`arg1`), and for `$params` and `$vars`.
    #[must_use]
    pub fn field_name(&self) -> Option<String> {
        if self.name.is_some() {
            return self.name.clone();
        }
        let ArgumentValue::Variable { name, members } = &self.value else {
            return None;
        };
        let last_member = members.iter().rev().find_map(|member| match member {
            Member::Field(name) | Member::Pointed(name) => Some(name),
            Member::Element(_) => None,
        });
        let name = match (last_member, &self.kind) {
            (Some(member), _) => member.clone(),
            (None, Some(kind)) if members.is_empty() => {
                // The `[` of an array type is replaced below: `n_u8_4` for `u8[4]`.
                format!("{name}_{}", kind.trim_end_matches(']'))
            }
            (None, _) => name.clone(),
        };
        Some(field_name(&name))
    }
}

/// Parses one argument.
pub(super) fn parse(word: &Word) -> Result<Argument, SyntaxError> {
    let (name, rest) = match word.find(&['=']) {
        Some(equals) => {
            // The split drops the separator.
            let (name, rest) = word.split_at(equals);
            (Some(checked_name(&name)?), rest)
        }
        None => (None, word.clone()),
    };
    let (rest, is_user) = split_user(rest);
    let (value_word, kind) = match rest.find(&[':']) {
        Some(colon) => {
            let (value_word, kind) = rest.split_at(colon);
            check_kind(&kind)?;
            (value_word, Some(kind.text()))
        }
        None => (rest, None),
    };
    if value_word.is_empty() {
        return Err(SyntaxError::new(
            value_word.start(),
            "no argument to record",
        ));
    }
    // `text()` would remove backslashes, but the one of an immediate value (`\5`) is part of the value.
    let source_text = value_word.source();
    let is_variable = source_text.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let value = match source_text.as_str() {
        "$vars" => ArgumentValue::Variables,
        "$params" => ArgumentValue::Parameters,
        _ if is_variable => variable(&value_word)?,
        _ => raw(source_text, value_word.start())?,
    };
    if matches!(value, ArgumentValue::Variables | ArgumentValue::Parameters) && name.is_some() {
        return Err(SyntaxError::new(
            word.start(),
            "$vars and $params expand to several fields and take no name",
        ));
    }
    Ok(Argument {
        text: word.source(),
        name,
        value,
        kind,
        is_user,
    })
}

fn checked_name(name: &Word) -> Result<String, SyntaxError> {
    let text = name.text();
    match is_identifier(&text) {
        true => Ok(text),
        false => Err(SyntaxError::new(
            name.start(),
            format!("'{text}' is not a valid field name"),
        )),
    }
}

/// Strips `@user` from the end; returns the rest, and whether `@user` was there.
fn split_user(word: Word) -> (Word, bool) {
    // The first character may be the `@` of `@SYMBOL`.
    let Some(at) = word.find_from(1, &['@']) else {
        return (word, false);
    };
    let (value, after) = word.split_at(at);
    match after.text().as_str() {
        "user" => (value, true),
        _ => (word, false),
    }
}

/// Accepts the types of values that the kernel prints (Documentation/trace/uprobetracer.rst), perf's short forms, and arrays.
fn check_kind(kind: &Word) -> Result<(), SyntaxError> {
    let text = kind.text();
    let element = text
        .split_once('[')
        .map_or(text.as_str(), |(element, _)| element);
    let array_suffix = text.strip_prefix(element).unwrap_or_default();
    let is_count_valid = array_suffix.is_empty()
        || array_suffix
            .strip_prefix('[')
            .and_then(|count| count.strip_suffix(']'))
            .is_some_and(|count| {
                number(count).is_some_and(|count| (1..=MAX_ARRAY_ELEMENTS).contains(&count))
            });
    let is_sized = |letters: &[char]| {
        let digits = element.strip_prefix(letters).unwrap_or_default();
        matches!(digits, "8" | "16" | "32" | "64")
    };
    let is_known = matches!(
        element,
        "u" | "s" | "x" | "string" | "ustring" | "symbol" | "char" | "symstr"
    ) || is_sized(&['u', 's', 'x'])
        || is_bit_field(element);
    match is_known && is_count_valid {
        true => Ok(()),
        false => Err(SyntaxError::new(
            kind.start(),
            format!(
                "'{text}' is not a type, choose from u8 to u64, s8 to s64, x8 to x64, u, s, x, char, string, ustring, symbol, \
                 symstr, b<width>@<offset>/<size>, and arrays of up to {MAX_ARRAY_ELEMENTS} of them such as u8[16]"
            ),
        )),
    }
}

/// Whether the text has the form `b<width>@<offset>/<size>`, in bits, and the field lies within the size.
fn is_bit_field(text: &str) -> bool {
    let parts = text.strip_prefix('b').and_then(|rest| {
        let (width, rest) = rest.split_once('@')?;
        let (offset, size) = rest.split_once('/')?;
        Some((number(width)?, number(offset)?, number(size)?))
    });
    parts.is_some_and(|(width, offset, size)| {
        matches!(size, 8 | 16 | 32 | 64)
            && width > 0
            && width.checked_add(offset).is_some_and(|end| end <= size)
    })
}

/// Parses `name->field.other[2]`.
fn variable(word: &Word) -> Result<ArgumentValue, SyntaxError> {
    const STEPS: [char; 3] = ['-', '.', '['];
    let end = word.find(&STEPS);
    let name = end.map_or_else(|| word.text(), |end| word.split_at(end).0.text());
    let mut members = Vec::new();
    let mut next = end;
    while let Some(at) = next {
        let after = match (word.char_at(at), word.char_at(at + 1)) {
            (Some('['), _) => {
                let element = word.find_from(at, &[']']).and_then(|close| {
                    let digits = word.split_at(close).0.split_at(at).1.text();
                    Some((close + 1, signed_number(&digits)?))
                });
                let Some((after, index)) = element else {
                    let message = "an element is written [NUMBER]";
                    return Err(SyntaxError::new(word.position(at), message));
                };
                members.push(Member::Element(index));
                // The next step, if any, must begin directly after the `]`.
                next = word.char_at(after).map(|_| after);
                if word.find_from(after, &STEPS) != next {
                    let message = "expected '.', '->' or '[' after an element";
                    return Err(SyntaxError::new(word.position(after), message));
                }
                continue;
            }
            (Some('-'), Some('>')) => at + 2,
            (Some('.'), _) => at + 1,
            _ => {
                let message = "expected '->'";
                return Err(SyntaxError::new(word.position(at), message));
            }
        };
        next = word.find_from(after, &STEPS);
        let before = next.map_or_else(|| word.clone(), |next| word.split_at(next).0);
        // The last character of `.` or `->` is dropped by the split.
        let field = before.split_at(after - 1).1.text();
        if field.is_empty() {
            let message = "expected the name of a member";
            return Err(SyntaxError::new(word.position(after), message));
        }
        members.push(match word.char_at(at) {
            Some('-') => Member::Pointed(field),
            _ => Member::Field(field),
        });
    }
    Ok(ArgumentValue::Variable { name, members })
}

/// Accepts kernel syntax; only the first character is checked. `at` is the position for the error.
fn raw(text: String, at: usize) -> Result<ArgumentValue, SyntaxError> {
    if text.starts_with(['%', '$', '@', '+', '-', '\\']) {
        return Ok(ArgumentValue::Raw(text));
    }
    Err(SyntaxError::new(
        at,
        format!(
            "'{text}' is neither a variable nor a register (%di), memory (+8(%di), @SYMBOL), a value (\\5), $retval, $stack or $comm"
        ),
    ))
}
