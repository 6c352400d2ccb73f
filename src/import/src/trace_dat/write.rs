//! The events of a trace.dat as samples of a perf.data.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use rperf_perfdata::{EventDesc, FeatureSet, Output, Writer};
use rperf_tracepoint::{
    Abi, EventFormat, FieldReader, Tracepoint, TracingData, TracingDataBuilder,
};
use rperf_wire::{
    Attr, AttrFlags, EventType, Misc, PERF_CONTEXT_KERNEL, RecordHeader, RecordKind, SampleId,
    SampleIdLayout, SampleLayout, SampleRecord, SampleType, U64s,
};

use super::TraceDat;
use super::kernel::KernelSymbols;
use super::ring::{RingEvents, RingItem};
use crate::Error;

/// The system of ftrace's own events: `print`, `kernel_stack`.
const FTRACE: &str = "ftrace";
const KERNEL_STACK: &str = "kernel_stack";
/// `CLOCK_MONOTONIC`.
const MONOTONIC: i32 = 1;
/// Records are written in blocks of about this size, in bytes.
const BLOCK: usize = 1 << 20;

/// The result of a conversion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of samples.
    pub samples: u64,
    /// Size of the perf.data in bytes.
    pub bytes: u64,
    /// Whether some samples have kernel stacks.
    pub has_stacks: bool,
}

/// An event of the trace, with its stack.
#[derive(Debug, Clone, Copy)]
struct StackedEvent<'p> {
    time: u64,
    raw: &'p [u8],
    /// The raw data of the `kernel_stack` that follows the event.
    stack: Option<&'p [u8]>,
}

/// Iterates over the items of one CPU: its events, each with its stack, and its losses.
struct CpuEvents<'t, 'p> {
    tracepoints: &'t Tracepoints,
    ring: RingEvents<'p>,
    /// The next item, if it was read in search of a stack and is not a stack.
    next: Option<RingItem<'p>>,
}

#[derive(Debug, Clone, Copy)]
enum CpuItem<'p> {
    Event(StackedEvent<'p>),
    Lost { time: u64, count: u64 },
}

impl CpuItem<'_> {
    fn time(&self) -> u64 {
        match self {
            Self::Event(event) => event.time,
            Self::Lost { time, .. } => *time,
        }
    }
}

/// The descriptions of events in the trace.
struct Tracepoints {
    /// By `common_type`.
    by_id: BTreeMap<u64, CountedTracepoint>,
    abi: Abi,
    /// Id of `kernel_stack`, and its fields.
    stack: Option<(u64, StackFields)>,
}

struct CountedTracepoint {
    tracepoint: Tracepoint,
    /// The description as in tracefs.
    text: Vec<u8>,
    common_pid: Option<FieldReader>,
    /// Number of samples; 0 before [`TraceDat::count`].
    samples: u64,
}

/// The fields of `kernel_stack`.
#[derive(Debug, Clone, Copy)]
struct StackFields {
    /// Number of addresses; `None` if the kernel does not write it.
    size: Option<FieldReader>,
    /// Offset of the addresses.
    caller: usize,
}

impl Tracepoints {
    fn new(data: &TracingData<'_>) -> Self {
        let abi = Abi {
            endian: data.endian,
            long_size: data.long_size,
        };
        let mut tracepoints = Self {
            by_id: BTreeMap::new(),
            abi,
            stack: None,
        };
        let ftrace = data.ftrace.iter().map(|text| EventFormat {
            system: FTRACE,
            text,
        });
        for event in ftrace.chain(data.events.iter().copied()) {
            // Events whose description cannot be parsed are refused if they occur.
            let Ok(tracepoint) = Tracepoint::parse(event.system, event.text, abi) else {
                continue;
            };
            let id = tracepoint.format.id;
            if event.system == FTRACE
                && tracepoint.format.name == KERNEL_STACK
                && let Some(caller) = tracepoint.format.field("caller")
            {
                let fields = StackFields {
                    size: tracepoint.reader("size"),
                    caller: caller.offset,
                };
                tracepoints.stack = Some((id, fields));
            }
            let counted = CountedTracepoint {
                common_pid: tracepoint.reader("common_pid"),
                tracepoint,
                text: event.text.to_vec(),
                samples: 0,
            };
            tracepoints.by_id.insert(id, counted);
        }
        tracepoints
    }

    /// The id of an event: the first two bytes of its data.
    fn id(&self, raw: &[u8]) -> Option<u64> {
        let bytes = raw.first_chunk()?;
        Some(self.abi.endian.u16(*bytes).into())
    }

    fn is_stack(&self, raw: &[u8]) -> bool {
        let stack = self.stack.as_ref();
        stack.is_some_and(|(id, _)| self.id(raw) == Some(*id))
    }

    /// The callchain in the data of a `kernel_stack`, innermost first.
    fn callchain(&self, raw: &[u8]) -> Vec<u64> {
        let Some((_, fields)) = &self.stack else {
            return Vec::new();
        };
        let count = fields.size.and_then(|size| size.u64(raw));
        let count = count.and_then(|count| usize::try_from(count).ok());
        let long = usize::from(self.abi.long_size);
        let addresses = raw.get(fields.caller..).unwrap_or_default();
        let addresses = addresses.chunks_exact(long.max(1)).map(|address| {
            let endian = self.abi.endian;
            let short = || endian.u32_at(address, 0).map(u64::from);
            endian.u64_at(address, 0).or_else(short).unwrap_or_default()
        });
        // The addresses end at an element that is 0 or all ones; with 64 bits also at any element from PERF_CONTEXT_KERNEL on,
        // which readers would take for a marker.
        let limit: u64 = match long {
            4 => u32::MAX.into(),
            _ => PERF_CONTEXT_KERNEL,
        };
        let is_address = |address: &u64| *address != 0 && *address < limit;
        let addresses = addresses.take(count.unwrap_or(usize::MAX));
        addresses.take_while(is_address).collect()
    }
}

impl<'p> CpuEvents<'_, 'p> {
    /// Takes the item that was already read, or reads one.
    fn item(&mut self) -> Option<Result<RingItem<'p>, Error>> {
        match self.next.take() {
            Some(item) => Some(Ok(item)),
            None => self.ring.next(),
        }
    }
}

impl<'p> Iterator for CpuEvents<'_, 'p> {
    type Item = Result<CpuItem<'p>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.item()?.and_then(|item| {
            let (time, raw) = match item {
                RingItem::Lost { time, count } => {
                    // Without a stored number, at least one event was lost.
                    let count = count.unwrap_or(1);
                    return Ok(CpuItem::Lost { time, count });
                }
                RingItem::Event { time, raw } => (time, raw),
            };
            let mut stack = None;
            if self.tracepoints.stack.is_some() {
                match self.ring.next().transpose()? {
                    Some(RingItem::Event { raw, .. }) if self.tracepoints.is_stack(raw) => {
                        stack = Some(raw);
                    }
                    other => self.next = other,
                }
            }
            Ok(CpuItem::Event(StackedEvent { time, raw, stack }))
        }))
    }
}

impl TraceDat<'_> {
    /// Writes the events as a perf.data: a sample for each, ordered by time, with the descriptions of the events that occur. A
    /// kernel stack after an event becomes the callchain of the event's sample. `command` is stored as the command line.
    ///
    /// # Errors
    /// Descriptions cannot be parsed; a damaged page; an event without a description or too large for a sample; no events;
    /// `output` cannot be written.
    pub fn write(&self, output: impl Output, command: &[String]) -> Result<Imported, Error> {
        let data = TracingData::parse(&self.descriptions).map_err(Error::Formats)?;
        let mut tracepoints = Tracepoints::new(&data);
        let (samples, has_stacks) = self.count(&mut tracepoints)?;
        if samples == 0 {
            return Err(Error::Empty);
        }
        let events = self.events(&tracepoints, has_stacks);
        let mut features = self.features(&data, &tracepoints, &events, command);
        let kernel = match has_stacks {
            true => KernelSymbols::new(data.kallsyms),
            false => None,
        };
        features.add_build_ids(&Vec::from_iter(
            kernel.map(|kernel| kernel.build_id_entry()),
        ));
        let mut writer = SampleWriter::new(
            Writer::with_endian(output, &events, self.endian)?,
            &tracepoints,
            &events,
        );
        if let Some(kernel) = kernel {
            writer.put_kernel(&kernel);
        }
        writer.put_comms(data.saved_cmdlines)?;
        self.merge(&tracepoints, &mut writer)?;
        writer.flush()?;
        let (finished, _) = writer.out.finish(&features)?;
        Ok(Imported {
            samples,
            bytes: finished.file_bytes,
            has_stacks,
        })
    }

    fn cpu_events<'t>(
        &'t self,
        tracepoints: &'t Tracepoints,
    ) -> impl Iterator<Item = (u32, CpuEvents<'t, 't>)> {
        self.cpus.iter().map(|stored| {
            let ring = RingEvents::new(self.layout, &stored.pages, stored.offset);
            let events = CpuEvents {
                tracepoints,
                ring,
                next: None,
            };
            (stored.cpu, events)
        })
    }

    /// Counts the samples of each tracepoint; returns the number of all samples, and whether some have a stack.
    fn count(&self, tracepoints: &mut Tracepoints) -> Result<(u64, bool), Error> {
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        let mut has_stacks = false;
        for (cpu, events) in self.cpu_events(tracepoints) {
            for item in events {
                if let CpuItem::Event(event) = item? {
                    let id = tracepoints.id(event.raw);
                    let Some(id) = id.filter(|id| tracepoints.by_id.contains_key(id)) else {
                        let stored = self.cpus.iter().find(|stored| stored.cpu == cpu);
                        return Err(Error::Part {
                            offset: stored.map_or(0, |stored| stored.offset),
                            part: "events of a CPU",
                            problem: format!(
                                "the event with the number {} has no description",
                                id.map_or_else(|| "?".to_owned(), |id| id.to_string())
                            ),
                        });
                    };
                    *counts.entry(id).or_default() += 1;
                    has_stacks |= event.stack.is_some();
                }
            }
        }
        for (id, counted) in &mut tracepoints.by_id {
            counted.samples = counts.get(id).copied().unwrap_or_default();
        }
        Ok((counts.values().sum(), has_stacks))
    }

    /// The events that occur.
    fn events(&self, tracepoints: &Tracepoints, has_stacks: bool) -> Vec<EventDesc> {
        let mut sample_type = SampleType::IDENTIFIER
            | SampleType::IP
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::PERIOD
            | SampleType::RAW;
        if has_stacks {
            sample_type |= SampleType::CALLCHAIN;
        }
        let is_monotonic = self.options.is_monotonic();
        let used = tracepoints
            .by_id
            .iter()
            .filter(|(_, counted)| counted.samples > 0);
        (1..)
            .zip(used)
            .map(|(number, (id, counted))| EventDesc {
                attr: Attr {
                    kind: EventType::TRACEPOINT,
                    config: *id,
                    sample_period: 1,
                    sample_type,
                    flags: AttrFlags::SAMPLE_ID_ALL.with(AttrFlags::USE_CLOCKID, is_monotonic),
                    clockid: if is_monotonic { MONOTONIC } else { 0 },
                    ..Attr::default()
                },
                ids: vec![number],
                name: counted.tracepoint.name(),
            })
            .collect()
    }

    fn features(
        &self,
        data: &TracingData<'_>,
        tracepoints: &Tracepoints,
        events: &[EventDesc],
        command: &[String],
    ) -> FeatureSet {
        let mut features = FeatureSet::new(self.endian);
        let mut tracing_data = TracingDataBuilder::new(self.endian, data.long_size, data.page_size);
        tracing_data
            .headers(data.header_page, data.header_event)
            .printk_formats(data.printk_formats)
            .saved_cmdlines(data.saved_cmdlines);
        let counted = tracepoints.by_id.values();
        for used in counted.filter(|counted| counted.samples > 0) {
            tracing_data.event(&used.tracepoint.system, &used.text);
        }
        features
            .tracing_data(&tracing_data)
            .event_desc(events)
            .cmdline(command);
        // System, host, release, version (several words), machine.
        let uname = self.options.uname.as_deref().unwrap_or_default();
        let words: Vec<&str> = uname.split_whitespace().collect();
        if let [_, host, release, .., machine] = words[..] {
            features.hostname(host).os_release(release).arch(machine);
        }
        features
    }

    /// Writes the items of all CPUs in order of time.
    fn merge<O: Output>(
        &self,
        tracepoints: &Tracepoints,
        writer: &mut SampleWriter<'_, O>,
    ) -> Result<(), Error> {
        let mut cpus: Vec<_> = self.cpu_events(tracepoints).collect();
        // The next item of each CPU, and a queue of the items' times.
        let mut heads = Vec::new();
        let mut queue = BinaryHeap::new();
        for (index, (_, events)) in cpus.iter_mut().enumerate() {
            let head = events.next().transpose()?;
            queue.extend(head.as_ref().map(|item| Reverse((item.time(), index))));
            heads.push(head);
        }
        while let Some(Reverse((_, index))) = queue.pop() {
            let (Some((cpu, events)), Some(head)) = (cpus.get_mut(index), heads.get_mut(index))
            else {
                continue;
            };
            if let Some(item) = head.take() {
                writer.put(*cpu, &item)?;
            }
            *head = events.next().transpose()?;
            queue.extend(head.as_ref().map(|item| Reverse((item.time(), index))));
        }
        Ok(())
    }
}

/// Encodes records.
struct SampleWriter<'k, O> {
    out: Writer<O>,
    tracepoints: &'k Tracepoints,
    layout: SampleLayout,
    /// Layout of the `sample_id` fields at the end of records other than samples.
    trailer: SampleIdLayout,
    sample_type: SampleType,
    /// The id of each event of the perf.data, by the tracepoint's id.
    ids: BTreeMap<u64, u64>,
    /// Encoded records that are not written yet.
    records: Vec<u8>,
}

impl<'k, O: Output> SampleWriter<'k, O> {
    fn new(out: Writer<O>, tracepoints: &'k Tracepoints, events: &[EventDesc]) -> Self {
        let attr = events.first().map(|event| event.attr.clone());
        let attr = attr.unwrap_or_default();
        let ids = events.iter().map(|event| {
            let id = event.ids.first().copied().unwrap_or_default();
            (event.attr.config, id)
        });
        Self {
            out,
            tracepoints,
            layout: SampleLayout::new(&attr),
            trailer: SampleIdLayout::new(attr.sample_type),
            sample_type: attr.sample_type,
            ids: ids.collect(),
            records: Vec::new(),
        }
    }

    fn put_kernel(&mut self, kernel: &KernelSymbols<'_>) {
        let endian = self.tracepoints.abi.endian;
        let mut body = Vec::new();
        kernel.encode_mapping(endian, &mut body);
        let (kind, misc) = (RecordKind::MMAP, Misc::KERNEL);
        RecordHeader::encode_record(kind, misc, &mut self.records, endian, |to| {
            to.bytes(&body);
            self.trailer.encode(&SampleId::default(), to);
        });
    }

    /// Writes a COMM record for each line of `saved_cmdlines`, such as `7 sh`. Other lines are ignored.
    fn put_comms(&mut self, saved: &[u8]) -> Result<(), Error> {
        let endian = self.tracepoints.abi.endian;
        for line in String::from_utf8_lossy(saved).lines() {
            let Some((tid, name)) = line.trim().split_once(' ') else {
                continue;
            };
            let Ok(tid) = tid.parse::<u32>() else {
                continue;
            };
            let id = SampleId {
                pid_tid: Some((tid, tid)),
                ..SampleId::default()
            };
            let name = name.trim();
            let kind = RecordKind::COMM;
            RecordHeader::encode_record(kind, Misc(0), &mut self.records, endian, |to| {
                to.u32(tid);
                to.u32(tid);
                to.bytes(name.as_bytes());
                to.zeros((name.len() + 1).next_multiple_of(8) - name.len());
                self.trailer.encode(&id, to);
            });
        }
        self.flush()
    }

    fn put(&mut self, cpu: u32, item: &CpuItem<'_>) -> Result<(), Error> {
        match item {
            CpuItem::Lost { time, count } => self.put_lost(cpu, *time, *count),
            CpuItem::Event(event) => self.put_sample(cpu, event)?,
        }
        match self.records.len() >= BLOCK {
            true => self.flush(),
            false => Ok(()),
        }
    }

    fn put_lost(&mut self, cpu: u32, time: u64, count: u64) {
        let endian = self.tracepoints.abi.endian;
        // The trace does not tell which events were lost: the record has the id of the first event of the perf.data.
        let event_id = self.ids.values().next().copied().unwrap_or_default();
        let id = SampleId {
            pid_tid: Some((0, 0)),
            time: Some(time),
            id: Some(event_id),
            cpu: Some(cpu),
            ..SampleId::default()
        };
        let kind = RecordKind::LOST;
        RecordHeader::encode_record(kind, Misc(0), &mut self.records, endian, |to| {
            to.u64(event_id);
            to.u64(count);
            self.trailer.encode(&id, to);
        });
    }

    fn put_sample(&mut self, cpu: u32, event: &StackedEvent<'_>) -> Result<(), Error> {
        let endian = self.tracepoints.abi.endian;
        let Some(tracepoint_id) = self.tracepoints.id(event.raw) else {
            return Ok(());
        };
        let tracepoint = self.tracepoints.by_id.get(&tracepoint_id);
        let tid = tracepoint.and_then(|counted| counted.common_pid?.u64(event.raw));
        let tid = tid.map_or(0, |tid| tid as u32);
        let callchain = event.stack.map(|stack| self.tracepoints.callchain(stack));
        let callchain = callchain.filter(|chain| !chain.is_empty());
        let ip = callchain.as_ref().and_then(|chain| chain.first().copied());
        let mut chain_bytes = Vec::new();
        if let Some(chain) = &callchain {
            let entries = std::iter::once(PERF_CONTEXT_KERNEL).chain(chain.iter().copied());
            let mut to = rperf_wire::Encoder::new(&mut chain_bytes, endian);
            entries.for_each(|entry| to.u64(entry));
        }
        // As in the kernel, the data's u32 size and the padded data together are a multiple of 8 bytes.
        let mut raw = event.raw.to_vec();
        raw.resize((raw.len() + 4).next_multiple_of(8) - 4, 0);
        let sample = SampleRecord {
            id: self.ids.get(&tracepoint_id).copied(),
            ip: Some(ip.unwrap_or_default()),
            // A trace.dat has threads, but not the processes that they belong to.
            pid_tid: Some((tid, tid)),
            time: Some(event.time),
            cpu: Some(cpu),
            period: Some(1),
            callchain: self
                .sample_type
                .contains(SampleType::CALLCHAIN)
                .then(|| U64s::new(&chain_bytes, endian)),
            raw: Some(&raw),
            ..SampleRecord::default()
        };
        let layout = &self.layout;
        let fits = RecordHeader::encode_record(
            RecordKind::SAMPLE,
            Misc::KERNEL,
            &mut self.records,
            endian,
            |to| layout.encode(&sample, to),
        );
        match fits {
            true => Ok(()),
            false => Err(Error::Part {
                offset: 0,
                part: "events of a CPU",
                problem: format!("the event at time {} is larger than 64 KiB", event.time),
            }),
        }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.out.write_data(&self.records)?;
        self.records.clear();
        Ok(())
    }
}
