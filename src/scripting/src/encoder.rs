//! Samples as arguments of a script's functions, in blocks.

use std::sync::OnceLock;

use rperf_lines::LineBuilder;
use rperf_replay::{EventIndex, NonSampleRecord, Render, Sample, ThreadCache, World};
use rperf_resolve::{
    AddressContext, Frame, Resolver, SampleCriteria, StackOptions, StackScratch, StackSummary,
    UserStacks, chain,
};
use rperf_wire::{Endian, RecordKind, Regs, SampleType};

use crate::calls::{CallField, CallKind, EventCall, ScriptCalls};
use crate::language::ScriptLanguage;
use crate::marshal::MarshalWriter;
use crate::perl::{PerlSample, PerlWriter};
use crate::records::write_record;

/// Keys of values that all tracepoints have.
const COMMON: [&str; 6] = [
    "common_cpu",
    "common_s",
    "common_ns",
    "common_pid",
    "common_comm",
    "common_callchain",
];
/// Nanoseconds in a second.
pub(crate) const NANOSECONDS: u64 = 1_000_000_000;

/// A function that formats a sample's registers.
pub type RegisterText = Box<dyn Fn(&Regs<'_>) -> String + Sync>;

/// Encodes the samples of a recording.
pub struct EventEncoder<'r, 'w> {
    /// Names addresses.
    pub resolver: &'r Resolver<'w>,
    pub(crate) lines: LineBuilder<'r, 'w>,
    stacks: UserStacks<'r, 'w>,
    pub(crate) calls: &'r ScriptCalls,
    filter: &'r SampleCriteria,
    pub(crate) endian: Endian,
    max_stack: usize,
    pub(crate) inlines: Option<bool>,
    pub(crate) end_of_kernel: OnceLock<u64>,
    /// Formats registers as perf does.
    pub(crate) registers: RegisterText,
}

/// A worker's caches.
#[derive(Default)]
pub struct EncoderScratch {
    recent: ThreadCache,
    unwinding: StackScratch,
    pub(crate) frames: Vec<Frame>,
}

/// The events of a block.
#[derive(Debug, Default)]
pub struct EventBlock {
    writer: MarshalWriter,
    start: usize,
    count: usize,
    /// The calls of a script in Perl, for which `writer` is not used.
    pub(crate) perl: PerlWriter,
}

impl EventBlock {
    /// The encoded calls; `None` if there are none.
    pub fn bytes(&mut self) -> Option<&[u8]> {
        if !self.perl.bytes().is_empty() {
            return Some(self.perl.bytes());
        }
        self.writer.set_length(self.start, self.count);
        (self.count > 0).then(|| self.writer.bytes())
    }

    /// Begins a call.
    fn begin(&mut self, number: usize) -> &mut MarshalWriter {
        if self.count == 0 {
            self.start = self.writer.open_list();
        }
        self.count += 1;
        self.writer.tuple(2);
        self.writer.unsigned(number as u64);
        &mut self.writer
    }

    fn clear(&mut self) {
        self.writer.clear();
        self.perl.clear();
        self.count = 0;
    }
}

/// How samples are read.
pub struct EncoderOptions<'r> {
    /// Samples that are encoded.
    pub filter: &'r SampleCriteria,
    /// Byte order of the recording.
    pub endian: Endian,
    /// Maximum number of frames that are read of a callchain.
    pub max_stack: usize,
    /// How user stacks are unwound.
    pub stacks: StackOptions,
    /// Whether callchains include inlined functions; if not given, those unwound from stack copies do.
    pub inlines: Option<bool>,
    /// Whether kernel modules are shown by path.
    pub kernel_paths: bool,
    /// Formats registers as perf does.
    pub registers: RegisterText,
}

impl<'r, 'w> EventEncoder<'r, 'w> {
    /// Creates an encoder of `calls`.
    #[must_use]
    pub fn new(
        resolver: &'r Resolver<'w>,
        calls: &'r ScriptCalls,
        options: EncoderOptions<'r>,
    ) -> Self {
        Self {
            resolver,
            lines: LineBuilder::new(resolver).with_kernel_paths(options.kernel_paths),
            stacks: UserStacks::new(resolver, options.stacks),
            calls,
            filter: options.filter,
            endian: options.endian,
            max_stack: options.max_stack,
            inlines: options.inlines,
            end_of_kernel: OnceLock::new(),
            registers: options.registers,
        }
    }

    /// The results of unwinding user stacks so far.
    #[must_use]
    pub fn stacks(&self) -> StackSummary {
        self.stacks.summary()
    }

    /// Resolves the callchain of a sample into the scratch.
    fn resolve_chain(&self, sample: &Sample<'_>, scratch: &mut EncoderScratch) {
        scratch.frames.clear();
        let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
        let Some(chain) = unwound.or(sample.wire.callchain) else {
            return;
        };
        let at = AddressContext::of(sample);
        let frames = &mut scratch.frames;
        let is_complete = chain::walk(chain, self.max_stack, |mode, ip| {
            frames.push(self.resolver.locate(at, mode, ip));
        });
        if !is_complete {
            frames.clear();
        }
    }

    /// Writes what the functions of `perf_trace_context` return: three common fields of the tracepoint, the
    /// instruction, and the source file with its line.
    fn context(&self, call: &EventCall, sample: &Sample<'_>, writer: &mut MarshalWriter) {
        let used = self.calls.context;
        let raw = sample.wire.raw.unwrap_or_default();
        writer.tuple(6);
        for reader in &call.flags {
            match reader.and_then(|reader| reader.i64(raw)) {
                Some(value) if used.common => writer.signed(value),
                _ => writer.none(),
            }
        }
        let frame = || {
            let ip = sample.wire.ip.unwrap_or_default();
            let at = AddressContext::of(sample);
            self.resolver.locate(at, sample.cpu_mode(), ip)
        };
        let insn = used.insn.then(|| self.lines.insn(&frame(), sample.order));
        match insn.flatten() {
            Some(insn) => writer.byte_string(&insn.bytes),
            None => writer.none(),
        }
        let frame = used.source.then(frame);
        match frame.and_then(|frame| self.resolver.source_line(&frame)) {
            Some(line) => {
                let file = line.path.as_bytes();
                writer.tuple(2);
                writer.text(file);
                writer.unsigned(line.line.into());
                writer.tuple(3);
                writer.text(file);
                writer.unsigned(line.line.into());
                writer.none();
            }
            None => {
                writer.none();
                writer.none();
            }
        }
    }

    fn tracepoint(
        &self,
        call: &EventCall,
        sample: &Sample<'_>,
        comm: &str,
        frames: &[Frame],
        writer: &mut MarshalWriter,
    ) {
        let raw = sample.wire.raw.unwrap_or_default();
        let time = sample.wire.time.unwrap_or(u64::MAX);
        let pid = call.common_pid.and_then(|reader| reader.i64(raw));
        let is_handler = call.kind == CallKind::Handler;
        // Arguments 0 and 1 of a handler are the event's name and the context.
        for (index, name) in (2..).zip(COMMON) {
            match (is_handler, call.reads_common(index)) {
                (true, false) => {
                    writer.none();
                    continue;
                }
                (true, true) => {}
                (false, _) => writer.text(name.as_bytes()),
            }
            match name {
                "common_cpu" => writer.signed(sample.cpu.cast_signed().into()),
                "common_s" => writer.unsigned(time / NANOSECONDS),
                "common_ns" => writer.unsigned(time % NANOSECONDS),
                "common_pid" => writer.signed(pid.unwrap_or_default()),
                "common_comm" => writer.text(comm.as_bytes()),
                _ => self.callchain(call, frames, writer),
            }
        }
        for field in &call.fields {
            if !is_handler {
                writer.text(field.name.as_bytes());
            }
            match field.is_read {
                true => write_field(field, raw, writer),
                false => writer.none(),
            }
        }
    }
}

/// Writes the value of a field: numbers shorter than 64 bits are zero-extended even if they are signed, as in perf.
fn write_field(field: &CallField, raw: &[u8], writer: &mut MarshalWriter) {
    if field.is_array {
        let bytes = field.reader.bytes(raw).unwrap_or_default();
        return match printable(bytes).filter(|_| field.reader.is_text()) {
            Some(text) => writer.text(text),
            None => writer.byte_string(bytes),
        };
    }
    let reader = &field.reader;
    match field.size {
        8 => match reader.i64(raw) {
            Some(value) if value < 0 && reader.is_signed() => writer.signed(value),
            _ => writer.unsigned(reader.u64(raw).unwrap_or_default()),
        },
        _ => writer.unsigned(reader.u64(raw).unwrap_or_default()),
    }
}

/// The text in an array, if perf treats the array as text: it ends with a NUL, and all characters before the first NUL
/// are printable.
fn printable(bytes: &[u8]) -> Option<&[u8]> {
    let (0, before) = bytes.split_last().map(|(last, before)| (*last, before))? else {
        return None;
    };
    let end = before.iter().position(|&byte| byte == 0);
    let text = before.get(..end.unwrap_or(before.len()))?;
    let is_text = |byte: &u8| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\t'..=b'\r');
    text.iter().all(is_text).then_some(text)
}

impl Render for EventEncoder<'_, '_> {
    type Out = EventBlock;
    type Scratch = EncoderScratch;

    fn reuse(&self, block: &mut EventBlock) {
        block.clear();
    }

    fn fields(&self) -> SampleType {
        self.calls.sample_fields()
    }

    fn reads(&self, event: EventIndex) -> bool {
        let call = self.calls.events.get(event.0 as usize);
        call.is_some_and(Option::is_some)
    }

    fn wanted(&self) -> &[RecordKind] {
        &self.calls.kinds
    }

    fn record(
        &self,
        _world: &World,
        record: &NonSampleRecord<'_>,
        _scratch: &mut EncoderScratch,
        block: &mut EventBlock,
    ) {
        let mut records = self.calls.records.iter();
        let Some(index) = records.position(|call| call.kind == record.raw.kind) else {
            return;
        };
        let mut arguments = MarshalWriter::default();
        if write_record(record, self.endian, &mut arguments) {
            let number = self.calls.events.len() + index;
            block.begin(number).append(&arguments);
        }
    }

    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut EncoderScratch,
        block: &mut EventBlock,
    ) {
        let number = sample.event.0 as usize;
        let Some(Some(call)) = self.calls.events.get(number) else {
            return;
        };
        if !self.filter.accepts(sample, self.resolver) {
            return;
        }
        let moment = scratch.recent.moment(world, sample.who(), sample.order);
        let comm = world.comm(moment.comm_at);
        if call.reads_callchain() {
            self.resolve_chain(sample, scratch);
        }
        let frames: &[Frame] = &scratch.frames;
        if self.calls.language == ScriptLanguage::Perl {
            let of = PerlSample {
                call,
                number,
                sample,
                comm,
                frames,
            };
            return self.perl_calls(&of, &mut block.perl);
        }
        let writer = block.begin(number);
        let has_context = self.calls.context.any();
        let values = match call.kind {
            CallKind::Handler => 6 + call.fields.len(),
            CallKind::Unhandled => 1,
            CallKind::Direct => 0,
        };
        writer.tuple(values + usize::from(has_context) + usize::from(call.has_sample_dict));
        if has_context {
            self.context(call, sample, writer);
        }
        match call.kind {
            CallKind::Handler => self.tracepoint(call, sample, comm, frames, writer),
            CallKind::Unhandled => {
                writer.dict();
                self.tracepoint(call, sample, comm, frames, writer);
                writer.end_dict();
            }
            CallKind::Direct => {}
        }
        if call.has_sample_dict {
            self.sample_dict(call, sample, comm, frames, writer);
        }
    }
}
