//! Synthesized records of the state before the recording: the kernel's map and modules, BPF programs, running tasks and their
//! mappings, observed CPUs and threads, ids, names and units of events.
//!
//! Records of the kernel's types have a sample id trailer, as with `sample_id_all`; it is all zeros (no time) unless the caller
//! writes it.

mod bpf;
mod identity;
mod kernel;
mod tasks;

use rperf_wire::{Encoder, Endian, Misc, Record, RecordHeader, RecordKind};

pub(crate) use bpf::bpf_programs;
pub(crate) use identity::{
    cpu_map, event_cpus, event_updates, id_index, name, thread_map, unit_and_scale,
};
pub(crate) use kernel::{kernel_map, modules};
pub(crate) use tasks::{
    SynthesizedMappings, TaskRecordOptions, all_tasks, some_tasks, workload_comm,
};

/// A buffer of synthesized records. A record longer than the 16-bit size of its header allows, for example because of a name of
/// 64 KiB, is dropped.
#[derive(Debug, Default)]
pub(crate) struct RecordBuffer {
    bytes: Vec<u8>,
    /// Size in bytes of the trailer of kernel record types, which is zeros by default.
    trailer: usize,
    /// Number of processes whose mappings took too long to read.
    pub(crate) truncated_maps: u64,
}

impl RecordBuffer {
    /// Creates a buffer for records with a trailer of this size.
    pub(crate) fn new(trailer: usize) -> Self {
        Self {
            trailer,
            ..Self::default()
        }
    }

    /// Takes the records so far; more may follow.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends the records and counts of another buffer.
    pub(crate) fn append_all(&mut self, other: Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.truncated_maps += other.truncated_maps;
    }

    /// Appends a record of a kernel type, with a trailer of zeros.
    pub(crate) fn kernel(&mut self, record: &Record<'_>, misc: Misc) {
        let trailer = self.trailer;
        self.with_trailer(record, misc, |to| to.zeros(trailer));
    }

    /// Appends a record of a kernel type, with a trailer written by `trailer`.
    pub(crate) fn with_trailer(
        &mut self,
        record: &Record<'_>,
        misc: Misc,
        trailer: impl FnOnce(&mut Encoder<'_>),
    ) {
        let (kind, implied_misc) = record.kind_and_misc();
        self.append(kind, Misc(misc.0 | implied_misc.0), |to| {
            record.encode_body(to);
            trailer(to);
        });
    }

    /// Appends a record of one of perf's own types, without a trailer.
    pub(crate) fn user(&mut self, kind: RecordKind, body: impl FnOnce(&mut Encoder<'_>)) {
        self.append(kind, Misc(0), body);
    }

    fn append(&mut self, kind: RecordKind, misc: Misc, body: impl FnOnce(&mut Encoder<'_>)) {
        RecordHeader::encode_record(kind, misc, &mut self.bytes, Endian::NATIVE, body);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rperf_wire::{Comm, RawRecord};

    /// Splits bytes into records; panics if anything is left over.
    pub(crate) fn split(mut bytes: &[u8]) -> Vec<RawRecord<'_>> {
        let mut records = Vec::new();
        while !bytes.is_empty() {
            let (record, size) = RawRecord::split(bytes, Endian::NATIVE).unwrap();
            records.push(record);
            bytes = &bytes[size..];
        }
        records
    }

    #[test]
    fn kernel_records_have_a_trailer_and_perfs_own_records_none() {
        let mut records = RecordBuffer::new(16);
        let comm = Comm {
            pid: 1,
            tid: 2,
            comm: b"perf-exec",
        };
        records.kernel(&Record::Comm(comm), Misc(0));
        records.user(RecordKind::FINISHED_INIT, |_| {});
        let bytes = records.take();
        let [comm, end] = split(&bytes)[..] else {
            panic!()
        };
        // Two ids, a name of nine characters padded to 16 bytes, the trailer.
        assert_eq!(
            (comm.kind, comm.body.len()),
            (RecordKind::COMM, 8 + 16 + 16)
        );
        assert_eq!((end.kind, end.body.len()), (RecordKind::FINISHED_INIT, 0));
    }

    #[test]
    fn oversized_records_are_dropped_completely() {
        let mut records = RecordBuffer::new(0);
        records.user(RecordKind::THREAD_MAP, |to| to.zeros(1 << 16));
        assert!(records.take().is_empty());
    }
}
