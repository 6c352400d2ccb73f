//! Samples as JSON objects.

use std::sync::Arc;

use rperf_lines::{TextCache, TextKey};
use rperf_replay::{Epoch, NonSampleRecord, Render, Sample, ThreadCache, World};
use rperf_resolve::{AddressContext, Frame, Resolver, StackScratch, UserStacks, chain};
use rperf_tracepoint::Tracepoint;
use rperf_wire::{
    CpuMode, Endian, PERF_CONTEXT_HV, PERF_CONTEXT_KERNEL, PERF_CONTEXT_MAX, PERF_CONTEXT_USER,
    Record, RecordKind, SampleType, U64s,
};

use super::records::{WRITTEN, push_record};
use super::{push_key, push_line, push_string};

/// Renders the samples of one recording, and with `--all` its other records. The text of each begins with a comma.
pub struct JsonText<'r, 'w> {
    resolver: &'r Resolver<'w>,
    stacks: &'r UserStacks<'r, 'w>,
    endian: Endian,
    /// By event: whether samples have the CPU.
    has_cpu: Vec<bool>,
    /// Nanoseconds added to times.
    offset: i64,
    /// With `--all`, the names of the events as JSON strings.
    event_names: Option<Vec<String>>,
    /// By event: its tracepoint, whose fields are members of its samples.
    tracepoints: Vec<Option<Arc<Tracepoint>>>,
}

/// The text of a block of samples and other records.
#[derive(Debug, Default)]
pub struct JsonBlock {
    /// The objects of samples, each after a comma.
    pub text: Vec<u8>,
    /// Number of samples.
    pub samples: u64,
    /// The objects of other records, each after a comma.
    pub records: Vec<u8>,
}

/// Cache of one worker.
#[derive(Default)]
pub struct JsonCache {
    recent: ThreadCache,
    unwinding: StackScratch,
    known: KnownTexts,
    /// Buffer for the value of a field.
    value: Vec<u8>,
}

/// Text already rendered. Each frame begins with a comma.
#[derive(Default)]
struct KnownTexts {
    /// Single frames.
    frames: TextCache,
    /// The parts into which [`chain::parts`] splits the callers of callchains.
    parts: TextCache,
}

/// Inputs of resolving a frame.
#[derive(Clone, Copy)]
struct FrameContext {
    /// The machine, process and time.
    at: AddressContext,
    /// For keys of caches: with equal epochs, mappings are the same, so that equal addresses have equal frames.
    epoch: Epoch,
}

impl<'r, 'w> JsonText<'r, 'w> {
    /// Resolves frames with `resolver`; `stacks` completes the user part of callchains, such as by unwinding.
    /// `sample_types` are those of the events.
    #[must_use]
    pub fn new(
        resolver: &'r Resolver<'w>,
        stacks: &'r UserStacks<'r, 'w>,
        endian: Endian,
        sample_types: impl Iterator<Item = SampleType>,
    ) -> Self {
        Self {
            resolver,
            stacks,
            endian,
            has_cpu: sample_types
                .map(|kind| kind.contains(SampleType::CPU))
                .collect(),
            offset: 0,
            event_names: None,
            tracepoints: Vec::new(),
        }
    }

    /// Adds the fields of tracepoints to their samples, as perf 7 does. `tracepoints` are those of the events.
    #[must_use]
    pub fn with_fields(
        mut self,
        tracepoints: impl Iterator<Item = Option<Arc<Tracepoint>>>,
    ) -> Self {
        self.tracepoints = tracepoints.collect();
        self
    }

    /// Adds these nanoseconds to all times.
    #[must_use]
    pub fn shifted_by(mut self, offset: i64) -> Self {
        self.offset = offset;
        self
    }

    /// Also renders the other records, and the event and period of each sample. `names` are those of the events.
    #[must_use]
    pub fn with_records<'n>(mut self, names: impl Iterator<Item = &'n str>) -> Self {
        let quoted = names.map(|name| {
            let mut text = Vec::new();
            push_string(&mut text, name);
            String::from_utf8(text).unwrap_or_default()
        });
        self.event_names = Some(quoted.collect());
        self
    }

    /// With `--all`, the name of a sample's event as a JSON string.
    fn event_name(&self, sample: &Sample<'_>) -> Option<&str> {
        let names = self.event_names.as_ref()?;
        names.get(sample.event.0 as usize).map(String::as_str)
    }

    /// Appends the fields of a tracepoint's sample, each after a comma. Values are strings: a field's text is the one that
    /// `script` prints if the tracepoint's `print fmt` cannot be used.
    fn fields(&self, sample: &Sample<'_>, value: &mut Vec<u8>, out: &mut Vec<u8>) {
        let tracepoint = self.tracepoints.get(sample.event.0 as usize);
        let (Some(Some(tracepoint)), Some(raw)) = (tracepoint, sample.wire.raw) else {
            return;
        };
        for field in &tracepoint.format.fields {
            out.push(b',');
            push_line(out, 3);
            push_string(out, &field.name);
            out.extend_from_slice(b": ");
            value.clear();
            field.write(raw, tracepoint.abi, value);
            push_string(out, &String::from_utf8_lossy(value));
        }
    }

    /// The time with the offset.
    fn shifted(&self, time: u64) -> i64 {
        time.cast_signed().wrapping_add(self.offset)
    }

    /// Appends the frames of a callchain, with commas between them.
    fn chain(
        &self,
        context: FrameContext,
        chain: U64s<'_>,
        known: &mut KnownTexts,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let KnownTexts { frames, parts } = known;
        let Some(split) = chain::split_first(chain) else {
            return self.corrupted(context, chain, frames, out);
        };
        self.frame(context, split.mode, split.ip, frames, out);
        // Removes the comma before the first frame.
        out.remove(start);
        let callers = U64s::new(split.callers, self.endian);
        let no_limit = usize::MAX;
        let is_valid = chain::parts(split.mode, callers, no_limit, |mode, part| {
            // `mode` applies until the first marker in the part. As markers may change it, the key has both epochs.
            let key = TextKey {
                words: [context.epoch.user, context.epoch.kernel, mode as u64],
                bytes: part.as_bytes(),
            };
            if let Some(text) = parts.get(&key) {
                return out.extend_from_slice(text);
            }
            let from = out.len();
            // The result is always `true`: `chain::parts` has checked the markers.
            chain::walk_part(mode, part, no_limit, |mode, ip| {
                self.frame(context, mode, ip, frames, out);
            });
            parts.insert(&key, out.get(from..).unwrap_or_default());
        });
        if !is_valid {
            out.truncate(start);
            self.corrupted(context, chain, frames, out);
        }
    }

    /// Appends the frames of a callchain that has invalid context markers, with commas between them; nothing for a callchain
    /// without frames. As in perf's JSON, invalid markers are skipped.
    #[cold]
    fn corrupted(
        &self,
        context: FrameContext,
        chain: U64s<'_>,
        frames: &mut TextCache,
        out: &mut Vec<u8>,
    ) {
        let start = out.len();
        let mut mode = CpuMode::User;
        for ip in chain.iter() {
            match ip {
                PERF_CONTEXT_HV => mode = CpuMode::Hypervisor,
                PERF_CONTEXT_KERNEL => mode = CpuMode::Kernel,
                PERF_CONTEXT_USER => mode = CpuMode::User,
                PERF_CONTEXT_MAX.. => {}
                _ => self.frame(context, mode, ip, frames, out),
            }
        }
        if out.len() > start {
            // Removes the comma before the first frame.
            out.remove(start);
        }
    }

    /// Appends a comma and the object of one frame.
    fn frame(
        &self,
        context: FrameContext,
        mode: CpuMode,
        ip: u64,
        frames: &mut TextCache,
        out: &mut Vec<u8>,
    ) {
        let key = TextKey {
            words: [context.epoch.of_mode(mode), mode as u64, ip],
            bytes: &[],
        };
        if let Some(text) = frames.get(&key) {
            return out.extend_from_slice(text);
        }
        let from = out.len();
        out.push(b',');
        self.push_frame(&self.resolver.locate(context.at, mode, ip), out);
        frames.insert(&key, out.get(from..).unwrap_or_default());
    }

    /// Appends the object of one frame.
    fn push_frame(&self, frame: &Frame, out: &mut Vec<u8>) {
        push_line(out, 4);
        out.push(b'{');
        push_key(out, 5, "ip");
        out.extend(format!("\"{:#x}\"", frame.ip).into_bytes());
        let name = frame.symbol.map(|symbol| self.resolver.symbol_name(symbol));
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            out.push(b',');
            push_key(out, 5, "symbol");
            push_string(out, name);
            let dso = frame.dso.map(|dso| self.resolver.world().dso(dso));
            if let Some(dso) = dso.filter(|dso| !dso.short_name.is_empty()) {
                out.push(b',');
                push_key(out, 5, "dso");
                push_string(out, &dso.short_name);
            }
        }
        push_line(out, 4);
        out.push(b'}');
    }
}

/// Appends a member with a number, and a comma.
fn push_number(out: &mut Vec<u8>, key: &'static str, number: i64) {
    push_key(out, 3, key);
    let _ = serde_json::to_writer(&mut *out, &number);
    out.push(b',');
}

impl Render for JsonText<'_, '_> {
    type Out = JsonBlock;
    type Scratch = JsonCache;

    fn reuse(&self, block: &mut JsonBlock) {
        block.text.clear();
        block.records.clear();
        block.samples = 0;
    }

    fn wanted(&self) -> &[RecordKind] {
        // Event names are given with `--all` only.
        match self.event_names {
            Some(_) => &WRITTEN,
            None => &[],
        }
    }

    fn record(
        &self,
        _: &World,
        record: &NonSampleRecord<'_>,
        _: &mut JsonCache,
        block: &mut JsonBlock,
    ) {
        // Records that cannot be decoded were counted when the World (the processes and mappings at a time) was built.
        if let Ok(decoded) = Record::decode(&record.raw, self.endian) {
            let time = record.id.time.map(|time| self.shifted(time));
            push_record(&decoded, time, &mut block.records);
        }
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut JsonCache,
        block: &mut JsonBlock,
    ) {
        let state = scratch.recent.state_at(world, sample.who(), sample.order);
        let context = FrameContext {
            at: AddressContext::of(sample),
            epoch: state.epoch,
        };
        block.samples += 1;
        let out = &mut block.text;
        out.push(b',');
        push_line(out, 2);
        out.push(b'{');
        // As in perf's JSON, a missing time is -1.
        let time = sample.wire.time.map_or(-1, |time| self.shifted(time));
        push_number(out, "timestamp", time);
        push_number(out, "pid", sample.pid.cast_signed().into());
        push_number(out, "tid", sample.tid.cast_signed().into());
        if self.has_cpu.get(sample.event.0 as usize) == Some(&true) {
            push_number(out, "cpu", sample.cpu.cast_signed().into());
        }
        if let Some(name) = self.event_name(sample) {
            push_key(out, 3, "event");
            out.extend_from_slice(name.as_bytes());
            out.push(b',');
            push_number(out, "period", sample.period.cast_signed());
        }
        push_key(out, 3, "comm");
        push_string(out, world.comm(state.comm_at));
        out.push(b',');
        push_key(out, 3, "callchain");
        out.push(b'[');
        match sample.wire.callchain {
            Some(recorded) => {
                let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
                let chain = unwound.unwrap_or(recorded);
                self.chain(context, chain, &mut scratch.known, out);
            }
            None => {
                let ip = sample.wire.ip.unwrap_or_default();
                let frame = self.resolver.locate(context.at, sample.cpu_mode(), ip);
                self.push_frame(&frame, out);
            }
        }
        push_line(out, 3);
        out.push(b']');
        self.fields(sample, &mut scratch.value, out);
        push_line(out, 2);
        out.push(b'}');
    }
}
