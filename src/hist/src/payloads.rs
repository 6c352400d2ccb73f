//! What tracepoints tell, as text: each once, with a number that aggregates work with.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_replay::EventIndex;
use rustc_hash::FxHashMap;

/// Makes text of what the samples of tracepoints carry.
pub trait PayloadText: Sync {
    /// Whether samples of `event` carry anything to be shown.
    fn has(&self, event: EventIndex) -> bool;

    /// Appends the text for the raw data of a sample of `event`.
    fn write(&self, event: EventIndex, raw: &[u8], out: &mut Vec<u8>);
}

/// A text's number. It differs from run to run, so nothing that is shown may be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PayloadId(pub(crate) u32);

/// All texts of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct Payloads(Mutex<Texts>);

/// All texts of a recording, by number.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    list: Vec<Arc<str>>,
    numbers: FxHashMap<Arc<str>, PayloadId>,
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
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Texts {
    pub(crate) fn get(&self, number: PayloadId) -> &str {
        let text = self.list.get(number.0 as usize);
        text.map_or("", |text| text)
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
        assert_eq!(texts.get(PayloadId(7)), "");
    }
}
