//! Tracepoints: descriptions by the kernel that recorded them, and raw data of samples read by these.
//!
//! ```text
//! TRACING_DATA of a file or stream --+
//!                                    +--> Formats --of_event(attr)--> Arc<Tracepoint>
//! format files of tracefs -----------+                                  |- Format, Field    names, types, places
//!                                                                       |- FieldReader      single values of a sample
//!                                                                       |- typed            events with fields of Rust types
//!                                                                       `- PrintFmt         the text of a sample
//! ```
//!
//! [`Formats`] is the one place where an event finds its description; each is parsed once.

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
pub use error::{Error, Warning};
pub use field::Field;
pub use format::Format;
pub use formats::Formats;
pub use print_fmt::{Context, KernelSymbols, NoSymbols, PrintFmt, PrintkFormats, ValueNames};
pub use reader::FieldReader;
pub use tracepoint::Tracepoint;
pub use tracing_data::{EventFormat, TracingData, TracingDataBuilder};
pub use value::{Elements, Value};
