//! Samples to text, in parallel: the joint between lines and view.

use std::sync::atomic::{AtomicU64, Ordering};

use rperf_lines::{Field, Lines, Spot, TextKey, Texts};
use rperf_replay::{Render, Sample, SideRecord, World};
use rperf_resolve::{Frame, Place, Resolver, StackScratch, StackSummary, UserStacks};
use rperf_view::script::Block;
use rperf_wire::{CpuMode, RecordKind, U64s};

use super::plan::{Event, Plan};

/// Renders samples for one recording.
pub(super) struct SampleText<'r, 'w> {
    resolver: &'r Resolver<'w>,
    lines: Lines<'r, 'w>,
    stacks: UserStacks<'r, 'w>,
    pub(super) plan: &'r Plan,
    guests: AtomicU64,
}

/// What one worker has rendered, by [`Event::known`].
#[derive(Default)]
pub(super) struct Scratch {
    known: Vec<Known>,
    unwinding: StackScratch,
    /// The longest block so far, in bytes: the next one gets as much at once.
    longest: usize,
}

#[derive(Default)]
struct Known {
    frames: Texts,
    /// All frames of a stack but the first.
    callers: Texts,
}

impl<'r, 'w> SampleText<'r, 'w> {
    pub(super) fn new(resolver: &'r Resolver<'w>, plan: &'r Plan) -> Self {
        Self {
            resolver,
            lines: Lines::new(resolver).with_kernel_paths(plan.kernel_paths),
            stacks: UserStacks::new(resolver, plan.stacks.clone()),
            plan,
            guests: AtomicU64::new(0),
        }
    }

    /// Samples of guests, which were left out.
    pub(super) fn guests(&self) -> u64 {
        self.guests.load(Ordering::Relaxed)
    }

    /// User stacks that were unwound.
    pub(super) fn stacks(&self) -> StackSummary {
        self.stacks.summary()
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

    fn branches(&self, event: &Event, sample: &Sample<'_>, at: Place, out: &mut Vec<u8>) {
        let stack = sample.wire.branch_stack.as_ref();
        let Some(stack) = stack.filter(|_| event.layout.has_branches()) else {
            return;
        };
        for entry in stack.iter() {
            let [from, to] = [entry.from, entry.to].map(|address| {
                let frame = self.resolver.locate_data(at, sample.cpu_mode(), address);
                self.lines.spot(&frame)
            });
            event.layout.branch(&from, &to, &entry, out);
        }
    }

    /// One line for each frame. A corrupted chain has none.
    fn stack(
        &self,
        event: &Event,
        at: Place,
        chain: U64s<'_>,
        known: &mut Known,
        out: &mut Vec<u8>,
    ) {
        let Some(split) = Resolver::split_first(chain) else {
            return;
        };
        let Some(max_callers) = self.plan.max_stack.checked_sub(1) else {
            return;
        };
        let start = out.len();
        self.frame(event, at, (split.mode, split.ip), &mut known.frames, out);
        if split.callers.is_empty() || self.stops(at, split.mode, split.ip) {
            return;
        }
        // Where samples hit differs from one to the next; how they came there does not.
        let epoch = self.resolver.world().epoch(at.machine, at.pid, at.order);
        let key = TextKey {
            words: [epoch.user, epoch.kernel, split.mode as u64],
            bytes: split.callers,
        };
        if let Some(text) = known.callers.get(&key) {
            return out.extend_from_slice(text);
        }
        let callers = U64s::new(split.callers, self.plan.endian);
        let from = out.len();
        let mut stopped = false;
        let whole = Resolver::walk_on(split.mode, callers, max_callers, |mode, ip| {
            if !stopped {
                self.frame(event, at, (mode, ip), &mut known.frames, out);
                stopped = self.stops(at, mode, ip);
            }
        });
        match out.get(from..) {
            Some(text) if whole => known.callers.insert(&key, text),
            _ => out.truncate(start),
        }
    }

    fn spot(&self, event: &Event, frame: &Frame) -> Spot<'r> {
        match event.layout.fields().has(Field::Srcline) {
            true => self.lines.spot_in_source(frame),
            false => self.lines.spot(frame),
        }
    }

    /// Whether the callers of this frame are left out.
    fn stops(&self, at: Place, mode: CpuMode, ip: u64) -> bool {
        if self.plan.stop.is_empty() {
            return false;
        }
        let symbol = self.resolver.locate(at, mode, ip).symbol;
        symbol.is_some_and(|symbol| {
            let name = self.resolver.symbol_name(symbol);
            self.plan.stop.iter().any(|stop| stop == name)
        })
    }

    fn frame(
        &self,
        event: &Event,
        at: Place,
        (mode, ip): (CpuMode, u64),
        frames: &mut Texts,
        out: &mut Vec<u8>,
    ) {
        let Some(mapping) = self.resolver.mapping(at, mode, ip) else {
            return event.layout.frame(&Spot::unknown(ip), out);
        };
        let world = self.resolver.world();
        let mapped = world.mapping(mapping);
        let shown = if world.dso(mapped.dso).is_kernel() {
            ip
        } else {
            0
        };
        // Not the mapping: processes that run the same program show the same frames.
        let key = TextKey {
            words: [u64::from(mapped.dso.0), mapped.object_address(ip), shown],
            bytes: &[],
        };
        if let Some(text) = frames.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        let frame = self.resolver.in_mapping(mapping, ip, mode.into());
        if event.inlines {
            let write = |spot| event.layout.frame(&spot, out);
            self.lines.expand(&frame, write);
        } else {
            event.layout.frame(&self.spot(event, &frame), out);
        }
        if let Some(text) = out.get(from..) {
            frames.insert(&key, text);
        }
    }
}

impl Render for SampleText<'_, '_> {
    type Out = Block;
    type Scratch = Scratch;

    fn wanted(&self) -> &[RecordKind] {
        &self.plan.records
    }

    fn record(
        &self,
        world: &World,
        record: &SideRecord<'_>,
        _scratch: &mut Scratch,
        block: &mut Block,
    ) {
        self.side_record(world, record, block);
    }

    fn render(
        &self,
        _world: &World,
        sample: &Sample<'_>,
        scratch: &mut Scratch,
        block: &mut Block,
    ) {
        let Some(event) = self.plan.events.get(sample.event.0 as usize) else {
            return;
        };
        let fields = event.layout.fields();
        if fields.is_empty() {
            return;
        }
        if !self.plan.filter.accepts(sample, self.resolver) {
            return;
        }
        if block.text.capacity() == 0 {
            let longest = scratch.longest + scratch.longest / 8;
            block.text.reserve(longest);
        }
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            self.guests.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let at = Lines::place(sample);
        event.layout.start(&self.lines.line(sample), block);
        let out = &mut block.text;
        if fields.has(Field::Trace)
            && let Some(raw) = sample.wire.raw
        {
            let payloads = &self.plan.payloads;
            payloads.write(sample.event, raw, self.resolver, out);
        }
        if fields.has(Field::Addr) {
            self.data_address(event, sample, at, out);
        }
        if event.layout.has_before() {
            event.layout.before(&sample.wire, block);
        }
        let out = &mut block.text;
        if fields.has(Field::Ip) {
            match sample.wire.callchain {
                Some(recorded) if event.layout.is_stacked() => {
                    out.push(b'\n');
                    let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
                    let known = known(&mut scratch.known, event.known);
                    self.stack(event, at, unwound.unwrap_or(recorded), known, out);
                }
                _ => {
                    let ip = sample.wire.ip.unwrap_or_default();
                    let frame = self.resolver.locate(at, mode, ip);
                    event.layout.address(&self.spot(event, &frame), out);
                }
            }
        }
        if event.layout.has_after() {
            event.layout.registers(&sample.wire, out);
            self.branches(event, sample, at, out);
            event.layout.after(&sample.wire, out);
        }
        out.push(b'\n');
        scratch.longest = scratch.longest.max(out.len());
    }
}

fn known(all: &mut Vec<Known>, index: usize) -> &mut Known {
    if all.len() <= index {
        all.resize_with(index + 1, Known::default);
    }
    &mut all[index]
}
