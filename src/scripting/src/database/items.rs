//! The rows that a block (consecutive records, processed by one thread) adds to a database, before the rows have ids.

use rperf_lines::BranchFlags;
use rperf_replay::NonSampleRecord;
use rperf_resolve::Frame;
use rperf_wire::{Endian, Misc, Record};

use super::tasks::TaskIds;
use crate::encoded_calls::EncodedCalls;

/// An item of a block.
#[derive(Debug)]
pub(crate) enum DatabaseItem {
    /// Calls of the script's functions, except those that add a row to a table.
    Calls(Box<EncodedCalls>),
    Sample(Box<ExportedSample>),
    Comm {
        task: TaskIds,
        name: String,
        /// Time in nanoseconds.
        time: u64,
        /// Whether exec(2) set the name.
        is_exec: bool,
    },
    Fork {
        task: TaskIds,
        parent: TaskIds,
        /// Time in nanoseconds.
        time: u64,
    },
    Switch {
        tid: u32,
        cpu: u32,
        /// Time in nanoseconds.
        time: u64,
        /// The id of the next or previous thread, if the record has it.
        other_tid: Option<u32>,
        is_out: bool,
        is_preempted: bool,
    },
}

/// A sample.
#[derive(Debug)]
pub(crate) struct ExportedSample {
    /// The index of its event.
    pub(crate) event: usize,
    pub(crate) task: TaskIds,
    pub(crate) cpu: u32,
    /// Time in nanoseconds.
    pub(crate) time: u64,
    /// The address that was sampled; `None` outside of kernel and user mode: such samples are not exported.
    pub(crate) frame: Option<Frame>,
    /// The data address, if perf resolves data addresses of the event.
    pub(crate) data: Option<Frame>,
    /// The callchain from the outermost function to the innermost one; empty if it is not exported.
    pub(crate) callers: Vec<Frame>,
    pub(crate) addr: u64,
    pub(crate) period: u64,
    pub(crate) weight: u64,
    pub(crate) transaction: u64,
    pub(crate) data_source: u64,
    pub(crate) branch: BranchFlags,
    /// The type of a synthesized event, and its raw data; `None` for other events.
    pub(crate) synthesized: Option<(u64, Vec<u8>)>,
}

/// The item of a COMM, FORK or SWITCH record for a database; `None` for other records, for a SWITCH record without a thread id,
/// and for a record that cannot be decoded. A missing time or CPU becomes the highest number of its type.
pub(crate) fn exported_record(
    record: &NonSampleRecord<'_>,
    endian: Endian,
) -> Option<DatabaseItem> {
    let misc = record.raw.misc;
    let has = |flag: Misc| misc.0 & flag.0 != 0;
    let time = record.id.time.unwrap_or(u64::MAX);
    Some(match Record::decode(&record.raw, endian).ok()? {
        Record::Comm(comm) => DatabaseItem::Comm {
            task: TaskIds {
                pid: comm.pid,
                tid: comm.tid,
            },
            name: String::from_utf8_lossy(comm.comm).into_owned(),
            time,
            is_exec: has(Misc::COMM_EXEC),
        },
        Record::Fork(task) => DatabaseItem::Fork {
            task: TaskIds {
                pid: task.pid,
                tid: task.tid,
            },
            parent: TaskIds {
                pid: task.ppid,
                tid: task.ptid,
            },
            time,
        },
        Record::Switch(switch) => {
            let (_, tid) = record.id.pid_tid?;
            let is_out = has(Misc::SWITCH_OUT);
            DatabaseItem::Switch {
                tid,
                cpu: record.id.cpu.unwrap_or(u32::MAX),
                time,
                other_tid: switch.next_prev.map(|(_, tid)| tid),
                is_out,
                is_preempted: is_out && has(Misc::SWITCH_OUT_PREEMPT),
            }
        }
        _ => return None,
    })
}
