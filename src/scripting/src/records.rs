//! Records other than samples: `context_switch`, `throttle` and others.

use rperf_replay::NonSampleRecord;
use rperf_wire::{Endian, Misc, Record, RecordKind, Throttle};

use crate::functions::ScriptFunctions;
use crate::marshal::MarshalWriter;

/// The functions that are called for records, with their records.
pub const SCRIPT_RECORDS: [(&str, RecordKind); 4] = [
    ("context_switch", RecordKind::SWITCH),
    ("context_switch", RecordKind::SWITCH_CPU_WIDE),
    ("throttle", RecordKind::THROTTLE),
    ("unthrottle", RecordKind::UNTHROTTLE),
];

/// The call for the records of one type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordCall {
    pub(crate) function: &'static str,
    pub(crate) kind: RecordKind,
}

/// The records that the script has functions for.
pub(crate) fn record_calls(functions: &ScriptFunctions) -> Vec<RecordCall> {
    let known = SCRIPT_RECORDS.iter();
    let called = known.filter(|(function, _)| functions.get(function).is_some());
    called
        .map(|&(function, kind)| RecordCall { function, kind })
        .collect()
}

/// Writes the arguments for a record; `false` if it has none.
pub(crate) fn write_record(
    record: &NonSampleRecord<'_>,
    endian: Endian,
    writer: &mut MarshalWriter,
) -> bool {
    let Ok(decoded) = Record::decode(&record.raw, endian) else {
        return false;
    };
    let (pid, tid) = record.id.pid_tid.unwrap_or((u32::MAX, u32::MAX));
    let cpu = record.id.cpu.unwrap_or(u32::MAX);
    match decoded {
        Record::Switch(switch) => {
            let misc = record.raw.misc;
            let out = has(misc, Misc::SWITCH_OUT);
            let (np_pid, np_tid) = switch.next_prev.unwrap_or((u32::MAX, u32::MAX));
            writer.tuple(11);
            writer.unsigned(record.id.time.unwrap_or(u64::MAX));
            for number in [cpu, pid, tid, np_pid, np_tid] {
                writer.signed(number.cast_signed().into());
            }
            writer.signed(-1);
            writer.boolean(out);
            writer.boolean(out && has(misc, Misc::SWITCH_OUT_PREEMPT));
            // Process and virtual CPU of a guest: this is the host.
            writer.signed(0);
            writer.signed(-1);
        }
        Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
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
        _ => return false,
    }
    true
}

fn has(misc: Misc, flag: Misc) -> bool {
    misc.0 & flag.0 != 0
}
