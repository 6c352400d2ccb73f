//! The browser of a function's instructions: hot places, jumps, its source beside it.

mod draw;
mod help;
mod keys;
mod rows;
mod screen;
mod source;
mod values;

pub use self::screen::{AnnotateScreen, Annotated};
