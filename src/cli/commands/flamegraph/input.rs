//! The stacks of a recording, or of folded text.

use std::fs::File;
use std::io::{BufReader, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_flame::{FrameKind, Stacks, is_idle, read_folded};
use rperf_hist::{
    CodeOrigin, Direction, GraphForm, GraphOptions, HistogramOptions, NamedStacks, NamingContext,
    SampleTreatment, SelectSamples, StackView, parse_fields,
};
use rperf_perfdata::{Error, FileHeader};
use rperf_replay::{EventIndex, Sample, World};
use rperf_resolve::{Frame, Resolver, SampleCriteria};
use rperf_safefs::open_regular;

use super::field_weight::FieldWeight;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::event_lookup::{drawn_event, is_off_cpu};
use crate::cli::filter::RequestedFilters;
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::{Input, TextOrRecording};
use crate::cli::jobs::jobs;
use crate::cli::options::flag;
use crate::cli::shared::analysis::Analysis;
use crate::cli::stack_folding::{
    StackFolding, WeighSamples, fold, recording_info, stack_copy_size, take_unwinding_limit,
    warn_of_truncated,
};
use crate::cli::symbol_options::SymbolSources;

/// The root frame of stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RootFrame {
    None,
    Comm,
    Pid,
    Tid,
    /// `comm (pid)`, as in perf's flame graphs.
    Process,
}

/// The weight of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
enum WeightKind {
    Samples,
    Period,
    /// The value of this field of the tracepoint.
    Field(String),
}

/// Reads stacks from recordings or folded text, according to the options.
pub(super) struct FlamegraphInput {
    filters: RequestedFilters,
    symbols: SymbolSources,
    jobs: NonZeroUsize,
    force: bool,
    verbose: bool,
    inlines: Option<bool>,
    /// Name of the event whose samples are drawn; `None` for the default.
    event: Option<String>,
    root: RootFrame,
    /// `None` for the default: the number of samples, or the periods of off-CPU time.
    weight_kind: Option<WeightKind>,
    /// Whether to keep stacks of the kernel's idle loop.
    keep_idle: bool,
    /// Maximum number of frames of a callchain (`--max-stack`); the innermost are kept.
    max_stack: usize,
    /// Maximum number of frames of a drawn stack, including the root frame; the outermost are kept.
    max_depth: usize,
}

/// Stacks, with title and unit.
pub(super) struct TitledStacks {
    pub(super) stacks: Stacks,
    /// The error if not all records could be read, reported after drawing.
    pub(super) damage: Result<(), CliError>,
    pub(super) title: String,
    /// The unit of the weights.
    pub(super) unit: String,
}

impl FlamegraphInput {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let text = |id: &str| matches.get_one::<String>(id).map(String::as_str);
        let frames = |id: &str| {
            let count = matches.get_one::<u64>(id);
            count.map(|count| usize::try_from(*count).unwrap_or(usize::MAX))
        };
        Ok(Self {
            filters: RequestedFilters::new(matches)?,
            symbols: SymbolSources::for_recording(matches, context)?,
            jobs: jobs(matches, context)?,
            force: flag(matches, "force") == Some(true),
            verbose: context.verbosity(matches) > 0,
            inlines: flag(matches, "inline"),
            event: text("event").map(str::to_owned),
            root: text("root").map_or(Ok(RootFrame::Comm), root)?,
            weight_kind: text("weight").map(weight_kind),
            keep_idle: flag(matches, "idle") != Some(false),
            max_stack: frames("max-stack").unwrap_or(usize::MAX),
            max_depth: frames("max-depth").unwrap_or(usize::MAX),
        })
    }

    /// Reads the stacks of a recording or of folded text. If `path` is `None`, reads stdin if it is a pipe or redirected to a
    /// file with folded stacks; otherwise reads perf.data.
    pub(super) fn read(
        &self,
        path: Option<PathBuf>,
        context: &Context,
    ) -> Result<TitledStacks, CliError> {
        if let Some(path) = path.as_deref().filter(|path| is_text(path)) {
            let name = path.display().to_string();
            let file = open_regular(path)
                .map_err(|error| CliError::message(255, format!("{name}: {error}")))?;
            return read_text(&name, file);
        }
        match TextOrRecording::named(path, self.force, context)? {
            TextOrRecording::Text(text) => read_text("-", text),
            TextOrRecording::Recording(input) => {
                // A recording in a pipe is read to its end first.
                self.read_recording(&input.complete(context)?, context)
            }
        }
    }

    fn read_recording(&self, input: &Input, context: &Context) -> Result<TitledStacks, CliError> {
        let data = input.parse(context)?;
        let analysis = Analysis::open(input, &data, self.jobs, context)?;
        let requested = self.event.as_deref();
        let event = drawn_event(&analysis.replay, &input.path, requested, context)?;
        let name = data
            .events()
            .get(event)
            .map_or("", |event| event.name.as_str());
        let default = match is_off_cpu(name) {
            true => WeightKind::Period,
            false => WeightKind::Samples,
        };
        let weight_kind = self.weight_kind.as_ref().unwrap_or(&default);
        let stacks = self.stacks(&analysis, event, weight_kind)?;
        let damage = analysis.conclude();
        if stacks.is_empty() {
            damage?;
            let message = format!("{}: no samples to draw", input.path.display());
            return Err(CliError::message(255, message)
                .hint("check the filters (--time, --cpu, --comms, --no-idle, ...)"));
        }
        Ok(TitledStacks {
            stacks,
            damage,
            title: format!("Flame Graph: {name}"),
            unit: match weight_kind {
                WeightKind::Period if is_off_cpu(name) => "ns".to_owned(),
                WeightKind::Samples => "samples".to_owned(),
                WeightKind::Period => name.to_owned(),
                WeightKind::Field(field) => field.clone(),
            },
        })
    }

    fn stacks(
        &self,
        analysis: &Analysis<'_>,
        event: usize,
        weight_kind: &WeightKind,
    ) -> Result<Stacks, CliError> {
        let (data, replay, context) = (analysis.data(), &analysis.replay, analysis.context);
        let field = match weight_kind {
            WeightKind::Field(name) => Some(FieldWeight::new(data.metadata(), event, name)?),
            WeightKind::Samples | WeightKind::Period => None,
        };
        // `--time` has the recording's times, not times since the first sample.
        let relative_times = false;
        let criteria = self.filters.filter(data.metadata(), relative_times)?;
        let selection = OneEvent {
            event: EventIndex(u32::try_from(event).unwrap_or(u32::MAX)),
            criteria: criteria.non_empty(),
        };
        let mut options = self.options();
        let resolver = analysis.resolver(&self.symbols);
        // `Some(usize::MAX)` if user stacks are unwound: `options` has no limit, since `add` applies `--max-stack`.
        let limit = take_unwinding_limit(data.metadata(), &mut options);
        let source = recording_info(data.metadata(), self.inlines);
        let naming = NamingContext::new(&options, &source, &resolver, self.jobs);
        let select = Some(&selection as &dyn SelectSamples);
        let (folded, summary) = fold(
            replay,
            &StackFolding {
                naming: &naming,
                resolver: &resolver,
                limit,
                select,
                weight: field.as_ref().map(|field| field as &dyn WeighSamples),
                jobs: self.jobs,
            },
        );
        let named = naming.named_stacks(folded);
        if let Some(field) = &field {
            field.report_negatives(context);
        }
        report_symbol_problems(context, &resolver, self.verbose);
        warn_of_truncated(context, &summary, stack_copy_size(data.events()));
        let mut stacks = Stacks::default();
        // `named` has an item for each event of the recording; only that of the selected event has stacks.
        for event in &named {
            self.add(event, weight_kind, &mut stacks);
        }
        Ok(stacks)
    }

    /// Options for call graphs without a minimum percentage, grouped by comm and, if the root needs it, tid.
    fn options(&self) -> HistogramOptions {
        let keys = match self.root {
            RootFrame::None | RootFrame::Comm => "comm",
            RootFrame::Pid | RootFrame::Tid | RootFrame::Process => "comm,tid",
        };
        HistogramOptions {
            order_by: parse_fields(keys).unwrap_or_default(),
            direction: Direction::Caller,
            graph: Some(GraphOptions {
                form: GraphForm::Graph,
                min_percent: 0.0,
                by_address: false,
                by_line: false,
                annotates_branches: false,
            }),
            ..HistogramOptions::default()
        }
    }

    /// Adds the stacks of one event to `stacks`; those of the idle loop only if they are kept.
    fn add(&self, named: &NamedStacks, weight_kind: &WeightKind, stacks: &mut Stacks) {
        // The label of each frame, and whether the frame is of the idle loop.
        let labels: Vec<(u32, bool)> = named
            .names
            .iter()
            .map(|frame| {
                let is_idle = frame.origin == CodeOrigin::Kernel && is_idle(&frame.name);
                (stacks.label(&frame.name, kind(frame.origin)), is_idle)
            })
            .collect();
        let mut frames = Vec::new();
        for stack in named.iter() {
            let has_idle_frame = || stack.frames.iter().any(|frame| labels[*frame as usize].1);
            if !self.keep_idle && has_idle_frame() {
                continue;
            }
            frames.clear();
            // The root frame is not code; it is drawn like code of the program.
            frames.extend(
                self.root(&stack)
                    .map(|root| stacks.label(&root, FrameKind::User)),
            );
            // The frames are outermost first.
            let left_out = stack.frames.len().saturating_sub(self.max_stack);
            let innermost = stack.frames.iter().skip(left_out);
            frames.extend(innermost.map(|frame| labels[*frame as usize].0));
            frames.truncate(self.max_depth);
            let weight = match weight_kind {
                WeightKind::Samples => stack.sum.samples,
                // The values of a field replaced the periods of samples when the stacks were folded.
                WeightKind::Period | WeightKind::Field(_) => stack.sum.period,
            };
            stacks.add(&frames, weight);
        }
    }

    /// Returns the label of the stack's root frame, if any.
    fn root(&self, stack: &StackView<'_>) -> Option<String> {
        let comm = stack.comm.unwrap_or("[unknown]");
        // As in the output of stackcollapse-perf.pl.
        let comm = comm.replace(' ', "_");
        match self.root {
            RootFrame::None => None,
            RootFrame::Comm => Some(comm),
            RootFrame::Pid => Some(format!("{comm}-{}", stack.pid)),
            RootFrame::Tid => Some(format!("{comm}-{}/{}", stack.pid, stack.tid)),
            RootFrame::Process => Some(format!("{comm} ({})", stack.pid)),
        }
    }
}

/// Reads folded stacks; `name` is the file's name in errors.
fn read_text(name: &str, text: impl Read) -> Result<TitledStacks, CliError> {
    let failed = |error: &dyn std::fmt::Display| CliError::message(255, format!("{name}: {error}"));
    let stacks = read_folded(BufReader::new(text)).map_err(|error| failed(&error))?;
    Ok(TitledStacks {
        stacks: stacks.map_err(|error| failed(&error))?,
        damage: Ok(()),
        title: "Flame Graph".to_owned(),
        unit: "samples".to_owned(),
    })
}

/// Selects the samples of one event, and of these only those that meet the criteria, if any.
struct OneEvent {
    event: EventIndex,
    criteria: Option<SampleCriteria>,
}

impl SelectSamples for OneEvent {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> SampleTreatment {
        if sample.event != self.event {
            return SampleTreatment::Ignored;
        }
        let criteria = self.criteria.as_ref();
        criteria.map_or(SampleTreatment::Counted, |criteria| {
            criteria.sample(world, sample)
        })
    }

    fn frame(&self, resolver: &Resolver<'_>, frame: &Frame) -> SampleTreatment {
        let criteria = self.criteria.as_ref();
        criteria.map_or(SampleTreatment::Counted, |criteria| {
            criteria.frame(resolver, frame)
        })
    }
}

fn kind(origin: CodeOrigin) -> FrameKind {
    match origin {
        CodeOrigin::User => FrameKind::User,
        CodeOrigin::Kernel => FrameKind::Kernel,
        CodeOrigin::Inlined => FrameKind::Inlined,
        CodeOrigin::Jit => FrameKind::Jit,
    }
}

/// Whether `path` is a regular file that is not empty and begins neither like a recording nor with binary data (a NUL byte).
fn is_text(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read_beginning = |file: File| {
        file.take(FileHeader::SIZE as u64)
            .read_to_end(&mut beginning)
    };
    let has_content = open_regular(path)
        .and_then(read_beginning)
        .is_ok_and(|count| count > 0);
    let is_no_recording = matches!(FileHeader::decode(&beginning), Err(Error::Magic { .. }));
    has_content && is_no_recording && !beginning.contains(&0)
}

/// Parses the value of `--root`.
fn root(word: &str) -> Result<RootFrame, CliError> {
    match word {
        "none" => Ok(RootFrame::None),
        "comm" => Ok(RootFrame::Comm),
        "pid" => Ok(RootFrame::Pid),
        "tid" => Ok(RootFrame::Tid),
        "process" => Ok(RootFrame::Process),
        _ => Err(CliError::usage(format!(
            "--root: '{word}' is none of comm, pid, tid, process, none"
        ))),
    }
}

/// Parses the value of `--weight`: any other word is the name of a field.
fn weight_kind(word: &str) -> WeightKind {
    match word {
        "samples" => WeightKind::Samples,
        "period" => WeightKind::Period,
        field => WeightKind::Field(field.to_owned()),
    }
}
