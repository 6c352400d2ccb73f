//! Draining rings of records: the records between tail and head are borrowed as a chunk and
//! released when the chunk is dropped.
//!
//! The ring's memory is a trait ([`Memory`]): memory shared with the kernel, or a `Vec` in tests. This crate has no unsafe
//! code; implementations of [`Memory`] guarantee that borrowed bytes aren't overwritten.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod drain;
mod memory;
mod walk;

pub use drain::{Chunk, drain};
pub use memory::Memory;
pub use walk::{RecordRuns, RecordWalker};
