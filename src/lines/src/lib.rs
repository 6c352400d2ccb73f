//! One sample as `script` shows it: which fields, and their values as plain data. Rendering them is `view::script`'s.

mod class;
mod error;
mod fields;
mod frame_texts;
mod line;
mod selection;

pub use class::EventClass;
pub use error::Error;
pub use fields::{Field, Fields};
pub use frame_texts::{FrameKey, FrameTexts};
pub use line::{Line, Lines, Named, Spot};
pub use selection::{Selection, Warning};
