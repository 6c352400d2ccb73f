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

/// Index of a text in its [`TextPool`]. It differs between runs, as several threads add texts, so output must not be ordered by
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct TextId(pub(crate) u32);

/// Distinct texts, added by several threads.
#[derive(Debug, Default)]
pub(crate) struct TextPool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    list: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, TextId>,
}

/// The texts of a pool, by index. There may be as many texts as samples, so they are compared by their ranks: their positions
/// when sorted by bytes.
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
        if let Some(id) = texts.ids.get(&*text) {
            return *id;
        }
        let id = TextId(texts.list.len() as u32);
        let text: Arc<str> = text.into();
        texts.list.push(Arc::clone(&text));
        texts.ids.insert(text, id);
        id
    }

    /// Returns the texts with their ranks.
    pub(crate) fn finish(self) -> PooledTexts {
        let state = self.0.into_inner();
        let list = state.unwrap_or_else(PoisonError::into_inner).list;
        let mut order: Vec<(&str, u32)> = list.iter().map(|text| &**text).zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; list.len()];
        for ((_, index), rank) in order.into_iter().zip(0..) {
            ranks[index as usize] = rank;
        }
        PooledTexts { list, ranks }
    }
}

impl PooledTexts {
    /// The text with an index; empty if there is none.
    pub(crate) fn get(&self, id: TextId) -> &str {
        let text = self.list.get(id.0 as usize);
        text.map_or("", |text| text)
    }

    /// The rank of a text among all texts in the order of their bytes; `u32::MAX` if there is no such text.
    pub(crate) fn rank(&self, id: TextId) -> u32 {
        let rank = self.ranks.get(id.0 as usize);
        rank.copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_id() {
        let pool = TextPool::default();
        let ids = [b"one", b"two", b"one"].map(|text| pool.intern(text));
        assert_eq!(ids[0], ids[2]);
        let texts = pool.finish();
        assert_eq!(texts.get(ids[1]), "two");
        assert!(texts.rank(ids[0]) < texts.rank(ids[1]));
        assert_eq!(texts.get(TextId(7)), "");
    }
}
