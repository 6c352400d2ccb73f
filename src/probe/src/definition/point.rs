//! Where a probe goes.

use std::fmt;

use super::Fault;
use super::words::Word;

/// The place of a probe as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Point {
    /// In a function, or in all whose names match a pattern.
    Function {
        /// Its name, or a pattern (`*`, `?`, `[a-c]`).
        name: String,
        /// The source file, or the end of its path.
        file: Option<String>,
        /// Where in it.
        place: Place,
    },
    /// In a source file.
    File {
        /// Its path, or the end of it.
        file: String,
        /// Where in it; lines count from 1.
        place: SourcePlace,
    },
    /// At an address of the object.
    Address {
        /// As its symbols count.
        address: u64,
        /// Whether the return of the function there is meant.
        is_return: bool,
    },
    /// At the places that the program's author marked (USDT).
    Marker {
        /// The provider of the probe, where it was given.
        provider: Option<String>,
        /// The name of the probe, or a pattern.
        name: String,
    },
}

/// A place in a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// So many bytes behind its entry.
    Offset(u64),
    /// Where it returns.
    Return,
    /// By its source.
    Source(SourcePlace),
}

/// A place in source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourcePlace {
    /// A line: in a function counted from its declaration, which is 0.
    Line(u32),
    /// Every line that this pattern matches, blanks aside.
    Pattern(String),
}

impl Point {
    /// Whether the return of a function is meant.
    #[must_use]
    pub fn is_return(&self) -> bool {
        matches!(
            self,
            Self::Function {
                place: Place::Return,
                ..
            } | Self::Address {
                is_return: true,
                ..
            }
        )
    }
}

impl fmt::Display for Point {
    /// As a user would write it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Function { name, file, place } => {
                f.write_str(name)?;
                match place {
                    Place::Offset(0) => {}
                    Place::Offset(offset) => write!(f, "+{offset}")?,
                    Place::Return => f.write_str("%return")?,
                    Place::Source(place) => place.fmt(f)?,
                }
                match file {
                    Some(file) => write!(f, "@{file}"),
                    None => Ok(()),
                }
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

/// What stands behind the name of a function or file.
#[derive(Default)]
struct Suffixes {
    file: Option<String>,
    line: Option<u32>,
    offset: Option<u64>,
    pattern: Option<String>,
    is_return: bool,
}

/// Reads the word that names the place.
pub(super) fn parse(word: &Word) -> Result<Point, Fault> {
    if let Some(marker) = marker(word)? {
        return Ok(marker);
    }
    let word = &word.with_paths();
    let end = word.find(&[';', ':', '+', '@', '%']);
    let (name, suffixes) = match end {
        Some(end) => (word.cut(end).0, suffixes(word, end)?),
        None => (word.clone(), Suffixes::default()),
    };
    let at = word.start();
    suffixes.check(at)?;
    if name.is_empty() {
        return Err(Fault::new(at, "there is no function, file or address"));
    }
    let text = name.text();
    if is_file(word, &name) {
        return suffixes.in_file(text, at);
    }
    match address(&text) {
        Some(address) => suffixes.at_address(&address, at),
        None => Ok(suffixes.in_function(text)),
    }
}

/// A name with a dot, before a line or pattern and without what belongs to functions, is that of a file.
fn is_file(word: &Word, name: &Word) -> bool {
    let of_function = word.find(&['+', '@', '%']);
    let of_line = word.find(&[';', ':']);
    let in_pattern = word.find(&[';']);
    let free = of_function.is_none_or(|at| in_pattern.is_some_and(|start| start < at));
    free && of_line.is_some() && name.find(&['.']).is_some()
}

fn address(text: &str) -> Option<String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits.map(str::to_owned)
}

/// `%sdt_PROVIDER:NAME`, `%PROVIDER:NAME`, `%NAME` and `sdt_PROVIDER:NAME`.
fn marker(word: &Word) -> Result<Option<Point>, Fault> {
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
        return Err(Fault::new(
            word.start(),
            "a marker of a program is written %sdt_PROVIDER:NAME",
        ));
    }
    let name = name.to_owned();
    Ok(Some(Point::Marker { provider, name }))
}

/// Reads `@SRC`, `+OFF`, `:LINE`, `;PATTERN` and `%return`, in any order, from the letter at `start` on.
fn suffixes(word: &Word, start: usize) -> Result<Suffixes, Fault> {
    let mut found = Suffixes::default();
    let mut rest = word.cut(start).1;
    let mut kind = word.char_at(start);
    while let Some(current) = kind {
        if current == ';' {
            found.pattern = Some(rest.source()).filter(|pattern| !pattern.is_empty());
            if found.pattern.is_none() {
                return Err(Fault::new(rest.start(), "there is no pattern behind the ;"));
            }
            break;
        }
        let end = rest.find(&[';', ':', '+', '@', '%']);
        let (part, behind) = match end {
            Some(end) => rest.cut(end),
            None => (rest.clone(), rest.cut(usize::MAX - 1).1),
        };
        found.take(current, &part)?;
        kind = end.and_then(|end| rest.char_at(end));
        rest = behind;
    }
    Ok(found)
}

impl Suffixes {
    fn take(&mut self, kind: char, part: &Word) -> Result<(), Fault> {
        let (at, text) = (part.start(), part.text());
        match kind {
            ':' => {
                let line = number(&text).and_then(|line| u32::try_from(line).ok());
                let line = line
                    .ok_or_else(|| Fault::new(at, format!("'{text}' is not the number of a line")));
                self.line = Some(line?);
            }
            '+' => {
                let offset = number(&text)
                    .ok_or_else(|| Fault::new(at, format!("'{text}' is not a number of bytes")));
                self.offset = Some(offset?);
            }
            '@' if self.file.is_some() => {
                return Err(Fault::new(at, "there are two source files"));
            }
            '@' if text.is_empty() => {
                return Err(Fault::new(at, "there is no source file behind the @"));
            }
            '@' => self.file = Some(text),
            _ if text == "return" => self.is_return = true,
            _ => {
                return Err(Fault::new(
                    at,
                    format!("%{text} is not known; %return is, for the return of a function"),
                ));
            }
        }
        Ok(())
    }

    /// What excludes each other.
    fn check(&self, at: usize) -> Result<(), Fault> {
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
        Err(Fault::new(at, message))
    }

    fn source(&self) -> Option<SourcePlace> {
        let line = self.line.map(SourcePlace::Line);
        line.or_else(|| self.pattern.clone().map(SourcePlace::Pattern))
    }

    fn in_file(&self, file: String, at: usize) -> Result<Point, Fault> {
        match self.source() {
            Some(SourcePlace::Line(0)) => Err(Fault::new(at, "lines of a file begin with 1")),
            Some(place) => Ok(Point::File { file, place }),
            None => Err(Fault::new(at, "a file needs a line number or a pattern")),
        }
    }

    fn in_function(self, name: String) -> Point {
        let place = match self.source() {
            // Its declaration, which stands for its entry.
            Some(SourcePlace::Line(0)) => Place::Offset(0),
            Some(place) => Place::Source(place),
            None if self.is_return => Place::Return,
            None => Place::Offset(self.offset.unwrap_or(0)),
        };
        let file = self.file;
        Point::Function { name, file, place }
    }

    fn at_address(&self, digits: &str, at: usize) -> Result<Point, Fault> {
        let address = u64::from_str_radix(digits, 16).ok();
        let address = address.and_then(|address| address.checked_add(self.offset.unwrap_or(0)));
        let Some(address) = address else {
            return Err(Fault::new(at, format!("0x{digits} is not an address")));
        };
        if self.file.is_some() || self.source().is_some() {
            return Err(Fault::new(
                at,
                "an address takes no file, line number or pattern",
            ));
        }
        let is_return = self.is_return;
        Ok(Point::Address { address, is_return })
    }
}

/// A number as in C: decimal, hexadecimal, octal.
pub(crate) fn number(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).ok();
    }
    let is_plain = text.starts_with(|first: char| first.is_ascii_digit());
    match text.strip_prefix('0') {
        Some(digits) if !digits.is_empty() => u64::from_str_radix(digits, 8).ok(),
        _ if is_plain => text.parse().ok(),
        _ => None,
    }
}
