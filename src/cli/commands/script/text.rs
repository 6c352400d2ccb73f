//! Renders samples as text or as JSON objects.
//!
//! Two words have two meanings each. A [`ScriptBlock`] is the output of consecutive records, but `max_blocks` counts basic blocks
//! of code. [`ScriptBlock::begin_part`] begins the output of one sample or record; a [`ChainPart`] is a part of a callchain.

use std::sync::atomic::{AtomicU64, Ordering};

use rperf_lines::{
    BranchFlow, FlowOptions, LineBuilder, LineField, ResolvedAddress, SampleLine, SampledInsn,
    SourceFiles, TextCache, TextKey,
};
use rperf_replay::{Epoch, NonSampleRecord, Render, Sample, ThreadCache, World};
use rperf_resolve::{
    AddressContext, Frame, Resolver, StackScratch, StackSummary, UserStacks, chain,
};
use rperf_view::script::ScriptBlock;
use rperf_wire::{CpuMode, RecordKind, SampleType, U64s};

use super::object;
use super::plan::{EventPlan, ScriptPlan};

/// Renders the samples of one recording.
pub(super) struct SampleText<'r, 'w> {
    pub(super) resolver: &'r Resolver<'w>,
    pub(super) lines: LineBuilder<'r, 'w>,
    stacks: UserStacks<'r, 'w>,
    pub(super) plan: &'r ScriptPlan,
    sources: &'r SourceFiles<'r>,
    skipped_guest_samples: AtomicU64,
}

/// The caches and buffers of a worker.
#[derive(Default)]
pub(super) struct TextBuffers {
    /// Rendered text by [`EventPlan::cache_index`].
    caches: Vec<EventCache>,
    /// The states of recently sampled threads.
    recent: ThreadCache,
    unwinding: StackScratch,
}

#[derive(Default)]
struct EventCache {
    /// Frames by object and address in it; those of the kernel also by `ip`.
    frames: TextCache,
    /// Frames by address, by mode, and by epoch: a number for the state of the mappings of the process, or of the
    /// kernel if the mode is the kernel's.
    addresses: TextCache,
    /// Sequences of callers by their callchain entries, by mode, and by both epochs: those of the process and of the kernel.
    parts: TextCache,
}

/// A sample to be rendered.
#[derive(Clone, Copy)]
pub(super) struct ShownSample<'s> {
    pub(super) event: &'s EventPlan,
    pub(super) sample: &'s Sample<'s>,
    pub(super) line: &'s SampleLine<'s>,
    pub(super) task: SampledTask,
}

/// The address of a frame, with its cpumode.
#[derive(Clone, Copy)]
struct FrameAddress {
    mode: CpuMode,
    ip: u64,
}

/// Consecutive entries of a callchain. `mode` applies up to the first entry that changes it.
#[derive(Clone, Copy)]
struct ChainPart<'p> {
    mode: CpuMode,
    entries: U64s<'p>,
}

/// The sampled process at the time of the sample, and the state of its mappings at that time.
#[derive(Clone, Copy)]
pub(super) struct SampledTask {
    pub(super) at: AddressContext,
    epoch: Epoch,
}

impl<'r, 'w> SampleText<'r, 'w> {
    pub(super) fn new(
        resolver: &'r Resolver<'w>,
        plan: &'r ScriptPlan,
        sources: &'r SourceFiles<'r>,
    ) -> Self {
        Self {
            resolver,
            lines: LineBuilder::new(resolver).with_kernel_paths(plan.kernel_paths),
            stacks: UserStacks::new(resolver, plan.stacks.clone()),
            plan,
            sources,
            skipped_guest_samples: AtomicU64::new(0),
        }
    }

    /// The number of samples of guests, which are skipped.
    pub(super) fn skipped_guest_samples(&self) -> u64 {
        self.skipped_guest_samples.load(Ordering::Relaxed)
    }

    /// Whether no sample is filtered out, and all events show addresses.
    pub(super) fn shows_all_addresses(&self) -> bool {
        let mut events = self.plan.events.iter();
        self.plan.filter.accepts_all()
            && events.all(|event| event.layout.fields().has(LineField::Ip))
    }

    /// Results of unwinding user stacks.
    pub(super) fn stack_summary(&self) -> StackSummary {
        self.stacks.summary()
    }

    fn data_address(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        at: AddressContext,
        out: &mut Vec<u8>,
    ) {
        let address = sample.wire.addr.unwrap_or_default();
        let frame = match event.symbolizes_data {
            true => self.resolver.locate_data(at, sample.cpu_mode(), address),
            false => Frame::unknown(address, sample.cpu_mode().into()),
        };
        let address = self.lines.resolved(&frame);
        event
            .layout
            .data_address(&address, event.symbolizes_data, out);
    }

    fn branches(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        at: AddressContext,
        out: &mut Vec<u8>,
    ) {
        let stack = sample.wire.branch_stack.as_ref();
        let Some(stack) = stack.filter(|_| event.layout.has_branches()) else {
            return;
        };
        for entry in stack.iter() {
            let [from, to] = [entry.from, entry.to].map(|address| {
                // As in perf, first in the sample's mode, then in the mode of the address.
                let frame = self.resolver.locate_data(at, sample.cpu_mode(), address);
                self.lines.resolved(&frame)
            });
            event.layout.branch(&from, &to, &entry, out);
        }
    }

    /// Appends the sampled instruction, and those between branches.
    fn code(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        at: AddressContext,
        block: &mut ScriptBlock,
    ) {
        let ip = sample.wire.ip.unwrap_or_default();
        if event.layout.shows_insn() {
            // Whatever the sample's mode, `locate_data` looks in user space; for an address in the kernel's half of the address
            // space, also in the kernel.
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
            disassemble: event.layout.shows_flow_as_text(),
            source_lines: fields.has(LineField::Srcline),
            sources: fields.has(LineField::Srccode).then_some(self.sources),
        };
        block.text.push(b'\n');
        let entries: Vec<_> = stack.iter().collect();
        let flow = BranchFlow::new(&self.lines, sample, options);
        flow.walk(&entries, ip, &mut |step| {
            // The thread is passed since a source line that equals the thread's previous one is omitted.
            event.layout.step(&step, sample.tid, block);
        });
    }

    /// Appends what follows the line of the sample: its source code, and metrics.
    fn following_lines(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        line: &SampleLine<'_>,
        block: &mut ScriptBlock,
    ) {
        let fields = event.layout.fields();
        if fields.has(LineField::Srccode) {
            let ip = sample.wire.ip.unwrap_or_default();
            let frame = self
                .resolver
                .locate(AddressContext::of(sample), sample.cpu_mode(), ip);
            let location = self.resolver.source_line(&frame);
            if let Some(text) = location.and_then(|location| self.sources.line(location)) {
                // The thread is passed since a source line that equals the thread's previous one is omitted.
                block.put_source(&text, sample.tid);
            }
        }
        if fields.has(LineField::Metric) {
            event.layout.metric(line, sample.event.0 as usize, block);
        }
    }

    /// Appends the address, or the frames of the callchain.
    fn address(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        task: SampledTask,
        scratch: &mut TextBuffers,
        out: &mut Vec<u8>,
    ) {
        match sample.wire.callchain {
            Some(_) if event.layout.has_frame_lines() => {
                out.push(b'\n');
                self.frames(event, sample, task, scratch, out);
            }
            _ => {
                let ip = sample.wire.ip.unwrap_or_default();
                let frame = self.resolver.locate(task.at, sample.cpu_mode(), ip);
                event.layout.address(&self.resolved(event, &frame), out);
            }
        }
    }

    /// Appends the frames of a sample with a callchain.
    pub(super) fn frames(
        &self,
        event: &EventPlan,
        sample: &Sample<'_>,
        task: SampledTask,
        scratch: &mut TextBuffers,
        out: &mut Vec<u8>,
    ) {
        let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
        let Some(chain) = unwound.or(sample.wire.callchain) else {
            return;
        };
        let cache = cache_of(&mut scratch.caches, event.cache_index);
        self.stack(event, task, chain, cache, out);
    }

    /// Appends the frames of `chain`; nothing if the chain is corrupted, or no frames are to be shown.
    fn stack(
        &self,
        event: &EventPlan,
        task: SampledTask,
        chain: U64s<'_>,
        cache: &mut EventCache,
        out: &mut Vec<u8>,
    ) {
        let Some(split) = chain::split_first(chain) else {
            return;
        };
        let Some(max_callers) = self.plan.max_stack.checked_sub(1) else {
            return;
        };
        let start = out.len();
        let first = FrameAddress {
            mode: split.mode,
            ip: split.ip,
        };
        self.frame(event, task, first, cache, out);
        let callers = U64s::new(split.callers, self.plan.endian);
        let is_valid = if self.plan.stop_functions.is_empty() {
            chain::parts(split.mode, callers, max_callers, |mode, part| {
                let part = ChainPart {
                    mode,
                    entries: part,
                };
                self.part(event, task, part, cache, out);
            })
        } else {
            // The walk does not end at a stop function: an invalid marker behind it makes the chain corrupted, too.
            let mut stopped = self.stops(task.at, split.mode, split.ip);
            chain::walk_part(split.mode, callers, max_callers, |mode, ip| {
                if !stopped {
                    self.frame(event, task, FrameAddress { mode, ip }, cache, out);
                    stopped = self.stops(task.at, mode, ip);
                }
            })
        };
        if !is_valid {
            out.truncate(start);
        }
    }

    /// Appends a sequence of callers, cached as one: sampled addresses vary, but the callers mostly do not.
    fn part(
        &self,
        event: &EventPlan,
        task: SampledTask,
        ChainPart { mode, entries }: ChainPart<'_>,
        cache: &mut EventCache,
        out: &mut Vec<u8>,
    ) {
        let key = TextKey {
            words: [task.epoch.user, task.epoch.kernel, mode as u64],
            bytes: entries.as_bytes(),
        };
        if let Some(text) = cache.parts.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        // The part is within `--max-stack` and has no invalid marker.
        let no_limit = entries.len();
        chain::walk_part(mode, entries, no_limit, |mode, ip| {
            self.frame(event, task, FrameAddress { mode, ip }, cache, out);
        });
        cache
            .parts
            .insert(&key, out.get(from..).unwrap_or_default());
    }

    fn resolved(&self, event: &EventPlan, frame: &Frame) -> ResolvedAddress<'r> {
        match event.layout.fields().has(LineField::Srcline) {
            true => self.lines.resolved_with_line(frame),
            false => self.lines.resolved(frame),
        }
    }

    /// Whether the callers of this frame are omitted, because its function is in the list of `--stop-bt`.
    fn stops(&self, at: AddressContext, mode: CpuMode, ip: u64) -> bool {
        let symbol = self.resolver.locate(at, mode, ip).symbol;
        symbol.is_some_and(|symbol| {
            let name = self.resolver.symbol_name(symbol);
            self.plan.stop_functions.iter().any(|stop| stop == name)
        })
    }

    /// Appends a frame and the functions inlined there, if shown.
    fn frame(
        &self,
        event: &EventPlan,
        task: SampledTask,
        address: FrameAddress,
        cache: &mut EventCache,
        out: &mut Vec<u8>,
    ) {
        let key = TextKey {
            words: [
                task.epoch.of_mode(address.mode),
                address.mode as u64,
                address.ip,
            ],
            bytes: &[],
        };
        if let Some(text) = cache.addresses.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        self.unseen_frame(event, task.at, address, &mut cache.frames, out);
        let text = out.get(from..).unwrap_or_default();
        cache.addresses.insert(&key, text);
    }

    /// Appends a frame at an address that is not cached for this process, and the functions inlined there, if shown.
    fn unseen_frame(
        &self,
        event: &EventPlan,
        at: AddressContext,
        address: FrameAddress,
        frames: &mut TextCache,
        out: &mut Vec<u8>,
    ) {
        let FrameAddress { mode, ip } = address;
        let Some(mapping) = self.resolver.mapping(at, mode, ip) else {
            let frame = self.resolver.unmapped_frame(mode, ip);
            return self.put_frame(event, &self.resolved(event, &frame), out);
        };
        // The World: the processes and mappings of the recording.
        let world = self.resolver.world();
        let mapped = world.mapping(mapping);
        // The key has the object rather than the mapping, so that processes that run the same program share frames. Frames of the
        // kernel show `ip`, so it is in their key; other frames show the address in the object.
        let shown_ip = if world.dso(mapped.dso).is_kernel() {
            ip
        } else {
            0
        };
        let key = TextKey {
            words: [u64::from(mapped.dso.0), mapped.object_address(ip), shown_ip],
            bytes: &[],
        };
        if let Some(text) = frames.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        let frame = self.resolver.frame_in_mapping(mapping, ip, mode.into());
        if event.inlines {
            let write = |address| self.put_frame(event, &address, out);
            self.lines.expand(&frame, write);
        } else {
            self.put_frame(event, &self.resolved(event, &frame), out);
        }
        if let Some(text) = out.get(from..) {
            frames.insert(&key, text);
        }
    }

    fn put_frame(&self, event: &EventPlan, address: &ResolvedAddress<'_>, out: &mut Vec<u8>) {
        match self.plan.is_structured {
            true => object::frame(event.layout.fields(), address, out),
            false => event.layout.frame(address, out),
        }
    }
}

impl Render for SampleText<'_, '_> {
    type Out = ScriptBlock;
    type Scratch = TextBuffers;

    fn reuse(&self, block: &mut ScriptBlock) {
        block.clear();
    }

    fn fields(&self) -> SampleType {
        self.plan.sample_fields()
    }

    fn wanted(&self) -> &[RecordKind] {
        &self.plan.records
    }

    fn record(
        &self,
        world: &World,
        record: &NonSampleRecord<'_>,
        _scratch: &mut TextBuffers,
        block: &mut ScriptBlock,
    ) {
        self.non_sample(world, record, block);
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut TextBuffers,
        block: &mut ScriptBlock,
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
        let mode = sample.cpu_mode();
        if matches!(mode, CpuMode::GuestKernel | CpuMode::GuestUser) {
            self.skipped_guest_samples.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if self.plan.separates_samples {
            block.begin_part(Some(sample.event.0 as usize));
        }
        let at = AddressContext::of(sample);
        let state = scratch.recent.state_at(world, sample.who(), sample.order);
        let mut line = self.lines.line(sample, state.comm_at);
        if event.shows_branch_kind {
            line.branch_flags = self.lines.branch_flags(sample);
        }
        let shown = ShownSample {
            event,
            sample,
            line: &line,
            task: SampledTask {
                at,
                epoch: state.epoch,
            },
        };
        match self.plan.is_structured {
            true => self.object(&shown, scratch, block),
            false => self.text(&shown, scratch, block),
        }
    }
}

impl SampleText<'_, '_> {
    /// Appends the lines of a sample.
    fn text(&self, shown: &ShownSample<'_>, scratch: &mut TextBuffers, block: &mut ScriptBlock) {
        let &ShownSample {
            event,
            sample,
            line,
            task,
        } = shown;
        let fields = event.layout.fields();
        let at = task.at;
        event.layout.start(line, block);
        let out = &mut block.text;
        if fields.has(LineField::Trace)
            && let Some(raw) = sample.wire.raw
        {
            let payloads = &self.plan.payloads;
            payloads.write(sample.event, raw, self.resolver, out);
        }
        if fields.has(LineField::Addr) {
            self.data_address(event, sample, at, out);
        }
        if event.layout.has_leading_fields() {
            let world = self.resolver.world();
            let cgroup = sample.wire.cgroup.and_then(|id| world.cgroup(id));
            event.layout.leading_fields(&sample.wire, cgroup, block);
        }
        let out = &mut block.text;
        if fields.has(LineField::Ip) {
            self.address(event, sample, task, scratch, out);
        }
        if event.shows_branch_target {
            // Whatever the sample's mode, `locate_data` looks in user space; for an address in the kernel's half of the address
            // space, also in the kernel.
            let target = sample.wire.addr.unwrap_or_default();
            let frame = self.resolver.locate_data(at, CpuMode::User, target);
            event.layout.target(&self.lines.resolved(&frame), out);
        }
        if event.layout.has_trailing_fields() {
            event.layout.registers(&sample.wire, out);
            self.branches(event, sample, at, out);
            event.layout.bpf_output(&sample.wire, out);
            self.code(event, sample, at, block);
            event.layout.page_fields(&sample.wire, &mut block.text);
        }
        block.text.push(b'\n');
        self.following_lines(event, sample, line, block);
    }
}

fn cache_of(all: &mut Vec<EventCache>, index: usize) -> &mut EventCache {
    if all.len() <= index {
        all.resize_with(index + 1, EventCache::default);
    }
    &mut all[index]
}
