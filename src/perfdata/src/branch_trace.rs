//! Replaces the AUXTRACE records of Intel BTS traces with samples of branches.
//!
//! A trace consists of entries of three 64-bit words: source, target, flags. An AUXTRACE_INFO record of type INTEL_BTS
//! describes it.

use std::collections::HashMap;
use std::io;

use rperf_wire::{
    Attr, AttrFlags, AuxTraceInfo, CpuMode, Encoder, Endian, EventType, Misc, RawRecord,
    RecordHeader, RecordKind, SampleType, UserRecord,
};

use crate::pipe_writer::encode_attr_record;
use crate::writer::Preamble;
use crate::{EventDesc, FileHeader, PerfData, WriteError, Writer};

/// Index of the private word of AUXTRACE_INFO that is the type of the PMU whose event was traced.
const PMU_TYPE: usize = 0;
/// Index of the private word of AUXTRACE_INFO that is 1 if the trace consists of snapshots.
const SNAPSHOT_MODE: usize = 5;
/// Size of an entry in bytes.
const ENTRY_SIZE: usize = AuxTraceInfo::BTS_BRANCH;
/// Difference between the branch event's id and the id of the traced event, as in perf.
const ID_OFFSET: u64 = 1_000_000_000;
/// Sample fields of the branch event.
const FIELDS: SampleType = SampleType(
    SampleType::IDENTIFIER.0
        | SampleType::IP.0
        | SampleType::TID.0
        | SampleType::ADDR.0
        | SampleType::PERIOD.0,
);

/// State of the conversion.
struct TraceConversion {
    /// The id of the branch event's samples.
    id: u64,
    /// Whether the part of the trace in each AUXTRACE record is a snapshot, the latest entries of a ring: successive snapshots of
    /// a ring may overlap.
    overlaps: bool,
    /// Process ids by thread id.
    processes: HashMap<u32, u32>,
    /// The last part of each ring by the ring's index, if parts overlap.
    last_parts: HashMap<u32, Vec<u8>>,
}

impl PerfData<'_> {
    /// Converts the recording to a file or stream in memory in which each branch of the trace is a sample of a new event,
    /// `branches`. The instruction pointer of a sample is the source of the branch, its address the target.
    ///
    /// `None` if the recording has no Intel BTS trace, if it has no traced event or that event has no id, or if the samples of
    /// any event have no IDENTIFIER, by which samples of the new event are recognized.
    ///
    /// # Errors
    /// [`WriteError`] of writing to memory.
    pub fn with_branches(&self) -> Result<Option<Vec<u8>>, WriteError> {
        let Some((mut trace, event)) = self.branch_trace() else {
            return Ok(None);
        };
        if self.header().is_pipe() {
            let mut stream = FileHeader::encode_pipe(self.endian());
            // In a stream, a record describes the new event.
            trace.replace(self, Some(&event), &mut stream);
            return Ok(Some(stream));
        }
        let mut events = self.events().to_vec();
        events.push(event);
        let mut writer = Writer::with_preamble(
            io::Cursor::new(Vec::new()),
            &Preamble {
                events: &events,
                event_types: &[],
                endian: self.endian(),
            },
        )?;
        let mut records = Vec::new();
        // The file's attrs, written above, describe the new event.
        let event_of_record = None;
        trace.replace(self, event_of_record, &mut records);
        writer.write_data(&records)?;
        // `None`, since the records differ from the old ones: features that locate AUX traces or describe how records are packed
        // are omitted.
        let data_offset = None;
        let (_, file) = writer.finish(&self.features_for(data_offset))?;
        Ok(Some(file.into_inner()))
    }

    /// The trace described by AUXTRACE_INFO, and the event of its branches.
    fn branch_trace(&self) -> Option<(TraceConversion, EventDesc)> {
        // Only to save work: a trace belongs to an event of a dynamic PMU. Without such an event, the records needn't be read.
        let is_of_dynamic_pmu = |event: &EventDesc| event.attr.kind.is_dynamic();
        if !self.events().iter().any(is_of_dynamic_pmu) {
            return None;
        }
        let endian = self.endian();
        let infos = self.records().filter_map(|record| {
            let raw = record.ok()?.raw;
            if raw.kind != RecordKind::AUXTRACE_INFO {
                return None;
            }
            match UserRecord::decode(&raw, endian) {
                Ok(UserRecord::AuxTraceInfo(info)) => Some(info),
                _ => None,
            }
        });
        let info = infos
            .filter(|info| info.kind == AuxTraceInfo::INTEL_BTS)
            .last()?;
        let pmu = info.private.get(PMU_TYPE)?;
        let is_traced = |event: &&EventDesc| u64::from(event.attr.kind.0) == pmu;
        let traced = self.events().iter().find(is_traced)?;
        let has_identifier =
            |event: &EventDesc| event.attr.sample_type.contains(SampleType::IDENTIFIER);
        if !self.events().iter().all(has_identifier) {
            return None;
        }
        let id = traced.ids.first()?.wrapping_add(ID_OFFSET);
        let copied_flags = AttrFlags::EXCLUDE_USER
            | AttrFlags::EXCLUDE_KERNEL
            | AttrFlags::EXCLUDE_HV
            | AttrFlags::EXCLUDE_HOST
            | AttrFlags::EXCLUDE_GUEST
            | AttrFlags::SAMPLE_ID_ALL;
        let attr = Attr {
            kind: EventType::HARDWARE,
            config: Attr::BRANCHES,
            sample_period: 1,
            sample_type: FIELDS,
            read_format: traced.attr.read_format,
            flags: AttrFlags(traced.attr.flags.0 & copied_flags.0),
            ..Attr::default()
        };
        let trace = TraceConversion {
            id,
            overlaps: info.private.get(SNAPSHOT_MODE) == Some(1),
            processes: HashMap::new(),
            last_parts: HashMap::new(),
        };
        Some((trace, EventDesc::new(attr, vec![id])))
    }
}

impl TraceConversion {
    /// Appends the records of the recording, with samples instead of the trace. If `event` is given, an ATTR record that
    /// describes this event replaces the AUXTRACE_INFO record; otherwise that record is dropped. A damaged record and all
    /// data after it are copied unchanged.
    fn replace(&mut self, data: &PerfData<'_>, event: Option<&EventDesc>, to: &mut Vec<u8>) {
        let endian = data.endian();
        let mut rest = data.data();
        for record in data.records() {
            let Ok(record) = record else { break };
            let size = RecordHeader::SIZE + record.raw.body.len() + record.payload.len();
            let (bytes, after) = rest.split_at_checked(size).unwrap_or((rest, &[]));
            rest = after;
            match UserRecord::decode(&record.raw, endian) {
                Ok(UserRecord::AuxTraceInfo(_)) => {
                    if let Some(event) = event {
                        encode_attr_record(to, event, endian);
                    }
                }
                Ok(UserRecord::AuxTrace(aux_trace)) => {
                    let new_part = self.new_part(aux_trace.index, record.payload);
                    for entry in new_part.chunks_exact(ENTRY_SIZE) {
                        self.sample(aux_trace.tid, entry, to, endian);
                    }
                }
                _ => {
                    self.store_process(&record.raw, endian);
                    to.extend_from_slice(bytes);
                }
            }
        }
        to.extend_from_slice(rest);
    }

    /// Stores the process of the record's thread, if the record is of one of three kinds whose body begins with pid and tid: a
    /// traced thread has such records.
    fn store_process(&mut self, record: &RawRecord<'_>, endian: Endian) {
        let kinds = [
            RecordKind::ITRACE_START,
            RecordKind::COMM,
            RecordKind::MMAP2,
        ];
        if kinds.contains(&record.kind)
            && let Some(pid) = endian.u32_at(record.body, 0)
            && let Some(tid) = endian.u32_at(record.body, 4)
        {
            self.processes.insert(tid, pid);
        }
    }

    /// The part of a snapshot that the previous snapshot of the same ring doesn't contain; all of `part` if parts don't
    /// overlap.
    fn new_part<'p>(&mut self, ring: u32, part: &'p [u8]) -> &'p [u8] {
        if !self.overlaps {
            return part;
        }
        let before = self
            .last_parts
            .insert(ring, part.to_vec())
            .unwrap_or_default();
        let entries = |bytes: &[u8]| bytes.as_chunks::<ENTRY_SIZE>().0.to_vec();
        let common = overlap(&entries(&before), &entries(part));
        part.get(common * ENTRY_SIZE..).unwrap_or_default()
    }

    /// Appends the sample of one branch, unless both addresses are 0.
    fn sample(&self, tid: u32, entry: &[u8], to: &mut Vec<u8>, endian: Endian) {
        let word = |at| endian.u64_at(entry, at).unwrap_or_default();
        let (from, target) = (word(0), word(8));
        if (from, target) == (0, 0) {
            // As in perf, branches without addresses are skipped.
            return;
        }
        let misc = match CpuMode::of_address(from) {
            CpuMode::Kernel => Misc::KERNEL,
            _ => Misc::USER,
        };
        // A thread without a record of its process is taken for the main thread.
        let pid = self.processes.get(&tid).copied().unwrap_or(tid);
        RecordHeader::encode_record(
            RecordKind::SAMPLE,
            misc,
            to,
            endian,
            |to: &mut Encoder<'_>| {
                // The values of `FIELDS`; the period is 1.
                to.u64(self.id);
                to.u64(from);
                to.u32(pid);
                to.u32(tid);
                to.u64(target);
                to.u64(1);
            },
        );
    }
}

/// The length, in entries, of the longest suffix of `before` that is a prefix of `part`. Runs in linear time with
/// the failure function of `part` (Knuth, Morris and Pratt).
fn overlap<T: PartialEq>(before: &[T], part: &[T]) -> usize {
    // The new length of the match after the next entry of the input, `entry`, if `matched` entries of `part` matched so far.
    let step = |borders: &[usize], mut matched: usize, entry: &T| {
        while matched > 0 && part.get(matched) != Some(entry) {
            matched = borders.get(matched - 1).copied().unwrap_or_default();
        }
        matched + usize::from(part.get(matched) == Some(entry))
    };
    // The failure function: for each prefix of `part`, the length of its longest proper suffix that is a prefix of `part`.
    let mut borders = vec![0; part.len().min(1)];
    for entry in part.iter().skip(1) {
        let matched = borders.last().copied().unwrap_or_default();
        borders.push(step(&borders, matched, entry));
    }
    // Only to save work: the overlap is not longer than `part`, so entries of `before` before this tail are not in it.
    let tail = before.get(before.len().saturating_sub(part.len())..);
    let tail = tail.unwrap_or_default().iter();
    tail.fold(0, |matched, entry| step(&borders, matched, entry))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn overlaps_are_the_longest(
            before in proptest::collection::vec(0..3_u8, 0..20),
            part in proptest::collection::vec(0..3_u8, 0..20),
        ) {
            let most = before.len().min(part.len());
            let slow = (0..=most).rev().find(|size| before.ends_with(&part[..*size]));
            prop_assert_eq!(Some(overlap(&before, &part)), slow);
        }
    }
}
