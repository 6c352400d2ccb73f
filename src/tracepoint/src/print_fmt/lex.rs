//! Tokens of a `print fmt`.

/// Type of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// Letters, digits and underscores.
    Item,
    /// An operator such as `->` or `<<=`, or any other printable ASCII character.
    Operator,
    /// A parenthesis or a comma.
    Delimiter,
    /// Text in double quotes, without the quotes; adjacent texts are joined.
    Text,
    /// A character in single quotes, without the quotes.
    Character,
    /// A newline.
    Newline,
    /// The end of the text, or a character that is neither printable ASCII nor white space: no token follows.
    End,
}

/// A token with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) text: String,
}

impl Token {
    pub(super) fn is_operator(&self, text: &str) -> bool {
        self.kind == TokenKind::Operator && self.text == text
    }

    pub(super) fn is_delimiter(&self, text: &str) -> bool {
        self.kind == TokenKind::Delimiter && self.text == text
    }

    /// Whether it is a name, a number, a text or a character.
    pub(super) fn is_value(&self) -> bool {
        matches!(
            self.kind,
            TokenKind::Item | TokenKind::Text | TokenKind::Character
        )
    }
}

/// Splits text into tokens.
#[derive(Debug)]
pub(super) struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Type of a token that begins with this byte; `None` for white space other than a newline.
fn kind_of(byte: u8) -> Option<TokenKind> {
    match byte {
        b'\n' => Some(TokenKind::Newline),
        b' ' | b'\t' | b'\r' | 0x0b | 0x0c => None,
        b'_' => Some(TokenKind::Item),
        b'\'' => Some(TokenKind::Character),
        b'"' => Some(TokenKind::Text),
        b'(' | b')' | b',' => Some(TokenKind::Delimiter),
        _ if byte.is_ascii_alphanumeric() => Some(TokenKind::Item),
        _ if byte.is_ascii_graphic() => Some(TokenKind::Operator),
        _ => Some(TokenKind::End),
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

    fn take_if(&mut self, expected: u8) -> bool {
        let is_next = self.peek() == Some(expected);
        self.at += usize::from(is_next);
        is_next
    }

    /// Reads the next token, which may be a newline.
    pub(super) fn read(&mut self) -> Token {
        while self.peek().is_some_and(|byte| kind_of(byte).is_none()) {
            self.at += 1;
        }
        let start = self.at;
        let kind = self.take().and_then(kind_of).unwrap_or(TokenKind::End);
        match kind {
            TokenKind::Item => {
                while self.peek().and_then(kind_of) == Some(TokenKind::Item) {
                    self.at += 1;
                }
            }
            TokenKind::Operator => self.operator(start),
            TokenKind::Text | TokenKind::Character => return self.quoted(start, kind),
            TokenKind::Delimiter | TokenKind::Newline => {}
            TokenKind::End => self.at = start,
        }
        let bytes = self.bytes.get(start..self.at).unwrap_or_default();
        Token {
            kind,
            text: String::from_utf8_lossy(bytes).into_owned(),
        }
    }

    /// Reads the next token that is not a newline.
    pub(super) fn read_past_newlines(&mut self) -> Token {
        loop {
            let token = self.read();
            if token.kind != TokenKind::Newline {
                return token;
            }
        }
    }

    /// Reads the rest of an operator after its first byte at `start`.
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

    /// Reads a text or a character from its opening quote at `start`, which is already taken, to its closing quote, or to the
    /// end of the `print fmt` if there is none. Appends further texts that only white space separates from it. Escapes are
    /// kept: `spec::parts` resolves those of the format string; those of arguments are never resolved.
    fn quoted(&mut self, start: usize, kind: TokenKind) -> Token {
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
            if kind != TokenKind::Text || !self.take_if(b'"') {
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
