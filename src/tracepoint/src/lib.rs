//! Tracepoints: what a tracefs `format` file says about the bytes of a sample, and the text that
//! its `print fmt` makes of them.
//!
//! [`Format::parse`] reads the file; [`Format::field`] and [`Field::value`] get at single values;
//! [`PrintFmt`] is the text of a whole sample.

mod error;
mod field;
mod format;
mod print_fmt;
mod tracing_data;

#[cfg(test)]
mod tests;

pub use error::{Error, Warning};
pub use field::{Elements, Field, Value};
pub use format::Format;
pub use print_fmt::{Context, KernelSymbols, Machine, NoSymbols, PrintFmt, PrintkFormats};
pub use tracing_data::{EventFormat, TracingData, TracingDataBuilder};
