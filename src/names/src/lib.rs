//! Names given by users: shell patterns that select names, and suggestions for misspelled ones. For
//! messages: lists of names, and numbers with their nouns.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod counted;
mod list;
mod nearest;
mod pattern;

pub use counted::{counted, is_or_are, was_or_were};
pub use list::first_names;
pub use nearest::{by_distance, nearest};
pub use pattern::{is_pattern, matches_pattern};
