//! Names given by users: shell patterns that select names, and suggestions for misspelled ones.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod nearest;
mod pattern;

pub use nearest::{by_distance, nearest};
pub use pattern::{is_pattern, matches_pattern};
