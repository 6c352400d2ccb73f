//! Lists what can be probed: functions, lines, variables.

mod functions;
mod lines;
mod variables;

pub use functions::functions;
pub use lines::{LineRange, ShownLine, SourceRange, lines};
pub use variables::{ListedPoint, ShownPlace, Variable, VariableOptions, variables};
