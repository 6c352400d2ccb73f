//! `pid` and `tid`: the thread, with the name it had last. perf 6.1 calls the thread's id pid; `tid` names the same
//! rows for what they are. `tgid`: the process, with the name of its first thread.

use super::{Key, Pads, Part, Reads, Subject, Thread};
use crate::names::Names;

pub(super) static PID: Key = key("pid", "    Pid:Command");

pub(super) static TID: Key = key("tid", "    Tid:Command");

/// Not the keys of one thread, but of all those of its process.
pub(super) static TGID: Key = Key {
    identity: process,
    rank: process,
    text: |subject, names| {
        let pid = subject.context.thread.pid;
        let leader = Thread { pid, tid: pid };
        format!("{:7}:{}", pid.cast_signed(), names.last_comm(leader))
    },
    ..key("tgid", "   Tgid:Command")
};

fn process<'n>(subject: &Subject<'_>, _: &'n dyn Names) -> Part<'n> {
    Part::Number(subject.context.thread.pid.cast_signed().into())
}

const fn key(name: &'static str, title: &'static str) -> Key {
    Key {
        name,
        title,
        unresolved_width: 0,
        pads: Pads::Always,
        reads: Reads::Thread,
        identity: number,
        rank: number,
        text: |subject, names| {
            let thread = subject.context.thread;
            format!("{:7}:{}", thread.tid.cast_signed(), names.last_comm(thread))
        },
    }
}

fn number<'n>(subject: &Subject<'_>, _: &'n dyn Names) -> Part<'n> {
    Part::Number(subject.context.thread.tid.cast_signed().into())
}
