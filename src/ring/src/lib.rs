//! Draining rings of records: what lies between tail and head is handed out whole and given back when
//! the borrow ends.
//!
//! The ring's memory is a trait ([`Memory`]), so that tests drain a `Vec` and the live side drains
//! memory shared with the kernel. This crate has no unsafe code: the borrow rules of [`Memory`] carry
//! the claim that nobody writes what is being read.

mod drain;
mod memory;
mod walk;

pub use drain::{Chunk, drain};
pub use memory::Memory;
pub use walk::{Runs, Walker};
