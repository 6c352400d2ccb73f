//! Statistics of synthesized records and of drained ones (read from ring buffers): counts, times, losses, mapped files, BPF
//! programs.

use std::collections::HashMap;
use std::path::Path;

use rperf_wire::{
    Aux, Endian, Lost, Misc, Mmap2, MmapId, PROT_EXEC, RawRecord, Record, RecordKind, SampleType,
    U64s,
};

use crate::bpf_programs::BpfPrograms;
use crate::build_id_mappings::is_mismarked;
use crate::code_pages::CodePages;
use crate::deleted_files::DeletedFiles;
use crate::summary::TraceStats;

/// A file with an executable mapping, with the data to identify it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct MappedName {
    pub(crate) filename: Box<[u8]>,
    /// 0 if not recorded.
    pub(crate) inode: u64,
}

impl MappedName {
    /// Whether the mapping is anonymous memory, with or without a name (`PR_SET_VMA_ANON_NAME`).
    pub(crate) fn is_anonymous(&self) -> bool {
        self.filename.starts_with(b"//anon") || self.filename.starts_with(b"[anon:")
    }

    /// Whether the file is a jitdump, which a JIT compiler maps as a marker.
    pub(crate) fn is_jit_dump(&self) -> bool {
        let name = self.filename.rsplit(|byte| *byte == b'/').next();
        let pid = name.and_then(|name| name.strip_prefix(b"jit-")?.strip_suffix(b".dump"));
        pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
    }
}

/// Statistics of the records of a recording.
#[derive(Debug, Default)]
pub(crate) struct RecordStats {
    /// Number of records.
    pub(crate) records: u64,
    pub(crate) samples: u64,
    /// Number of LOST records.
    pub(crate) lost_chunks: u64,
    /// Number of lost records that LOST records report.
    pub(crate) lost_records: u64,
    /// Number of throttlings of each counter, by id.
    pub(crate) throttled: HashMap<u64, u64>,
    /// Statistics of AUX records; `area_bytes` stays 0 here: it is set only in the summary.
    pub(crate) traces: TraceStats,
    /// Minimum and maximum time of samples.
    pub(crate) times: Option<(u64, u64)>,
    /// Files with executable mappings, each with the id of a process that maps it.
    pub(crate) mapped: HashMap<MappedName, u32>,
    /// Sampled code pages, by which the files with samples are found.
    pub(crate) sampled_pages: CodePages,
    /// Deleted files among `mapped`, kept open; none without [`RecordStats::with_deleted_files`].
    pub(crate) deleted: DeletedFiles,
    /// Number of processes whose mappings took too long to read; set when records are synthesized.
    pub(crate) truncated_maps: u64,
    /// Number of MMAP2 records that are marked as having a build-id but have none.
    pub(crate) mismarked: u64,
    /// BPF programs that were loaded.
    pub(crate) bpf_programs: BpfPrograms,
    /// Offset of the time in a sample's body, in bytes.
    time_offset: Option<usize>,
}

impl RecordStats {
    /// Creates empty statistics of samples with these fields. The time is read at the same offset in all samples.
    pub(crate) fn new(sample_type: SampleType) -> Self {
        let possible_before_time = [SampleType::IDENTIFIER, SampleType::IP, SampleType::TID];
        let fields_before_time = possible_before_time
            .iter()
            .filter(|field| sample_type.contains(**field))
            .count();
        let has_time = sample_type.contains(SampleType::TIME);
        Self {
            time_offset: has_time.then_some(fields_before_time * 8),
            sampled_pages: CodePages::new(sample_type),
            ..Self::default()
        }
    }

    /// Also opens deleted files that are mapped, through the procfs at `proc`, and keeps them open.
    pub(crate) fn with_deleted_files(mut self, proc: &Path) -> Self {
        self.deleted = DeletedFiles::new(proc);
        self
    }

    /// Adds one record and returns the number of lost records that it reports; 0 for records other than LOST.
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
            RecordKind::BPF_EVENT => self.bpf_programs.note(record),
            _ => {}
        }
        0
    }

    /// Adds the statistics of another part of the recording.
    pub(crate) fn add(&mut self, other: Self) {
        self.records += other.records;
        self.samples += other.samples;
        self.lost_chunks += other.lost_chunks;
        self.lost_records += other.lost_records;
        for (id, times) in other.throttled {
            *self.throttled.entry(id).or_default() += times;
        }
        self.traces.add(&other.traces);
        self.truncated_maps += other.truncated_maps;
        self.times = match (self.times, other.times) {
            (Some((first, last)), Some(theirs)) => Some((first.min(theirs.0), last.max(theirs.1))),
            (own, theirs) => own.or(theirs),
        };
        self.mapped.extend(other.mapped);
        self.deleted.add(other.deleted);
        self.sampled_pages.add(other.sampled_pages);
        self.mismarked += other.mismarked;
        self.bpf_programs.add(other.bpf_programs);
    }

    fn sample(&mut self, record: &RawRecord<'_>) {
        self.samples += 1;
        self.sampled_pages.add_sample(record);
        let bytes = self.time_offset.and_then(|at| record.body.get(at..at + 8));
        let bytes = bytes.unwrap_or_default();
        if let Some(time) = U64s::new(bytes, Endian::NATIVE).get(0) {
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
            self.sampled_pages.add_fork(&task);
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
            self.sampled_pages.add_mapping(&mmap, &name);
            self.deleted.keep(&mmap, &name);
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
    fn the_time_is_read_at_its_offset() {
        let kind = RecordKind::SAMPLE;
        for (sample_type, before) in [
            (SampleType::IP | SampleType::TID | SampleType::TIME, 2),
            (
                SampleType::IDENTIFIER | SampleType::IP | SampleType::TID | SampleType::TIME,
                3,
            ),
        ] {
            let mut stats = RecordStats::new(sample_type);
            for time in [50, 40, 60] {
                let body = body(|to| {
                    to.zeros(before * 8);
                    to.u64(time);
                });
                stats.note(&RawRecord {
                    kind,
                    // `Misc::USER`.
                    misc: Misc(2),
                    body: &body,
                });
            }
            assert_eq!((stats.samples, stats.times), (3, Some((40, 60))));
        }
    }

    #[test]
    fn jitdumps_are_recognised_by_their_names() {
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
    fn losses_are_counted_as_chunks_and_as_records() {
        let mut stats = RecordStats::new(SampleType::IP);
        // The event's id and the number of lost records.
        let body = body(|to| {
            to.u64(1);
            to.u64(24);
        });
        let record = RawRecord {
            kind: RecordKind::LOST,
            misc: Misc(0),
            body: &body,
        };
        assert_eq!((stats.note(&record), stats.note(&record)), (24, 24));
        assert_eq!(
            (stats.lost_chunks, stats.lost_records, stats.records),
            (2, 48, 2)
        );
    }

    /// A record with two of the flags is counted for each of them.
    #[test]
    fn aux_records_are_counted_by_flag() {
        /// `PERF_AUX_FLAG_OVERWRITE`, which is not counted.
        const OVERWRITE: u64 = 2;
        let mut stats = RecordStats::new(SampleType::IP);
        for flags in [
            0,
            Aux::TRUNCATED,
            Aux::PARTIAL,
            Aux::COLLISION,
            Aux::TRUNCATED | Aux::COLLISION,
            OVERWRITE,
        ] {
            let aux = Aux {
                offset: 0,
                size: 24,
                flags,
            };
            let body = body(|to| Record::Aux(aux).encode_body(to));
            stats.note(&RawRecord {
                kind: RecordKind::AUX,
                misc: Misc(0),
                body: &body,
            });
        }
        let TraceStats {
            parts,
            truncated,
            gaps,
            collided,
            ..
        } = stats.traces;
        assert_eq!((parts, truncated, gaps, collided), (6, 2, 1, 2));
    }

    #[test]
    fn throttling_is_counted_by_counter() {
        let mut stats = RecordStats::new(SampleType::IP);
        for id in [7, 8, 7] {
            // Time, id of the counter and stream id.
            let body = body(|to| {
                to.u64(100);
                to.u64(id);
                to.u64(1);
            });
            stats.note(&RawRecord {
                kind: RecordKind::THROTTLE,
                misc: Misc(0),
                body: &body,
            });
        }
        assert_eq!(stats.throttled, HashMap::from([(7, 2), (8, 1)]));
    }

    #[test]
    fn executable_mappings_are_stored_once() {
        let mut stats = RecordStats::new(SampleType::IP);
        // 5 is PROT_READ | PROT_EXEC, 3 is PROT_READ | PROT_WRITE; `Misc(2)` is `Misc::USER`.
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
                // `MAP_PRIVATE`.
                flags: 2,
            });
            let body = body(|to| record.encode_body(to));
            stats.note(&RawRecord {
                kind: RecordKind::MMAP2,
                misc,
                body: &body,
            });
        }
        let name = MappedName {
            filename: b"/bin/x"[..].into(),
            inode: 77,
        };
        assert_eq!(stats.mapped.into_iter().collect::<Vec<_>>(), [(name, 9)]);
    }
}
