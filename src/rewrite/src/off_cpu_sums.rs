//! Off-CPU time that BPF programs summed up, as samples.
//!
//! The programs report each long wait as the raw data of a sample; the rewriter replaces that sample by an off-CPU sample. The
//! sums of the other waits are appended at the end.

use rperf_perfdata::{EventDesc, Rewriter};
use rperf_replay::{EventIndex, EventTable, Rounds};
use rperf_wire::{
    Attr, CpuMode, Endian, Misc, PERF_CONTEXT_KERNEL, RawRecord, RecordHeader, RecordKind,
    SampleLayout, SampleRecord, SampleType, U64s,
};

/// A wait, or a sum of waits, as measured in the kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelWait {
    /// The process.
    pub process: u32,
    /// The thread.
    pub thread: u32,
    /// The duration of the wait, in nanoseconds.
    pub nanos: u64,
    /// The callchain of the thread while it waited: addresses after their context markers, as in samples.
    pub callchain: Vec<u64>,
}

/// The source of waits.
pub trait WaitSource: Send {
    /// Returns the long wait in the raw data of a sample; `None` if they are damaged.
    fn wait(&mut self, raw: &[u8]) -> Option<KernelWait>;
    /// Ends the observation, and returns the sums of all other waits.
    fn sums(&mut self) -> Vec<KernelWait>;
}

/// Generates off-CPU samples from the waits of a [`WaitSource`] while recording.
pub struct OffCpuSums<S> {
    events: EventTable,
    /// The event whose samples report long waits.
    event: EventIndex,
    /// The layout of the samples with raw data, as the kernel writes them.
    kernel_layout: SampleLayout,
    /// An id of the event, for the samples of sums.
    id: u64,
    /// Tracks the highest time of the records, which the samples of sums get.
    order: Rounds,
    /// The size of the records so far, in bytes.
    position: u64,
    source: S,
}

impl<S: WaitSource> OffCpuSums<S> {
    /// Creates the rewriter for these events; `event` is one of them, as described by [`describe_waits`].
    #[must_use]
    pub fn new(events: &[EventDesc], event: EventIndex, source: S) -> Self {
        let desc = events.get(event.0 as usize);
        let attr = desc.map(|desc| desc.attr.clone()).unwrap_or_default();
        Self {
            events: EventTable::new(Endian::NATIVE, events),
            event,
            kernel_layout: SampleLayout::new(&Attr {
                sample_type: attr.sample_type.with(SampleType::CALLCHAIN, false) | SampleType::RAW,
                ..attr
            }),
            id: desc
                .and_then(|desc| desc.ids.first())
                .copied()
                .unwrap_or_default(),
            order: Rounds::new(),
            position: 0,
            source,
        }
    }

    /// Replaces a sample of the event by the sample of its wait, or drops it if its raw data are damaged. Returns false, and
    /// appends nothing, for other records. Tracks the times of all records.
    fn replace(&mut self, raw: &RawRecord<'_>, to: &mut Vec<u8>) -> bool {
        if raw.kind != RecordKind::SAMPLE {
            let time = self.events.record_time(raw);
            self.order.add_record(time, self.position);
            return false;
        }
        let Some(head) = self.events.sample_head(raw.body) else {
            return false;
        };
        self.order.add_record(head.time, self.position);
        if head.event != self.event {
            return false;
        }
        if let Ok(written) = self.kernel_layout.decode(raw.body, Endian::NATIVE)
            && let Some(wait) = written.raw.and_then(|data| self.source.wait(data))
        {
            let layout = self.events.layout(self.event);
            let like = SampleRecord {
                id: written.id,
                stream_id: written.stream_id,
                time: written.time,
                cpu: written.cpu,
                ..SampleRecord::default()
            };
            append_sample(layout, &wait, like, to);
        }
        true
    }
}

/// Changes the attr of the event to that of the file, in which its samples have callchains instead of raw data.
pub fn describe_waits(attr: &mut Attr) {
    attr.sample_type = attr.sample_type.with(SampleType::RAW, false) | SampleType::CALLCHAIN;
}

impl<S: WaitSource> Rewriter for OffCpuSums<S> {
    fn rewrite(&mut self, records: &[u8], _is_behind: bool, to: &mut Vec<u8>) {
        for (raw, record) in RawRecord::all(records, Endian::NATIVE) {
            if raw.kind == RecordKind::FINISHED_ROUND {
                self.order.finish_round();
            }
            if !self.replace(&raw, to) {
                to.extend_from_slice(record);
            }
            self.position += record.len() as u64;
        }
    }

    /// Appends the sums, with the latest time.
    fn end(&mut self, to: &mut Vec<u8>) {
        // Raises the flush limit, `order.limit()`, to the highest time of the records.
        self.order.finish_all();
        let layout = self.events.layout(self.event);
        for wait in self.source.sums() {
            let like = SampleRecord {
                id: Some(self.id),
                stream_id: Some(self.id),
                time: Some(self.order.limit()),
                ..SampleRecord::default()
            };
            append_sample(layout, &wait, like, to);
        }
    }
}

/// Appends the sample of a wait; fields that the wait does not have are those of `like`.
fn append_sample(
    layout: Option<&SampleLayout>,
    wait: &KernelWait,
    like: SampleRecord<'_>,
    to: &mut Vec<u8>,
) {
    let Some(layout) = layout else {
        return;
    };
    let chain: Vec<u8> = wait
        .callchain
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect();
    let in_kernel = wait.callchain.first() == Some(&PERF_CONTEXT_KERNEL);
    let mode = if in_kernel {
        CpuMode::Kernel
    } else {
        CpuMode::User
    };
    let wire = SampleRecord {
        // The first entry is a context marker.
        ip: wait.callchain.get(1).copied(),
        pid_tid: Some((wait.process, wait.thread)),
        period: Some(wait.nanos),
        callchain: Some(U64s::new(&chain, Endian::NATIVE)),
        ..like
    };
    // A record has room for thousands of addresses; the programs record at most 127 each of the kernel and of the user stack.
    let _fits = RecordHeader::encode_record(
        RecordKind::SAMPLE,
        Misc(mode as u16),
        to,
        Endian::NATIVE,
        |to| layout.encode(&wire, to),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{AttrFlags, EventType, PERF_CONTEXT_USER};

    /// `is_behind` of [`Rewriter::rewrite`]: the rewriting keeps up with the recording.
    const NOT_BEHIND: bool = false;

    /// A source with these sums. Its raw data are the process, the thread, nanoseconds and one address.
    struct Listed(Vec<KernelWait>);

    impl WaitSource for Listed {
        fn wait(&mut self, raw: &[u8]) -> Option<KernelWait> {
            let words = U64s::new(raw, Endian::NATIVE);
            Some(KernelWait {
                process: u32::try_from(words.get(0)?).ok()?,
                thread: u32::try_from(words.get(1)?).ok()?,
                nanos: words.get(2)?,
                callchain: vec![PERF_CONTEXT_USER, words.get(3)?],
            })
        }

        fn sums(&mut self) -> Vec<KernelWait> {
            std::mem::take(&mut self.0)
        }
    }

    /// The event as it is opened.
    fn opened() -> Attr {
        Attr {
            kind: EventType::SOFTWARE,
            // `PERF_COUNT_SW_BPF_OUTPUT`.
            config: 10,
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::PERIOD
                | SampleType::RAW,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        }
    }

    fn described() -> Vec<EventDesc> {
        let mut attr = opened();
        describe_waits(&mut attr);
        vec![EventDesc::new(attr, vec![6, 7])]
    }

    /// The sample that the kernel writes for a long wait.
    fn written(time: u64, raw: &[u64]) -> Vec<u8> {
        let raw: Vec<u8> = raw.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let sample = SampleRecord {
            id: Some(7),
            time: Some(time),
            cpu: Some(3),
            // The task that runs when the wait ends.
            pid_tid: Some((1, 1)),
            raw: Some(&raw),
            ..SampleRecord::default()
        };
        let layout = SampleLayout::new(&opened());
        let mut bytes = Vec::new();
        assert!(RecordHeader::encode_record(
            RecordKind::SAMPLE,
            Misc::KERNEL,
            &mut bytes,
            Endian::NATIVE,
            |to| layout.encode(&sample, to)
        ));
        bytes
    }

    /// CPU mode, time, period, process and thread, and callchain of a sample.
    type SampleFields = (u16, u64, u64, (u32, u32), Vec<u64>);

    fn decoded(bytes: &[u8]) -> Vec<SampleFields> {
        let events = described();
        let layout = SampleLayout::new(&events[0].attr);
        let samples = RawRecord::all(bytes, Endian::NATIVE).map(|(raw, _)| {
            let sample = layout.decode(raw.body, Endian::NATIVE).unwrap();
            (
                raw.misc.0,
                sample.time.unwrap(),
                sample.period.unwrap(),
                sample.pid_tid.unwrap(),
                sample.callchain.unwrap().iter().collect(),
            )
        });
        samples.collect()
    }

    #[test]
    fn long_waits_are_samples_of_their_tasks_and_sums_follow() {
        let sum = KernelWait {
            process: 8,
            thread: 9,
            nanos: 400,
            callchain: vec![PERF_CONTEXT_KERNEL, 0x10, PERF_CONTEXT_USER, 0x20],
        };
        let mut sums = OffCpuSums::new(&described(), EventIndex(0), Listed(vec![sum.clone()]));
        let mut out = Vec::new();
        sums.rewrite(&written(50, &[5, 6, 700, 0x30]), NOT_BEHIND, &mut out);
        // The CPU mode is 2 for user space, and 1 for the kernel (the sum below).
        let long = (2, 50, 700, (5, 6), vec![PERF_CONTEXT_USER, 0x30]);
        assert_eq!(decoded(&out), std::slice::from_ref(&long));
        sums.end(&mut out);
        assert_eq!(decoded(&out), [long, (1, 50, 400, (8, 9), sum.callchain)]);
        // A `Rewriter` must allow a call of `end` for each output file. The first call appends all sums, a second one none.
        let before = out.len();
        sums.end(&mut out);
        assert_eq!(out.len(), before);
    }

    #[test]
    fn samples_with_damaged_raw_data_are_dropped() {
        let mut sums = OffCpuSums::new(&described(), EventIndex(0), Listed(Vec::new()));
        let mut out = Vec::new();
        sums.rewrite(&written(50, &[5, 6]), NOT_BEHIND, &mut out);
        assert_eq!(out, []);
    }
}
