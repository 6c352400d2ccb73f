//! Instructions with the samples that fell on them: what `annotate` shows, as plain data.
//!
//! [`Hits`] folds samples by function and address; [`Function`] is what it found of one function and one event; a
//! [`Listing`] has its instructions, each with its samples and its place in the source.
//!
//! **Invariants.** No code makes it panic. Addresses in a listing are those of the object, as objdump prints them.

mod hits;
mod listing;

pub use hits::{Function, Functions, Hit, Hits};
pub use listing::{Line, Listing, NoCode, Site};
