//! Splits a definition into words whose characters keep their positions. A character after a backslash has no special meaning,
//! also in quotes. Between quotes, blanks and the other kind of quote lose their special meaning, but separators (such as `=` and
//! `:`) still separate. Quotes are dropped.

use super::SyntaxError;

/// One character of a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Character {
    char: char,
    /// Offset in the definition in bytes.
    at: usize,
    /// Whether it cannot be a separator: a backslash precedes it, or [`Word::with_escaped_paths`] escaped it. `false` for a
    /// character that is only quoted.
    is_escaped: bool,
}

/// A run of characters without blanks, except quoted or escaped ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    characters: Vec<Character>,
    /// End offset in the definition in bytes.
    end: usize,
}

impl Word {
    /// Returns the start offset in the definition in bytes.
    pub(crate) fn start(&self) -> usize {
        self.characters
            .first()
            .map_or(self.end, |character| character.at)
    }

    /// Returns the offset of character `index` in the definition, in bytes; that of the word's end if there is no such character.
    pub(crate) fn position(&self, index: usize) -> usize {
        self.characters
            .get(index)
            .map_or(self.end, |character| character.at)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.characters.is_empty()
    }

    /// Returns the characters without the backslashes that escape them.
    pub(crate) fn text(&self) -> String {
        self.characters
            .iter()
            .map(|character| character.char)
            .collect()
    }

    /// Returns the characters with the backslashes that escape them: the backslash of an immediate value (`\5`) belongs to the
    /// value.
    pub(crate) fn source(&self) -> String {
        let mut text = String::new();
        for character in &self.characters {
            if character.is_escaped {
                text.push('\\');
            }
            text.push(character.char);
        }
        text
    }

    /// Returns the index of the first character that is one of `separators` and not escaped.
    pub(crate) fn find(&self, separators: &[char]) -> Option<usize> {
        self.find_from(0, separators)
    }

    /// Like [`find`](Self::find), from index `start` on.
    pub(crate) fn find_from(&self, start: usize, separators: &[char]) -> Option<usize> {
        let rest = self.characters.iter().enumerate().skip(start);
        let mut unescaped = rest.filter(|(_, character)| !character.is_escaped);
        unescaped
            .find(|(_, character)| separators.contains(&character.char))
            .map(|(index, _)| index)
    }

    pub(crate) fn char_at(&self, index: usize) -> Option<char> {
        self.characters.get(index).map(|character| character.char)
    }

    /// Returns the same word with each `::` escaped, so that it does not end a name. A pattern (`;…`) is not changed.
    pub(crate) fn with_escaped_paths(&self) -> Self {
        let mut word = self.clone();
        let end = self.find(&[';']).unwrap_or(self.characters.len());
        let mut index = 0;
        while index + 1 < end {
            let is_path_separator =
                self.char_at(index) == Some(':') && self.char_at(index + 1) == Some(':');
            if is_path_separator {
                let pair = word.characters.iter_mut().skip(index).take(2);
                pair.for_each(|character| character.is_escaped = true);
            }
            index += if is_path_separator { 2 } else { 1 };
        }
        word
    }

    /// Splits at the character at `index`, which is dropped.
    pub(crate) fn split_at(&self, index: usize) -> (Self, Self) {
        let before = self.characters.get(..index).unwrap_or(&self.characters);
        let after = self.characters.get(index + 1..).unwrap_or_default();
        let before = Self {
            characters: before.to_vec(),
            end: self.position(index),
        };
        let after = Self {
            characters: after.to_vec(),
            end: self.end,
        };
        (before, after)
    }
}

/// Splits at blanks that are neither quoted nor escaped. Empty words, also quoted ones, are dropped.
pub(super) fn split(text: &str) -> Result<Vec<Word>, SyntaxError> {
    let mut words = Vec::new();
    let mut characters = Vec::new();
    // The quote that is open, and its offset.
    let mut quote: Option<(char, usize)> = None;
    let mut after_backslash = false;
    for (at, char) in text.char_indices() {
        let ends_quote = quote.is_some_and(|(mark, _)| mark == char);
        match char {
            _ if after_backslash => {
                characters.push(Character {
                    char,
                    at,
                    is_escaped: true,
                });
                after_backslash = false;
            }
            '\\' => after_backslash = true,
            _ if ends_quote => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some((char, at)),
            _ if char.is_whitespace() && quote.is_none() => {
                if !characters.is_empty() {
                    let characters = std::mem::take(&mut characters);
                    words.push(Word {
                        characters,
                        end: at,
                    });
                }
            }
            _ => characters.push(Character {
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
    if after_backslash {
        return Err(SyntaxError::new(
            text.len() - 1,
            "nothing follows the backslash",
        ));
    }
    if !characters.is_empty() {
        let end = text.len();
        words.push(Word { characters, end });
    }
    Ok(words)
}
