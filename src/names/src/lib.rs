//! Names given by users: shell patterns that select names, and suggestions for misspelled ones.

mod nearest;
mod pattern;

pub use nearest::{by_distance, nearest};
pub use pattern::{is_pattern, matches_pattern};
