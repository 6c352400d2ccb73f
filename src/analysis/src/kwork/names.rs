//! Names of interrupts, softirqs and the functions of work items, each stored once.

use rperf_tracepoint::typed::NamedValue;
use rustc_hash::FxHashMap;

/// The index of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NameIndex(usize);

/// The names seen so far.
#[derive(Debug, Default)]
pub(super) struct KworkNames {
    texts: Vec<Vec<u8>>,
    by_text: FxHashMap<Vec<u8>, NameIndex>,
    /// By number, to avoid formatting the name of each event.
    softirqs: FxHashMap<u64, NameIndex>,
}

impl KworkNames {
    /// Returns the index of a name.
    pub(super) fn index(&mut self, text: &[u8]) -> NameIndex {
        if let Some(found) = self.by_text.get(text) {
            return *found;
        }
        let added = NameIndex(self.texts.len());
        self.texts.push(text.to_vec());
        self.by_text.insert(text.to_vec(), added);
        added
    }

    /// Returns the index of a softirq's name.
    pub(super) fn softirq(&mut self, vec: NamedValue<'_>) -> NameIndex {
        if let Some(found) = self.softirqs.get(&vec.value) {
            return *found;
        }
        let index = self.index(vec.to_string().as_bytes());
        self.softirqs.insert(vec.value, index);
        index
    }

    /// Returns the index of a function's name: its symbol, or its address if it has none.
    pub(super) fn function(&mut self, symbol: Option<&str>, address: u64) -> NameIndex {
        match symbol {
            Some(symbol) => self.index(symbol.as_bytes()),
            None => self.index(format!("{address:#x}").as_bytes()),
        }
    }

    /// Returns a name.
    pub(super) fn text(&self, index: NameIndex) -> &[u8] {
        // Only this table creates indexes, and it never shrinks.
        &self.texts[index.0]
    }
}
