//! Records other than samples: `context_switch`, `throttle`, `auxtrace_error` and others.

use rperf_replay::NonSampleRecord;
use rperf_wire::{AuxTraceError, Endian, Misc, Record, RecordKind, Switch, Throttle, UserRecord};

use crate::database::DATABASE_RECORDS;
use crate::functions::ScriptFunctions;
use crate::marshal::MarshalWriter;

/// The functions that are called for records, with the types of these records.
const SCRIPT_RECORDS: [(&str, RecordKind); 5] = [
    ("context_switch", RecordKind::SWITCH),
    ("context_switch", RecordKind::SWITCH_CPU_WIDE),
    ("throttle", RecordKind::THROTTLE),
    ("unthrottle", RecordKind::UNTHROTTLE),
    ("auxtrace_error", RecordKind::AUXTRACE_ERROR),
];

/// The types of records that scripts can need: those passed to functions, and those that a database export needs.
#[must_use]
pub fn script_record_kinds() -> Vec<RecordKind> {
    let script_records = SCRIPT_RECORDS.iter().map(|(_, kind)| *kind);
    let mut kinds: Vec<RecordKind> = script_records.chain(DATABASE_RECORDS).collect();
    kinds.sort_unstable_by_key(|kind| kind.0);
    kinds.dedup();
    kinds
}

/// The call for the records of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordCall {
    pub(crate) function: &'static str,
    pub(crate) kind: RecordKind,
}

/// The calls for the records that the script has functions for.
pub(crate) fn record_calls(functions: &ScriptFunctions) -> Vec<RecordCall> {
    let all = SCRIPT_RECORDS.iter();
    let called = all.filter(|(function, _)| functions.get(function).is_some());
    called
        .map(|&(function, kind)| RecordCall { function, kind })
        .collect()
}

/// Writes the arguments for a record; `false` if it cannot be decoded or is of a type without a function.
pub(crate) fn write_record(
    record: &NonSampleRecord<'_>,
    endian: Endian,
    writer: &mut MarshalWriter,
) -> bool {
    if record.raw.kind == RecordKind::AUXTRACE_ERROR {
        return match UserRecord::decode(&record.raw, endian) {
            Ok(UserRecord::AuxTraceError(error)) => {
                write_trace_error(&error, record.raw.misc, writer);
                true
            }
            _ => false,
        };
    }
    match Record::decode(&record.raw, endian) {
        Ok(Record::Switch(switch)) => write_switch(record, switch, writer),
        Ok(Record::Throttle(throttle) | Record::Unthrottle(throttle)) => {
            write_throttle(record, throttle, writer);
        }
        _ => return false,
    }
    true
}

/// Process, thread and CPU of a record; `u32::MAX` for each that is unknown.
fn task_and_cpu(record: &NonSampleRecord<'_>) -> (u32, u32, u32) {
    let (pid, tid) = record.id.pid_tid.unwrap_or((u32::MAX, u32::MAX));
    (pid, tid, record.id.cpu.unwrap_or(u32::MAX))
}

/// Writes the arguments of `context_switch`. The task of the record is switched in or out; the other one (`np_pid`, `np_tid`) is
/// the next or previous task.
fn write_switch(record: &NonSampleRecord<'_>, switch: Switch, writer: &mut MarshalWriter) {
    let (pid, tid, cpu) = task_and_cpu(record);
    let misc = record.raw.misc;
    let out = has(misc, Misc::SWITCH_OUT);
    let (np_pid, np_tid) = switch.next_prev.unwrap_or((u32::MAX, u32::MAX));
    writer.tuple(11);
    writer.unsigned(record.id.time.unwrap_or(u64::MAX));
    for number in [cpu, pid, tid, np_pid, np_tid] {
        writer.signed(number.cast_signed().into());
    }
    // The pid of the machine that the task runs on (perf calls the host and each guest a machine): -1 for the host.
    writer.signed(-1);
    writer.boolean(out);
    writer.boolean(out && has(misc, Misc::SWITCH_OUT_PREEMPT));
    // Process and virtual CPU of a guest: none, as the record is of the host. perf passes 0 and -1, too.
    writer.signed(0);
    writer.signed(-1);
}

fn write_throttle(record: &NonSampleRecord<'_>, throttle: Throttle, writer: &mut MarshalWriter) {
    let (pid, tid, cpu) = task_and_cpu(record);
    let Throttle {
        time,
        id,
        stream_id,
    } = throttle;
    writer.tuple(6);
    for number in [time, id, stream_id] {
        writer.unsigned(number);
    }
    for number in [cpu, pid, tid] {
        writer.signed(number.cast_signed().into());
    }
}

/// Writes the arguments of `auxtrace_error`: type, code, CPU, process, thread, address, time, message, CPU mode, and the
/// process and virtual CPU of a guest.
fn write_trace_error(error: &AuxTraceError<'_>, misc: Misc, writer: &mut MarshalWriter) {
    writer.tuple(11);
    writer.unsigned(error.kind.into());
    writer.unsigned(error.code.into());
    for number in [error.cpu, error.pid, error.tid] {
        writer.signed(number.cast_signed().into());
    }
    writer.unsigned(error.ip);
    writer.unsigned(error.time.unwrap_or_default());
    // In full, without the number by which later texts could refer to this one: the arguments are appended to other marshalled
    // values, which number their texts themselves.
    writer.plain_text(error.message);
    writer.unsigned(u64::from(misc.mode_bits().0));
    // Both are 0 if the record lacks them (perf before 6.0).
    let (guest_pid, guest_cpu) = error.machine.unwrap_or_default();
    writer.signed(guest_pid.cast_signed().into());
    writer.signed(guest_cpu.cast_signed().into());
}

fn has(misc: Misc, flag: Misc) -> bool {
    misc.0 & flag.0 != 0
}
