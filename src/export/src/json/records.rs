//! `--all`: records that are not samples. Their objects are in a separate array, so that readers of version 1 of perf's JSON
//! format still find the samples.

use rperf_wire::{Mmap, Record, RecordKind, Task};

use super::{push_line, push_string};

/// The types of records that are written.
pub(super) const WRITTEN: [RecordKind; 6] = [
    RecordKind::MMAP,
    RecordKind::MMAP2,
    RecordKind::COMM,
    RecordKind::FORK,
    RecordKind::EXIT,
    RecordKind::LOST,
];

/// The members of a record's object.
struct Members<'o> {
    out: &'o mut Vec<u8>,
}

impl Members<'_> {
    /// Begins a member on a new line, with a comma unless it is the first.
    fn key(&mut self, key: &'static str) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
        // Indented by 3 tabs: one more than the braces of the object.
        push_line(self.out, 3);
        push_string(self.out, key);
        self.out.extend_from_slice(b": ");
    }

    fn number(&mut self, key: &'static str, number: i128) {
        self.key(key);
        self.out.extend_from_slice(number.to_string().as_bytes());
    }

    fn address(&mut self, key: &'static str, address: u64) {
        self.text(key, format!("{address:#x}").as_bytes());
    }

    fn text(&mut self, key: &'static str, text: &[u8]) {
        self.key(key);
        push_string(self.out, &String::from_utf8_lossy(text));
    }

    fn task(&mut self, task: &Task) {
        self.number("pid", task.pid.cast_signed().into());
        self.number("tid", task.tid.cast_signed().into());
        self.number("ppid", task.ppid.cast_signed().into());
        self.number("ptid", task.ptid.cast_signed().into());
    }

    fn mapping(&mut self, mapping: &Mmap<'_>) {
        // Unlike the other ids, this one is already signed.
        self.number("pid", mapping.pid.into());
        self.number("tid", mapping.tid.cast_signed().into());
        self.address("start", mapping.start);
        self.number("len", mapping.len.into());
        self.address("pgoff", mapping.pgoff);
        self.text("filename", mapping.filename);
    }
}

/// Appends a comma (which [`write_end`](super::write_end) drops before the first object) and the object of a record; nothing if
/// its type is not in [`WRITTEN`]. `time` is in nanoseconds; `None` is written as null.
pub(super) fn push_record(record: &Record<'_>, time: Option<i64>, out: &mut Vec<u8>) {
    let kind = match record {
        Record::Comm(_) => "comm",
        Record::Fork(_) => "fork",
        Record::Exit(_) => "exit",
        Record::Mmap(_) => "mmap",
        Record::Mmap2(_) => "mmap2",
        Record::Lost(_) => "lost",
        _ => return,
    };
    out.push(b',');
    push_line(out, 2);
    out.push(b'{');
    let mut members = Members { out };
    members.text("type", kind.as_bytes());
    match time {
        Some(time) => members.number("timestamp", time.into()),
        None => {
            members.key("timestamp");
            members.out.extend_from_slice(b"null");
        }
    }
    match record {
        Record::Comm(comm) => {
            members.number("pid", comm.pid.cast_signed().into());
            members.number("tid", comm.tid.cast_signed().into());
            members.text("comm", comm.comm);
        }
        Record::Fork(task) | Record::Exit(task) => members.task(task),
        Record::Mmap(mapping) => members.mapping(mapping),
        Record::Mmap2(mapping) => {
            members.mapping(&mapping.mmap);
            members.number("prot", mapping.prot.into());
            members.number("flags", mapping.flags.into());
        }
        Record::Lost(lost) => members.number("lost", lost.lost.into()),
        _ => {}
    }
    push_line(out, 2);
    out.push(b'}');
}
