//! `script -s FILE`: samples are passed to the functions of a script. Its interpreter is a child process that runs the shim, a
//! program that loads the script and calls its functions.

use std::io::{BufRead as _, BufReader};
use std::os::unix::ffi::OsStrExt as _;

use clap::ArgMatches;
use rperf_lines::{FieldSelection, SourceFiles};
use rperf_perfdata::{EventDesc, Metadata};
use rperf_replay::{EventIndex, FoldControl};
use rperf_resolve::SampleCriteria;
use rperf_scripting::{
    EncoderOptions, EventBlock, EventEncoder, MarshalWriter, PerlWriter, ScriptCalls,
    ScriptLanguage, python_modules,
};
use rperf_sys::Signals;
use rperf_tracepoint::{Formats, ValueNames};
use rperf_view::script::Architecture;
use rperf_wire::{EventType, Regs};

use super::counts;
use super::counts_script::ScriptCounts;
use super::interpreter::Interpreter;
use super::language::{ScriptFile, perl, python};
use super::settings::ScriptSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::conclude;
use crate::cli::input::{Input, OpenedInput};
use crate::cli::itrace;
use crate::cli::shared::analysis::Analysis;
use crate::cli::stack_folding::{
    can_complete_callchains, stack_copy_size, stack_options, warn_of_truncated,
};
use rperf_input::DiskFiles;

/// Runs the script of `-s`; `None` without it.
///
/// # Errors
///
/// Those of [`ScriptFile::new`] and [`run_file`].
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Option<ExitStatus>, CliError> {
    match ScriptFile::new(matches)? {
        Some(script) => run_file(&script, matches, context).map(Some),
        None => Ok(None),
    }
}

/// Passes the samples or counts of a recording to a script.
///
/// # Errors
///
/// The options do not fit the recording or the script; the recording or the script cannot be read; the interpreter cannot be
/// started, or its answer is invalid; or the script exports calls of a decoded trace.
pub(super) fn run_file(
    script: &ScriptFile,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    // The fields of text output (`-F`) do not apply to scripts.
    let settings = ScriptSettings::new(FieldSelection::default(), matches, context)?;
    // Blocked before threads are started, so that they inherit the mask: after Ctrl-C, this process still waits for the script.
    let _signals = Signals::block(&[libc::SIGINT]).ok();
    let reading = ScriptReading {
        context,
        settings: &settings,
        script,
    };
    match OpenedInput::open(matches, context)? {
        OpenedInput::Stream(stream) if !matches.contains_id("itrace") => {
            reading.run_stream(matches, stream)
        }
        // A hardware trace can only be decoded as a whole.
        opened => reading.run_decoded(matches, &opened.complete(context)?),
    }
}

/// A script and the settings for reading the recording that is passed to it.
pub(super) struct ScriptReading<'a> {
    pub(super) context: &'a Context,
    pub(super) settings: &'a ScriptSettings,
    script: &'a ScriptFile,
}

impl ScriptReading<'_> {
    /// Passes the samples of a complete recording, with those of its trace if requested.
    fn run_decoded(&self, matches: &ArgMatches, input: &Input) -> Result<ExitStatus, CliError> {
        // The trace is only decoded with `--itrace`.
        let by_default = false;
        let decoded = itrace::decoded(input, matches, by_default, self.context)?;
        let has_trace = decoded.is_some();
        self.run(matches, decoded.as_ref().unwrap_or(input), has_trace)
    }

    /// Passes the samples or counts of a complete recording. `has_trace`: its last event has the branches of a decoded trace.
    fn run(
        &self,
        matches: &ArgMatches,
        input: &Input,
        has_trace: bool,
    ) -> Result<ExitStatus, CliError> {
        let data = input.parse(self.context)?;
        let formats = data.metadata().formats();
        let formats = formats.map_err(|error| CliError::failure(255, error))?;
        let hello = self.hello(&formats, data.events());
        // The script may read standard input, unless the recording is read from there.
        let has_input = input.path.as_os_str() != "-";
        let mut interpreter = self.start(matches, &hello, has_input)?;
        // The interpreter loads the script while this process reads the recording for the first time. The script prints while
        // samples are read, so progress is not shown if the output is a terminal.
        let analysis = Analysis::open_for_rows(input, &data, self.settings.jobs, self.context)?;
        let functions = interpreter.functions()?;
        analysis.end_progress();
        // The script could not be loaded, or has ended the interpreter.
        let Some(functions) = functions else {
            return interpreter.finish();
        };
        // The script exports to a database, with tables of calls and returns.
        if has_trace && functions.database.mode && functions.database.calls {
            let path = self.script.path.display();
            let message = format!(
                "-s {path}: perf_db_export_calls: calls and returns of hardware traces are not exported"
            );
            return Err(CliError::message(255, message));
        }
        // The recording has counts instead of samples, as those of `stat record`.
        if counts::are_counted(data.events()) {
            let mut counts = ScriptCounts::new(functions);
            counts.send_all(
                &data,
                &self.settings.filter(data.metadata())?,
                &mut interpreter,
            );
            let status = interpreter.finish()?;
            let mut diagnostics = analysis.replay.diagnostics();
            diagnostics.bad_records.merge(counts.decode_errors());
            let is_truncated = data.is_truncated();
            conclude(&input.path, is_truncated, &diagnostics, self.context)?;
            return Ok(status);
        }
        let calls = ScriptCalls::new(&functions, data.events(), &formats, data.metadata().endian);
        // False if the interpreter has closed its end, or a signal has arrived.
        if interpreter.send(&calls.description()) {
            self.send_events(&analysis, &calls, &mut interpreter, has_trace)?;
        }
        let status = interpreter.finish()?;
        analysis.conclude()?;
        Ok(status)
    }

    /// Starts the interpreter.
    pub(super) fn start(
        &self,
        matches: &ArgMatches,
        hello: &[u8],
        has_input: bool,
    ) -> Result<Interpreter, CliError> {
        let language = self.script.language;
        let program = match language {
            ScriptLanguage::Python => python(matches, &self.first_line()?, self.context),
            ScriptLanguage::Perl if matches.contains_id("python") => {
                return Err(CliError::usage("--python applies to Python scripts only"));
            }
            ScriptLanguage::Perl => perl(&self.first_line()?),
        };
        Interpreter::start(language, &program, hello, has_input, self.context)
    }

    /// The options for encoding the samples of `recording`.
    pub(super) fn options<'r>(
        &self,
        recording: Metadata<'_>,
        calls: &ScriptCalls,
        filter: &'r SampleCriteria,
        sources: &'r SourceFiles<'r>,
    ) -> EncoderOptions<'r> {
        let unwinds = calls.reads_callchains() && can_complete_callchains(recording.events);
        let max_stack = self.settings.max_stack;
        let arch = recording.features.arch();
        let architecture =
            Architecture::from_machine(arch.as_deref().unwrap_or(std::env::consts::ARCH));
        EncoderOptions {
            filter,
            endian: recording.endian,
            // Unwound stacks are already truncated to the limit.
            max_stack: if unwinds { usize::MAX } else { max_stack },
            stacks: stack_options(recording, unwinds.then_some(max_stack)),
            inlines: self.settings.inlines,
            kernel_paths: self.settings.kernel_paths,
            sources,
            registers: Box::new(move |registers| register_text(registers, architecture)),
            // Set by [`Self::send_events`] if a trace is decoded.
            decoded_event: None,
        }
    }

    fn send_events(
        &self,
        analysis: &Analysis<'_>,
        calls: &ScriptCalls,
        interpreter: &mut Interpreter,
        has_trace: bool,
    ) -> Result<(), CliError> {
        let recording = analysis.metadata();
        let filter = self.settings.filter(recording)?;
        let resolver = analysis.resolver(&self.settings.symbols);
        let sources = SourceFiles::new(&DiskFiles);
        // Decoding adds the event of the branches as the last one.
        let last = recording.events.len().checked_sub(1);
        let last = last.and_then(|last| u32::try_from(last).ok());
        let options = EncoderOptions {
            decoded_event: last.filter(|_| has_trace).map(EventIndex),
            ..self.options(recording, calls, &filter, &sources)
        };
        let encoder = EventEncoder::new(&resolver, calls, options);
        let mut exporter = calls.exporter();
        if let Some(exporter) = &mut exporter
            && !exporter.begin(&mut |bytes| interpreter.send(bytes))
        {
            return Ok(());
        }
        let mut send = |block: &mut EventBlock| {
            let is_sent =
                block.deliver(&encoder, exporter.as_mut(), |bytes| interpreter.send(bytes));
            match is_sent {
                true => FoldControl::Continue,
                false => FoldControl::Stop,
            }
        };
        analysis
            .replay
            .ordered(analysis.jobs, &encoder, &mut send)?;
        warn_of_truncated(
            self.context,
            &encoder.stack_summary(),
            stack_copy_size(recording.events),
        );
        if calls.resolves_addresses() {
            self.settings
                .report_symbol_problems(self.context, &resolver);
        }
        Ok(())
    }

    /// The first line of the script; empty for a built-in script.
    fn first_line(&self) -> Result<Vec<u8>, CliError> {
        if self.script.source.is_some() {
            return Ok(Vec::new());
        }
        let path = self.script.path.display();
        let failed = |error| CliError::message(255, format!("-s {path}: {error}"));
        let file = rperf_safefs::open_regular(&self.script.path).map_err(failed)?;
        let mut line = Vec::new();
        BufReader::new(file)
            .read_until(b'\n', &mut line)
            .map_err(failed)?;
        Ok(line)
    }

    /// The first block for the shim: the data that it needs to load the script.
    pub(super) fn hello(&self, formats: &Formats, events: &[EventDesc]) -> Vec<u8> {
        match self.script.language {
            ScriptLanguage::Python => self.python_hello(formats, events).into_bytes(),
            ScriptLanguage::Perl => self.perl_hello(formats, events),
        }
    }

    fn perl_hello(&self, formats: &Formats, events: &[EventDesc]) -> Vec<u8> {
        let mut to = PerlWriter::default();
        to.string(self.script.path.as_os_str().as_bytes());
        let named = value_names(formats, events, "::");
        // The names of flags, which have a delimiter, then the names of symbols.
        for is_flags in [true, false] {
            let selected = named
                .iter()
                .filter(|(_, _, names)| names.delimiter().is_some() == is_flags);
            to.nested(|to| {
                for (event, field, names) in selected {
                    to.nested(|to| {
                        to.string(event.as_bytes());
                        to.string(field.as_bytes());
                        to.string(names.delimiter().unwrap_or_default().as_bytes());
                        for (value, name) in names.entries() {
                            to.u64(value.cast_unsigned());
                            to.string(name.as_bytes());
                        }
                    });
                }
            });
        }
        for word in &self.script.arguments {
            to.string(word.as_bytes());
        }
        to.bytes().to_vec()
    }

    fn python_hello(&self, formats: &Formats, events: &[EventDesc]) -> MarshalWriter {
        let mut to = MarshalWriter::default();
        to.dict();
        to.text(b"script");
        to.text(self.script.path.as_os_str().as_bytes());
        to.text(b"source");
        match self.script.source {
            Some(source) => to.plain_text(source.as_bytes()),
            None => to.none(),
        }
        to.text(b"arguments");
        to.list(self.script.arguments.len());
        for word in &self.script.arguments {
            to.text(word.as_bytes());
        }
        to.text(b"modules");
        to.dict();
        for (name, source) in python_modules() {
            to.text(name.as_bytes());
            to.text(source.as_bytes());
        }
        to.end_dict();
        // Modules of perf that cannot be imported, with the text of the error.
        to.text(b"refused");
        to.dict();
        to.text(b"SchedGui");
        to.text(b"SchedGui needs a window system: 'sched timehist -M' shows migrations as text");
        to.end_dict();
        to.text(b"syscalls");
        to.dict();
        for (number, name) in rperf_sys::syscall_names() {
            to.unsigned(number.into());
            to.text(name.as_bytes());
        }
        to.end_dict();
        // A hardware trace belongs to an event of a PMU whose type is assigned at run time, above the fixed types. A recording
        // with such an event may have a trace.
        to.text(b"traced");
        let mut kinds = events.iter().map(|event| event.attr.kind.0);
        to.boolean(kinds.any(|kind| kind > EventType::BREAKPOINT.0));
        to.text(b"config");
        to.dict();
        for (name, value) in self.context.config.settings() {
            to.text(name.as_bytes());
            to.plain_text(value.as_bytes());
        }
        to.end_dict();
        write_value_names(formats, events, &mut to);
        to.end_dict();
        to
    }
}

/// Writes the names of values that the formats of tracepoints define: `flags`, which have a delimiter, and `symbols`.
fn write_value_names(formats: &Formats, events: &[EventDesc], to: &mut MarshalWriter) {
    let named = value_names(formats, events, "__");
    for (key, is_flags) in [("flags", true), ("symbols", false)] {
        let selected = named
            .iter()
            .filter(|(_, _, names)| names.delimiter().is_some() == is_flags);
        to.text(key.as_bytes());
        let list = to.open_list();
        let mut count = 0;
        for (event, field, names) in selected {
            count += 1;
            to.tuple(3 + usize::from(is_flags));
            to.text(event.as_bytes());
            to.text(field.as_bytes());
            if let Some(delimiter) = names.delimiter() {
                to.text(delimiter.as_bytes());
            }
            to.list(names.entries().count());
            for (value, name) in names.entries() {
                to.tuple(2);
                to.signed(value);
                to.text(name.as_bytes());
            }
        }
        to.set_length(list, count);
    }
}

/// The fields whose values have names, with their events. `separator` is put between the system and the name of an
/// event.
fn value_names<'f>(
    formats: &'f Formats,
    events: &[EventDesc],
    separator: &str,
) -> Vec<(String, &'f str, ValueNames)> {
    let tracepoints = events
        .iter()
        .filter_map(|event| formats.of_event(&event.attr).ok());
    tracepoints
        .flat_map(|tracepoint| {
            let event = tracepoint.name().replacen(':', separator, 1);
            let fields = tracepoint.format.fields.iter();
            fields.filter_map(move |field| {
                let names = ValueNames::of(&tracepoint.format, &field.name)?;
                Some((event.clone(), field.name.as_str(), names))
            })
        })
        .collect()
}

/// Registers as perf passes them to scripts.
fn register_text(registers: &Regs<'_>, architecture: Architecture) -> String {
    let numbers = (0..u64::BITS).filter(|number| registers.mask >> number & 1 != 0);
    let values = numbers.zip(registers.values.iter());
    let texts =
        values.map(|(number, value)| format!("{:>5}:{value:#x} ", architecture.register(number)));
    texts.collect()
}
