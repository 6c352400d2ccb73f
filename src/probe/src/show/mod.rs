//! What can be probed: functions, lines, variables.

mod functions;
mod lines;
mod variables;

pub use functions::functions;
pub use lines::{LineRange, ShownLine, Source, lines};
pub use variables::{Listed, Place, Variable, VariableOptions, variables};
