//! Samples and other records as arguments of a script's functions, in blocks: each block has the calls for consecutive records.

use std::sync::{Arc, Mutex, PoisonError};

use rperf_lines::{BranchFlags, LineBuilder, SourceFiles};
use rperf_replay::{DsoId, EventIndex, NonSampleRecord, Render, Sample, ThreadCache, World};
use rperf_resolve::{
    AddressContext, Frame, Resolver, SampleCriteria, SourceLine, StackOptions, StackScratch,
    StackSummary, UserStacks, chain,
};
use rperf_wire::{CpuMode, Endian, RecordKind, Regs, SampleType};
use rustc_hash::FxHashMap;

use crate::calls::{CallField, CallKind, EventCall, ScriptCalls};
use crate::columns::ArgumentSample;
use crate::database::{DatabaseExporter, DatabaseItem, ExportedSample, TaskIds, exported_record};
use crate::encoded_calls::EncodedCalls;
use crate::language::ScriptLanguage;
use crate::marshal::MarshalWriter;
use crate::perl::{PerlSample, PerlWriter};
use crate::records::write_record;
use crate::sample_dict::NO_DATA_SOURCE;

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
pub type RegisterFormatter = Box<dyn Fn(&Regs<'_>) -> String + Sync>;

/// Encodes the samples and other records of a recording.
pub struct EventEncoder<'r, 'w> {
    /// Resolves addresses.
    pub resolver: &'r Resolver<'w>,
    pub(crate) lines: LineBuilder<'r, 'w>,
    stacks: UserStacks<'r, 'w>,
    pub(crate) calls: &'r ScriptCalls,
    filter: &'r SampleCriteria,
    pub(crate) endian: Endian,
    max_stack: usize,
    pub(crate) inlines: Option<bool>,
    /// The end of the last symbol of each kernel (of the host or a guest), determined when first needed. Scripts get it as the
    /// end of the kernel's mapping if the recorded end is lower.
    pub(crate) ends_of_kernels: Mutex<FxHashMap<DsoId, u64>>,
    /// The source files for `perf_sample_srccode`.
    sources: &'r SourceFiles<'r>,
    /// Build-ids of files, as text.
    build_ids: Mutex<FxHashMap<DsoId, Arc<str>>>,
    /// Formats registers as perf does.
    pub(crate) registers: RegisterFormatter,
    /// The event of the branches of a decoded hardware trace; `None` if no trace is decoded.
    decoded_event: Option<EventIndex>,
}

/// A worker's caches.
#[derive(Default)]
pub struct EncoderScratch {
    recent: ThreadCache,
    unwinding: StackScratch,
    pub(crate) frames: Vec<Frame>,
}

/// The encoded samples and other records of a block.
#[derive(Debug, Default)]
pub struct EventBlock {
    calls: EncodedCalls,
    /// The calls of a script in Perl, for which `calls` is not used.
    pub(crate) perl: PerlWriter,
    /// The items for a script that exports to a database. They are sent before `calls`, which has only calls after the last item.
    items: Vec<DatabaseItem>,
}

impl EventBlock {
    /// Passes the encoded calls to `send`, and returns what `send` returns: whether the interpreter still reads.
    /// `exporter` is given for a script that exports to a database.
    pub fn deliver(
        &mut self,
        encoder: &EventEncoder<'_, '_>,
        exporter: Option<&mut DatabaseExporter>,
        mut send: impl FnMut(&[u8]) -> bool,
    ) -> bool {
        if !self.perl.bytes().is_empty() {
            return send(self.perl.bytes());
        }
        if let Some(exporter) = exporter {
            let items = std::mem::take(&mut self.items);
            if !exporter.deliver(items, encoder, &mut send) {
                return false;
            }
        }
        self.calls.bytes().is_none_or(send)
    }

    /// Adds an item for a database, after the calls so far.
    fn add(&mut self, item: DatabaseItem) {
        if !self.calls.is_empty() {
            let calls = std::mem::take(&mut self.calls);
            self.items.push(DatabaseItem::Calls(Box::new(calls)));
        }
        self.items.push(item);
    }

    fn clear(&mut self) {
        self.calls.clear();
        self.perl.clear();
        self.items.clear();
    }
}

/// The options for encoding samples.
pub struct EncoderOptions<'r> {
    /// The criteria of the samples that are encoded.
    pub filter: &'r SampleCriteria,
    /// Byte order of the recording.
    pub endian: Endian,
    /// Maximum number of frames that are read of a callchain.
    pub max_stack: usize,
    /// The options for unwinding user stacks.
    pub stacks: StackOptions,
    /// Whether callchains include inlined functions; if not given, those of events with stack copies do.
    pub inlines: Option<bool>,
    /// Whether kernel modules are shown by path.
    pub kernel_paths: bool,
    /// The source files for `perf_sample_srccode`.
    pub sources: &'r SourceFiles<'r>,
    /// Formats registers as perf does.
    pub registers: RegisterFormatter,
    /// The event whose samples are the branches of a decoded hardware trace; `None` if no trace is decoded.
    pub decoded_event: Option<EventIndex>,
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
            ends_of_kernels: Mutex::default(),
            sources: options.sources,
            build_ids: Mutex::default(),
            registers: options.registers,
            decoded_event: options.decoded_event,
        }
    }

    /// The kind of branch in a sample of a decoded trace; no flags for other samples.
    pub(crate) fn branch_flags(&self, sample: &Sample<'_>) -> BranchFlags {
        match self.is_decoded(sample) {
            true => self.lines.branch_flags(sample),
            false => BranchFlags::default(),
        }
    }

    /// Whether a sample is from a decoded trace. As in perf, missing values of such samples are passed as 0.
    fn is_decoded(&self, sample: &Sample<'_>) -> bool {
        self.decoded_event == Some(sample.event)
    }

    /// The time of a sample in nanoseconds. If it is unknown: 0 in a decoded trace, otherwise `u64::MAX`.
    pub(crate) fn time(&self, sample: &Sample<'_>) -> u64 {
        let unknown = || if self.is_decoded(sample) { 0 } else { u64::MAX };
        sample.wire.time.unwrap_or_else(unknown)
    }

    /// The data source of a sample (`PERF_SAMPLE_DATA_SRC`). If it is unknown: 0 in a decoded trace, otherwise
    /// `PERF_MEM_DATA_SRC_NONE`.
    pub(crate) fn data_source(&self, sample: &Sample<'_>) -> u64 {
        let unknown = || match self.is_decoded(sample) {
            true => 0,
            false => NO_DATA_SOURCE,
        };
        sample.wire.data_src.unwrap_or_else(unknown)
    }

    /// The results of unwinding user stacks so far.
    #[must_use]
    pub fn stack_summary(&self) -> StackSummary {
        self.stacks.summary()
    }

    /// The build-id of an object in hexadecimal digits; empty if it is unknown.
    pub(crate) fn build_id(&self, dso: DsoId) -> Arc<str> {
        let mut build_ids = self
            .build_ids
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let text = build_ids.entry(dso).or_insert_with(|| {
            let build_id = self.resolver.build_id(dso);
            build_id
                .map_or_else(String::new, |id| id.to_string())
                .into()
        });
        Arc::clone(text)
    }

    /// Resolves the callchain of a sample into `scratch.frames`, which must be empty.
    fn resolve_chain(&self, sample: &Sample<'_>, scratch: &mut EncoderScratch) {
        let unwound = self.stacks.chain(sample, &mut scratch.unwinding);
        let Some(chain) = unwound.or(sample.wire.callchain) else {
            return;
        };
        let at = AddressContext::of(sample);
        let frames = &mut scratch.frames;
        let is_valid = chain::walk(chain, self.max_stack, |mode, ip| {
            frames.push(self.resolver.locate(at, mode, ip));
        });
        if !is_valid {
            frames.clear();
        }
    }

    /// Writes the values that the functions of `perf_trace_context` return: three common fields of the tracepoint, the
    /// instruction, the source file with its line, and these with the source text. Values that the script does not use are
    /// `None`.
    fn context(&self, call: &EventCall, sample: &Sample<'_>, writer: &mut MarshalWriter) {
        let used = self.calls.context;
        let raw = sample.wire.raw.unwrap_or_default();
        writer.tuple(6);
        for reader in &call.context_readers {
            match reader.and_then(|reader| reader.i64(raw)) {
                Some(value) if used.common => writer.signed(value),
                _ => writer.none(),
            }
        }
        let locate = || {
            let ip = sample.wire.ip.unwrap_or_default();
            let at = AddressContext::of(sample);
            self.resolver.locate(at, sample.cpu_mode(), ip)
        };
        let insn = used.insn.then(|| self.lines.insn(&locate(), sample.order));
        match insn.flatten() {
            Some(insn) => writer.byte_string(&insn.bytes),
            None => writer.none(),
        }
        let frame = used.source.then(locate);
        let line = frame.and_then(|frame| {
            let line = self.resolver.source_line(&frame)?;
            // As in perf: code with neither a function nor a line has no values, code with only a function has an empty path.
            (line != SourceLine::UNKNOWN || frame.symbol.is_some()).then_some(line)
        });
        let Some(line) = line else {
            writer.none();
            return writer.none();
        };
        let path = match line {
            SourceLine::UNKNOWN => "",
            line => line.path,
        };
        // The second tuple ends with the source text, which is written after both.
        for size in [2, 3] {
            writer.tuple(size);
            writer.text(path.as_bytes());
            writer.unsigned(line.line.into());
        }
        let text = used.source_text.then(|| self.sources.line(line)).flatten();
        match text {
            Some(text) => writer.text(text.bytes()),
            None => writer.none(),
        }
    }

    /// The item of a sample for a database.
    fn exported_sample(
        &self,
        call: &EventCall,
        event: usize,
        sample: &Sample<'_>,
        frames: &[Frame],
    ) -> ExportedSample {
        let wire = &sample.wire;
        let at = AddressContext::of(sample);
        let mode = sample.cpu_mode();
        let is_host = matches!(mode, CpuMode::Kernel | CpuMode::User);
        let addr = wire.addr.unwrap_or_default();
        let data = || self.resolver.locate_data(at, mode, addr);
        let weight = wire.weight.unwrap_or_default();
        ExportedSample {
            event,
            task: TaskIds {
                pid: sample.pid,
                tid: sample.tid,
            },
            cpu: sample.cpu,
            time: self.time(sample),
            frame: is_host.then(|| self.resolver.locate(at, mode, wire.ip.unwrap_or_default())),
            data: (is_host && call.symbolizes_data).then(data),
            callers: self.callers(call, frames),
            addr,
            period: sample.period,
            weight: match call.has_weight_parts {
                true => weight & u64::from(u32::MAX),
                false => weight,
            },
            transaction: wire.transaction.unwrap_or_default(),
            data_source: self.data_source(sample),
            branch: self.branch_flags(sample),
            synthesized: call.synthesized.map(|config| {
                let raw = wire.raw.unwrap_or_default();
                (config, raw.to_vec())
            }),
        }
    }

    /// The frames of a callchain, the outermost one first, with inlined functions if these are requested.
    fn callers(&self, call: &EventCall, frames: &[Frame]) -> Vec<Frame> {
        let inlines = self.inlines.unwrap_or(call.has_stack_copies);
        let mut callers = Vec::with_capacity(frames.len());
        let mut expanded = Vec::new();
        for frame in frames {
            if !inlines || frame.symbol.is_none() {
                callers.push(*frame);
                continue;
            }
            expanded.clear();
            self.resolver.expand(frame, &mut expanded);
            callers.extend(expanded.iter().map(|function| function.frame));
        }
        callers.reverse();
        callers
    }

    /// Writes a tuple: the values for `perf_trace_context` (by [`Self::context`]), if the script uses any, then the arguments of
    /// a call. The event's name and the context object, the first arguments of [`CallKind::Handler`] and
    /// [`CallKind::Unhandled`], are not among them: the shim, rperf's program in the interpreter, adds them. Not
    /// called for [`CallKind::Database`].
    fn arguments(&self, call: &EventCall, input: &ArgumentSample<'_>, writer: &mut MarshalWriter) {
        let ArgumentSample {
            sample,
            comm,
            frames,
        } = *input;
        let has_context = self.calls.context.any();
        let values = match call.kind {
            CallKind::Handler => COMMON.len() + call.fields.len(),
            CallKind::Unhandled => 1,
            CallKind::Direct | CallKind::Database => 0,
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
            CallKind::Direct | CallKind::Database => {}
        }
        if call.has_sample_dict {
            self.sample_dict(call, sample, comm, frames, writer);
        }
    }

    /// Writes the values that all tracepoints have, then those of the fields; for `trace_unhandled`, each after its key.
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
            if !is_handler {
                writer.text(name.as_bytes());
            } else if !call.reads_common(index) {
                writer.none();
                continue;
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
pub(crate) fn write_field(field: &CallField, raw: &[u8], writer: &mut MarshalWriter) {
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
/// are printable or white space.
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
        &self.calls.record_kinds
    }

    fn record(
        &self,
        _world: &World,
        record: &NonSampleRecord<'_>,
        _scratch: &mut EncoderScratch,
        block: &mut EventBlock,
    ) {
        if self.calls.database.is_some()
            && let Some(item) = exported_record(record, self.endian)
        {
            return block.add(item);
        }
        let mut records = self.calls.records.iter();
        let Some(index) = records.position(|call| call.kind == record.raw.kind) else {
            return;
        };
        let mut arguments = MarshalWriter::default();
        if write_record(record, self.endian, &mut arguments) {
            // Numbers of calls: first one for each event of the recording, then one for each of `records`.
            let number = self.calls.events.len() + index;
            block.calls.begin(number).append(&arguments);
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
        let state = scratch.recent.state_at(world, sample.who(), sample.order);
        let comm = world.comm(state.comm_at);
        // Frames of an earlier sample must not remain: a database exports them as the callchain.
        scratch.frames.clear();
        if call.reads_callchain() {
            self.resolve_chain(sample, scratch);
        }
        let frames: &[Frame] = &scratch.frames;
        if call.kind == CallKind::Database {
            let exported = self.exported_sample(call, number, sample, frames);
            return block.add(DatabaseItem::Sample(Box::new(exported)));
        }
        if self.calls.language == ScriptLanguage::Perl {
            let perl_sample = PerlSample {
                call,
                number,
                sample,
                comm,
                frames,
            };
            return self.perl_calls(&perl_sample, &mut block.perl);
        }
        let input = ArgumentSample {
            sample,
            comm,
            frames,
        };
        match &call.columns {
            // One column for each argument of the block's calls, which Python reads faster than a tuple for each call.
            Some(columns) => {
                let mut to = block.calls.begin_in_columns(number, columns.len());
                self.columns(call, columns, &input, &mut to);
            }
            None => self.arguments(call, &input, block.calls.begin(number)),
        }
    }
}
