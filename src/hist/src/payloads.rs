//! Interned texts: formatted tracepoint payloads, and source locations.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_replay::EventIndex;
use rustc_hash::FxHashMap;

use crate::values::FieldValues;

/// Formats tracepoint payloads.
pub trait PayloadText: Sync {
    /// Whether the payload of samples of `event` can be formatted.
    fn has(&self, event: EventIndex) -> bool;

    /// Appends the text of the raw data of a sample of `event`.
    fn write(&self, event: EventIndex, raw: &[u8], out: &mut Vec<u8>);

    /// The values of the tracepoint fields used as sort keys, from the raw data of a sample of `event`.
    fn fields(&self, event: EventIndex, raw: &[u8]) -> FieldValues;
}

/// The formatter for reports without tracepoints.
#[derive(Debug, Clone, Copy)]
pub struct NoPayloads;

impl PayloadText for NoPayloads {
    fn has(&self, _event: EventIndex) -> bool {
        false
    }

    fn write(&self, _event: EventIndex, _raw: &[u8], _out: &mut Vec<u8>) {}

    fn fields(&self, _event: EventIndex, _raw: &[u8]) -> FieldValues {
        FieldValues::new()
    }
}

/// Index of a text. It differs between runs, so output must not be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TextId(pub(crate) u32);

/// Distinct texts, added by several threads.
#[derive(Debug, Default)]
pub(crate) struct TextPool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    list: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, TextId>,
}

/// The texts of a pool, by index. There may be as many texts as samples, so they are compared by
/// their ranks.
#[derive(Debug, Default)]
pub(crate) struct PooledTexts {
    list: Vec<Arc<str>>,
    ranks: Vec<u32>,
}

impl TextPool {
    /// The index of `text`; invalid UTF-8 is replaced.
    pub(crate) fn intern(&self, text: &[u8]) -> TextId {
        let text = String::from_utf8_lossy(text);
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = texts.numbers.get(&*text) {
            return *number;
        }
        let number = TextId(texts.list.len() as u32);
        let text: Arc<str> = text.into();
        texts.list.push(Arc::clone(&text));
        texts.numbers.insert(text, number);
        number
    }

    /// Returns the texts with their ranks.
    pub(crate) fn finish(self) -> PooledTexts {
        let state = self.0.into_inner();
        let list = state.unwrap_or_else(PoisonError::into_inner).list;
        let mut order: Vec<(&str, u32)> = list.iter().map(|text| &**text).zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; list.len()];
        for ((_, number), rank) in order.into_iter().zip(0..) {
            ranks[number as usize] = rank;
        }
        PooledTexts { list, ranks }
    }
}

impl PooledTexts {
    /// The text with an index; empty if there is none.
    pub(crate) fn get(&self, number: TextId) -> &str {
        let text = self.list.get(number.0 as usize);
        text.map_or("", |text| text)
    }

    /// The rank of a text among all texts in the order of their bytes; `u32::MAX` if there is no such text.
    pub(crate) fn rank(&self, number: TextId) -> u32 {
        let rank = self.ranks.get(number.0 as usize);
        rank.copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let payloads = TextPool::default();
        let numbers = [b"one", b"two", b"one"].map(|text| payloads.intern(text));
        assert_eq!(numbers[0], numbers[2]);
        let texts = payloads.finish();
        assert_eq!(texts.get(numbers[1]), "two");
        assert!(texts.rank(numbers[0]) < texts.rank(numbers[1]));
        assert_eq!(texts.get(TextId(7)), "");
    }
}
