//! `--filter`: conditions on the fields of a tracepoint, validated before they are passed to the
//! kernel.
//!
//! The kernel reports mistakes as "invalid argument". Its grammar
//! (Documentation/trace/events.rst) is small, so mistakes can be located here:
//!
//! ```text
//! expression := term { ("&&" | "||") term }
//! term       := "!" term | "(" expression ")" | field operator value
//! operator   := "==" | "!=" | "<" | "<=" | ">" | ">=" | "&" | "~"
//! value      := number | word | quoted text | "CPUS{" list "}"
//! ```
//!
//! Words other than numbers are valid only for fields that the kernel alone checks, such as `FIELD.function`, and as device
//! numbers: `8:0` or `8,0`, which is replaced by the number that the kernel expects.

use std::fmt;
use std::ops::Range;

use crate::error::write_block;
use rperf_names::nearest;
use rperf_tracepoint::{Field, Format};

mod token;

use token::{Token, Tokens};

/// Fields that filters of every event have, even if its format lacks them: CPU number, task name and stack trace. (The
/// `common_` fields are in the format.)
const COMMON_FIELDS: [(&str, Kind); 6] = [
    ("CPU", Kind::Number),
    ("cpu", Kind::Number),
    ("COMM", Kind::Text),
    ("comm", Kind::Text),
    ("STACKTRACE", Kind::Any),
    ("stacktrace", Kind::Any),
];

/// Bits of the minor number in the kernel's device numbers.
const MINOR_BITS: u32 = 20;

/// A filter that is valid for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFilter {
    /// The text for the kernel: devices in the form `major:minor` are replaced by the kernel's number for them.
    kernel_text: String,
}

impl EventFilter {
    /// Validates `text` for the tracepoint `event` (`system:name`) with this format.
    ///
    /// # Errors
    /// [`FilterError`] for a filter that the kernel would refuse, such as one with an unknown field, an invalid operator or text
    /// compared as a number; and for text compared with a system call's pointer to user memory, which never matches. Other
    /// comparisons with pointers to text, and those with arrays, stack traces and fields with a suffix, are left to the kernel to
    /// check.
    pub fn parse(text: &str, event: &str, format: &Format) -> Result<Self, FilterError> {
        let mut parser = Parser {
            text,
            event,
            format,
            tokens: Tokens::new(text),
            kernel_text: String::new(),
            copied: 0,
        };
        let depth = 0;
        parser.expression(depth)?;
        let (token, position) = parser.tokens.next();
        match token {
            Token::End => {}
            Token::Close => return Err(parser.error(position, "unbalanced parenthesis")),
            _ => return Err(parser.error(position, "expected `&&' or `||'")),
        }
        parser.copy_up_to(text.len());
        Ok(Self {
            kernel_text: parser.kernel_text,
        })
    }

    /// The text to pass to the kernel.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.kernel_text
    }

    /// Joins filters with `&&`, each in parentheses. A single filter is returned unchanged.
    #[must_use]
    pub fn join(texts: &[&str]) -> String {
        match texts {
            [only] => (*only).to_owned(),
            _ => {
                let each: Vec<String> = texts.iter().map(|text| format!("({text})")).collect();
                each.join(" && ")
            }
        }
    }
}

/// An invalid filter. Displays the filter with an arrow under the invalid word:
///
/// ```text
/// filter error: 'nosuch > 1'
///                \___ sched:sched_switch has no field `nosuch'
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FilterError {
    /// The whole filter.
    pub text: String,
    /// Byte range of the invalid part.
    pub position: Range<usize>,
    /// Description in one line.
    pub reason: String,
    /// How to fix it, such as the list of fields.
    pub hint: Option<String>,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_block(
            f,
            "filter error: ",
            &self.text,
            &self.position,
            &self.reason,
        )
    }
}

/// Type of a field in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    /// A device number, which may be written as `8:0` or `8,0`.
    Device,
    Text,
    /// Checked by the kernel only: pointers to text, arrays, stack traces, fields with a suffix.
    Any,
}

impl Kind {
    fn of(field: &Field) -> Self {
        let is_char_pointer = field.is_pointer && field.type_name.contains("char");
        match field {
            _ if field.is_string => Self::Text,
            _ if field.is_array || field.is_dynamic || is_char_pointer => Self::Any,
            _ if field.type_name == "dev_t" => Self::Device,
            _ => Self::Number,
        }
    }
}

/// Maximum nesting of parentheses and negations.
const MAX_DEPTH: usize = 100;

struct Parser<'a> {
    text: &'a str,
    event: &'a str,
    format: &'a Format,
    tokens: Tokens<'a>,
    kernel_text: String,
    /// Number of bytes of `text` already copied to `kernel_text`, unchanged or with a device number replaced.
    copied: usize,
}

impl<'a> Parser<'a> {
    fn expression(&mut self, depth: usize) -> Result<(), FilterError> {
        loop {
            self.term(depth)?;
            if !matches!(self.tokens.peek().0, Token::And | Token::Or) {
                return Ok(());
            }
            self.tokens.next();
        }
    }

    fn term(&mut self, depth: usize) -> Result<(), FilterError> {
        let (token, position) = self.tokens.next();
        if depth > MAX_DEPTH {
            return Err(self.error(position, "too many parentheses"));
        }
        match token {
            Token::Not => self.term(depth + 1),
            Token::Open => {
                self.expression(depth + 1)?;
                match self.tokens.next() {
                    (Token::Close, _) => Ok(()),
                    _ => Err(self.error(position, "unbalanced parenthesis")),
                }
            }
            Token::Word(name) => self.condition(name, position),
            Token::End => Err(self.error(position, "expected the name of a field")),
            _ => Err(self.error(position, "expected the name of a field here")),
        }
    }

    fn condition(&mut self, name: &'a str, position: Range<usize>) -> Result<(), FilterError> {
        let kind = self.kind(name, &position)?;
        let (token, operator_position) = self.tokens.next();
        let operator = match token {
            Token::Operator(operator) => operator,
            Token::Wrong(operator) => {
                let correction = match operator {
                    "=>" => ">=",
                    "=<" => "<=",
                    "=" => "==",
                    _ => "!=",
                };
                let reason =
                    format!("`{operator}' is not an operator, did you mean `{correction}'?");
                return Err(self.error(operator_position, reason));
            }
            _ => {
                let reason = format!("expected an operator after `{name}': == != < <= > >= & ~");
                return Err(self.error(operator_position, reason));
            }
        };
        let compares_text = matches!(operator, "==" | "!=" | "~");
        if kind == Kind::Text && !compares_text {
            let reason = format!("`{name}' is text: compare it with ==, != or ~");
            return Err(self.error(operator_position, reason));
        }
        if matches!(kind, Kind::Number | Kind::Device) && operator == "~" {
            let reason = format!("`{name}' is a number: ~ compares text with a pattern");
            return Err(self.error(operator_position, reason));
        }
        if self.is_user_text(name) && matches!(self.tokens.peek().0, Token::Text) {
            return Err(FilterError {
                hint: Some(format!("compare `{name}.ustring', which reads that memory")),
                ..self.error(
                    position,
                    format!(
                        "`{name}' is a pointer into the process's memory: this never matches the text there"
                    ),
                )
            });
        }
        self.value(name, kind, operator)
    }

    /// Whether the field is a pointer to text in the memory of a system call's caller, which the kernel reads only with the suffix
    /// `.ustring`. False for a name with a suffix, which is not the name of a field.
    fn is_user_text(&self, name: &str) -> bool {
        let field = self.format.field(name);
        let is_text = |field: &Field| field.is_pointer && field.type_name.contains("char");
        self.event.starts_with("syscalls:") && field.is_some_and(is_text)
    }

    fn value(&mut self, name: &str, kind: Kind, operator: &str) -> Result<(), FilterError> {
        let (token, position) = self.tokens.next();
        let reason = match (kind, token) {
            (_, Token::End) => "expected a value".to_owned(),
            (Kind::Number, Token::Cpus(_)) if !matches!(operator, "==" | "!=" | "&") => {
                format!("`{operator}' does not compare with CPUs: use ==, != or &")
            }
            (Kind::Number, Token::Cpus(list)) if list.trim().is_empty() => {
                "expected CPU numbers and ranges, such as CPUS{0-3,5}".to_owned()
            }
            // The list itself is checked by the kernel.
            (Kind::Number, Token::Cpus(_))
            | (Kind::Any, Token::Word(_) | Token::Text | Token::Cpus(_))
            | (Kind::Text, Token::Text) => return Ok(()),
            (Kind::Number | Kind::Device, Token::Word(word)) if is_number(word) => {
                return Ok(());
            }
            (Kind::Device, Token::Word(word)) if device(word).is_some() => {
                self.copy_up_to(position.start);
                self.kernel_text
                    .push_str(&device(word).unwrap_or_default().to_string());
                self.copied = position.end;
                return Ok(());
            }
            (Kind::Text, _) => format!("`{name}' is text: put the value in quotes"),
            (Kind::Number | Kind::Device, _) => {
                format!("`{name}' is a number: expected decimal digits, or 0x and hexadecimal ones")
            }
            (Kind::Any, _) => "expected a value".to_owned(),
        };
        Err(self.error(position, reason))
    }

    /// The type of the field `name`. A suffix such as `.ustring` overrides it.
    fn kind(&self, name: &str, position: &Range<usize>) -> Result<Kind, FilterError> {
        let (field, suffix) = name.split_once('.').unwrap_or((name, ""));
        let of_event = self.format.field(field).map(Kind::of);
        let common = || {
            let known = COMMON_FIELDS.iter().find(|(known, _)| *known == field);
            known.map(|(_, kind)| *kind)
        };
        match of_event.or_else(common) {
            Some(_) if !suffix.is_empty() => Ok(Kind::Any),
            Some(kind) => Ok(kind),
            None => Err(self.unknown(field, position)),
        }
    }

    fn unknown(&self, name: &str, position: &Range<usize>) -> FilterError {
        let fields = || self.format.fields.iter().map(|field| field.name.as_str());
        let near = match nearest(name, fields()) {
            Some(near) => format!(", did you mean `{near}'?"),
            None => String::new(),
        };
        let names: Vec<&str> = fields().collect();
        let reason = format!("{} has no field `{name}'{near}", self.event);
        FilterError {
            hint: Some(format!("its fields are {}", names.join(", "))),
            ..self.error(position.clone(), reason)
        }
    }

    fn error(&self, position: Range<usize>, reason: impl Into<String>) -> FilterError {
        FilterError {
            text: self.text.to_owned(),
            position,
            reason: reason.into(),
            hint: None,
        }
    }

    fn copy_up_to(&mut self, end: usize) {
        let part = self.text.get(self.copied..end).unwrap_or_default();
        self.kernel_text.push_str(part);
        self.copied = end;
    }
}

/// Whether a word is a number: digits, or `0x` and hexadecimal digits, with or without a minus sign.
fn is_number(word: &str) -> bool {
    let digits = word.strip_prefix('-').unwrap_or(word);
    match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => !hex.is_empty() && hex.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

/// The kernel's number of a device `major:minor` or, as tracepoints print it, `major,minor`.
fn device(word: &str) -> Option<u32> {
    let (major, minor) = word.split_once([':', ','])?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    let fits = major < 1 << (u32::BITS - MINOR_BITS) && minor < 1 << MINOR_BITS;
    fits.then_some(major << MINOR_BITS | minor)
}

#[cfg(test)]
mod tests;
