//! Events for scripts: what an interpreter beside rperf reads from a pipe.
//!
//! ```text
//! shim (Python) --functions, parameters and keys that the script reads--> ScriptFunctions
//! samples --EventEncoder (parallel, in blocks)--> values in Python's marshal format --> shim --> handlers
//! ```
//!
//! Names, order and values of handlers' arguments are those of perf's embedded interpreter. Only what the script reads is
//! encoded; other arguments are None.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod calls;
mod encoder;
mod functions;
mod generate;
mod marshal;
mod python;
mod records;
mod sample_dict;

pub use calls::{CallKind, EventCall, ScriptCalls};
pub use encoder::{EncoderOptions, EncoderScratch, EventBlock, EventEncoder, RegisterText};
pub use functions::{ScriptFunction, ScriptFunctions};
pub use generate::python_script;
pub use marshal::MarshalWriter;
pub use python::{PYTHON_SHIM, python_modules};
pub use records::SCRIPT_RECORDS;
