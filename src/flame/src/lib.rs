//! Flame graphs: stacks merged into a tree, and the tree as a picture that answers to clicks and searches. Heat maps: moments
//! counted in a grid, and the grid as a picture in which stretches of time are chosen.
//!
//! ```text
//! stacks of names, or folded text --add--> Stacks --tree--> Flame (frames in drawing order) --svg::write--> SVG
//! moments --add--> Heat (a grid of counts) --Heat::write--> SVG
//! ```
//!
//! **Invariants.** What is written depends on the stacks alone, not on the order they came in: siblings stand in the
//! order of their names, colours come from names.

mod color;
mod error;
mod folded;
mod heat;
mod idle;
mod json;
mod kind;
mod stacks;
pub mod svg;
mod text;
mod tree;

pub use color::{PALETTES, Palette};
pub use error::Error;
pub use folded::{read as read_folded, write as write_folded};
pub use heat::{Heat, Scale};
pub use idle::is_idle;
pub use json::write as write_json;
pub use kind::Kind;
pub use stacks::{Label, Stacks};
pub use tree::{Flame, Frame, Widths};
