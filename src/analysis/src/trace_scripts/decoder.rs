//! Samples of tracepoints with the fields that a script reads.

use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::{CommId, EventIndex, Render, Sample, ThreadCache, World};
use rperf_resolve::{Resolver, SampleCriteria};
use rperf_tracepoint::{FieldReader, Formats};
use rperf_wire::SampleType;

/// A tracepoint and the fields of it that a script reads.
#[derive(Debug, Clone, Copy)]
pub struct EventFields {
    /// `system:name`.
    pub tracepoint: &'static str,
    /// Fields with numbers. A field that the kernel does not have is 0.
    pub numbers: &'static [&'static str],
    /// A field with text.
    pub text: Option<&'static str>,
}

/// A sample in time order.
#[derive(Debug, Clone, Copy)]
pub struct ScriptSample<'b> {
    /// The position of its tracepoint in the script's list; `None` for other events.
    pub kind: Option<usize>,
    /// Its event.
    pub event: EventIndex,
    /// Time in nanoseconds.
    pub time: u64,
    /// The CPU.
    pub cpu: u32,
    /// The thread id: `common_pid` if the event is one of the script's tracepoints and has this field, otherwise the thread id in
    /// the sample.
    pub tid: i64,
    /// The process id.
    pub process: u32,
    /// The thread's name.
    pub comm: &'b str,
    /// Values of the fields, in the order of [`EventFields::numbers`]; empty for other events.
    pub numbers: &'b [i64],
    /// The text, empty if there is none.
    pub text: &'b str,
}

impl ScriptSample<'_> {
    /// Returns the value of the field at this position of [`EventFields::numbers`]; 0 if there is none.
    #[must_use]
    pub fn number(&self, index: usize) -> i64 {
        self.numbers.get(index).copied().unwrap_or_default()
    }
}

/// Decodes the samples of a script.
pub struct FieldDecoder<'d, 'w> {
    /// By event: its layout; `None` if it is none of the script's tracepoints.
    events: Vec<Option<Layout>>,
    filter: &'d SampleCriteria,
    resolver: &'d Resolver<'w>,
    /// Whether samples of events without a layout are delivered, too.
    reads_all: bool,
}

/// The readers of an event's raw data.
#[derive(Debug)]
struct Layout {
    /// The position of the tracepoint in the script's list.
    kind: usize,
    common_pid: Option<FieldReader>,
    numbers: Vec<Option<FieldReader>>,
    text: Option<FieldReader>,
}

impl<'d, 'w> FieldDecoder<'d, 'w> {
    /// Finds `tracepoints` among the events of `recording`. With `reads_all`, samples of other events are
    /// delivered, too.
    ///
    /// # Errors
    /// Those of [`Metadata::formats`]: tracepoint formats that cannot be read.
    pub fn new(
        recording: Metadata<'_>,
        tracepoints: &[EventFields],
        reads_all: bool,
        filter: &'d SampleCriteria,
        resolver: &'d Resolver<'w>,
    ) -> Result<Self, rperf_perfdata::Error> {
        let formats = recording.formats()?;
        let events = recording.events.iter();
        Ok(Self {
            events: events
                .map(|event| layout(event, tracepoints, &formats))
                .collect(),
            filter,
            resolver,
            reads_all,
        })
    }

    /// Whether the recording has any of the tracepoints.
    #[must_use]
    pub fn has_events(&self) -> bool {
        self.events.iter().any(Option::is_some)
    }
}

fn layout(event: &EventDesc, tracepoints: &[EventFields], formats: &Formats) -> Option<Layout> {
    let tracepoint = formats.of_event(&event.attr).ok()?;
    let kind = tracepoints
        .iter()
        .position(|fields| fields.tracepoint == tracepoint.name())?;
    let fields = tracepoints.get(kind)?;
    let reader = |name: &&str| tracepoint.reader(name);
    Some(Layout {
        kind,
        common_pid: reader(&"common_pid"),
        numbers: fields.numbers.iter().map(reader).collect(),
        text: fields.text.as_ref().and_then(reader),
    })
}

/// The decoded samples of a block: a number of consecutive samples in time order that one thread decodes.
#[derive(Debug, Default)]
pub struct FieldBlock {
    samples: Vec<StoredSample>,
    numbers: Vec<i64>,
    text: String,
}

#[derive(Debug)]
struct StoredSample {
    kind: Option<usize>,
    event: EventIndex,
    time: u64,
    cpu: u32,
    tid: i64,
    process: u32,
    comm: CommId,
    /// The end of its numbers in [`FieldBlock::numbers`]. They begin where those of the previous sample end.
    numbers_end: usize,
    /// The end of its text in [`FieldBlock::text`].
    text_end: usize,
}

impl FieldBlock {
    /// Calls `take` with each sample, in order. `world` (the processes and mappings) has the names of the threads.
    pub fn deliver(&self, world: &World, mut take: impl FnMut(&ScriptSample<'_>)) {
        let (mut numbers_begin, mut text_begin) = (0, 0);
        for stored in &self.samples {
            take(&ScriptSample {
                kind: stored.kind,
                event: stored.event,
                time: stored.time,
                cpu: stored.cpu,
                tid: stored.tid,
                process: stored.process,
                comm: world.comm(stored.comm),
                numbers: self
                    .numbers
                    .get(numbers_begin..stored.numbers_end)
                    .unwrap_or_default(),
                text: self
                    .text
                    .get(text_begin..stored.text_end)
                    .unwrap_or_default(),
            });
            (numbers_begin, text_begin) = (stored.numbers_end, stored.text_end);
        }
    }
}

impl Render for FieldDecoder<'_, '_> {
    type Out = FieldBlock;
    type Scratch = ThreadCache;

    fn reuse(&self, block: &mut FieldBlock) {
        block.samples.clear();
        block.numbers.clear();
        block.text.clear();
    }

    fn fields(&self) -> SampleType {
        // Time, process and thread are decoded in any case. The filter may read any field.
        match self.filter.accepts_all() {
            true => SampleType::RAW | SampleType::CPU,
            false => SampleType::ALL,
        }
    }

    fn reads(&self, event: EventIndex) -> bool {
        self.reads_all || matches!(self.events.get(event.0 as usize), Some(Some(_)))
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        threads: &mut ThreadCache,
        block: &mut FieldBlock,
    ) {
        if !self.filter.accepts(sample, self.resolver) {
            return;
        }
        let layout = self.events.get(sample.event.0 as usize);
        let layout = layout.and_then(Option::as_ref);
        let raw = sample.wire.raw.unwrap_or_default();
        let number = |reader: &Option<FieldReader>| reader.as_ref()?.i64(raw);
        if let Some(layout) = layout {
            let numbers = layout.numbers.iter().map(number);
            block.numbers.extend(numbers.map(Option::unwrap_or_default));
            let text = layout.text.as_ref().and_then(|reader| reader.text(raw));
            block
                .text
                .push_str(&String::from_utf8_lossy(text.unwrap_or_default()));
        }
        let state = threads.state_at(world, sample.who(), sample.order);
        block.samples.push(StoredSample {
            kind: layout.map(|layout| layout.kind),
            event: sample.event,
            time: sample.wire.time.unwrap_or(sample.order.time),
            cpu: sample.cpu,
            tid: layout
                .and_then(|layout| number(&layout.common_pid))
                .unwrap_or_else(|| sample.tid.cast_signed().into()),
            process: sample.pid,
            comm: state.comm_at,
            numbers_end: block.numbers.len(),
            text_end: block.text.len(),
        });
    }
}
