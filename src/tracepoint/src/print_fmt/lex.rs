//! Tokens of a `print fmt`.

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters, digits and underscores.
    Item,
    /// An operator; everything printable that is nothing else.
    Operator,
    /// A parenthesis or a comma.
    Delimiter,
    /// Text in double quotes, without them; adjacent ones are joined.
    Text,
    /// A character in single quotes, without them.
    Character,
    /// An end of line.
    Newline,
    /// The end of the text, or a character that cannot be printed.
    End,
}

/// A token with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Token {
    pub(super) fn is_operator(&self, text: &str) -> bool {
        self.kind == Kind::Operator && self.text == text
    }

    pub(super) fn is_delimiter(&self, text: &str) -> bool {
        self.kind == Kind::Delimiter && self.text == text
    }

    /// Whether a value can start here: after `(type)` that makes the parentheses a cast.
    pub(super) fn is_value(&self) -> bool {
        matches!(self.kind, Kind::Item | Kind::Text | Kind::Character)
    }
}

/// Cuts a text into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// What a byte alone would be; `None` for a blank.
fn kind_of(byte: u8) -> Option<Kind> {
    match byte {
        b'\n' => Some(Kind::Newline),
        b' ' | b'\t' | b'\r' | 0x0b | 0x0c => None,
        b'_' => Some(Kind::Item),
        b'\'' => Some(Kind::Character),
        b'"' => Some(Kind::Text),
        b'(' | b')' | b',' => Some(Kind::Delimiter),
        _ if byte.is_ascii_alphanumeric() => Some(Kind::Item),
        _ if byte.is_ascii_graphic() => Some(Kind::Operator),
        _ => Some(Kind::End),
    }
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            bytes: text.as_bytes(),
            at: 0,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn take_if(&mut self, wanted: u8) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    /// The next token, ends of lines included.
    pub(super) fn read(&mut self) -> Token {
        while self.peek().is_some_and(|byte| kind_of(byte).is_none()) {
            self.at += 1;
        }
        let start = self.at;
        let kind = self.take().and_then(kind_of).unwrap_or(Kind::End);
        match kind {
            Kind::Item => {
                while self.peek().and_then(kind_of) == Some(Kind::Item) {
                    self.at += 1;
                }
            }
            Kind::Operator => self.operator(start),
            Kind::Text | Kind::Character => return self.quoted(start, kind),
            Kind::Delimiter | Kind::Newline => {}
            Kind::End => self.at = start,
        }
        let bytes = self.bytes.get(start..self.at).unwrap_or_default();
        Token {
            kind,
            text: String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// The next token that is no end of line.
    pub(super) fn read_item(&mut self) -> Token {
        loop {
            let token = self.read();
            if token.kind != Kind::Newline {
                return token;
            }
        }
    }

    /// Takes what belongs to the operator whose first byte, at `start`, was taken.
    fn operator(&mut self, start: usize) {
        let first = self.bytes.get(start).copied().unwrap_or_default();
        match first {
            b'-' if self.take_if(b'>') => {}
            b'<' | b'>' => {
                self.take_if(first);
                self.take_if(b'=');
            }
            b'-' | b'+' | b'|' | b'&' if self.take_if(first) => {}
            b'-' | b'+' | b'|' | b'&' | b'!' | b'=' => {
                self.take_if(b'=');
            }
            _ => {}
        }
    }

    /// Reads up to the closing quote; the opening one, at `start`, was taken. Escapes stay as they
    /// are: the format string resolves them, tables and characters don't.
    fn quoted(&mut self, start: usize, kind: Kind) -> Token {
        let quote = self.bytes.get(start).copied().unwrap_or_default();
        let mut text = Vec::new();
        loop {
            let mut is_escaped = false;
            while let Some(byte) = self.take() {
                if byte == quote && !is_escaped {
                    break;
                }
                text.push(byte);
                is_escaped = byte == b'\\' && !is_escaped;
            }
            let after = self.at;
            while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
                self.at += 1;
            }
            if kind != Kind::Text || !self.take_if(b'"') {
                self.at = after;
                break;
            }
        }
        Token {
            kind,
            text: String::from_utf8_lossy(&text).into_owned(),
        }
    }
}
