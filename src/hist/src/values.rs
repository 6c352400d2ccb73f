//! Values of tracepoint fields used as sort keys, as interned lists.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// The value of a field in a sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldValue {
    /// The bytes that identify the value. Rows are ordered by them, descending as in perf.
    pub bytes: Vec<u8>,
    /// The text of its cell.
    pub text: String,
}

/// The values of sort key fields in a sample, by the `number` passed to [`Key::of_field`]; `None`
/// for fields of other events.
///
/// [`Key::of_field`]: crate::Key::of_field
pub type FieldValues = Vec<Option<FieldValue>>;

/// Index (number) of a list in a [`ValuePool`]. Threads add lists in any order, so it differs between runs of rperf, and output
/// must not be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValuesId(pub(crate) u32);

/// All distinct lists of values ([`FieldValues`]) of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct ValuePool(Mutex<PoolState>);

#[derive(Debug, Default)]
struct PoolState {
    lists: Vec<Arc<FieldValues>>,
    numbers: FxHashMap<Arc<FieldValues>, ValuesId>,
}

impl ValuePool {
    /// Returns the index of `values`, which are added if they are new.
    pub(crate) fn intern(&self, values: FieldValues) -> ValuesId {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = all.numbers.get(&values) {
            return *number;
        }
        let number = ValuesId(all.lists.len() as u32);
        let values = Arc::new(values);
        all.lists.push(Arc::clone(&values));
        all.numbers.insert(values, number);
        number
    }

    /// Returns the lists, by [`ValuesId`].
    pub(crate) fn finish(self) -> Vec<Arc<FieldValues>> {
        let all = self.0.into_inner();
        all.unwrap_or_else(PoisonError::into_inner).lists
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lists_have_one_number() {
        let value = |text: &str| {
            vec![
                None,
                Some(FieldValue {
                    bytes: text.as_bytes().to_vec(),
                    text: text.to_owned(),
                }),
            ]
        };
        let pool = ValuePool::default();
        let numbers = ["1", "2", "1"].map(|text| pool.intern(value(text)));
        assert_eq!(numbers[0], numbers[2]);
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(*pool.finish()[1], value("2"));
    }
}
