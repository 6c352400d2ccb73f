//! Bytes read and written: by thread (`rw-by-pid`, `rwtop`) and by file descriptor (`rw-by-file`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{EventFields, FirstSeen, ScriptSample};

/// The reads or the writes of a thread or a file descriptor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IoSums {
    /// The thread's name at its last call or return; empty for a file descriptor.
    pub comm: String,
    /// Number of calls.
    pub calls: u64,
    /// Bytes that were requested.
    pub requested: u64,
    /// Bytes that were transferred; 0 for a file descriptor, whose returns are not read.
    pub transferred: u64,
    /// Number of calls that returned 0 or an error, by their result.
    pub failed: BTreeMap<i64, u64>,
}

/// Reads and writes by thread id, which perf's scripts call `pid`.
#[derive(Debug, Default)]
pub struct TaskReadWrite {
    reads: FirstSeen<i64, IoSums>,
    writes: FirstSeen<i64, IoSums>,
}

impl TaskReadWrite {
    /// The tracepoints whose samples are needed, and their fields. `text: None`: no field with text is read.
    pub const EVENTS: &'static [EventFields] = &[
        EventFields {
            tracepoint: "syscalls:sys_enter_read",
            numbers: &["count"],
            text: None,
        },
        EventFields {
            tracepoint: "syscalls:sys_exit_read",
            numbers: &["ret"],
            text: None,
        },
        EventFields {
            tracepoint: "syscalls:sys_enter_write",
            numbers: &["count"],
            text: None,
        },
        EventFields {
            tracepoint: "syscalls:sys_exit_write",
            numbers: &["ret"],
            text: None,
        },
    ];

    /// Adds a call or its return.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        // `kind` is the index in `EVENTS`; samples of other events, without an index, are not passed.
        let (is_call, by_id) = match sample.kind {
            Some(0) => (true, &mut self.reads),
            Some(1) => (false, &mut self.reads),
            Some(2) => (true, &mut self.writes),
            _ => (false, &mut self.writes),
        };
        let io = by_id.entry(&sample.tid);
        let number = sample.number(0);
        if is_call {
            io.calls += 1;
            io.requested = io.requested.wrapping_add(number.cast_unsigned());
        } else if number > 0 {
            io.transferred = io.transferred.wrapping_add(number.cast_unsigned());
        } else {
            *io.failed.entry(number).or_default() += 1;
        }
        if io.comm != sample.comm {
            sample.comm.clone_into(&mut io.comm);
        }
    }

    /// Returns thread ids and their reads, those with most bytes transferred first.
    #[must_use]
    pub fn reads(&self) -> Vec<(i64, &IoSums)> {
        rows(&self.reads, |io| io.transferred)
    }

    /// Returns thread ids and their writes, those with most bytes requested first (not transferred, unlike
    /// reads), as in perf's script.
    #[must_use]
    pub fn writes(&self) -> Vec<(i64, &IoSums)> {
        rows(&self.writes, |io| io.requested)
    }

    /// Returns thread id, name, result and number of reads that returned 0 or an error, the largest number first.
    #[must_use]
    pub fn failed_reads(&self) -> Vec<(i64, &str, i64, u64)> {
        failed(&self.reads)
    }

    /// Returns thread id, name, result and number of writes that returned 0 or an error, the largest number first.
    #[must_use]
    pub fn failed_writes(&self) -> Vec<(i64, &str, i64, u64)> {
        failed(&self.writes)
    }

    /// Removes all counts.
    pub fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }
}

/// Returns ids and sums, those with the largest `key` first.
fn rows(by_id: &FirstSeen<i64, IoSums>, key: fn(&IoSums) -> u64) -> Vec<(i64, &IoSums)> {
    let mut rows: Vec<_> = by_id.iter().map(|(id, io)| (*id, io)).collect();
    rows.sort_by_key(|(id, io)| (Reverse(key(io)), *id));
    rows
}

fn failed(by_id: &FirstSeen<i64, IoSums>) -> Vec<(i64, &str, i64, u64)> {
    let mut rows: Vec<(i64, &str, i64, u64)> = Vec::new();
    for (tid, io) in by_id.iter() {
        let results = io.failed.iter();
        rows.extend(results.map(move |(result, count)| (*tid, io.comm.as_str(), *result, *count)));
    }
    rows.sort_by_key(|&(tid, _, result, count)| (Reverse(count), tid, result));
    rows
}

/// Reads and writes of the threads with one name, by file descriptor.
#[derive(Debug, Default)]
pub struct FileIo {
    /// The name of the threads.
    pub comm: String,
    reads: FirstSeen<i64, IoSums>,
    writes: FirstSeen<i64, IoSums>,
}

impl FileIo {
    /// The tracepoints whose samples are needed.
    pub const EVENTS: &'static [EventFields] = &[
        EventFields {
            tracepoint: "syscalls:sys_enter_read",
            numbers: &["fd", "count"],
            text: None,
        },
        EventFields {
            tracepoint: "syscalls:sys_enter_write",
            numbers: &["fd", "count"],
            text: None,
        },
    ];

    /// Creates empty counts for the threads with this name.
    #[must_use]
    pub fn of_comm(comm: &str) -> Self {
        Self {
            comm: comm.to_owned(),
            ..Self::default()
        }
    }

    /// Adds a call.
    pub fn sample(&mut self, sample: &ScriptSample<'_>) {
        if sample.comm != self.comm {
            return;
        }
        // `kind` is the index in `EVENTS`; samples of other events, without an index, are not passed.
        let by_id = match sample.kind {
            Some(0) => &mut self.reads,
            _ => &mut self.writes,
        };
        let io = by_id.entry(&sample.number(0));
        io.calls += 1;
        let requested = sample.number(1).cast_unsigned();
        io.requested = io.requested.wrapping_add(requested);
    }

    /// Returns descriptors and their reads, those with most bytes requested first.
    #[must_use]
    pub fn reads(&self) -> Vec<(i64, &IoSums)> {
        rows(&self.reads, |io| io.requested)
    }

    /// Returns descriptors and their writes, those with most bytes requested first.
    #[must_use]
    pub fn writes(&self) -> Vec<(i64, &IoSums)> {
        rows(&self.writes, |io| io.requested)
    }
}
