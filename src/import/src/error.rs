//! Errors of imports.

use rperf_perfdata::WriteError;
use rperf_wire::DecodeError;

/// Why a recording of another tool cannot be converted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file does not begin like a trace.dat.
    #[error("not a trace.dat: it does not begin with 17 08 44 'tracing'")]
    Magic,
    /// A version that this program cannot read.
    #[error("trace.dat version {version} at offset 10: only 6 and 7 are supported")]
    Version {
        /// The version, as text.
        version: String,
    },
    /// The file ends inside a field, or a field has an impossible value.
    #[error("offset {offset:#x}: {part}: {source}")]
    Field {
        /// Offset of the part in the file; for an option of version 7, that of its section.
        offset: u64,
        /// Name of the part.
        part: &'static str,
        /// The field. Its offset counts from the start of the file if the field is in the file's header or the file has version
        /// 6, otherwise from the start of the section, of the section's content, or of the CPU's pages.
        source: DecodeError,
    },
    /// A part of the file cannot be used.
    #[error("offset {offset:#x}: {part}: {problem}")]
    Part {
        /// Offset in the file; inexact in compressed pages, 0 if unknown.
        offset: u64,
        /// Name of the part.
        part: &'static str,
        /// Why it cannot be used.
        problem: String,
    },
    /// Descriptions of events cannot be parsed.
    #[error("descriptions of events")]
    Formats(#[source] rperf_tracepoint::Error),
    /// The trace's clock does not count nanoseconds.
    #[error("times are from the clock '{clock}', which does not count nanoseconds")]
    Clock {
        /// Name of the clock in tracefs.
        clock: String,
    },
    /// The trace.dat has no events.
    #[error("the trace has no events")]
    Empty,
    /// A line of the output of `perf script` cannot be used.
    #[error("line {line} at offset {offset:#x}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// Offset of its first byte in the file.
        offset: u64,
        /// Why it cannot be used.
        problem: String,
    },
    /// The output of `perf script` has no samples.
    #[error("the text has no samples")]
    NoSamples,
    /// perf.data cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}
