//! Splits a definition into words with character positions; backslashes escape special characters, quotes only blanks and
//! other quotes.

use super::SyntaxError;

/// One character of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Character {
    char: char,
    /// Offset in the definition in bytes.
    at: usize,
    /// Whether it is escaped, and so not a separator.
    is_escaped: bool,
}

/// A run of characters without blanks, except quoted or escaped ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    letters: Vec<Character>,
    /// End offset in the definition in bytes.
    end: usize,
}

impl Word {
    /// Returns the start offset in the definition in bytes.
    pub(crate) fn start(&self) -> usize {
        self.letters.first().map_or(self.end, |letter| letter.at)
    }

    /// Returns the offset of character `index` in the definition, in bytes.
    pub(crate) fn position(&self, index: usize) -> usize {
        self.letters.get(index).map_or(self.end, |letter| letter.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.letters.is_empty()
    }

    /// Returns the text without escaping backslashes.
    pub(crate) fn text(&self) -> String {
        self.letters.iter().map(|letter| letter.char).collect()
    }

    /// Returns the text with its backslashes: the backslash of an immediate value (`\5`) belongs to the value.
    pub(crate) fn source(&self) -> String {
        let mut text = String::new();
        for letter in &self.letters {
            if letter.is_escaped {
                text.push('\\');
            }
            text.push(letter.char);
        }
        text
    }

    /// Returns the index of the first of these characters that is not escaped.
    pub(crate) fn find(&self, separators: &[char]) -> Option<usize> {
        self.find_from(0, separators)
    }

    /// Returns the index of the first of these characters, from `start` on, that is not escaped.
    pub(crate) fn find_from(&self, start: usize, separators: &[char]) -> Option<usize> {
        let rest = self.letters.iter().enumerate().skip(start);
        let mut unescaped = rest.filter(|(_, letter)| !letter.is_escaped);
        unescaped
            .find(|(_, letter)| separators.contains(&letter.char))
            .map(|(index, _)| index)
    }

    pub(crate) fn char_at(&self, index: usize) -> Option<char> {
        self.letters.get(index).map(|letter| letter.char)
    }

    /// Returns the same word with each `::` escaped, so that it is a part of a name. A pattern (`;…`) is not changed.
    pub(crate) fn with_paths(&self) -> Self {
        let mut word = self.clone();
        let end = self.find(&[';']).unwrap_or(self.letters.len());
        let mut at = 0;
        while at + 1 < end {
            let is_path = self.char_at(at) == Some(':') && self.char_at(at + 1) == Some(':');
            if is_path {
                let pair = word.letters.iter_mut().skip(at).take(2);
                pair.for_each(|letter| letter.is_escaped = true);
            }
            at += if is_path { 2 } else { 1 };
        }
        word
    }

    /// Splits at the character at `index`, which is dropped.
    pub(crate) fn split_at(&self, index: usize) -> (Self, Self) {
        let before = self.letters.get(..index).unwrap_or(&self.letters);
        let after = self.letters.get(index + 1..).unwrap_or_default();
        let before = Self {
            letters: before.to_vec(),
            end: self.position(index),
        };
        let after = Self {
            letters: after.to_vec(),
            end: self.end,
        };
        (before, after)
    }
}

/// Splits at blanks that are neither quoted nor escaped.
pub(super) fn split(text: &str) -> Result<Vec<Word>, SyntaxError> {
    let mut words = Vec::new();
    let mut letters = Vec::new();
    let mut quote: Option<(char, usize)> = None;
    let mut escaped = false;
    for (at, char) in text.char_indices() {
        let ends_quote = quote.is_some_and(|(mark, _)| mark == char);
        match char {
            _ if escaped => {
                let is_escaped = true;
                letters.push(Character {
                    char,
                    at,
                    is_escaped,
                });
                escaped = false;
            }
            '\\' => escaped = true,
            _ if ends_quote => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some((char, at)),
            _ if char.is_whitespace() && quote.is_none() => {
                if !letters.is_empty() {
                    let letters = std::mem::take(&mut letters);
                    words.push(Word { letters, end: at });
                }
            }
            _ => letters.push(Character {
                char,
                at,
                is_escaped: false,
            }),
        }
    }
    if let Some((mark, at)) = quote {
        return Err(SyntaxError::new(
            at,
            format!("the quote {mark} is not closed"),
        ));
    }
    if escaped {
        return Err(SyntaxError::new(
            text.len() - 1,
            "nothing follows the backslash",
        ));
    }
    if !letters.is_empty() {
        let end = text.len();
        words.push(Word { letters, end });
    }
    Ok(words)
}
