//! `name/terms/modifiers`, where the name is that of a PMU or of an event: the terms between slashes.

use std::ops::Range;

/// The parts of a word with slashes, as byte offsets in the word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SlashedWord {
    /// Offset of the first slash, after the name of the PMU or event.
    pub(crate) open: usize,
    /// The terms.
    pub(crate) inside: Range<usize>,
    /// The modifiers, without a leading colon.
    pub(crate) modifiers: Range<usize>,
}

/// A `key=value`, or a key alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Term<'a> {
    pub(crate) key: &'a str,
    pub(crate) value: Option<&'a str>,
    /// Offset of the key in the word.
    pub(crate) offset: usize,
}

impl SlashedWord {
    /// Locates the parts; `None` if the word has fewer than two slashes.
    pub(crate) fn split(word: &str) -> Option<Self> {
        let (open, close) = (word.find('/')?, word.rfind('/')?);
        let after = word.get(close + 1..)?;
        let colon = usize::from(after.starts_with(':'));
        (open < close).then_some(Self {
            open,
            inside: open + 1..close,
            modifiers: close + 1 + colon..word.len(),
        })
    }

    /// The terms in order. Empty terms are skipped: `cpu//` has none.
    pub(crate) fn terms<'a>(&self, word: &'a str) -> Vec<Term<'a>> {
        let inside = word.get(self.inside.clone()).unwrap_or_default();
        split_terms(inside, self.inside.start)
    }
}

/// The terms of `text`, which starts at offset `start` of a word. Empty terms are skipped.
pub(crate) fn split_terms(text: &str, start: usize) -> Vec<Term<'_>> {
    let mut offset = start;
    let mut terms = Vec::new();
    for term in text.split(',') {
        let (key, value) = match term.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (term, None),
        };
        if !term.is_empty() {
            terms.push(Term { key, value, offset });
        }
        offset += term.len() + 1;
    }
    terms
}

impl Term<'_> {
    /// Offset of the value in the word, or of the key if there is no value.
    pub(crate) fn value_offset(&self) -> usize {
        self.offset + self.value.map_or(0, |_| self.key.len() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_and_terms_have_positions() {
        let word = "cpu/event=1,,inv/u";
        let parts = SlashedWord::split(word).unwrap();
        assert_eq!((parts.open, parts.modifiers.clone()), (3, 17..18));
        let terms = parts.terms(word);
        let plain: Vec<_> = terms
            .iter()
            .map(|term| (term.key, term.value, term.offset, term.value_offset()))
            .collect();
        assert_eq!(plain, [("event", Some("1"), 4, 10), ("inv", None, 13, 13)]);
        assert_eq!(SlashedWord::split("a/b/:k").unwrap().modifiers, 5..6);
        assert_eq!(SlashedWord::split("cpu//").unwrap().terms("cpu//"), []);
        assert_eq!(SlashedWord::split("cpu/"), None);
    }
}
