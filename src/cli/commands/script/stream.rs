//! Prints the samples of a recording that is read from a pipe while it is written.

use std::io::{self, Write};
use std::path::Path;

use rperf_lines::{EventSwitch, SourceFiles};
use rperf_perfdata::{PipeHead, PipeReader, StreamInput};
use rperf_replay::{FoldControl, Stream};
use rperf_resolve::{LoadedObjects, Resolver, StackSummary};
use rperf_view::header::{HeaderOptions, write_features, write_stream_start};
use rperf_view::script::{BlockJoiner, ScriptBlock};
use rperf_wire::RecordKind;

use super::counts::{self, CountRecord, CountTable, are_counted};
use super::plan::ScriptPlan;
use super::settings::ScriptSettings;
use super::text::{SampleText, TextBuffers};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::conclude_stream;
use crate::cli::stack_folding::{stack_copy_size, warn_of_truncated};
use crate::cli::stream;
use rperf_input::DiskFiles;

/// Prints the samples of a stream until it ends.
pub(super) fn print(
    context: &Context,
    input: stream::RecordingStream,
    settings: &ScriptSettings,
) -> Result<(), CliError> {
    let path = input.path.clone();
    let options = settings.header_options(input.mtime);
    if settings.records.contains(&RecordKind::FINISHED_ROUND) {
        return Err(needs_file(&path, "--show-round-events"));
    }
    if settings.per_event_dump {
        return Err(needs_file(&path, "--per-event-dump"));
    }
    let reader = input.reader()?;
    if settings.header_only {
        return print_header_alone(context, &path, reader, &options);
    }
    let mut stream = Stream::new(reader).with_records(&settings.records);
    let mut printer = StreamPrinter::new(context, &path, settings);
    let mut header_is_due = settings.header;
    loop {
        let more = stream.advance()?;
        if header_is_due {
            print_header(context, stream.head(), &options)?;
            header_is_due = false;
        }
        if !more {
            break;
        }
        printer.print(&stream)?;
    }
    printer.warn_of_head(stream.head());
    if let Some(loaded) = printer.loaded.take() {
        let resolver = Resolver::resume(stream.world(), &DiskFiles, loaded);
        settings.report_symbol_problems(context, &resolver);
    }
    let events = stream.head().metadata().events;
    warn_of_truncated(context, &printer.stacks, stack_copy_size(events));
    let mut diagnostics = stream.diagnostics();
    diagnostics.bad_records.merge(printer.counts.decode_errors);
    super::warn_of_guests(context, printer.skipped_guest_samples);
    conclude_stream(&path, &diagnostics, context)
}

/// The error for an option that cannot be used with a stream.
fn needs_file(path: &Path, option: &str) -> CliError {
    let message = format!(
        "{}: {option} needs a file, this is a stream",
        path.display()
    );
    CliError::message(255, message).hint("write the stream to a file, and read that with -i")
}

/// Prints the header after reading up to the first record that does not describe the recording.
fn print_header_alone(
    context: &Context,
    path: &Path,
    mut reader: PipeReader<impl StreamInput>,
    options: &HeaderOptions<'_>,
) -> Result<(), CliError> {
    while let Some(record) = reader
        .next_record()
        .map_err(|error| CliError::message(255, format!("{}: {error}", path.display())))?
    {
        if !PipeHead::is_metadata(record.raw.kind) {
            break;
        }
    }
    print_header(context, reader.head(), options)
}

fn print_header(
    context: &Context,
    head: &PipeHead<'_>,
    options: &HeaderOptions<'_>,
) -> Result<(), CliError> {
    let out = &mut context.stdout();
    write_stream_start(out, options)?;
    write_features(out, head.metadata(), options)?;
    out.flush()?;
    Ok(())
}

/// Prints the samples and counts that each call of [`Stream::advance`] has read; keeps lookup results from one call to the next.
struct StreamPrinter<'a> {
    context: &'a Context,
    path: &'a Path,
    settings: &'a ScriptSettings,
    /// The plan, with the revision of the head (the records that describe the recording) from which it was created.
    plan: Option<(u64, ScriptPlan)>,
    loaded: Option<LoadedObjects>,
    sources: SourceFiles<'static>,
    scratches: Vec<TextBuffers>,
    /// Fills the parts of the text that depend on earlier samples, so it gets the blocks in order.
    join: BlockJoiner,
    /// The switch (`--switch-on`, `--switch-off`) last given to `join`, in its initial state. `join` changes its copy,
    /// which a new plan with an equal switch must not reset.
    switch: EventSwitch,
    skipped_guest_samples: u64,
    stacks: StackSummary,
    counts: CountTable,
    are_count_options_checked: bool,
    /// The number of problems in the head that were reported.
    reported: usize,
}

impl<'a> StreamPrinter<'a> {
    fn new(context: &'a Context, path: &'a Path, settings: &'a ScriptSettings) -> Self {
        let mut scratches = Vec::new();
        scratches.resize_with(settings.jobs.get(), TextBuffers::default);
        Self {
            context,
            path,
            settings,
            plan: None,
            loaded: None,
            sources: SourceFiles::new(&DiskFiles),
            scratches,
            join: BlockJoiner::new(settings.clock, settings.nanoseconds),
            switch: EventSwitch::default(),
            skipped_guest_samples: 0,
            stacks: StackSummary::default(),
            counts: CountTable::default(),
            are_count_options_checked: false,
            reported: 0,
        }
    }

    fn print(&mut self, stream: &Stream<impl StreamInput>) -> Result<(), CliError> {
        let head = stream.head();
        self.warn_of_head(head);
        let plan = match self.plan.take() {
            Some((revision, plan)) if revision == head.revision() => plan,
            _ => {
                let recording = head.metadata();
                let plan = ScriptPlan::new(self.context, self.path, recording, self.settings)?;
                if self.switch != plan.switch {
                    self.switch = plan.switch.clone();
                    self.join.set_switch(plan.switch.clone());
                }
                self.join.set_metrics(plan.metrics.clone());
                plan
            }
        };
        let resolver = match self.loaded.take() {
            Some(loaded) => Resolver::resume(stream.world(), &DiskFiles, loaded),
            None => {
                let symbols = &self.settings.symbols;
                symbols.resolver(self.context, stream.world(), head.features())
            }
        };
        let text = SampleText::new(&resolver, &plan, &self.sources);
        let mut stdout = self.context.stdout();
        let mut written: io::Result<()> = Ok(());
        stream.deliver(
            &text,
            &mut self.scratches,
            &mut |block: &mut ScriptBlock| {
                written = stdout.write_all(self.join.join(block));
                match written {
                    Ok(()) => FoldControl::Continue,
                    Err(_) => FoldControl::Stop,
                }
            },
        );
        written?;
        // Output is flushed before waiting for more input.
        stdout.flush()?;
        self.skipped_guest_samples += text.skipped_guest_samples();
        self.stacks.merge(text.stack_summary());
        self.loaded = Some(resolver.into_loaded());
        self.print_counts(stream, &plan, &mut stdout)?;
        self.plan = Some((head.revision(), plan));
        Ok(())
    }

    /// Prints the counts of intervals that ended.
    fn print_counts(
        &mut self,
        stream: &Stream<impl StreamInput>,
        plan: &ScriptPlan,
        out: &mut impl Write,
    ) -> Result<(), CliError> {
        let events = stream.head().events();
        if !are_counted(events) {
            return Ok(());
        }
        // Checked only now, and once: it was unknown that the stream has counts until its events were read.
        if !self.are_count_options_checked {
            counts::check(self.settings, self.context)?;
            self.are_count_options_checked = true;
        }
        for (position, raw) in stream.stat_records() {
            let record = CountRecord {
                raw: &raw,
                position,
                endian: stream.endian(),
                events,
            };
            self.counts.process_and_write(&record, &plan.filter, out)?;
        }
        Ok(out.flush()?)
    }

    /// Reports the new problems in the records that describe the recording.
    fn warn_of_head(&mut self, head: &PipeHead<'_>) {
        let findings = head.findings();
        for finding in findings.get(self.reported..).unwrap_or_default() {
            let path = self.path.display();
            self.context.warn(format_args!("{path}: {finding}"));
        }
        self.reported = findings.len();
    }
}
