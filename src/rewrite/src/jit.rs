//! Adds the functions that a run-time compiler dumped (`jit-PID.dump`) to a recording, as mappings of an object file.
//!
//! A function gets an MMAP2 record with the time at which it was loaded. Rounds end with a FINISHED_ROUND record, and readers
//! sort by rounds. The MMAP2 record is written at the end of the first round that has reached its time, so that readers get it
//! early enough.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use rperf_perfdata::EventDesc;
use rperf_replay::EventTable;
use rperf_wire::{
    AttrFlags, CpuMode, Endian, MAP_PRIVATE, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ,
    RawRecord, Record, RecordHeader, RecordKind, SampleId, SampleIdLayout, SampleType, name_bytes,
    name_path,
};
use rustc_hash::FxHashMap;

use crate::pipeline::Transform;

/// The object file of a dump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DumpedObject {
    /// Its path.
    pub path: PathBuf,
    /// The time at which the dump was begun, by its clock, in nanoseconds; `None` if unknown.
    pub started: Option<u64>,
    /// Its functions.
    pub functions: Vec<DumpedCode>,
}

/// A function of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DumpedCode {
    /// The time at which the code was loaded, by the dump's clock, in nanoseconds.
    pub time: u64,
    /// Its first address in the process.
    pub start: u64,
    /// Its size in bytes.
    pub len: u64,
    /// Its offset in the object file.
    pub offset: u64,
}

/// Turns dumps into object files.
pub trait DumpConverter {
    /// Reads a dump and writes its object file; `None`, after a warning, if that is not possible.
    fn object(&mut self, dump: &Path) -> Option<DumpedObject>;
    /// Called for a dump whose clock can't be related to the recording's.
    fn unrelated_clock(&mut self, dump: &Path);
}

/// Inserts mappings of dumped functions, and drops the mappings that they replace.
pub struct JitInjector<S> {
    events: EventTable,
    endian: Endian,
    trailer: SampleIdLayout,
    /// The event id in the trailers of new records: the first event's.
    id: Option<u64>,
    /// Whether the recording's clock is the clock of dumps.
    is_monotonic: bool,
    converter: S,
    /// Processes whose functions were added, and the time at which they mapped the dump; 0 if not recorded.
    processes: FxHashMap<u32, u64>,
    /// Mappings to be inserted, by time.
    pending: VecDeque<NewMapping>,
    /// The latest time of the records rewritten so far; `u64::MAX` at the end.
    highest: u64,
}

/// A mapping to be inserted at a time of the recording.
struct NewMapping {
    time: u64,
    record: Vec<u8>,
}

/// Whether all events also put times into records that are not samples; without these times functions can't be inserted.
#[must_use]
pub fn has_record_times(events: &[EventDesc]) -> bool {
    let mut attrs = events.iter().map(|event| &event.attr);
    attrs.all(|attr| {
        attr.flags.contains(AttrFlags::SAMPLE_ID_ALL) && attr.sample_type.contains(SampleType::TIME)
    })
}

impl<S: DumpConverter> JitInjector<S> {
    /// Creates the transform for a recording with these events. If `is_monotonic`, its clock is that of dumps.
    pub fn new(endian: Endian, events: &[EventDesc], is_monotonic: bool, converter: S) -> Self {
        let first = events.first();
        let sample_type = first.map_or(SampleType(0), |event| event.attr.sample_type);
        Self {
            events: EventTable::new(endian, events),
            endian,
            trailer: SampleIdLayout::new(sample_type),
            id: first.and_then(|event| event.ids.first().copied()),
            is_monotonic,
            converter,
            processes: FxHashMap::default(),
            pending: VecDeque::new(),
            highest: 0,
        }
    }

    /// The mapping in a record, if it is one of user space.
    fn user_mapping<'r>(&self, raw: &RawRecord<'r>) -> Option<Mmap<'r>> {
        let mmap = match Record::decode(raw, self.endian) {
            Ok(Record::Mmap(mmap)) => mmap,
            Ok(Record::Mmap2(mmap2)) => mmap2.mmap,
            _ => return None,
        };
        (raw.misc.cpu_mode() == CpuMode::User).then_some(mmap)
    }

    /// Adds the functions of a process if the mapping is that of its first usable dump.
    fn note_mapping(&mut self, mmap: &Mmap<'_>, time: Option<u64>) {
        let pid = mmap.pid.cast_unsigned();
        if !is_dump(mmap.filename) || self.processes.contains_key(&pid) {
            return;
        }
        let name = rperf_wire::name_text(mmap.filename);
        let path = name_path(&name);
        let Some(object) = self.converter.object(&path) else {
            return;
        };
        let ahead = match (self.is_monotonic, object.started, time) {
            (true, ..) => 0,
            // A process maps its dump when it begins to write it: `started` and `time` are the same moment, by different clocks.
            (false, Some(started), Some(time)) => started.wrapping_sub(time),
            (false, ..) => return self.converter.unrelated_clock(&path),
        };
        self.processes.insert(pid, time.unwrap_or_default());
        self.add(pid, &object, ahead);
    }

    /// Whether a mapping is replaced by those of the functions of its process. These replace the mapping of the dump, and the
    /// mappings of anonymous memory since the dump was mapped, which would hide the functions.
    fn is_replaced(&self, mmap: &Mmap<'_>, time: Option<u64>) -> bool {
        let Some(since) = self.processes.get(&mmap.pid.cast_unsigned()) else {
            return false;
        };
        let time = time.unwrap_or_default();
        match mmap.filename.starts_with(b"//anon") {
            true => time >= *since,
            false => is_dump(mmap.filename) && time == *since,
        }
    }

    /// Adds the functions of a process. The dump's clock is `ahead` nanoseconds ahead of the recording's.
    fn add(&mut self, pid: u32, object: &DumpedObject, ahead: u64) {
        let name = object.path.to_string_lossy();
        let mappings = object.functions.iter().map(|function| {
            let time = function.time.wrapping_sub(ahead);
            let record = self.mapping_record(pid, function, time, &name_bytes(&name));
            NewMapping { time, record }
        });
        let mappings: Vec<NewMapping> = mappings.collect();
        self.pending.extend(mappings);
        self.pending.make_contiguous().sort_by_key(|new| new.time);
    }

    /// The MMAP2 record of a function.
    fn mapping_record(&self, pid: u32, function: &DumpedCode, time: u64, name: &[u8]) -> Vec<u8> {
        let record = Record::Mmap2(Mmap2 {
            mmap: Mmap {
                pid: pid.cast_signed(),
                tid: pid,
                start: function.start,
                len: function.len,
                pgoff: function.offset,
                filename: name,
            },
            id: MmapId::Inode {
                major: 0,
                minor: 0,
                inode: 0,
                generation: 0,
            },
            prot: PROT_READ | PROT_EXEC,
            flags: MAP_PRIVATE,
        });
        let sample_id = SampleId {
            pid_tid: Some((pid, pid)),
            time: Some(time),
            id: self.id,
            ..SampleId::default()
        };
        let mut bytes = Vec::new();
        RecordHeader::encode_record(
            RecordKind::MMAP2,
            Misc::USER,
            &mut bytes,
            self.endian,
            |to| {
                record.encode_body(to);
                self.trailer.encode(&sample_id, to);
            },
        );
        bytes
    }

    /// Appends the pending mappings that are not later than the latest record so far.
    fn insert(&mut self, to: &mut Vec<u8>) {
        let due = self.pending.partition_point(|new| new.time <= self.highest);
        for new in self.pending.drain(..due) {
            to.extend_from_slice(&new.record);
        }
    }
}

/// Whether a mapped file is a `jit-PID.dump`.
fn is_dump(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    let number = name.and_then(|name| name.strip_prefix(b"jit-")?.strip_suffix(b".dump"));
    number.is_some_and(|number| !number.is_empty() && number.iter().all(u8::is_ascii_digit))
}

impl<S: DumpConverter> Transform for JitInjector<S> {
    fn is_ordered(&self) -> bool {
        // A mapping is dropped if the process mapped its dump at an earlier time. That record may come later, even in the next
        // round, so `note` must be a round ahead of `rewrite`.
        true
    }

    fn note(&mut self, records: &[u8]) {
        for (raw, _) in RawRecord::all(records, self.endian) {
            if let Some(mmap) = self.user_mapping(&raw) {
                self.note_mapping(&mmap, self.events.record_time(&raw));
            }
        }
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, self.endian) {
            let time = match raw.kind {
                RecordKind::SAMPLE => self.events.sample_head(raw.body).and_then(|head| head.time),
                _ => self.events.record_time(&raw),
            };
            self.highest = self.highest.max(time.unwrap_or_default());
            let is_dropped = match raw.kind {
                RecordKind::MMAP | RecordKind::MMAP2 => {
                    let mmap = self.user_mapping(&raw);
                    mmap.is_some_and(|mmap| self.is_replaced(&mmap, time))
                }
                RecordKind::FINISHED_ROUND => {
                    self.insert(to);
                    false
                }
                _ => false,
            };
            if !is_dropped {
                to.extend_from_slice(record);
            }
        }
    }

    fn end(&mut self, to: &mut Vec<u8>) {
        self.highest = u64::MAX;
        self.insert(to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Attr, RecordHeader};

    /// Returns an object with this start time.
    struct OneObject(Option<u64>);

    impl DumpConverter for OneObject {
        fn object(&mut self, _dump: &Path) -> Option<DumpedObject> {
            let function = |time, start| DumpedCode {
                time,
                start,
                len: 0x10,
                offset: 0x1000,
            };
            Some(DumpedObject {
                path: "/tmp/jitted-7.so".into(),
                started: self.0,
                functions: vec![function(1_035, 0x2000), function(1_015, 0x1000)],
            })
        }

        fn unrelated_clock(&mut self, _dump: &Path) {}
    }

    /// An MMAP record of process 7 whose trailer is pid, tid and time.
    fn mapping(endian: Endian, name: &[u8], time: u64) -> Vec<u8> {
        let mmap = Record::Mmap(Mmap {
            pid: 7,
            tid: 7,
            start: 0x1000,
            len: 0x1000,
            pgoff: 0,
            filename: name,
        });
        let mut bytes = Vec::new();
        RecordHeader::encode_record(RecordKind::MMAP, Misc::USER, &mut bytes, endian, |to| {
            mmap.encode_body(to);
            to.u32(7);
            to.u32(7);
            to.u64(time);
        });
        bytes
    }

    #[test]
    fn functions_are_inserted_in_the_round_of_their_time() {
        for endian in [Endian::Little, Endian::Big] {
            let event = EventDesc::new(
                Attr {
                    sample_type: SampleType::TID | SampleType::TIME,
                    flags: AttrFlags::SAMPLE_ID_ALL,
                    ..Attr::default()
                },
                vec![1],
            );
            assert!(has_record_times(std::slice::from_ref(&event)));
            let mut round = Vec::new();
            RecordHeader::encode_record(
                RecordKind::FINISHED_ROUND,
                Misc(0),
                &mut round,
                endian,
                |_| {},
            );
            // Within a round, records of another CPU may come first.
            let records = [
                mapping(endian, b"//anon", 11),
                mapping(endian, b"//anon", 9),
                mapping(endian, b"/tmp/jit-7.dump", 10),
                mapping(endian, b"//anon", 12),
                mapping(endian, b"/bin/sh", 20),
                round.clone(),
                mapping(endian, b"/bin/sh", 30),
                round,
            ];
            let is_monotonic = false;
            let mut jit = JitInjector::new(endian, &[event], is_monotonic, OneObject(Some(1_010)));
            let mut to = Vec::new();
            jit.note(&records.concat());
            jit.rewrite(&records.concat(), &mut to);
            jit.end(&mut to);
            // The times of the records; 1000 is added to mark those of functions, 0 is for FINISHED_ROUND. The sums happen to
            // be the times in the dump, whose clock is 1000 ahead.
            let times = RawRecord::all(&to, endian).map(|(raw, _)| match raw.kind {
                RecordKind::FINISHED_ROUND => 0,
                RecordKind::MMAP2 => jit.events.record_time(&raw).unwrap_or_default() + 1_000,
                _ => jit.events.record_time(&raw).unwrap_or_default(),
            });
            assert_eq!(times.collect::<Vec<_>>(), [9, 20, 1_015, 0, 30, 0, 1_035]);
        }
    }

    #[test]
    fn functions_of_a_dump_without_start_time_need_its_clock() {
        let event = EventDesc::new(
            Attr {
                sample_type: SampleType::TID | SampleType::TIME,
                flags: AttrFlags::SAMPLE_ID_ALL,
                ..Attr::default()
            },
            vec![1],
        );
        let endian = Endian::Little;
        for (is_monotonic, functions) in [(true, 2), (false, 0)] {
            let events = std::slice::from_ref(&event);
            let mut jit = JitInjector::new(endian, events, is_monotonic, OneObject(None));
            let mut to = Vec::new();
            let record = mapping(endian, b"/tmp/jit-7.dump", 1_010);
            jit.note(&record);
            jit.rewrite(&record, &mut to);
            jit.end(&mut to);
            let inserted =
                RawRecord::all(&to, endian).filter(|(raw, _)| raw.kind == RecordKind::MMAP2);
            assert_eq!(inserted.count(), functions, "{is_monotonic}");
        }
    }

    #[test]
    fn dumps_are_recognised_by_name() {
        assert!(is_dump(b"/tmp/x/jit-12.dump"));
        for other in [
            &b"/tmp/jit-.dump"[..],
            b"/tmp/jit-a.dump",
            b"/jit-1.dump/x",
            b"",
        ] {
            assert!(!is_dump(other));
        }
    }
}
