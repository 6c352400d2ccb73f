//! Errors in tracepoint formats, and warnings about their `print fmt`.

use rperf_wire::DecodeError;

/// The reason for which a tracepoint format cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The tracing data section has an unknown magic number.
    #[error("the tracing data section has an unknown magic number")]
    Magic,
    /// The section is truncated.
    #[error("the tracing data section is truncated: {source}")]
    Section {
        /// Tells which field is missing. The messages of [`DecodeError`] are worded for records: "the body" in them is this
        /// section, and the offset counts from its start.
        source: DecodeError,
    },
    /// The event is not a tracepoint.
    #[error("not a tracepoint")]
    NotATracepoint,
    /// The recording, or the running kernel, has no format of the tracepoint.
    #[error("the recording has no format of this tracepoint")]
    Undescribed,
    /// A required field is missing.
    #[error("{event} has no field {field}")]
    NoField {
        /// Full name of the event.
        event: String,
        /// Name of the field in current kernels.
        field: &'static str,
    },
    /// A field has an unexpected type.
    #[error("the field {field} of {event} is `{found}`, not {expected}")]
    FieldType {
        /// Full name of the event.
        event: String,
        /// Name of the field.
        field: String,
        /// Its C type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
    /// A mandatory line of a format file is missing.
    #[error("format file without a `{0}` line")]
    Missing(&'static str),
    /// A malformed `field:` line.
    #[error("line {line} of the format of {event}: cannot read the field `{text}`")]
    Field {
        /// Name of the event.
        event: String,
        /// Line number, from 1.
        line: usize,
        /// The line.
        text: String,
    },
    /// The text after `ID:` is not a number.
    #[error("format of {event}: `{text}` is not an event id")]
    Id {
        /// Name of the event.
        event: String,
        /// The text after `ID:`.
        text: String,
    },
}

/// The reason for which a `print fmt` could not be compiled. Samples of the event are still printed, field by field; the
/// user should be warned once per event.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatWarning {
    /// A helper that Linux perf 6.1 doesn't know either.
    #[error("print fmt calls the unknown helper {0}()")]
    UnknownHelper(String),
    /// An unexpected token.
    #[error("print fmt has `{found}` where {expected} was expected")]
    Unexpected {
        /// A description of what was expected.
        expected: &'static str,
        /// The token found; empty at the end of the text, or if an expression was found in place of a field.
        found: String,
    },
    /// An unknown operator, or an operator in a position where it is not allowed.
    #[error("print fmt has the operator `{0}` in a position where it is not allowed")]
    Operator(String),
    /// A table of flags or symbols with an entry that isn't a constant.
    #[error("print fmt has a table entry that is not a constant")]
    NotConstant,
    /// A field that is not in the format file.
    #[error("print fmt names the unknown field {0}")]
    UnknownField(String),
    /// More conversions than arguments.
    #[error("print fmt has too few arguments")]
    TooFewArguments,
    /// A conversion such as `%lllld`.
    #[error("print fmt has the conversion `{0}`, which is too long or malformed")]
    Conversion(String),
    /// Parentheses or operators are nested too deeply for the parser, or an expression needs more values on the stack at a time
    /// than its evaluation allows.
    #[error("print fmt is nested too deeply")]
    TooDeep,
}
