//! Tokens of a filter.

use std::ops::Range;

/// A token of a filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// The name of a field, a number, or other text up to a blank, an operator, a parenthesis or a quote; a single
    /// `|`; or text without a closing quote.
    Word(&'a str),
    /// A quoted text. Its range includes the quotes.
    Text,
    /// A set of CPUs, `CPUS{0-3,5}`: the text between the braces.
    Cpus(&'a str),
    Operator(&'a str),
    /// An operator of other languages, which filters do not have.
    Wrong(&'a str),
    And,
    Or,
    Not,
    Open,
    Close,
    End,
}

/// Operators, including invalid ones, and parentheses. An operator comes before those that are prefixes of it.
const OPERATORS: [(&str, Token<'static>); 17] = [
    ("&&", Token::And),
    ("||", Token::Or),
    ("==", Token::Operator("==")),
    ("!=", Token::Operator("!=")),
    ("<=", Token::Operator("<=")),
    (">=", Token::Operator(">=")),
    ("=>", Token::Wrong("=>")),
    ("=<", Token::Wrong("=<")),
    ("<>", Token::Wrong("<>")),
    ("<", Token::Operator("<")),
    (">", Token::Operator(">")),
    ("&", Token::Operator("&")),
    ("~", Token::Operator("~")),
    ("=", Token::Wrong("=")),
    ("!", Token::Not),
    ("(", Token::Open),
    (")", Token::Close),
];

/// Splits a text into tokens, each with its byte range.
pub(super) struct Tokens<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next token and its byte range, without advancing.
    pub(super) fn peek(&self) -> (Token<'a>, Range<usize>) {
        Self { ..*self }.next()
    }

    /// The next token and its byte range; [`Token::End`] at the end, in each further call too.
    pub(super) fn next(&mut self) -> (Token<'a>, Range<usize>) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let start = self.text.len() - rest.trim_start().len();
        let rest = rest.trim_start();
        let (token, size) = first_token(rest);
        self.at = start + size;
        (token, start..self.at)
    }
}

/// The first token of `rest` and its size in bytes.
fn first_token(rest: &str) -> (Token<'_>, usize) {
    let Some(character) = rest.chars().next() else {
        return (Token::End, 0);
    };
    if matches!(character, '"' | '\'') {
        let after = rest.get(1..).unwrap_or_default();
        return match after.find(character) {
            Some(end) => (Token::Text, end + 2),
            // The closing quote is missing. As a value, such a word is valid only for fields that the kernel alone checks.
            None => (Token::Word(rest), rest.len()),
        };
    }
    if let Some((text, token)) = OPERATORS.iter().find(|(text, _)| rest.starts_with(text)) {
        return (*token, text.len());
    }
    if let Some(list) = rest.strip_prefix("CPUS{")
        && let Some(end) = list.find('}')
    {
        let size = rest.len() - list.len() + end + 1;
        return (Token::Cpus(list.get(..end).unwrap_or_default()), size);
    }
    let is_end = |c: char| c.is_whitespace() || "=!<>&|~()\"'".contains(c);
    // A word has at least one character: a `|` ends other words, but a single one is a word itself.
    let size = rest
        .find(is_end)
        .unwrap_or(rest.len())
        .max(character.len_utf8());
    (Token::Word(rest.get(..size).unwrap_or(rest)), size)
}
