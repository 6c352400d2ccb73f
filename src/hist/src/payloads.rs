//! What tracepoints tell, as text: each once, with a number that aggregates work with.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_replay::EventIndex;
use rustc_hash::FxHashMap;

use crate::values::FieldValues;

/// Makes text of what the samples of tracepoints carry.
pub trait PayloadText: Sync {
    /// Whether samples of `event` carry anything to be shown.
    fn has(&self, event: EventIndex) -> bool;

    /// Appends the text for the raw data of a sample of `event`.
    fn write(&self, event: EventIndex, raw: &[u8], out: &mut Vec<u8>);

    /// The fields that are sort keys, for the raw data of a sample of `event`.
    fn fields(&self, event: EventIndex, raw: &[u8]) -> FieldValues;
}

/// For what shows nothing of tracepoints.
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

/// A text's number. It differs from run to run, so nothing that is shown may be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PayloadId(pub(crate) u32);

/// All texts of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct Payloads(Mutex<Growing>);

#[derive(Debug, Default)]
struct Growing {
    list: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, PayloadId>,
}

/// All texts of a recording, by number. There may be as many as samples: rows are told apart and ordered by ranks.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    list: Vec<Arc<str>>,
    ranks: Vec<u32>,
}

impl Payloads {
    /// The number of `text`; what is no UTF-8 is replaced.
    pub(crate) fn number(&self, text: &[u8]) -> PayloadId {
        let text = String::from_utf8_lossy(text);
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = texts.numbers.get(&*text) {
            return *number;
        }
        let number = PayloadId(texts.list.len() as u32);
        let text: Arc<str> = text.into();
        texts.list.push(Arc::clone(&text));
        texts.numbers.insert(text, number);
        number
    }

    /// The texts, when there will be no more.
    pub(crate) fn finish(self) -> Texts {
        let growing = self.0.into_inner();
        let list = growing.unwrap_or_else(PoisonError::into_inner).list;
        let mut order: Vec<(&str, u32)> = list.iter().map(|text| &**text).zip(0..).collect();
        order.sort_unstable();
        let mut ranks = vec![0; list.len()];
        for ((_, number), rank) in order.into_iter().zip(0..) {
            ranks[number as usize] = rank;
        }
        Texts { list, ranks }
    }
}

impl Texts {
    pub(crate) fn get(&self, number: PayloadId) -> &str {
        let text = self.list.get(number.0 as usize);
        text.map_or("", |text| text)
    }

    /// The place of a text among all, by bytes.
    pub(crate) fn rank(&self, number: PayloadId) -> u32 {
        let rank = self.ranks.get(number.0 as usize);
        rank.copied().unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_have_one_number() {
        let payloads = Payloads::default();
        let numbers = [b"one", b"two", b"one"].map(|text| payloads.number(text));
        assert_eq!(numbers[0], numbers[2]);
        let texts = payloads.finish();
        assert_eq!(texts.get(numbers[1]), "two");
        assert!(texts.rank(numbers[0]) < texts.rank(numbers[1]));
        assert_eq!(texts.get(PayloadId(7)), "");
    }
}
