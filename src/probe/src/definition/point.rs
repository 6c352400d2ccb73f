//! Probe points.

use std::fmt;

use super::SyntaxError;
use super::words::Word;

/// A probe point as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// In one function, or all functions that match a pattern.
    Function {
        /// Its name, or a pattern (`*`, `?`, `[a-c]`).
        name: String,
        /// The path of the source file that declares it, or the end of this path; `None` if not given.
        file: Option<String>,
        /// The location within the function.
        place: FunctionPlace,
    },
    /// In a source file.
    File {
        /// Its path or the end of its path.
        file: String,
        /// The location within the file; lines count from 1.
        place: SourcePlace,
    },
    /// At an address.
    Address {
        /// The address in the object; for the running kernel, the run-time address.
        address: u64,
        /// Whether the function's return is probed.
        is_return: bool,
    },
    /// At USDT markers.
    Marker {
        /// The provider or a pattern, if given.
        provider: Option<String>,
        /// The name of the marker, or a pattern.
        name: String,
    },
}

/// A location in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FunctionPlace {
    /// Offset from its entry in bytes.
    Offset(u64),
    /// Its return.
    Return,
    /// A location in its source.
    Source(SourcePlace),
}

/// A location in source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// A line number; in a function, relative to the declaration, which is line 0.
    Line(u32),
    /// All lines that match this pattern, ignoring blanks; if there are none, those that contain it.
    Pattern(String),
}

impl Point {
    /// Whether a function's return is probed.
    #[must_use]
    pub fn is_return(&self) -> bool {
        matches!(
            self,
            Self::Function {
                place: FunctionPlace::Return,
                ..
            } | Self::Address {
                is_return: true,
                ..
            }
        )
    }
}

impl fmt::Display for Point {
    /// Formats the point for messages, in the syntax of definitions; a marker without its provider.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name, file, place } => {
                f.write_str(name)?;
                match place {
                    FunctionPlace::Offset(0) | FunctionPlace::Source(SourcePlace::Pattern(_)) => {}
                    FunctionPlace::Offset(offset) => write!(f, "+{offset}")?,
                    FunctionPlace::Return => f.write_str("%return")?,
                    FunctionPlace::Source(line) => line.fmt(f)?,
                }
                if let Some(file) = file {
                    write!(f, "@{file}")?;
                }
                // A pattern extends to the end of the probe point.
                if let FunctionPlace::Source(pattern @ SourcePlace::Pattern(_)) = place {
                    pattern.fmt(f)?;
                }
                Ok(())
            }
            Self::File { file, place } => write!(f, "{file}{place}"),
            Self::Address { address, is_return } => {
                let suffix = if *is_return { "%return" } else { "" };
                write!(f, "{address:#x}{suffix}")
            }
            Self::Marker { name, .. } => write!(f, "%{name}"),
        }
    }
}

impl fmt::Display for SourcePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, ":{line}"),
            Self::Pattern(pattern) => write!(f, ";{pattern}"),
        }
    }
}

/// The suffixes of a function, a file or an address.
#[derive(Default)]
struct Suffixes {
    file: Option<String>,
    line: Option<u32>,
    offset: Option<u64>,
    pattern: Option<String>,
    is_return: bool,
}

/// Parses the probe point.
pub(super) fn parse(word: &Word) -> Result<Point, SyntaxError> {
    if let Some(marker) = marker(word)? {
        return Ok(marker);
    }
    // Neither `:` of a `::`, as in C++ names, begins a suffix.
    let word = &word.with_escaped_paths();
    let end = word.find(&[';', ':', '+', '@', '%']);
    let (name, suffixes) = match end {
        Some(end) => (word.split_at(end).0, suffixes(word, end)?),
        None => (word.clone(), Suffixes::default()),
    };
    let at = word.start();
    suffixes.check(at)?;
    if name.is_empty() {
        return Err(SyntaxError::new(at, "no function, file or address given"));
    }
    let text = name.text();
    if is_file(word, &name) {
        return suffixes.in_file(text, at);
    }
    match address_digits(&text) {
        Some(digits) => suffixes.at_address(digits, at),
        None => Ok(suffixes.in_function(text)),
    }
}

/// Whether the `name` before the suffixes of `word` is the name of a file: it has a dot, and `word` has a `:` or `;` suffix but
/// no `+`, `@` or `%` suffix, which files cannot have. These characters in the pattern (`;…`) do not count.
fn is_file(word: &Word, name: &Word) -> bool {
    let function_suffix = word.find(&['+', '@', '%']);
    let line_suffix = word.find(&[';', ':']);
    let pattern = word.find(&[';']);
    let has_function_suffix =
        function_suffix.is_some_and(|at| pattern.is_none_or(|pattern| at < pattern));
    !has_function_suffix && line_suffix.is_some() && name.find(&['.']).is_some()
}

/// Returns the text after `0x`, which need not be hexadecimal digits; `None` if `text` does not begin with `0x`.
fn address_digits(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

/// Parses `%sdt_PROVIDER:NAME`, `%PROVIDER:NAME`, `%NAME` and `sdt_PROVIDER:NAME`; `None` for other probe points.
fn marker(word: &Word) -> Result<Option<Point>, SyntaxError> {
    let text = word.text();
    let named = match text.strip_prefix('%') {
        Some(named) => named,
        None if text.starts_with("sdt_") && text.contains(':') => &text,
        None => return Ok(None),
    };
    let (provider, name) = match named.split_once(':') {
        Some((provider, name)) => {
            let provider = provider.strip_prefix("sdt_").unwrap_or(provider);
            (Some(provider.to_owned()), name)
        }
        None => (None, named),
    };
    if name.is_empty() || provider.as_ref().is_some_and(String::is_empty) {
        return Err(SyntaxError::new(
            word.start(),
            "a USDT probe is written %sdt_PROVIDER:NAME",
        ));
    }
    let name = name.to_owned();
    Ok(Some(Point::Marker { provider, name }))
}

/// Parses the suffixes from the character at `start` on: `@SRC`, `+OFF`, `:LINE` and `%return` in any order, then
/// `;PATTERN`, which extends to the end of the word. Splitting drops the separator, so `kind` keeps the one before `rest`.
fn suffixes(word: &Word, start: usize) -> Result<Suffixes, SyntaxError> {
    let mut parsed = Suffixes::default();
    let mut rest = word.split_at(start).1;
    let mut kind = word.char_at(start);
    while let Some(current) = kind {
        if current == ';' {
            // Backslashes belong to the pattern.
            parsed.pattern = Some(rest.source()).filter(|pattern| !pattern.is_empty());
            if parsed.pattern.is_none() {
                return Err(SyntaxError::new(rest.start(), "expected a pattern after ;"));
            }
            break;
        }
        let Some(end) = rest.find(&[';', ':', '+', '@', '%']) else {
            parsed.take(current, &rest)?;
            break;
        };
        let (part, after) = rest.split_at(end);
        parsed.take(current, &part)?;
        kind = rest.char_at(end);
        rest = after;
    }
    Ok(parsed)
}

impl Suffixes {
    /// Parses the suffix that begins with `kind`, which is not `;`.
    fn take(&mut self, kind: char, part: &Word) -> Result<(), SyntaxError> {
        let (at, text) = (part.start(), part.text());
        match kind {
            ':' => {
                // As in perf, FUNCTION: is FUNCTION:0.
                let line = match text.is_empty() {
                    true => Some(0),
                    false => number(&text).and_then(|line| u32::try_from(line).ok()),
                };
                let line = line.ok_or_else(|| {
                    SyntaxError::new(at, format!("'{text}' is not the number of a line"))
                });
                self.line = Some(line?);
            }
            '+' => {
                let offset = number(&text).ok_or_else(|| {
                    SyntaxError::new(at, format!("'{text}' is not a number of bytes"))
                });
                self.offset = Some(offset?);
            }
            '@' if self.file.is_some() => {
                return Err(SyntaxError::new(at, "two source files given"));
            }
            '@' if text.is_empty() => {
                return Err(SyntaxError::new(at, "expected a source file after @"));
            }
            '@' => self.file = Some(text),
            // The only other suffix is `%`.
            _ if text == "return" => self.is_return = true,
            _ => {
                return Err(SyntaxError::new(
                    at,
                    format!("unknown suffix %{text}; use %return for the return of a function"),
                ));
            }
        }
        Ok(())
    }

    /// Checks for conflicting suffixes.
    fn check(&self, at: usize) -> Result<(), SyntaxError> {
        let (line, offset) = (self.line.is_some(), self.offset.is_some());
        let pattern = self.pattern.is_some();
        let message = match () {
            () if pattern && line => "a pattern and a line number exclude each other",
            () if pattern && offset => "a pattern and an offset exclude each other",
            () if line && offset => "a line number and an offset exclude each other",
            () if self.is_return && (line || pattern || offset) => {
                "%return takes no offset, line number or pattern"
            }
            () => return Ok(()),
        };
        Err(SyntaxError::new(at, message))
    }

    /// The location that `:LINE` or `;PATTERN` gives, if any.
    fn source_place(&self) -> Option<SourcePlace> {
        let line = self.line.map(SourcePlace::Line);
        line.or_else(|| self.pattern.clone().map(SourcePlace::Pattern))
    }

    fn in_file(&self, file: String, at: usize) -> Result<Point, SyntaxError> {
        match self.source_place() {
            Some(SourcePlace::Line(0)) => {
                Err(SyntaxError::new(at, "lines of a file are counted from 1"))
            }
            Some(place) => Ok(Point::File { file, place }),
            None => Err(SyntaxError::new(
                at,
                "a file needs a line number or a pattern",
            )),
        }
    }

    fn in_function(self, name: String) -> Point {
        let place = match self.source_place() {
            // Line 0 is the declaration and represents the entry.
            Some(SourcePlace::Line(0)) => FunctionPlace::Offset(0),
            Some(place) => FunctionPlace::Source(place),
            None if self.is_return => FunctionPlace::Return,
            None => FunctionPlace::Offset(self.offset.unwrap_or(0)),
        };
        let file = self.file;
        Point::Function { name, file, place }
    }

    fn at_address(&self, digits: &str, at: usize) -> Result<Point, SyntaxError> {
        let address = u64::from_str_radix(digits, 16).ok();
        let address = address.and_then(|address| address.checked_add(self.offset.unwrap_or(0)));
        let Some(address) = address else {
            return Err(SyntaxError::new(
                at,
                format!("0x{digits} is not an address"),
            ));
        };
        if self.file.is_some() || self.source_place().is_some() {
            return Err(SyntaxError::new(
                at,
                "an address takes no file, line number or pattern",
            ));
        }
        let is_return = self.is_return;
        Ok(Point::Address { address, is_return })
    }
}

/// Parses a number as in C: decimal, hexadecimal (`0x`) or octal (`0`).
pub(crate) fn number(text: &str) -> Option<u64> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let octal = text.strip_prefix('0').filter(|digits| !digits.is_empty());
    let (digits, radix) = match (hexadecimal, octal) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) => (digits, 8),
        (None, None) => (text, 10),
    };
    // The standard library would also accept a `+` before the digits.
    let begins_with_digit = digits.starts_with(|first: char| first.is_digit(radix));
    u64::from_str_radix(digits, radix)
        .ok()
        .filter(|_| begins_with_digit)
}

/// Parses a number as in C, with an optional sign.
pub(crate) fn signed_number(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = i64::try_from(number(digits)?).ok()?;
    Some(if is_negative { -value } else { value })
}
