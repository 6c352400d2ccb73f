//! Samples to text, in parallel: the joint between lines and view.

use std::sync::atomic::{AtomicU64, Ordering};

use rperf_lines::{
    Field, Flow, FlowOptions, Line, Lines, SampledInsn, SourceFiles, Spot, TextKey, Texts,
};
use rperf_replay::{Epoch, Recent, Render, Sample, SideRecord, World};
use rperf_resolve::{Frame, Place, Resolver, StackScratch, StackSummary, UserStacks};
use rperf_view::script::Block;
use rperf_wire::{CpuMode, RecordKind, U64s};

use super::object;
use super::plan::{Event, Plan};

/// Renders samples for one recording.
pub(super) struct SampleText<'r, 'w> {
    pub(super) resolver: &'r Resolver<'w>,
    pub(super) lines: Lines<'r, 'w>,
    stacks: UserStacks<'r, 'w>,
    pub(super) plan: &'r Plan,
    sources: &'r SourceFiles<'r>,
    guests: AtomicU64,
}

/// What one worker has rendered, by [`Event::known`].
#[derive(Default)]
pub(super) struct Scratch {
    known: Vec<Known>,
    recent: Recent,
    unwinding: StackScratch,
}

#[derive(Default)]
struct Known {
    /// Frames by object and place in it.
    frames: Texts,
    /// Frames by epoch and address.
    addresses: Texts,
    /// Several callers.
    parts: Texts,
}

/// Whose stack it is.
#[derive(Clone, Copy)]
pub(super) struct Who {
    pub(super) at: Place,
    epoch: Epoch,
}

impl<'r, 'w> SampleText<'r, 'w> {
    pub(super) fn new(
        resolver: &'r Resolver<'w>,
        plan: &'r Plan,
        sources: &'r SourceFiles<'r>,
    ) -> Self {
        Self {
            resolver,
            lines: Lines::new(resolver).with_kernel_paths(plan.kernel_paths),
            stacks: UserStacks::new(resolver, plan.stacks.clone()),
            plan,
            sources,
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

    /// The sampled instruction, and those between branches.
    fn code(&self, event: &Event, sample: &Sample<'_>, at: Place, block: &mut Block) {
        let ip = sample.wire.ip.unwrap_or_default();
        if event.layout.shows_insn() {
            // As for branches, the address itself says whether it is the kernel's.
            let frame = self.resolver.locate_data(at, CpuMode::User, ip);
            let insn = self.lines.insn(&frame, at.order).filter(|_| ip != 0);
            let text = |insn: &SampledInsn| self.lines.insn_text(insn, ip, at);
            event.layout.insn(insn.as_ref(), text, &mut block.text);
        }
        let stack = sample.wire.branch_stack.as_ref();
        let Some(stack) = stack.filter(|stack| event.layout.shows_flow() && !stack.is_empty())
        else {
            return;
        };
        let fields = event.layout.fields();
        let options = FlowOptions {
            max_blocks: self.plan.max_blocks,
            texts: event.layout.shows_flow_as_text(),
            places: fields.has(Field::Srcline),
            sources: fields.has(Field::Srccode).then_some(self.sources),
        };
        block.text.push(b'\n');
        let entries: Vec<_> = stack.iter().collect();
        let flow = Flow::new(&self.lines, sample, options);
        flow.walk(&entries, ip, &mut |step| {
            event.layout.step(&step, sample.tid, block);
        });
    }

    /// What stands on lines of its own behind that of the sample.
    fn lines_behind(&self, event: &Event, sample: &Sample<'_>, line: &Line<'_>, block: &mut Block) {
        let fields = event.layout.fields();
        if fields.has(Field::Srccode) {
            let ip = sample.wire.ip.unwrap_or_default();
            let frame = self
                .resolver
                .locate(Place::of(sample), sample.cpu_mode(), ip);
            let place = self.resolver.source_line(&frame);
            if let Some(text) = place.and_then(|place| self.sources.line(place)) {
                block.put_source(&text, sample.tid);
            }
        }
        if fields.has(Field::Metric) {
            event.layout.metric(line, sample.event.0 as usize, block);
        }
    }

    /// The address, or one line for each frame of the callchain.
    fn address(
        &self,
        event: &Event,
        sample: &Sample<'_>,
        who: Who,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) {
        match sample.wire.callchain {
            Some(recorded) if event.layout.is_stacked() => {
                out.push(b'\n');
                self.frames(event, (sample, recorded), who, scratch, out);
            }
            _ => {
                let ip = sample.wire.ip.unwrap_or_default();
                let frame = self.resolver.locate(who.at, sample.cpu_mode(), ip);
                event.layout.address(&self.spot(event, &frame), out);
            }
        }
    }

    /// The frames of a sample with a callchain.
    pub(super) fn frames(
        &self,
        event: &Event,
        (sample, recorded): (&Sample<'_>, U64s<'_>),
        who: Who,
        scratch: &mut Scratch,
        out: &mut Vec<u8>,
    ) {
        let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
        let known = known(&mut scratch.known, event.known);
        self.stack(event, who, unwound.unwrap_or(recorded), known, out);
    }

    /// One line for each frame. A corrupted chain has none.
    fn stack(
        &self,
        event: &Event,
        who: Who,
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
        self.frame(event, who, (split.mode, split.ip), known, out);
        let callers = U64s::new(split.callers, self.plan.endian);
        let whole = if self.plan.stop.is_empty() {
            Resolver::parts(split.mode, callers, max_callers, |mode, part| {
                self.part(event, who, (mode, part), known, out);
            })
        } else {
            let mut stopped = self.stops(who.at, split.mode, split.ip);
            Resolver::walk_on(split.mode, callers, max_callers, |mode, ip| {
                if !stopped {
                    self.frame(event, who, (mode, ip), known, out);
                    stopped = self.stops(who.at, mode, ip);
                }
            })
        };
        if !whole {
            out.truncate(start);
        }
    }

    /// Some callers. Where samples hit differs from one to the next; how they came there mostly does not.
    fn part(
        &self,
        event: &Event,
        who: Who,
        (mode, part): (CpuMode, U64s<'_>),
        known: &mut Known,
        out: &mut Vec<u8>,
    ) {
        let key = TextKey {
            words: [who.epoch.user, who.epoch.kernel, mode as u64],
            bytes: part.as_bytes(),
        };
        if let Some(text) = known.parts.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        Resolver::walk_on(mode, part, part.len(), |mode, ip| {
            self.frame(event, who, (mode, ip), known, out);
        });
        known
            .parts
            .insert(&key, out.get(from..).unwrap_or_default());
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

    /// The line of one frame.
    fn frame(
        &self,
        event: &Event,
        who: Who,
        (mode, ip): (CpuMode, u64),
        known: &mut Known,
        out: &mut Vec<u8>,
    ) {
        let key = TextKey {
            words: [who.epoch.side(mode), mode as u64, ip],
            bytes: &[],
        };
        if let Some(text) = known.addresses.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        self.unseen_frame(event, who.at, (mode, ip), &mut known.frames, out);
        let text = out.get(from..).unwrap_or_default();
        known.addresses.insert(&key, text);
    }

    /// The line of a frame at an address that this process has not been seen at.
    fn unseen_frame(
        &self,
        event: &Event,
        at: Place,
        (mode, ip): (CpuMode, u64),
        frames: &mut Texts,
        out: &mut Vec<u8>,
    ) {
        let Some(mapping) = self.resolver.mapping(at, mode, ip) else {
            let frame = self.resolver.unmapped(mode, ip);
            return self.put_frame(event, &self.spot(event, &frame), out);
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
            let write = |spot| self.put_frame(event, &spot, out);
            self.lines.expand(&frame, write);
        } else {
            self.put_frame(event, &self.spot(event, &frame), out);
        }
        if let Some(text) = out.get(from..) {
            frames.insert(&key, text);
        }
    }

    fn put_frame(&self, event: &Event, spot: &Spot<'_>, out: &mut Vec<u8>) {
        match self.plan.objects {
            true => object::frame(event.layout.fields(), spot, out),
            false => event.layout.frame(spot, out),
        }
    }
}

impl Render for SampleText<'_, '_> {
    type Out = Block;
    type Scratch = Scratch;

    fn reuse(&self, block: &mut Block) {
        block.clear();
    }

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

    fn render(&self, world: &World, sample: &Sample<'_>, scratch: &mut Scratch, block: &mut Block) {
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
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            self.guests.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.plan.parts {
            block.begin_part(Some(sample.event.0 as usize));
        }
        let at = Place::of(sample);
        let moment = scratch.recent.moment(world, sample.who(), sample.order);
        let line = self.lines.line(sample, moment.comm_at);
        let who = Who {
            at,
            epoch: moment.epoch,
        };
        match self.plan.objects {
            true => self.object(event, sample, (&line, who), scratch, block),
            false => self.text(event, sample, (&line, who), scratch, block),
        }
    }
}

impl SampleText<'_, '_> {
    /// The lines of a sample.
    fn text(
        &self,
        event: &Event,
        sample: &Sample<'_>,
        (line, who): (&Line<'_>, Who),
        scratch: &mut Scratch,
        block: &mut Block,
    ) {
        let fields = event.layout.fields();
        let at = who.at;
        event.layout.start(line, block);
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
            let world = self.resolver.world();
            let cgroup = sample.wire.cgroup.and_then(|id| world.cgroup(id));
            event.layout.before(&sample.wire, cgroup, block);
        }
        let out = &mut block.text;
        if fields.has(Field::Ip) {
            self.address(event, sample, who, scratch, out);
        }
        if event.shows_target {
            // As for branches, the address itself says whether it is the kernel's.
            let target = sample.wire.addr.unwrap_or_default();
            let frame = self.resolver.locate_data(at, CpuMode::User, target);
            event.layout.target(&self.lines.spot(&frame), out);
        }
        if event.layout.has_after() {
            event.layout.registers(&sample.wire, out);
            self.branches(event, sample, at, out);
            event.layout.output(&sample.wire, out);
            self.code(event, sample, at, block);
            event.layout.after(&sample.wire, &mut block.text);
        }
        block.text.push(b'\n');
        self.lines_behind(event, sample, line, block);
    }
}

fn known(all: &mut Vec<Known>, index: usize) -> &mut Known {
    if all.len() <= index {
        all.resize_with(index + 1, Known::default);
    }
    &mut all[index]
}
