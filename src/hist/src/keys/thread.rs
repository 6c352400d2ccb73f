//! `pid` and `tid`: the thread, with its latest name. perf 6.1 calls the thread's id pid; `tid` is
//! the same key with the proper name. `tgid`: the process, with the latest name of its main
//! thread.

use super::{CellPadding, Key, KeyDependency, KeyInput, KeyValue, Thread};
use crate::names::RecordingNames;

pub(super) static PID: Key = key("pid", "    Pid:Command");

pub(super) static TID: Key = key("tid", "    Tid:Command");

/// One row for all threads of a process.
pub(super) static TGID: Key = Key {
    identity: process,
    rank: process,
    text: |input, names| {
        let pid = input.context.thread.pid;
        let leader = Thread { pid, tid: pid };
        format!("{:7}:{}", pid.cast_signed(), names.last_comm(leader))
    },
    ..key("tgid", "   Tgid:Command")
};

fn process<'n>(input: &KeyInput<'_>, _: &'n dyn RecordingNames) -> KeyValue<'n> {
    KeyValue::Number(input.context.thread.pid.cast_signed().into())
}

const fn key(name: &'static str, title: &'static str) -> Key {
    Key {
        name,
        title,
        // The column's width does not depend on rows whose function is unknown, unlike that of objects and symbols.
        unresolved_width: 0,
        pads: CellPadding::Always,
        reads: KeyDependency::Thread,
        identity: thread_id,
        rank: thread_id,
        text: |input, names| {
            let thread = input.context.thread;
            format!("{:7}:{}", thread.tid.cast_signed(), names.last_comm(thread))
        },
    }
}

fn thread_id<'n>(input: &KeyInput<'_>, _: &'n dyn RecordingNames) -> KeyValue<'n> {
    KeyValue::Number(input.context.thread.tid.cast_signed().into())
}
