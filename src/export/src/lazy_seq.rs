//! Sequences that are serialized without being stored.

use serde::{Serialize, Serializer};

/// Serializes the items of the iterator returned by a function.
pub(crate) struct LazySeq<F>(pub(crate) F);

impl<F, I> Serialize for LazySeq<F>
where
    F: Fn() -> I,
    I: Iterator,
    I::Item: Serialize,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}
