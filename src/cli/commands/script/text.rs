//! Samples to text, in parallel: the joint between lines and view.

use std::sync::atomic::{AtomicU64, Ordering};

use rperf_lines::{Field, Fields, FrameKey, FrameTexts, Lines, Selection, Spot};
use rperf_perfdata::EventDesc;
use rperf_replay::{Render, Sample, World};
use rperf_resolve::{Frame, Place, Resolver};
use rperf_view::script::{Layout, Style};
use rperf_wire::{Attr, CpuMode, EventType, SampleType, U64s};

/// Frames of a callchain that are shown, `PERF_MAX_STACK_DEPTH`.
const MAX_STACK: usize = 127;
/// `PERF_COUNT_SW_PAGE_FAULTS`, `_MIN`, `_MAJ`: events whose data address has a symbol of its own.
const PAGE_FAULTS: [u64; 3] = [2, 5, 6];

/// How one event's samples are written.
struct Event {
    layout: Layout,
    /// Which of the scratch's frame texts fit: events with equal fields share them.
    texts: usize,
    names_data: bool,
}

/// Renders samples for one recording.
pub(super) struct SampleText<'r, 'w> {
    resolver: &'r Resolver<'w>,
    lines: Lines<'r, 'w>,
    events: Vec<Event>,
    guests: AtomicU64,
}

/// Frame texts of one worker, by [`Event::texts`].
#[derive(Default)]
pub(super) struct Scratch(Vec<FrameTexts>);

impl<'r, 'w> SampleText<'r, 'w> {
    pub(super) fn new(
        resolver: &'r Resolver<'w>,
        events: &[EventDesc],
        selection: &Selection,
    ) -> Self {
        let longest = events.iter().map(|event| event.name.len()).max();
        let style = Style {
            name_columns: longest.unwrap_or_default(),
            nanoseconds: false,
        };
        let mut kinds: Vec<Fields> = Vec::new();
        let events = events.iter().map(|event| {
            let fields = selection.fields(&event.attr);
            let known = kinds.iter().position(|known| *known == fields);
            let texts = known.unwrap_or_else(|| {
                kinds.push(fields);
                kinds.len() - 1
            });
            let stacked = event.attr.sample_type.contains(SampleType::CALLCHAIN);
            Event {
                layout: Layout::new(&event.name, fields, stacked, style),
                texts,
                names_data: names_data(&event.attr),
            }
        });
        Self {
            resolver,
            lines: Lines::new(resolver),
            events: events.collect(),
            guests: AtomicU64::new(0),
        }
    }

    /// Samples of guests, which were left out.
    pub(super) fn guests(&self) -> u64 {
        self.guests.load(Ordering::Relaxed)
    }

    fn data_address(&self, event: &Event, sample: &Sample<'_>, at: Place, out: &mut Vec<u8>) {
        let address = sample.wire.addr.unwrap_or_default();
        let frame = match event.names_data {
            true => self.resolver.locate_data(at, sample.cpu_mode(), address),
            false => Frame::unknown(address, sample.cpu_mode().into()),
        };
        let spot = self.lines.spot(&frame);
        event.layout.data_address(&spot, event.names_data, out);
    }

    /// One line for each frame. A corrupted chain has none.
    fn stack(
        &self,
        event: &Event,
        at: Place,
        chain: U64s<'_>,
        texts: &mut FrameTexts,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let whole = Resolver::walk(chain, MAX_STACK, |mode, ip| {
            match self.resolver.mapping(at, mode, ip) {
                Some(mapping) => {
                    let text = texts.get_or_render(FrameKey { mapping, ip }, |text| {
                        let frame = self.resolver.in_mapping(mapping, ip, mode.into());
                        event.layout.frame(&self.lines.spot(&frame), text);
                    });
                    out.extend_from_slice(text);
                }
                None => event.layout.frame(&Spot::unknown(ip), out),
            }
        });
        if !whole {
            out.truncate(start);
        }
    }
}

impl Render for SampleText<'_, '_> {
    type Out = Vec<u8>;
    type Scratch = Scratch;

    fn render(
        &self,
        _world: &World,
        sample: &Sample<'_>,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) {
        let Some(event) = self.events.get(sample.event.0 as usize) else {
            return;
        };
        let fields = event.layout.fields();
        if fields.is_empty() {
            return;
        }
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            self.guests.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let at = Lines::place(sample);
        event.layout.start(&self.lines.line(sample), out);
        if fields.has(Field::Addr) {
            self.data_address(event, sample, at, out);
        }
        if fields.has(Field::Ip) {
            match sample.wire.callchain {
                Some(chain) if event.layout.is_stacked() => {
                    out.push(b'\n');
                    self.stack(event, at, chain, scratch.texts(event.texts), out);
                }
                _ => {
                    let ip = sample.wire.ip.unwrap_or_default();
                    let frame = self.resolver.locate(at, mode, ip);
                    event.layout.address(&self.lines.spot(&frame), out);
                }
            }
        }
        out.push(b'\n');
    }
}

impl Scratch {
    fn texts(&mut self, index: usize) -> &mut FrameTexts {
        if self.0.len() <= index {
            self.0.resize_with(index + 1, FrameTexts::default);
        }
        &mut self.0[index]
    }
}

/// Whether the data address of a sample is one that perf names: that of a page fault.
fn names_data(attr: &Attr) -> bool {
    attr.kind == EventType::SOFTWARE && PAGE_FAULTS.contains(&attr.config)
}
