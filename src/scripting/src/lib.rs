//! Encodes events for scripts. A script's interpreter is a child process that reads the events from a pipe. The shim is the
//! program that the interpreter runs: it imports the script, reports its functions, and calls its handlers.
//!
//! ```text
//! shim (Python or Perl) --functions, parameters and keys that the script reads--> ScriptFunctions
//! samples --EventEncoder (parallel, in blocks)--> values (Python's marshal, or Perl's unpack) --> shim --> handlers
//! ```
//!
//! Names, order and values of handlers' arguments are those of perf's embedded interpreter. For scripts in Python,
//! arguments that the script does not read are not encoded: they are None.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod calls;
mod columns;
mod database;
mod encoded_calls;
mod encoder;
mod functions;
mod generate;
mod generate_perl;
mod language;
mod marshal;
mod perl;
mod python;
mod records;
mod sample_dict;
mod stat_calls;

pub use calls::{CallKind, EventCall, ScriptCalls};
pub use database::DatabaseExporter;
pub use encoder::{EncoderOptions, EncoderScratch, EventBlock, EventEncoder, RegisterFormatter};
pub use functions::{DatabaseMode, ScriptFunction, ScriptFunctions};
pub use generate::python_script;
pub use generate_perl::perl_script;
pub use language::ScriptLanguage;
pub use marshal::MarshalWriter;
pub use perl::{PERL_SHIM, PerlWriter};
pub use python::{EXPORT_TO_SQLITE, PYTHON_SHIM, python_modules};
pub use records::script_record_kinds;
pub use stat_calls::{ScriptCount, StatCalls};
