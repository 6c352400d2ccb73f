//! Numbers for the names of tasks: equal names have the same number.

use rustc_hash::FxHashMap;

/// The number of a name in a [`NameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct NameNumber(u32);

/// Names, numbered in order of their first use.
#[derive(Debug, Default)]
pub(super) struct NameTable {
    numbers: FxHashMap<Box<[u8]>, NameNumber>,
    names: Vec<Box<[u8]>>,
}

impl NameTable {
    /// Returns the number of a name, which is added if it is new.
    pub(super) fn add(&mut self, name: &[u8]) -> NameNumber {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = NameNumber(u32::try_from(self.names.len()).unwrap_or(u32::MAX));
        self.names.push(name.into());
        self.numbers.insert(name.into(), number);
        number
    }

    /// Returns the name with this number.
    pub(super) fn get(&self, number: NameNumber) -> &[u8] {
        self.names.get(number.0 as usize).map_or(b"", |name| name)
    }
}
