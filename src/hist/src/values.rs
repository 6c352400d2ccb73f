//! What the fields of tracepoints hold, for sort keys: each list once, with a number that aggregates work with.

use std::sync::{Arc, Mutex, PoisonError};

use rustc_hash::FxHashMap;

/// The value of one field in one sample.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Value {
    /// What tells it from others, and orders it: the larger first, by bytes.
    pub bytes: Vec<u8>,
    /// Its cell.
    pub text: String,
}

/// The values of the fields that are sort keys, by [`Key::of_field`]'s number; `None` for those of other events.
///
/// [`Key::of_field`]: crate::Key::of_field
pub type FieldValues = Vec<Option<Value>>;

/// A list's number. It differs from run to run, so nothing that is shown may be ordered by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct ValuesId(pub(crate) u32);

/// All lists of a recording, filled by several threads.
#[derive(Debug, Default)]
pub(crate) struct Pool(Mutex<Growing>);

#[derive(Debug, Default)]
struct Growing {
    lists: Vec<Arc<FieldValues>>,
    numbers: FxHashMap<Arc<FieldValues>, ValuesId>,
}

impl Pool {
    /// The number of `values`.
    pub(crate) fn number(&self, values: FieldValues) -> ValuesId {
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

    /// The lists, when there will be no more.
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
                Some(Value {
                    bytes: text.as_bytes().to_vec(),
                    text: text.to_owned(),
                }),
            ]
        };
        let pool = Pool::default();
        let numbers = ["1", "2", "1"].map(|text| pool.number(value(text)));
        assert_eq!(numbers[0], numbers[2]);
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(*pool.finish()[1], value("2"));
    }
}
