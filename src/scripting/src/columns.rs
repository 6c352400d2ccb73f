//! The arguments of a handler in columns: only those that it reads. A column has the values of one argument for the calls of the
//! handler in a block of events; the alternative is a tuple of all arguments for each call.

use rperf_replay::Sample;
use rperf_resolve::Frame;

use crate::calls::{CallField, CallKind, EventCall};
use crate::encoded_calls::CallColumns;
use crate::encoder::{EventEncoder, NANOSECONDS, write_field};
use crate::marshal::MarshalWriter;

/// An argument of a handler that is sent as a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArgumentColumn {
    /// The position among the handler's arguments.
    pub(crate) argument: usize,
    pub(crate) source: ColumnSource,
}

/// The content of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnSource {
    Cpu,
    Seconds,
    Nanoseconds,
    Pid,
    Comm,
    Callchain,
    /// The field at this index of [`EventCall::fields`].
    Field(usize, FieldFormat),
}

/// The form in which the values of a field are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldFormat {
    /// Numbers of at most 32 bits.
    Short,
    Signed,
    Unsigned,
    /// Texts and bytes.
    Array,
}

/// The sources of the third to eighth argument; the tracepoint's own fields follow.
const COMMON: [ColumnSource; 6] = [
    ColumnSource::Cpu,
    ColumnSource::Seconds,
    ColumnSource::Nanoseconds,
    ColumnSource::Pid,
    ColumnSource::Comm,
    ColumnSource::Callchain,
];

impl ColumnSource {
    /// The format character of a number for Python's `struct`; `None` for a column that is sent as a list.
    pub(crate) fn code(self) -> Option<&'static str> {
        match self {
            Self::Cpu => Some("i"),
            Self::Nanoseconds | Self::Field(_, FieldFormat::Short) => Some("I"),
            Self::Pid | Self::Field(_, FieldFormat::Signed) => Some("q"),
            Self::Seconds | Self::Field(_, FieldFormat::Unsigned) => Some("Q"),
            Self::Comm | Self::Callchain | Self::Field(_, FieldFormat::Array) => None,
        }
    }
}

/// The columns of a call; `None` if its arguments are sent as a tuple.
pub(crate) fn columns_of(call: &EventCall) -> Option<Vec<ArgumentColumn>> {
    if call.kind != CallKind::Handler || call.has_sample_dict {
        return None;
    }
    let common = COMMON.into_iter();
    let fields = call.fields.iter().enumerate();
    let fields = fields.map(|(index, field)| ColumnSource::Field(index, format(field)));
    let is_read = |argument: usize, source: ColumnSource| match source {
        ColumnSource::Field(index, _) => call.fields.get(index).is_some_and(|field| field.is_read),
        _ => call.reads_common(argument),
    };
    // Arguments 0 and 1 are the event's name and the context.
    let arguments = (2..).zip(common.chain(fields));
    let read = arguments.filter(|(argument, source)| is_read(*argument, *source));
    let columns = read.map(|(argument, source)| ArgumentColumn { argument, source });
    Some(columns.collect())
}

fn format(field: &CallField) -> FieldFormat {
    match field.size {
        _ if field.is_array => FieldFormat::Array,
        // Short numbers are zero-extended even if they are signed, as in perf.
        0..=4 => FieldFormat::Short,
        8 if field.reader.is_signed() => FieldFormat::Signed,
        _ => FieldFormat::Unsigned,
    }
}

/// A sample with the values that the arguments need.
#[derive(Clone, Copy)]
pub(crate) struct ArgumentSample<'s> {
    pub(crate) sample: &'s Sample<'s>,
    pub(crate) comm: &'s str,
    pub(crate) frames: &'s [Frame],
}

impl EventEncoder<'_, '_> {
    /// Adds the arguments of a call for one sample: to each column its value.
    pub(crate) fn columns(
        &self,
        call: &EventCall,
        columns: &[ArgumentColumn],
        input: &ArgumentSample<'_>,
        to: &mut CallColumns<'_>,
    ) {
        let raw = input.sample.wire.raw.unwrap_or_default();
        // perf's value for an unknown time.
        let time = input.sample.wire.time.unwrap_or(u64::MAX);
        for column in columns {
            match column.source {
                ColumnSource::Cpu => to.number(input.sample.cpu.to_ne_bytes()),
                ColumnSource::Seconds => to.number((time / NANOSECONDS).to_ne_bytes()),
                ColumnSource::Nanoseconds => {
                    to.number(((time % NANOSECONDS) as u32).to_ne_bytes());
                }
                ColumnSource::Pid => {
                    let pid = call.common_pid.and_then(|reader| reader.i64(raw));
                    to.number(pid.unwrap_or_default().to_ne_bytes());
                }
                ColumnSource::Comm => to.value(|writer| writer.text(input.comm.as_bytes())),
                ColumnSource::Callchain => {
                    to.value(|writer| self.callchain(call, input.frames, writer));
                }
                ColumnSource::Field(index, format) => {
                    if let Some(field) = call.fields.get(index) {
                        field_column(field, format, raw, to);
                    }
                }
            }
        }
    }
}

fn field_column(field: &CallField, format: FieldFormat, raw: &[u8], to: &mut CallColumns<'_>) {
    let reader = &field.reader;
    match format {
        FieldFormat::Short => {
            let value = reader.u64(raw).unwrap_or_default();
            to.number((value as u32).to_ne_bytes());
        }
        FieldFormat::Signed => to.number(reader.i64(raw).unwrap_or_default().to_ne_bytes()),
        FieldFormat::Unsigned => to.number(reader.u64(raw).unwrap_or_default().to_ne_bytes()),
        FieldFormat::Array => {
            to.value(|writer: &mut MarshalWriter| write_field(field, raw, writer));
        }
    }
}
