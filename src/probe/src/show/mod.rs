//! Lists of the functions, lines and variables that can be probed.

mod functions;
mod lines;
mod variables;

pub use functions::functions;
pub use lines::{LineRange, ShownLine, SourceRange, lines};
pub use variables::{ListedPoint, ShownPlace, Variable, VariableOptions, variables};
