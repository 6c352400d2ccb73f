//! Tracepoints: formats from the kernel that recorded them, and decoding of raw sample data.
//!
//! ```text
//! TRACING_DATA of a file or stream --+
//!                                    +--> Formats --of_event(attr)--> Arc<Tracepoint>
//! format files of tracefs -----------+                                  |- Format, Field    names, types, offsets
//!                                                                       |- FieldReader      values of single fields
//!                                                                       |- typed            events with Rust types
//!                                                                       `- PrintFmt         samples as text
//! ```
//!
//! [`Formats`] parses each format once.

mod abi;
mod error;
mod field;
mod format;
mod formats;
mod print_fmt;
mod reader;
mod tracepoint;
mod tracing_data;
pub mod typed;
mod value;

#[cfg(test)]
mod tests;

pub use abi::Abi;
pub use error::{Error, FormatWarning};
pub use field::Field;
pub use format::Format;
pub use formats::Formats;
pub use print_fmt::{KernelSymbols, NoSymbols, PrintContext, PrintFmt, PrintkFormats, ValueNames};
pub use reader::FieldReader;
pub use tracepoint::Tracepoint;
pub use tracing_data::{EventFormat, TracingData, TracingDataBuilder};
pub use value::{Elements, Value};
