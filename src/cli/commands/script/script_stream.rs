//! `script -s` with a recording that is read from a pipe while it is written.

use clap::ArgMatches;
use rperf_lines::SourceFiles;
use rperf_perfdata::{PipeHead, StreamInput};
use rperf_replay::{FoldControl, Stream};
use rperf_resolve::{LoadedObjects, Resolver, StackSummary};
use rperf_scripting::{
    DatabaseExporter, EncoderScratch, EventBlock, EventEncoder, ScriptCalls, ScriptFunctions,
    script_record_kinds,
};

use super::counts::{CountRecord, are_counted};
use super::counts_script::ScriptCounts;
use super::interpreter::Interpreter;
use super::run_script::ScriptReading;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::conclude_stream;
use crate::cli::stack_folding::{stack_copy_size, warn_of_truncated};
use crate::cli::stream::RecordingStream;
use rperf_input::DiskFiles;

/// A script that receives the events of a stream, with results of look-ups that are kept between chunks: a chunk is what
/// [`Stream::advance`] reads at once.
struct StreamCalls<'a> {
    reading: &'a ScriptReading<'a>,
    /// The functions that the script defines.
    functions: ScriptFunctions,
    counts: ScriptCounts,
    /// Which of the functions to call for each event, with the revision of the head (the metadata of the pipe so far) for which
    /// they were looked up.
    calls: Option<(u64, ScriptCalls)>,
    exporter: Option<DatabaseExporter>,
    loaded: Option<LoadedObjects>,
    scratches: Vec<EncoderScratch>,
    sources: SourceFiles<'static>,
    stacks: StackSummary,
}

impl ScriptReading<'_> {
    /// Passes the samples or counts of a stream to the script as they arrive.
    ///
    /// # Errors
    ///
    /// The stream cannot be read or does not fit the options; the interpreter cannot be started, or its answer is invalid.
    pub(super) fn run_stream(
        &self,
        matches: &ArgMatches,
        input: RecordingStream,
    ) -> Result<ExitStatus, CliError> {
        let path = input.path.clone();
        let mut stream = Stream::new(input.reader()?).with_records(&script_record_kinds());
        // The first chunk describes the events.
        let mut more = stream.advance()?;
        let formats = stream.head().metadata().formats();
        let formats = formats.map_err(|error| CliError::failure(255, error))?;
        let hello = self.hello(&formats, stream.head().events());
        // Whether the script may read the standard input: not if that is the recording.
        let has_input = path.as_os_str() != "-";
        let mut interpreter = self.start(matches, &hello, has_input)?;
        // SIGINT reaches the recorder, too, which then ends the stream. Events are sent up to that end.
        interpreter.ignore_signals();
        let Some(functions) = interpreter.functions()? else {
            return interpreter.finish();
        };
        let mut stream_calls = StreamCalls {
            reading: self,
            counts: ScriptCounts::new(functions.clone()),
            functions,
            calls: None,
            exporter: None,
            loaded: None,
            scratches: Vec::new(),
            sources: SourceFiles::new(&DiskFiles),
            stacks: StackSummary::default(),
        };
        let jobs = self.settings.jobs.get();
        stream_calls
            .scratches
            .resize_with(jobs, EncoderScratch::default);
        while more && stream_calls.send(&stream, &mut interpreter)? {
            more = stream.advance()?;
        }
        let status = interpreter.finish()?;
        let events = stream.head().metadata().events;
        warn_of_truncated(self.context, &stream_calls.stacks, stack_copy_size(events));
        let mut diagnostics = stream.diagnostics();
        let bad_counts = stream_calls.counts.decode_errors();
        diagnostics.bad_records.merge(bad_counts);
        conclude_stream(&path, &diagnostics, self.context)?;
        Ok(status)
    }
}

impl StreamCalls<'_> {
    /// Sends the samples of complete rounds (the recorder's passes over all rings), or the counts of ended intervals.
    /// Returns whether the interpreter still reads.
    fn send(
        &mut self,
        stream: &Stream<impl StreamInput>,
        interpreter: &mut Interpreter,
    ) -> Result<bool, CliError> {
        let head = stream.head();
        let recording = head.metadata();
        if are_counted(head.events()) {
            return self.send_counts(stream, interpreter);
        }
        let Some((revision, calls)) = self.current_calls(head, interpreter)? else {
            return Ok(false);
        };
        let settings = self.reading.settings;
        let resolver = match self.loaded.take() {
            Some(loaded) => Resolver::resume(stream.world(), &DiskFiles, loaded),
            None => {
                let symbols = &settings.symbols;
                symbols.resolver(self.reading.context, stream.world(), head.features())
            }
        };
        let filter = settings.filter(recording)?;
        let options = self
            .reading
            .options(recording, &calls, &filter, &self.sources);
        let encoder = EventEncoder::new(&resolver, &calls, options);
        let mut is_sent = true;
        let exporter = &mut self.exporter;
        stream.deliver(
            &encoder,
            &mut self.scratches,
            &mut |block: &mut EventBlock| {
                is_sent =
                    block.deliver(&encoder, exporter.as_mut(), |bytes| interpreter.send(bytes));
                match is_sent {
                    true => FoldControl::Continue,
                    false => FoldControl::Stop,
                }
            },
        );
        self.stacks.merge(encoder.stack_summary());
        drop(encoder);
        self.loaded = Some(resolver.into_loaded());
        self.calls = Some((revision, calls));
        Ok(is_sent)
    }

    /// The functions to call for the events that are known now, with the revision of the head. Describes new functions to the
    /// interpreter; `None` if the interpreter does not read any longer.
    fn current_calls(
        &mut self,
        head: &PipeHead<'_>,
        interpreter: &mut Interpreter,
    ) -> Result<Option<(u64, ScriptCalls)>, CliError> {
        let known = self.calls.take();
        if let Some(calls) = known.filter(|(revision, _)| *revision == head.revision()) {
            return Ok(Some(calls));
        }
        let recording = head.metadata();
        let formats = recording.formats();
        let formats = formats.map_err(|error| CliError::failure(255, error))?;
        let calls = ScriptCalls::new(&self.functions, head.events(), &formats, recording.endian);
        if !interpreter.send(&calls.description()) {
            return Ok(None);
        }
        match &mut self.exporter {
            Some(exporter) => calls.continue_export(exporter),
            None => self.exporter = calls.exporter(),
        }
        // There is one exporter, or none.
        let mut exporters = self.exporter.iter_mut();
        let is_read = exporters.all(|exporter| exporter.begin(&mut |rows| interpreter.send(rows)));
        Ok(is_read.then_some((head.revision(), calls)))
    }

    /// Sends the counts of intervals that ended; returns whether the interpreter still reads.
    fn send_counts(
        &mut self,
        stream: &Stream<impl StreamInput>,
        interpreter: &mut Interpreter,
    ) -> Result<bool, CliError> {
        let head = stream.head();
        let filter = self.reading.settings.filter(head.metadata())?;
        let mut records = stream.stat_records();
        Ok(records.all(|(position, raw)| {
            let record = CountRecord {
                raw: &raw,
                position,
                endian: stream.endian(),
                events: head.events(),
            };
            self.counts.send(&record, &filter, interpreter)
        }))
    }
}
