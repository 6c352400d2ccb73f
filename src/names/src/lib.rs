//! Names given by users: shell patterns that select names, and suggestions for misspelled ones; and
//! lists of names in messages.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod list;
mod nearest;
mod pattern;

pub use list::first_names;
pub use nearest::{by_distance, nearest};
pub use pattern::{is_pattern, matches_pattern};
