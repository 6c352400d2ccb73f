//! Runs a native script (one that rperf computes itself, without an interpreter) on a recording or a stream.

use std::ffi::OsString;
use std::io::Write as _;
use std::time::{Duration, Instant};

use clap::ArgMatches;
use rperf_analysis::trace_scripts::{FieldBlock, FieldDecoder, ScriptSample};
use rperf_lines::FieldSelection;
use rperf_perfdata::Metadata;
use rperf_replay::{EventIndex, FoldControl, Machine, Order, Stream, ThreadCache};
use rperf_resolve::{AddressContext, LoadedObjects, Resolver};
use rperf_sys::Signals;
use rperf_syscalls::{Abi, SyscallTable};
use rperf_view::trace_scripts::write_other_events;
use rperf_wire::CpuMode;

use super::native::{NativeTable, ScriptContext};
use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::conclude_stream;
use crate::cli::input::{Input, OpenedInput};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::built_in_scripts::NativeScript;
use crate::cli::stream::RecordingStream;
use rperf_input::DiskFiles;

/// A running script.
struct NativeRun<'a> {
    context: &'a Context,
    settings: &'a ScriptSettings,
    script: NativeScript,
    table: NativeTable,
    /// By event index: the number of samples of an event that the script does not use. Empty unless the script lists these
    /// events.
    others: Vec<u64>,
}

/// Prints the table of a script, with these arguments, for the recording of `-i`.
///
/// # Errors
///
/// The script does not take these arguments; the recording cannot be read, or has none of the script's tracepoints. Missing
/// tracepoints are no error for a stream whose table is refreshed.
pub(super) fn report(
    script: NativeScript,
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let mut table = NativeTable::new(script, words)?;
    table.prepare(context)?;
    let settings = ScriptSettings::new(FieldSelection::default(), matches, context)?;
    let mut run = NativeRun {
        context,
        settings: &settings,
        script,
        table,
        others: Vec::new(),
    };
    match OpenedInput::open(matches, context)? {
        OpenedInput::Whole(input) => {
            run.begin()?;
            run.print_recording(&input)?;
        }
        OpenedInput::Stream(stream) => {
            // Ctrl-C stops the recorder that writes the stream; this process blocks the signal and reads the stream to its end.
            // The signal must be blocked before threads are started, which inherit the mask.
            let _signals = Signals::block(&[libc::SIGINT]).ok();
            match run.table.interval() {
                Some(interval) => run.print_stream(stream, Duration::from_secs(interval))?,
                None => {
                    run.begin()?;
                    run.print_recording(&stream.spool(context)?)?;
                }
            }
        }
    }
    Ok(ExitStatus::Ok)
}

impl NativeRun<'_> {
    /// Writes the text before the first event. Tables that are refreshed have none.
    fn begin(&self) -> Result<(), CliError> {
        let mut out = self.context.stdout();
        self.table.begin(&mut out)?;
        Ok(out.flush()?)
    }

    /// Prints the table of a complete recording.
    fn print_recording(&mut self, input: &Input) -> Result<(), CliError> {
        let settings = self.settings;
        let data = input.parse(self.context)?;
        let analysis = Analysis::open(input, &data, settings.jobs, self.context)?;
        let recording = analysis.metadata();
        let filter = settings.filter(recording)?;
        let resolver = analysis.resolver(&settings.symbols);
        let events = self.table.events();
        let counts_others = self.table.counts_others();
        let decoder = FieldDecoder::new(recording, events, counts_others, &filter, &resolver);
        let decoder = decoder.map_err(|error| CliError::failure(255, error))?;
        if !decoder.has_events() {
            return Err(self.no_events_error(&input.path.display().to_string()));
        }
        let world = analysis.replay.world();
        // A block has the decoded fields of consecutive samples. The World (the processes and mappings at a time) has the
        // names of their tasks.
        let mut take = |block: &mut FieldBlock| {
            block.deliver(world, |sample| self.add(sample));
            FoldControl::Continue
        };
        analysis
            .replay
            .ordered(analysis.jobs, &decoder, &mut take)?;
        analysis.end_progress();
        self.write(recording, &resolver)?;
        analysis.conclude()
    }

    fn no_events_error(&self, path: &str) -> CliError {
        let events = self.table.events().iter().map(|event| event.tracepoint);
        let events: Vec<&str> = events.collect();
        let message = format!("{path}: the recording has no {}", events.join(", "));
        let (program, name) = (self.context.program, self.script.name());
        CliError::message(255, message)
            .hint(format!("record with '{program} script record {name}'"))
    }

    /// Adds a sample to the table, or to the counts of other events.
    fn add(&mut self, sample: &ScriptSample<'_>) {
        if sample.kind.is_some() {
            return self.table.sample(sample);
        }
        let EventIndex(index) = sample.event;
        let index = index as usize;
        if self.others.len() <= index {
            self.others.resize(index + 1, 0);
        }
        if let Some(count) = self.others.get_mut(index) {
            *count += 1;
        }
    }

    /// Writes the table, and the counts of other events.
    fn write(&mut self, recording: Metadata<'_>, resolver: &Resolver<'_>) -> Result<(), CliError> {
        let arch = recording.features.arch();
        let abi = arch.as_deref().map_or_else(Abi::native, Abi::of_machine);
        let table = abi.map(SyscallTable::of);
        let syscall = |number: i64| {
            let id = u32::try_from(number).ok();
            let known = id.zip(table).and_then(|(id, table)| table.get(id));
            known.map_or_else(|| number.to_string(), |known| known.name.to_string())
        };
        let function = |address: u64| {
            // Counts do not have times: the address is resolved as at the end of the recording.
            let at = AddressContext {
                machine: Machine::Host,
                pid: 0,
                order: Order::MAX,
            };
            let frame = resolver.locate(at, CpuMode::Kernel, address);
            let symbol = frame.symbol.and_then(|id| resolver.symbol(id));
            match (symbol, frame.symbol) {
                (Some(symbol), Some(id)) => (
                    resolver.symbol_name(id).to_owned(),
                    frame.address.wrapping_sub(symbol.start),
                ),
                _ => (format!("{address:#x}"), 0),
            }
        };
        let context = ScriptContext {
            syscall: &syscall,
            function: &function,
            csi: self.context.output.csi(),
        };
        let mut out = self.context.stdout();
        self.table.write(&mut out, &context)?;
        // The scripts of perf that list other events are in Perl, where the names of tracepoints are `system::event`.
        let named = recording.events.iter().zip(&self.others);
        let counted = named.filter(|(_, count)| **count > 0);
        let mut others: Vec<(String, u64)> = counted
            .map(|(event, count)| (event.name.replacen(':', "::", 1), *count))
            .collect();
        others.sort();
        write_other_events(&mut out, &others)?;
        Ok(out.flush()?)
    }

    /// Prints the table of a stream whenever samples arrive and the interval `every` has passed since the last table, and at the
    /// end of the stream.
    fn print_stream(&mut self, input: RecordingStream, every: Duration) -> Result<(), CliError> {
        let settings = self.settings;
        let path = input.path.clone();
        let mut stream = Stream::new(input.reader()?);
        // One for each worker, kept for the whole stream.
        let mut scratches: Vec<ThreadCache> = Vec::new();
        scratches.resize_with(settings.jobs.get(), ThreadCache::default);
        // What one call of `advance` reads has its own resolver, because the resolver borrows the stream that `advance`
        // changes. The loaded objects are passed from one resolver to the next.
        let mut loaded: Option<LoadedObjects> = None;
        let mut next_table = Instant::now() + every;
        loop {
            let more = stream.advance()?;
            let recording = stream.head().metadata();
            let resolver = match loaded.take() {
                Some(loaded) => Resolver::resume(stream.world(), &DiskFiles, loaded),
                None => {
                    let symbols = &settings.symbols;
                    symbols.resolver(self.context, stream.world(), stream.head().features())
                }
            };
            let filter = settings.filter(recording)?;
            let (events, counts_others) = (self.table.events(), self.table.counts_others());
            let decoder = FieldDecoder::new(recording, events, counts_others, &filter, &resolver);
            let decoder = decoder.map_err(|error| CliError::failure(255, error))?;
            let mut take = |block: &mut FieldBlock| {
                block.deliver(stream.world(), |sample| self.add(sample));
                FoldControl::Continue
            };
            stream.deliver(&decoder, &mut scratches, &mut take);
            drop(decoder);
            if !more || Instant::now() >= next_table {
                self.write(recording, &resolver)?;
                next_table = Instant::now() + every;
            }
            loaded = Some(resolver.into_loaded());
            if !more {
                break;
            }
        }
        conclude_stream(&path, &stream.diagnostics(), self.context)
    }
}
