//! Sequences that are made while they are written.

use serde::{Serialize, Serializer};

/// Serializes what the iterators of a function yield.
pub(crate) struct Column<F>(pub(crate) F);

impl<F, I> Serialize for Column<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
