//! What can be wrong with descriptions of tracepoints.

use rperf_wire::DecodeError;

/// A description of tracepoints that cannot be used at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The section that should describe the tracepoints of a recording holds something else.
    #[error("the tracing data section does not begin as one")]
    Magic,
    /// The same section ends too early.
    #[error("tracing data at offset 0: {source}")]
    Section {
        /// The field; its offset counts from the start of the section.
        source: DecodeError,
    },
    /// An event of another kind.
    #[error("not a tracepoint")]
    NotATracepoint,
    /// No description of the tracepoint is there.
    #[error("the recording has no description of it")]
    Undescribed,
    /// A field without which nothing can be made of the event.
    #[error("{event} has no field {field}")]
    NoField {
        /// Whole name of the event.
        event: String,
        /// What the field is called in current kernels.
        field: &'static str,
    },
    /// The same, of another type than in any kernel that is known.
    #[error("the field {field} of {event} is `{found}`, not {expected}")]
    FieldType {
        /// Whole name of the event.
        event: String,
        /// Name of the field.
        field: String,
        /// Its C type.
        found: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A line that every format file has is not there.
    #[error("format file without a `{0}` line")]
    Missing(&'static str),
    /// A `field:` line that does not read as one.
    #[error("line {line} of the format of {event}: cannot read the field `{text}`")]
    Field {
        /// Name of the event.
        event: String,
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The number after `ID:` is none.
    #[error("format of {event}: `{text}` is no event id")]
    Id {
        /// Name of the event.
        event: String,
        /// The text in its place.
        text: String,
    },
}

/// Why a `print fmt` could not be compiled. Such an event is still printed, field by field; the
/// user is to be warned once per event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A helper that Linux perf 6.1 does not know either.
    #[error("print fmt calls the unknown helper {0}()")]
    UnknownHelper(String),
    /// Another token than the one expected.
    #[error("print fmt has `{found}` where {expected} was expected")]
    Unexpected {
        /// The token expected.
        expected: &'static str,
        /// The token found; empty at the end of the text.
        found: String,
    },
    /// An operator that has no meaning at its place.
    #[error("print fmt has the operator `{0}` at a place where it means nothing")]
    Operator(String),
    /// A table of flags or symbols with an entry that is no constant.
    #[error("print fmt has a table entry that is not a constant")]
    NotConstant,
    /// A field that the format file does not list.
    #[error("print fmt names the unknown field {0}")]
    UnknownField(String),
    /// More conversions than arguments.
    #[error("print fmt has too few arguments")]
    TooFewArguments,
    /// A conversion such as `%lllld`.
    #[error("print fmt has the conversion `{0}`, which is too long or malformed")]
    Conversion(String),
    /// Parentheses or operators nested beyond any real event.
    #[error("print fmt is nested too deeply")]
    TooDeep,
}
