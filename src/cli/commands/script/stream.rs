//! The samples of a recording that comes through a pipe, written while it is being made.

use std::io::{self, Write as _};
use std::path::Path;

use rperf_lines::{EventSwitch, SourceFiles};
use rperf_perfdata::{PipeHead, PipeReader, Source};
use rperf_replay::{Flow, Stream};
use rperf_resolve::{Known, Resolver, StackSummary};
use rperf_view::header::{HeaderOptions, write_features, write_stream_start};
use rperf_view::script::{Block, Join};
use rperf_wire::RecordKind;

use super::plan::Plan;
use super::settings::Settings;
use super::text::{SampleText, Scratch};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::findings::conclude;
use crate::cli::stacks::{copied, warn_of_cut};
use crate::cli::stream;

/// Prints the samples of a stream until it ends.
pub(super) fn print(
    context: &Context,
    input: stream::Stream,
    settings: &Settings,
) -> Result<(), CliError> {
    let path = input.path.clone();
    let options = settings.header_options(input.changed);
    if settings.records.contains(&RecordKind::FINISHED_ROUND) {
        return Err(CliError::usage(format!(
            "{} script: --show-round-events is not supported yet where a pipe is read",
            context.program
        )));
    }
    if settings.per_event {
        return Err(CliError::usage(format!(
            "{} script: --per-event-dump is not supported yet where a pipe is read",
            context.program
        )));
    }
    let reader = input.reader()?;
    if settings.header_only {
        return print_header_alone(context, &path, reader, &options);
    }
    let mut stream = Stream::new(reader).with_records(&settings.records);
    let mut printer = Printer::new(context, &path, settings);
    let mut header = settings.header;
    loop {
        let more = stream.advance()?;
        if header {
            print_header(context, stream.head(), &options)?;
            header = false;
        }
        if !more {
            break;
        }
        printer.print(&stream)?;
    }
    printer.warn_of_head(stream.head());
    if let Some(known) = printer.known.take() {
        let resolver = Resolver::resume(stream.world(), &DiskFiles, known);
        settings.tell(context, &resolver);
    }
    let events = stream.head().described().events;
    warn_of_cut(context, &printer.stacks, copied(events));
    if printer.guests > 0 {
        let guests = printer.guests;
        context.warn(format_args!("{guests} samples of guests were left out"));
    }
    conclude(&path, &stream.diagnostics(), context)
}

/// Reads no further than to the first record that describes nothing.
fn print_header_alone(
    context: &Context,
    path: &Path,
    mut reader: PipeReader<impl Source>,
    options: &HeaderOptions<'_>,
) -> Result<(), CliError> {
    while let Some(record) = reader
        .next_record()
        .map_err(|error| CliError::message(255, format!("{}: {error}", path.display())))?
    {
        if !PipeHead::wants(record.raw.kind) {
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
    write_features(out, head.described(), options)?;
    out.flush()?;
    Ok(())
}

/// Prints one stretch after the other, and keeps between them what was found out.
struct Printer<'a> {
    context: &'a Context,
    path: &'a Path,
    settings: &'a Settings,
    /// With the revision of the head that it was made from.
    plan: Option<(u64, Plan)>,
    known: Option<Known>,
    sources: SourceFiles<'static>,
    scratches: Vec<Scratch>,
    join: Join,
    /// What the join follows, as it was at first.
    switch: EventSwitch,
    guests: u64,
    stacks: StackSummary,
    /// Findings of the head that were told.
    told: usize,
}

impl<'a> Printer<'a> {
    fn new(context: &'a Context, path: &'a Path, settings: &'a Settings) -> Self {
        let mut scratches = Vec::new();
        scratches.resize_with(settings.jobs.get(), Scratch::default);
        Self {
            context,
            path,
            settings,
            plan: None,
            known: None,
            sources: SourceFiles::new(&DiskFiles),
            scratches,
            join: Join::new(settings.clock, settings.nanoseconds),
            switch: EventSwitch::default(),
            guests: 0,
            stacks: StackSummary::default(),
            told: 0,
        }
    }

    fn print(&mut self, stream: &Stream<impl Source>) -> Result<(), CliError> {
        let head = stream.head();
        self.warn_of_head(head);
        let plan = match self.plan.take() {
            Some((revision, plan)) if revision == head.revision() => plan,
            _ => {
                let recording = head.described();
                let plan = Plan::new(self.context, self.path, recording, self.settings)?;
                if self.switch != plan.switch {
                    self.switch = plan.switch.clone();
                    self.join.follow(plan.switch.clone());
                }
                self.join.set_metrics(plan.metrics.clone());
                plan
            }
        };
        let resolver = match self.known.take() {
            Some(known) => Resolver::resume(stream.world(), &DiskFiles, known),
            None => {
                let symbols = &self.settings.symbols;
                symbols.resolver(self.context, stream.world(), head.features())
            }
        };
        let text = SampleText::new(&resolver, &plan, &self.sources);
        let mut stdout = self.context.stdout();
        let mut written: io::Result<()> = Ok(());
        stream.deliver(&text, &mut self.scratches, &mut |block: &mut Block| {
            written = stdout.write_all(self.join.join(block));
            match written {
                Ok(()) => Flow::Continue,
                Err(_) => Flow::Stop,
            }
        });
        written?;
        // Whoever watches sees what there is before more is waited for.
        stdout.flush()?;
        self.guests += text.guests();
        self.stacks.merge(text.stacks());
        self.known = Some(resolver.into_known());
        self.plan = Some((head.revision(), plan));
        Ok(())
    }

    /// Tells what could not be understood of what describes the recording.
    fn warn_of_head(&mut self, head: &PipeHead<'_>) {
        let findings = head.findings();
        for finding in findings.get(self.told..).unwrap_or_default() {
            let path = self.path.display();
            self.context.warn(format_args!("{path}: {finding}"));
        }
        self.told = findings.len();
    }
}
