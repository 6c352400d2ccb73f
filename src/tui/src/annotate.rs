//! The browser of a function's instructions: hot spots, jumps, and source.

mod draw;
mod help;
mod keys;
mod rows;
mod screen;
mod source;
mod values;

pub use self::screen::{AnnotateScreen, Annotated};
