//! Draining rings of records: the records between tail and head are borrowed as a chunk and
//! released when the borrow ends.
//!
//! The ring's memory is a trait ([`Memory`]), so that tests drain a `Vec` and sessions drain memory
//! shared with the kernel. This crate has no unsafe code: the borrow rules of [`Memory`] guarantee
//! that borrowed bytes aren't overwritten.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod drain;
mod memory;
mod walk;

pub use drain::{Chunk, drain};
pub use memory::Memory;
pub use walk::{RecordRuns, RecordWalker};
