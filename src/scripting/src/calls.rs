//! The function of a script that is called for each event, and its arguments.

use std::sync::Arc;

use rperf_perfdata::EventDesc;
use rperf_tracepoint::{FieldReader, Formats, Tracepoint};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, ReadFormat, RecordKind, SampleType};

use crate::columns::{ArgumentColumn, columns_of};
use crate::database::{DATABASE_RECORDS, DatabaseCalls, DatabaseExporter};
use crate::functions::{ScriptFunction, ScriptFunctions};
use crate::language::ScriptLanguage;
use crate::marshal::MarshalWriter;
use crate::records::{RecordCall, record_calls};

/// `PERF_TYPE_SYNTH`: events that a decoder of a hardware trace adds.
const SYNTHESIZED_TYPE: u32 = i32::MAX.cast_unsigned() + 1;
/// Number of a handler's parameters before the event's own fields: event name, context, CPU, seconds, nanoseconds, pid, comm,
/// callchain.
pub(crate) const COMMON_PARAMETERS: usize = 8;
/// Number of parameters of `trace_unhandled` before the sample's dict: event name, context, dict of the fields.
const UNHANDLED_PARAMETERS: usize = 3;
/// Index of a handler's parameter `common_callchain`.
const CALLCHAIN_PARAMETER: usize = 7;
/// `PERF_COUNT_SW_PAGE_FAULTS`, `_MIN`, `_MAJ`: events whose data address is symbolized.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];

/// The way in which a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// The handler of a tracepoint, whose fields are arguments.
    Handler,
    /// `trace_unhandled`: the tracepoint's fields are a dict.
    Unhandled,
    /// `process_event` of a script in Python: its argument is the sample's dict only, without the event's name and the context.
    /// In Perl: there is no handler, only `process_event`.
    Direct,
    /// No function: the samples are rows of a database.
    Database,
}

/// The call for the samples of one event.
#[derive(Debug, Clone)]
pub struct EventCall {
    /// The function; an empty one for [`CallKind::Database`].
    pub function: ScriptFunction,
    /// The kind of the call.
    pub kind: CallKind,
    /// The first argument of a handler and of `trace_unhandled`: `system__event`, in Perl `system::event`. Empty for other
    /// kinds of calls.
    pub event: String,
    /// The name of the event, as recorded.
    pub(crate) name: String,
    /// The bytes of its `struct perf_event_attr`.
    pub(crate) attr: Vec<u8>,
    pub(crate) fields: Vec<CallField>,
    /// The arguments of a handler that are sent as columns, each with its values for several events; `None` if the arguments of
    /// each call are sent as a tuple.
    pub(crate) columns: Option<Vec<ArgumentColumn>>,
    /// Whether the dict of the sample is the last argument.
    pub(crate) has_sample_dict: bool,
    pub(crate) common_pid: Option<FieldReader>,
    /// Readers of the preemption count, the flags and the lock depth, for `common_pc`, `common_flags` and
    /// `common_lock_depth`.
    pub(crate) context_readers: [Option<FieldReader>; 3],
    pub(crate) read_format: ReadFormat,
    /// Whether the data address is symbolized.
    pub(crate) symbolizes_data: bool,
    /// Whether samples have copies of user stacks.
    pub(crate) has_stack_copies: bool,
    /// Whether weights consist of parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub(crate) has_weight_parts: bool,
    /// Whether `process_event` of a script in Perl is called, after the handler if there is one.
    pub(crate) calls_process_event: bool,
    /// Whether the callchain is exported to a database.
    exports_callchain: bool,
    /// The type of a synthesized event; `None` for other events.
    pub(crate) synthesized: Option<u64>,
}

/// A field of a tracepoint.
#[derive(Debug, Clone)]
pub(crate) struct CallField {
    pub(crate) name: String,
    pub(crate) reader: FieldReader,
    /// Offset in the raw data, in bytes.
    pub(crate) offset: usize,
    /// Size in the raw data, in bytes.
    pub(crate) size: usize,
    pub(crate) is_array: bool,
    /// Whether the function reads it.
    pub(crate) is_read: bool,
}

/// The calls for the events of a recording.
#[derive(Debug, Default)]
pub struct ScriptCalls {
    /// The language of the script.
    pub(crate) language: ScriptLanguage,
    /// The call for each event; `None` if the script has no function for the event.
    pub(crate) events: Vec<Option<EventCall>>,
    /// The calls for records other than samples.
    pub(crate) records: Vec<RecordCall>,
    /// Types of the records for which a function is called, or that are exported to a database.
    pub(crate) record_kinds: Vec<RecordKind>,
    /// The values that the script's calls of `perf_trace_context` functions need.
    pub(crate) context: ContextUse,
    /// The tables of a script that exports to a database.
    pub(crate) database: Option<DatabaseCalls>,
    /// Whether COMM records mark names of executed programs (`comm_exec` of the attr).
    marks_exec: bool,
}

/// Which values of the current event the functions of `perf_trace_context` return to the script.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextUse {
    /// The preemption count, the flags or the lock depth.
    pub(crate) common: bool,
    /// The bytes of the instruction.
    pub(crate) insn: bool,
    /// The source file and line.
    pub(crate) source: bool,
    /// The text of the source line; then `source` is true, too.
    pub(crate) source_text: bool,
}

impl ContextUse {
    pub(crate) fn any(self) -> bool {
        self.common || self.insn || self.source
    }
}

impl ScriptCalls {
    /// Finds the function for each event. `formats` describes the tracepoints.
    #[must_use]
    pub fn new(
        functions: &ScriptFunctions,
        events: &[EventDesc],
        formats: &Formats,
        endian: Endian,
    ) -> Self {
        let language = functions.language;
        let event_call = match language {
            ScriptLanguage::Python => event_call,
            ScriptLanguage::Perl => perl_event_call,
        };
        let database = DatabaseCalls::new(functions);
        let mut records = record_calls(functions);
        if database.is_some() {
            // Context switches are then rows of a table, and `context_switch` is not called.
            records.retain(|call| !DATABASE_RECORDS.contains(&call.kind));
        }
        let mut record_kinds: Vec<RecordKind> = records.iter().map(|call| call.kind).collect();
        record_kinds.extend(database.iter().flat_map(|_| DATABASE_RECORDS));
        let uses = |name| functions.uses(name);
        let context = ContextUse {
            common: uses("common_pc") || uses("common_flags") || uses("common_lock_depth"),
            insn: uses("perf_sample_insn"),
            source: uses("perf_sample_srcline") || uses("perf_sample_srccode"),
            source_text: uses("perf_sample_srccode"),
        };
        // Columns have no place for the values of `perf_trace_context`.
        let in_columns = language == ScriptLanguage::Python && !context.any();
        let call_of_event = |event| {
            let mut call = event_call(functions, event, formats, endian)?;
            call.columns = columns_of(&call).filter(|_| in_columns);
            Some(call)
        };
        Self {
            language,
            events: events.iter().map(call_of_event).collect(),
            record_kinds,
            records,
            database,
            marks_exec: events
                .iter()
                .any(|event| event.attr.flags.contains(AttrFlags::COMM_EXEC)),
            context,
        }
    }

    /// The exporter of a script that exports to a database; `None` for other scripts.
    #[must_use]
    pub fn exporter(&self) -> Option<DatabaseExporter> {
        let mut exporter = DatabaseExporter::new(self.database?);
        self.continue_export(&mut exporter);
        Some(exporter)
    }

    /// Continues an export with these calls, for example after a stream has described further events.
    pub fn continue_export(&self, exporter: &mut DatabaseExporter) {
        exporter.set_calls(self.events.len() + self.records.len(), self.marks_exec);
    }

    /// Whether any function needs symbols, source lines or code of addresses.
    #[must_use]
    pub fn resolves_addresses(&self) -> bool {
        let by_context = self.context.source || self.context.insn;
        let mut calls = self.events.iter().flatten();
        calls.any(|call| {
            by_context
                || call.reads_callchain()
                || call.has_sample_dict
                || call.kind == CallKind::Database
        })
    }

    /// Whether any function reads callchains.
    #[must_use]
    pub fn reads_callchains(&self) -> bool {
        let mut calls = self.events.iter().flatten();
        calls.any(EventCall::reads_callchain)
    }

    /// The fields of samples that need to be decoded.
    pub(crate) fn sample_fields(&self) -> SampleType {
        let reads = |test: fn(&EventCall) -> bool| self.events.iter().flatten().any(test);
        let chains = self.reads_callchains();
        let dicts = reads(|call| call.has_sample_dict);
        let large = [
            (SampleType::CALLCHAIN, chains),
            // Callchains are unwound from registers and stack copies if samples have these.
            (SampleType::REGS_USER, chains || dicts),
            (SampleType::STACK_USER, chains),
            (SampleType::REGS_INTR, dicts),
            (SampleType::BRANCH_STACK, dicts),
        ];
        let unread = large.iter().filter(|(_, read)| !read);
        unread.fold(SampleType::ALL, |fields, (field, _)| {
            fields.with(*field, false)
        })
    }

    /// The description of all calls for the shim (rperf's program in the interpreter), in the order of the calls' numbers.
    #[must_use]
    pub fn description(&self) -> Vec<u8> {
        match self.language {
            ScriptLanguage::Python => self.python_description().into_bytes(),
            ScriptLanguage::Perl => self.perl_description(),
        }
    }

    /// For each call a tuple: kind, function, event name, positions of arrays, and whether values for `perf_trace_context`
    /// precede the arguments.
    fn python_description(&self) -> MarshalWriter {
        let mut writer = MarshalWriter::default();
        let has_context = self.context.any();
        let tables = self.database.iter().flat_map(DatabaseCalls::names);
        let tables: Vec<Option<&str>> = tables.collect();
        writer.tuple(self.events.len() + self.records.len() + tables.len());
        for call in &self.events {
            let kind: Option<&[u8]> = call.as_ref().and_then(|call| match call.kind {
                CallKind::Handler => Some(&b"handler"[..]),
                CallKind::Unhandled => Some(b"unhandled"),
                CallKind::Direct => Some(b"direct"),
                CallKind::Database => None,
            });
            let (Some(call), Some(kind)) = (call, kind) else {
                // An event without a call still has a number.
                write_no_call(&mut writer);
                continue;
            };
            if let Some(columns) = &call.columns {
                describe_columns(call, columns, &mut writer);
                continue;
            }
            writer.tuple(5);
            writer.text(kind);
            writer.text(call.function.name.as_bytes());
            writer.text(call.event.as_bytes());
            let arrays: Vec<usize> = call.arrays().collect();
            writer.tuple(arrays.len());
            for index in arrays {
                writer.unsigned(index as u64);
            }
            writer.boolean(has_context);
        }
        let records = self.records.iter().map(|call| Some(call.function));
        for function in records.chain(tables) {
            let Some(function) = function else {
                write_no_call(&mut writer);
                continue;
            };
            writer.tuple(5);
            writer.text(b"direct");
            writer.text(function.as_bytes());
            // No name of an event, no arrays, no values for `perf_trace_context`.
            writer.none();
            writer.tuple(0);
            writer.boolean(false);
        }
        writer
    }
}

/// Writes the description of a call whose arguments are sent as columns: kind, function, event name, number of arguments, and
/// for each column the position of its argument and its type.
fn describe_columns(call: &EventCall, columns: &[ArgumentColumn], writer: &mut MarshalWriter) {
    writer.tuple(5);
    writer.text(b"columns");
    writer.text(call.function.name.as_bytes());
    writer.text(call.event.as_bytes());
    writer.unsigned((COMMON_PARAMETERS + call.fields.len()) as u64);
    writer.tuple(columns.len());
    for column in columns {
        writer.tuple(2);
        writer.unsigned(column.argument as u64);
        match column.source.code() {
            Some(code) => writer.text(code.as_bytes()),
            None => writer.none(),
        }
    }
}

/// Writes the description of an event or table for which no function is called.
fn write_no_call(writer: &mut MarshalWriter) {
    writer.tuple(5);
    writer.text(b"none");
    for _ in 0..4 {
        writer.none();
    }
}

impl EventCall {
    /// Whether the sample's dict is read, and this key of it.
    pub(crate) fn reads_key(&self, key: &str) -> bool {
        self.has_sample_dict && self.function.reads_key(key)
    }

    pub(crate) fn reads_callchain(&self) -> bool {
        self.exports_callchain
            || self.reads_common(CALLCHAIN_PARAMETER)
            || self.reads_key("callchain")
    }

    /// Whether the common argument at this index of a handler is read.
    pub(crate) fn reads_common(&self, index: usize) -> bool {
        match self.kind {
            CallKind::Handler => self.function.reads(index),
            CallKind::Unhandled => true,
            CallKind::Direct | CallKind::Database => false,
        }
    }

    /// Positions of arrays among the encoded values of a handler. For `trace_unhandled`, whose fields are a dict, the shim
    /// only uses whether there are arrays.
    fn arrays(&self) -> impl Iterator<Item = usize> {
        let fields = self.fields.iter().enumerate();
        let arrays = fields.filter(|(_, field)| field.is_array && field.is_read);
        // The event's name and the context are not encoded.
        arrays.map(|(index, _)| index + COMMON_PARAMETERS - 2)
    }
}

/// The call of a script in Python for the samples of an event; `None` if the script has no function for them.
fn event_call(
    functions: &ScriptFunctions,
    event: &EventDesc,
    formats: &Formats,
    endian: Endian,
) -> Option<EventCall> {
    let attr = &event.attr;
    if attr.kind != EventType::TRACEPOINT {
        if functions.database.mode {
            let function = ScriptFunction::default();
            let call = call_of(event, None, &function, CallKind::Database, endian);
            return Some(EventCall {
                has_sample_dict: false,
                exports_callchain: functions.database.callchains,
                ..call
            });
        }
        let function = functions.get("process_event")?;
        return Some(call_of(event, None, function, CallKind::Direct, endian));
    }
    let tracepoint = formats.of_event(attr).ok()?;
    let name = tracepoint.name().replacen(':', "__", 1);
    let (function, kind) = match functions.get(&name) {
        Some(function) => (function, CallKind::Handler),
        None => (functions.get("trace_unhandled")?, CallKind::Unhandled),
    };
    let mut call = call_of(event, Some(tracepoint), function, kind, endian);
    call.event = name;
    Some(call)
}

/// The call of a script in Perl for the samples of an event; `None` if the script has no function for them.
fn perl_event_call(
    functions: &ScriptFunctions,
    event: &EventDesc,
    formats: &Formats,
    endian: Endian,
) -> Option<EventCall> {
    let process = functions.get("process_event");
    let tracepoint = formats.of_event(&event.attr).ok();
    let handler = tracepoint.and_then(|tracepoint| {
        let name = tracepoint.name().replacen(':', "::", 1);
        match functions.get(&name) {
            Some(function) => Some((tracepoint, name, function, CallKind::Handler)),
            None => {
                let function = functions.get("trace_unhandled")?;
                Some((tracepoint, name, function, CallKind::Unhandled))
            }
        }
    });
    let mut call = match handler {
        None => call_of(event, None, process?, CallKind::Direct, endian),
        Some((tracepoint, name, function, kind)) => EventCall {
            event: name,
            ..call_of(event, Some(tracepoint), function, kind, endian)
        },
    };
    // In Perl, `process_event` gets the record and its decoded fields instead.
    call.has_sample_dict = false;
    call.calls_process_event = process.is_some();
    Some(call)
}

/// Creates the call of `function` for the samples of an event. `tracepoint` has the fields that are passed; `None` for kinds of
/// calls that pass no fields.
fn call_of(
    event: &EventDesc,
    tracepoint: Option<&Arc<Tracepoint>>,
    function: &ScriptFunction,
    kind: CallKind,
    endian: Endian,
) -> EventCall {
    let is_handler = kind == CallKind::Handler;
    let fields = tracepoint
        .into_iter()
        .flat_map(|tracepoint| tracepoint.fields());
    let fields: Vec<CallField> = fields
        .enumerate()
        .map(|(index, (field, reader))| CallField {
            name: field.name.clone(),
            reader: *reader,
            offset: field.offset,
            size: field.size,
            is_array: field.is_array || field.is_dynamic,
            is_read: !is_handler || function.reads(index + COMMON_PARAMETERS),
        })
        .collect();
    let fields = match is_handler {
        true => fields_for_handler(fields, function),
        false => fields,
    };
    let before_dict = match kind {
        CallKind::Handler => COMMON_PARAMETERS + fields.len(),
        CallKind::Unhandled => UNHANDLED_PARAMETERS,
        CallKind::Direct | CallKind::Database => 0,
    };
    let common = |name| tracepoint.and_then(|tracepoint| tracepoint.reader(name));
    let attr = &event.attr;
    EventCall {
        function: function.clone(),
        kind,
        event: String::new(),
        name: event.name.clone(),
        attr: attr_bytes(attr, endian),
        fields,
        columns: None,
        has_sample_dict: kind == CallKind::Direct
            || i64::try_from(before_dict + 1) == Ok(function.arguments),
        common_pid: common("common_pid"),
        context_readers: [
            common("common_preempt_count"),
            common("common_flags"),
            common("common_lock_depth"),
        ],
        read_format: attr.read_format,
        symbolizes_data: symbolizes_data(attr),
        has_stack_copies: has_stack_copies(attr),
        has_weight_parts: attr.sample_type.contains(SampleType::WEIGHT_STRUCT),
        calls_process_event: false,
        exports_callchain: false,
        synthesized: (attr.kind.0 == SYNTHESIZED_TYPE).then_some(attr.config),
    }
}

/// Whether samples have copies of user stacks, with the registers to unwind them.
fn has_stack_copies(attr: &Attr) -> bool {
    attr.sample_type
        .contains(SampleType::STACK_USER | SampleType::REGS_USER)
}

/// The fields in the order in which the handler gets them: the tracepoint's order if the number of parameters fits.
/// Otherwise the handler was written for another kernel: each parameter gets the field of its name, and the last parameter
/// may be the sample's dict. If any other parameter is not the name of a field, the order is the tracepoint's.
fn fields_for_handler(fields: Vec<CallField>, function: &ScriptFunction) -> Vec<CallField> {
    let usual = COMMON_PARAMETERS + fields.len();
    // An unknown number, -1, counts as one that fits.
    let argument_count = usize::try_from(function.arguments).unwrap_or(usual);
    let is_usual = argument_count == usual || argument_count == usual + 1;
    let after_common = function.parameters.get(COMMON_PARAMETERS..);
    let Some(after_common) = after_common.filter(|_| !is_usual) else {
        return fields;
    };
    let find = |(index, name): (usize, &String)| {
        let field = fields.iter().find(|field| field.name == *name)?;
        let is_read = function.reads(index + COMMON_PARAMETERS);
        Some(CallField {
            is_read,
            ..field.clone()
        })
    };
    let named = |names: &[String]| {
        names
            .iter()
            .enumerate()
            .map(find)
            .collect::<Option<Vec<_>>>()
    };
    let before_last = after_common.split_last().map(|(_, before)| before);
    let before_last = before_last.filter(|before| !before.is_empty());
    named(after_common)
        .or_else(|| named(before_last?))
        .unwrap_or(fields)
}

/// The bytes of an attr, zero-padded to the size in perf 6.1, 128 bytes.
fn attr_bytes(attr: &Attr, endian: Endian) -> Vec<u8> {
    const SIZE_OF_ATTR: usize = 128;
    let mut bytes = attr.encode(endian);
    bytes.resize(SIZE_OF_ATTR.max(bytes.len()), 0);
    bytes
}

/// Whether perf symbolizes the data address of the event's samples: page faults, and branches with a period of 1, as those
/// of Intel BTS.
fn symbolizes_data(attr: &Attr) -> bool {
    let is_fault = attr.kind == EventType::SOFTWARE && PAGE_FAULTS.contains(&attr.config);
    let is_branch = attr.kind == EventType::HARDWARE
        && attr.config == Attr::BRANCHES
        && attr.sample_period == 1
        && !attr.flags.contains(AttrFlags::FREQ);
    (is_fault || is_branch) && attr.sample_type.contains(SampleType::ADDR)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn source_lines_and_instructions_need_resolved_addresses() {
        let function = ScriptFunction {
            keys: Some(BTreeMap::new()),
            ..ScriptFunction::default()
        };
        let event = EventDesc::new(Attr::default(), Vec::new());
        // Without the sample's dict, which always needs resolved addresses.
        let call = call_of(&event, None, &function, CallKind::Direct, Endian::Little);
        let call = EventCall {
            has_sample_dict: false,
            ..call
        };
        let resolves_addresses = |context, calls: &[EventCall]| {
            let calls = ScriptCalls {
                events: calls.iter().cloned().map(Some).collect(),
                context,
                ..ScriptCalls::default()
            };
            calls.resolves_addresses()
        };
        let none = ContextUse::default();
        let source = ContextUse {
            source: true,
            ..none
        };
        let insn = ContextUse { insn: true, ..none };
        let calls = [call];
        assert!(!resolves_addresses(none, &calls));
        assert!(resolves_addresses(source, &calls));
        assert!(resolves_addresses(insn, &calls));
        assert!(!resolves_addresses(source, &[]));
    }
}
