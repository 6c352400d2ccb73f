//! Records that perf makes itself, for what was there before the recording: who runs, what is mapped,
//! which CPUs and threads are observed.
//!
//! They stand at the start of the file. Those of kernel kinds carry a sample id trailer of zeros, so
//! that readers can take every record alike; they have no time.

mod identity;
mod kernel;
mod tasks;

use rperf_wire::{Encoder, Endian, Misc, Record, RecordHeader, RecordKind};

pub(crate) use identity::{
    cpu_map, event_cpus, event_updates, id_index, name, thread_map, unit_and_scale,
};
pub(crate) use kernel::{kernel_map, modules};
pub(crate) use tasks::{Mapped, Told, all_tasks, some_tasks, workload_comm};

/// Where synthesized records gather.
#[derive(Debug, Default)]
pub(crate) struct Records {
    bytes: Vec<u8>,
    /// Size of the zero trailer behind records of kernel kinds, in bytes.
    trailer: usize,
    /// Processes whose mappings took too long to be read.
    pub(crate) cut_maps: u64,
}

impl Records {
    /// Records with a trailer of this many zero bytes.
    pub(crate) fn new(trailer: usize) -> Self {
        Self {
            trailer,
            ..Self::default()
        }
    }

    /// The records so far; more may follow.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Appends what others gathered.
    pub(crate) fn append_all(&mut self, other: Self) {
        self.bytes.extend_from_slice(&other.bytes);
        self.cut_maps += other.cut_maps;
    }

    /// Appends a record of a kernel kind. One that does not fit the 16-bit size field (a name of
    /// 64 KiB) is dropped.
    pub(crate) fn kernel(&mut self, record: &Record<'_>, misc: Misc) {
        let trailer = self.trailer;
        self.with_trailer(record, misc, |to| to.zeros(trailer));
    }

    /// The same with a trailer that the caller writes.
    pub(crate) fn with_trailer(
        &mut self,
        record: &Record<'_>,
        misc: Misc,
        trailer: impl FnOnce(&mut Encoder<'_>),
    ) {
        let (kind, own) = record.kind_and_misc();
        self.append(kind, Misc(misc.0 | own.0), |to| {
            record.encode_body(to);
            trailer(to);
        });
    }

    /// Appends a record of one of perf's own kinds, which have no trailer.
    pub(crate) fn user(&mut self, kind: RecordKind, body: impl FnOnce(&mut Encoder<'_>)) {
        self.append(kind, Misc(0), body);
    }

    fn append(&mut self, kind: RecordKind, misc: Misc, body: impl FnOnce(&mut Encoder<'_>)) {
        let to = (&mut self.bytes, Endian::NATIVE);
        RecordHeader::encode_record(kind, misc, to, body);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use rperf_wire::{Comm, RawRecord};

    /// Cuts bytes into records; panics when anything is left over.
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
    fn kernel_kinds_have_a_trailer_and_own_kinds_none() {
        let mut records = Records::new(16);
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
        // Two ids, a name of nine letters padded to 16 bytes, the trailer.
        assert_eq!(
            (comm.kind, comm.body.len()),
            (RecordKind::COMM, 8 + 16 + 16)
        );
        assert_eq!((end.kind, end.body.len()), (RecordKind::FINISHED_INIT, 0));
    }

    #[test]
    fn what_does_not_fit_is_dropped_whole() {
        let mut records = Records::new(0);
        records.user(RecordKind::THREAD_MAP, |to| to.zeros(1 << 16));
        assert!(records.take().is_empty());
    }
}
