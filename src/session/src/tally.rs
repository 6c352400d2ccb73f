//! What is learnt from the records as they pass: counts, times, losses, mapped files.

use std::collections::HashMap;

use rperf_wire::{
    Aux, Endian, Lost, Misc, Mmap2, MmapId, RawRecord, Record, RecordKind, SampleType, U64s,
};

use crate::hits::Hits;
use crate::mismarked::is_mismarked;
use crate::summary::CutTraces;

/// `PROT_EXEC` of mmap(2).
const PROT_EXEC: u32 = 4;

/// A file that was mapped for execution, with what it takes to find it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MappedName {
    pub(crate) filename: Box<[u8]>,
    /// 0 where the record doesn't say.
    pub(crate) inode: u64,
}

impl MappedName {
    /// Memory that no file stands behind.
    pub(crate) fn is_anonymous(&self) -> bool {
        self.filename.starts_with(b"//anon") || self.filename.starts_with(b"[anon:")
    }

    /// The file in which a run-time compiler tells of its code (jitdump), which it maps to leave a mark.
    pub(crate) fn is_jit_dump(&self) -> bool {
        let name = self.filename.rsplit(|byte| *byte == b'/').next();
        let pid = name.and_then(|name| name.strip_prefix(b"jit-")?.strip_suffix(b".dump"));
        pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
    }
}

/// Counts over the records of a recording.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// All records.
    pub(crate) records: u64,
    pub(crate) samples: u64,
    /// LOST records, and the records that they say were lost.
    pub(crate) lost_chunks: u64,
    pub(crate) lost_records: u64,
    /// How often each counter was throttled, by its id.
    pub(crate) throttled: HashMap<u64, u64>,
    /// What AUX records tell of hardware traces.
    pub(crate) traces: CutTraces,
    /// Earliest and latest time of a sample.
    pub(crate) times: Option<(u64, u64)>,
    /// Files mapped for execution, each with a process that had it.
    pub(crate) mapped: HashMap<MappedName, u32>,
    /// Which of them samples fell into.
    pub(crate) hits: Hits,
    /// Processes whose mappings took too long to be read.
    pub(crate) cut_maps: u64,
    /// Mappings that are marked as having a build-id, and have none.
    pub(crate) mismarked: u64,
    /// Bytes from a sample's first to its time, if it has one.
    time_offset: Option<usize>,
}

impl Tally {
    /// For samples of this type. What stands before the time is the same in all events of a recording,
    /// or they carry the identifier, which stands first in all of them.
    pub(crate) fn new(sample_type: SampleType) -> Self {
        let before = [SampleType::IDENTIFIER, SampleType::IP, SampleType::TID];
        let fields = before
            .iter()
            .filter(|field| sample_type.contains(**field))
            .count();
        let has_time = sample_type.contains(SampleType::TIME);
        Self {
            time_offset: has_time.then_some(fields * 8),
            hits: Hits::new(sample_type),
            ..Self::default()
        }
    }

    /// Takes note of one record and returns how many records it says were lost.
    #[inline]
    pub(crate) fn note(&mut self, record: &RawRecord<'_>) -> u64 {
        self.records += 1;
        match record.kind {
            RecordKind::SAMPLE => self.sample(record),
            RecordKind::LOST => return self.lost(record),
            RecordKind::MMAP2 => self.mapping(record),
            RecordKind::FORK => self.fork(record),
            RecordKind::THROTTLE => self.throttle(record),
            RecordKind::AUX => self.trace(record),
            _ => {}
        }
        0
    }

    /// Adds what was counted in another part of the recording.
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.samples += other.samples;
        self.lost_chunks += other.lost_chunks;
        self.lost_records += other.lost_records;
        for (id, times) in other.throttled {
            *self.throttled.entry(id).or_default() += times;
        }
        self.traces.add(&other.traces);
        self.cut_maps += other.cut_maps;
        self.times = match (self.times, other.times) {
            (Some((first, last)), Some(theirs)) => Some((first.min(theirs.0), last.max(theirs.1))),
            (own, theirs) => own.or(theirs),
        };
        self.mapped.extend(other.mapped);
        self.hits.add(other.hits);
        self.mismarked += other.mismarked;
    }

    fn sample(&mut self, record: &RawRecord<'_>) {
        self.samples += 1;
        self.hits.sample(record);
        let word = self.time_offset.and_then(|at| record.body.get(at..at + 8));
        let word = word.unwrap_or_default();
        if let Some(time) = U64s::new(word, Endian::NATIVE).get(0) {
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
    }

    fn lost(&mut self, record: &RawRecord<'_>) -> u64 {
        self.lost_chunks += 1;
        let Ok(Record::Lost(Lost { lost, .. })) = Record::decode(record, Endian::NATIVE) else {
            return 0;
        };
        self.lost_records += lost;
        lost
    }

    fn fork(&mut self, record: &RawRecord<'_>) {
        if let Ok(Record::Fork(task)) = Record::decode(record, Endian::NATIVE) {
            self.hits.fork(&task);
        }
    }

    fn throttle(&mut self, record: &RawRecord<'_>) {
        if let Ok(Record::Throttle(throttle)) = Record::decode(record, Endian::NATIVE) {
            *self.throttled.entry(throttle.id).or_default() += 1;
        }
    }

    fn trace(&mut self, record: &RawRecord<'_>) {
        let Ok(Record::Aux(aux)) = Record::decode(record, Endian::NATIVE) else {
            return;
        };
        let has = |flag: u64| u64::from(aux.flags & flag != 0);
        self.traces.parts += 1;
        self.traces.truncated += has(Aux::TRUNCATED);
        self.traces.gaps += has(Aux::PARTIAL);
        self.traces.collided += has(Aux::COLLISION);
    }

    fn mapping(&mut self, record: &RawRecord<'_>) {
        self.mismarked += u64::from(is_mismarked(record));
        if record.misc.contains(Misc::MMAP_DATA) {
            return;
        }
        let Ok(Record::Mmap2(Mmap2 { mmap, id, prot, .. })) =
            Record::decode(record, Endian::NATIVE)
        else {
            return;
        };
        let inode = match id {
            MmapId::Inode { inode, .. } => inode,
            MmapId::BuildId { .. } => 0,
        };
        if prot & PROT_EXEC != 0 {
            let name = MappedName {
                filename: mmap.filename.into(),
                inode,
            };
            self.hits.mapping(&mmap, &name);
            self.mapped.entry(name).or_insert(mmap.pid.unsigned_abs());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{Encoder, Mmap};

    fn body(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut Encoder::new(&mut bytes, Endian::NATIVE));
        bytes
    }

    #[test]
    fn times_stand_behind_what_the_type_puts_before_them() {
        let kind = RecordKind::SAMPLE;
        for (sample_type, before) in [
            (SampleType::IP | SampleType::TID | SampleType::TIME, 2),
            (
                SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME,
                3,
            ),
        ] {
            let mut tally = Tally::new(sample_type);
            for time in [50, 40, 60] {
                let body = body(|to| {
                    to.zeros(before * 8);
                    to.u64(time);
                });
                tally.note(&RawRecord {
                    kind,
                    misc: Misc(2),
                    body: &body,
                });
            }
            assert_eq!((tally.samples, tally.times), (3, Some((40, 60))));
        }
    }

    #[test]
    fn dumps_of_compilers_are_known_by_their_names() {
        let is_dump = |filename: &[u8]| {
            let filename = filename.into();
            MappedName { filename, inode: 0 }.is_jit_dump()
        };
        assert!(is_dump(b"/tmp/jit-12.dump") && is_dump(b"/var/jit/x/jit-7.dump"));
        for other in [
            &b"/tmp/jit-.dump"[..],
            b"/tmp/jit-x.dump",
            b"/jit-1.dump/x",
            b"//anon",
        ] {
            assert!(!is_dump(other));
        }
    }

    #[test]
    fn losses_are_counted_twice_over() {
        let mut tally = Tally::new(SampleType::IP);
        let body = body(|to| {
            to.u64(1);
            to.u64(24);
        });
        let record = RawRecord {
            kind: RecordKind::LOST,
            misc: Misc(0),
            body: &body,
        };
        assert_eq!((tally.note(&record), tally.note(&record)), (24, 24));
        assert_eq!(
            (tally.lost_chunks, tally.lost_records, tally.records),
            (2, 48, 2)
        );
    }

    #[test]
    fn traces_that_are_cut_are_counted_by_cause() {
        let mut tally = Tally::new(SampleType::IP);
        for flags in [0, 1, 4, 8, 9, 2] {
            let aux = Aux {
                offset: 0,
                size: 24,
                flags,
            };
            let body = body(|to| Record::Aux(aux).encode_body(to));
            tally.note(&RawRecord {
                kind: RecordKind::AUX,
                misc: Misc(0),
                body: &body,
            });
        }
        let CutTraces {
            parts,
            truncated,
            gaps,
            collided,
            ..
        } = tally.traces;
        assert_eq!((parts, truncated, gaps, collided), (6, 2, 1, 2));
    }

    #[test]
    fn throttling_is_counted_by_counter() {
        let mut tally = Tally::new(SampleType::IP);
        for id in [7, 8, 7] {
            let body = body(|to| {
                to.u64(100);
                to.u64(id);
                to.u64(1);
            });
            tally.note(&RawRecord {
                kind: RecordKind::THROTTLE,
                misc: Misc(0),
                body: &body,
            });
        }
        assert_eq!(tally.throttled, HashMap::from([(7, 2), (8, 1)]));
    }

    #[test]
    fn only_code_is_kept_and_once() {
        let mut tally = Tally::new(SampleType::IP);
        for (prot, misc) in [
            (5, Misc(2)),
            (5, Misc(2)),
            (3, Misc(2)),
            (5, Misc::MMAP_DATA),
        ] {
            let mmap = Mmap {
                pid: 9,
                tid: 9,
                start: 0,
                len: 1,
                pgoff: 0,
                filename: b"/bin/x",
            };
            let id = MmapId::Inode {
                major: 1,
                minor: 2,
                inode: 77,
                generation: 0,
            };
            let record = Record::Mmap2(Mmap2 {
                mmap,
                id,
                prot,
                flags: 2,
            });
            let body = body(|to| record.encode_body(to));
            tally.note(&RawRecord {
                kind: RecordKind::MMAP2,
                misc,
                body: &body,
            });
        }
        let name = MappedName {
            filename: b"/bin/x"[..].into(),
            inode: 77,
        };
        assert_eq!(tally.mapped.into_iter().collect::<Vec<_>>(), [(name, 9)]);
    }
}
