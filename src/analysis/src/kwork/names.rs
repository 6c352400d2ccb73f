//! Names of interrupts, softirqs and the functions of work items, with their indexes.

use rperf_tracepoint::typed::NamedValue;
use rustc_hash::FxHashMap;

/// The index of a name in [`KworkNames`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct NameIndex(usize);

#[derive(Debug, Default)]
pub(super) struct KworkNames {
    names: Vec<Vec<u8>>,
    by_name: FxHashMap<Vec<u8>, NameIndex>,
    /// By softirq number, so that a name is formatted only once, not for each event.
    softirqs: FxHashMap<u64, NameIndex>,
}

impl KworkNames {
    /// Returns the index of `name`, which is added if it is new.
    pub(super) fn index(&mut self, name: &[u8]) -> NameIndex {
        if let Some(index) = self.by_name.get(name) {
            return *index;
        }
        let index = NameIndex(self.names.len());
        self.names.push(name.to_vec());
        self.by_name.insert(name.to_vec(), index);
        index
    }

    /// Returns the index of a softirq's name.
    pub(super) fn softirq(&mut self, vec: NamedValue<'_>) -> NameIndex {
        if let Some(index) = self.softirqs.get(&vec.value) {
            return *index;
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

    pub(super) fn name(&self, index: NameIndex) -> &[u8] {
        // Only this table creates indexes, and it never shrinks.
        &self.names[index.0]
    }
}
