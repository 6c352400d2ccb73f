//! `rperf report`: where the samples of a recording fell.

mod args;
mod browse;
mod call_graph;
mod columns;
mod mode;
mod parallelism;
mod selection;
mod settings;
mod tasks;
mod threads;
mod tracepoints;

use std::io::{self, Write};
use std::num::NonZeroUsize;

use clap::ArgMatches;
use rperf_hist::{BlockTable, Blocks, BranchCounts, Histogram, Naming, Select, Source};
use rperf_perfdata::{Described, Finding, PerfData};
use rperf_replay::{Replay, What};
use rperf_resolve::{Resolver, StackSummary};
use rperf_view::dump::Dump;
use rperf_view::report::{
    Event, EventStats, Stats, ThreadCounts, ThreadLayout, write_banner, write_branch_counts,
    write_event, write_lost, write_stats, write_tasks, write_threads, write_tip, write_values,
};
use rperf_wire::{BranchSampleType, Record, RecordKind};

use crate::cli::commands::annotate;
use crate::cli::context::Context;
use crate::cli::diagnosis::diagnose;
use crate::cli::dump;
use crate::cli::error::{CliError, Exit};
use crate::cli::findings::{conclude, tell_of_symbols};
use crate::cli::header::print_header;
use crate::cli::input::Input;
use crate::cli::itrace;
use crate::cli::options::flag;
use crate::cli::progress::Progress;
use crate::cli::stacks::{copied, fold, source, unwinding_limit, warn_of_cut};
use crate::cli::symbol_options::Symbols;
use crate::cli::symbols::replay;

pub(super) use self::args::command;
pub(super) use self::browse::{Others, save};
pub(super) use self::call_graph::limit_option;
pub(super) use self::columns::Columns;
pub(super) use self::settings::{is_relative, regex, widths};

use self::selection::Selection;
use self::settings::{Plan, Settings};
use self::tasks::Tasks;
use self::tracepoints::Tracepoints;
use crate::cli::groups::Table;

/// Kinds of records that a report makes no use of.
const PASSED_OVER: &[RecordKind] = &[
    RecordKind::THROTTLE,
    RecordKind::UNTHROTTLE,
    RecordKind::AUXTRACE_ERROR,
    RecordKind::THREAD_MAP,
    RecordKind::CPU_MAP,
    RecordKind::STAT_CONFIG,
    RecordKind::STAT,
    RecordKind::STAT_ROUND,
];

/// The recording with the branches of its trace as samples; `None` where it stays as it is, as where records are listed.
fn with_trace(
    matches: &ArgMatches,
    context: &Context,
    input: &Input,
) -> Result<Option<Input>, CliError> {
    let lists = ["stats", "tasks", "mmaps", "header-only"];
    let is_listed = lists.iter().any(|list| flag(matches, list) == Some(true));
    match is_listed || dump::is_wanted(matches) {
        true => Ok(None),
        false => itrace::decoded(input, (matches, true), context),
    }
}

/// Prints the report, or opens the browser on it.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Exit, CliError> {
    refuse_word(matches, context)?;
    if browse::is_wanted(matches, context)? {
        return browse::run(matches, context);
    }
    let job = Job::new(matches, context)?;
    let thread_layout = threads::layout(matches)?;
    let stored = Input::open(matches, context)?;
    let decoded = with_trace(matches, context, &stored)?;
    let input = decoded.as_ref().unwrap_or(&stored);
    let data = input.parse(context)?;
    if flag(matches, "header-only") == Some(true) {
        print_header(context, input, &data, is_full(matches))?;
        return Ok(Exit::Ok);
    }
    let progress = Progress::start(context, data.data().len());
    let replay = replay(&data, job.settings.jobs, &progress)?;
    if print_records(matches, context, input, &replay)? {
        return Ok(exit_of(&data));
    }
    let (settings, lost) = (&job.settings, replay.diagnostics().lost_samples);
    job.count(input, &replay, true, |question, counts| {
        drop(progress);
        context.paginate("report")?;
        let head = decoded.as_ref().map(|_| stored.read(context)).transpose()?;
        print_start(matches, context, &stored, head.as_ref().unwrap_or(&data))?;
        print(context, question, &counts, lost, settings)?;
        let threads = thread_layout.map(|layout| (threads::counts(&replay, &data), layout));
        print_rest(context, &counts, threads)?;
        warn_of_cut(context, &counts.stacks, copied(data.events()));
        Ok(())
    })?;
    conclude(&input.path, &replay.diagnostics(), context)?;
    Ok(exit_of(&data))
}

/// Whether `-I` asks for all of the header.
fn is_full(matches: &ArgMatches) -> bool {
    flag(matches, "show-info") == Some(true)
}

/// What stands before everything else.
fn print_start(
    matches: &ArgMatches,
    context: &Context,
    input: &Input,
    data: &PerfData<'_>,
) -> Result<(), CliError> {
    if flag(matches, "quiet") == Some(true) {
        return Ok(());
    }
    match flag(matches, "header") {
        Some(true) => print_header(context, input, data, is_full(matches)),
        _ => Ok(write_banner(&mut context.stdout())?),
    }
}

/// What is asked of a report, by options and configuration.
struct Job<'j> {
    matches: &'j ArgMatches,
    context: &'j Context,
    settings: Settings,
    selection: Selection,
    /// How the browser shows code.
    code: annotate::Request,
}

impl<'j> Job<'j> {
    fn new(matches: &'j ArgMatches, context: &'j Context) -> Result<Self, CliError> {
        Ok(Self {
            matches,
            context,
            settings: Settings::new(matches, context)?,
            selection: Selection::new(matches)?,
            code: annotate::Request::of_browser(matches)?,
        })
    }

    /// Counts the samples of a recording, and gives `then` what came out. `is_all` is whether it is the whole recording, of
    /// whose faults the user is told.
    fn count<R>(
        &self,
        input: &Input,
        replay: &Replay<'_>,
        is_all: bool,
        then: impl FnOnce(&Question<'_>, Counts) -> Result<R, CliError>,
    ) -> Result<R, CliError> {
        let (matches, context, settings) = (self.matches, self.context, &self.settings);
        let data = replay.data();
        let tell = || match is_all {
            true => conclude(&input.path, &replay.diagnostics(), context),
            false => Ok(()),
        };
        if replay.sample_counts().iter().all(|samples| *samples == 0) {
            tell()?;
            return Err(no_samples(input, data));
        }
        let raw = settings.raw_trace;
        let mut tracepoints = Tracepoints::new(context, &input.path, data.described(), raw);
        let parallelism = parallelism::parallelism(replay);
        let plan = settings.plan(data.described(), &mut tracepoints, parallelism)?;
        let tables = settings.tables(data.described());
        let sockets = sockets(data.described());
        let parallelism = plan.options.parallelism.as_ref();
        let selected = self
            .selection
            .of(replay, &sockets, parallelism, settings.jobs)?;
        if plan.options.shows_payload() {
            tracepoints.read()?;
        }
        let question = Question {
            plan: &plan,
            tracepoints: &tracepoints,
            tables: &tables,
            select: selected.as_ref().map(|selected| selected as &dyn Select),
            times: self.selection.time(),
            socket: self.selection.socket,
            sockets,
            inlines: flag(matches, "inline"),
            symbols: &settings.symbols,
            jobs: settings.jobs,
            hints: is_all && is_read(context, settings) && flag(matches, "hints") != Some(false),
            is_all,
        };
        let counts = count(context, replay, &question)?;
        if counts.histograms.iter().all(is_empty) {
            tell()?;
            return Err(none_left(input));
        }
        then(&question, counts)
    }
}

/// What stands behind the tables.
fn print_rest(
    context: &Context,
    counts: &Counts,
    threads: Option<(ThreadCounts, ThreadLayout)>,
) -> Result<(), CliError> {
    let out = &mut context.stdout();
    write_branch_counts(out, &counts.branches)?;
    if let Some((threads, layout)) = threads {
        write_threads(out, &threads, layout)?;
    }
    for hint in &counts.hints {
        writeln!(out, "# hint: {hint}")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints what is asked of the records rather than of the samples; whether anything was.
fn print_records(
    matches: &ArgMatches,
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
) -> Result<bool, CliError> {
    let diagnostics = replay.diagnostics();
    let dumps = dump::is_wanted(matches);
    if dumps || flag(matches, "stats") == Some(true) {
        context.paginate("report")?;
        if dumps {
            print_dump(matches, context, input, replay)?;
        }
        print_stats(context, replay, !dumps)?;
        conclude(&input.path, &diagnostics, context)?;
        return Ok(true);
    }
    let with_memory = flag(matches, "mmaps") == Some(true);
    if with_memory || flag(matches, "tasks") == Some(true) {
        context.paginate("report")?;
        let tasks = Tasks::read(replay, replay.data(), with_memory);
        write_tasks(&mut context.stdout(), &tasks.list())?;
        context.stdout().flush()?;
        conclude(&input.path, &diagnostics, context)?;
        return Ok(true);
    }
    Ok(false)
}

/// What is missing was named when the file was opened; a report of a part is not a success.
fn exit_of(data: &PerfData<'_>) -> Exit {
    let cut = |finding: &Finding| matches!(finding, Finding::DataCut { .. });
    match data.findings().iter().any(cut) {
        true => Exit::Failure(255),
        false => Exit::Ok,
    }
}

/// Prints every record as it stands in the file, behind what stands before a report.
fn print_dump(
    matches: &ArgMatches,
    context: &Context,
    input: &Input,
    replay: &Replay<'_>,
) -> Result<(), CliError> {
    let path = input.path.to_string_lossy();
    let mut records = Dump::new(replay.data().described(), &path).passing_over(PASSED_OVER);
    if flag(matches, "disable-order") == Some(true) {
        records = records.as_they_stand();
    }
    records.write_start(&mut context.stdout())?;
    print_start(matches, context, input, replay.data())?;
    dump::write(&mut context.stdout(), replay, records, |_, _| Ok(()))?;
    Ok(())
}

/// Prints how many records of each kind there are, and of each event how many samples were lost if `with_lost`: perf does
/// not count these where it dumps records.
fn print_stats(context: &Context, replay: &Replay<'_>, with_lost: bool) -> io::Result<()> {
    let data = replay.data();
    let mut stats = Stats::default();
    // What ends the walk was counted when the file was opened.
    for record in data.records().flatten() {
        stats.add(record.raw.kind);
    }
    let lost = match with_lost && replay.diagnostics().lost_samples > 0 {
        true => lost_samples(replay),
        false => vec![0; data.events().len()],
    };
    let events = data.events().iter().zip(replay.sample_counts()).zip(lost);
    let events = events.map(|((event, samples), lost)| EventStats {
        name: &event.name,
        samples: *samples,
        lost,
    });
    let out = &mut context.stdout();
    write_stats(out, &stats, &events.collect::<Vec<_>>())?;
    out.flush()
}

/// How many samples of each event were lost.
fn lost_samples(replay: &Replay<'_>) -> Vec<u64> {
    let data = replay.data();
    let mut lost = vec![0_u64; data.events().len()];
    for turn in replay.turns().as_they_stand() {
        if let What::Kernel { side, .. } = turn.what
            && let Ok(Record::LostSamples(more)) = Record::decode(&side.raw, data.endian())
            && let Some(event) = side.event
            && let Some(lost) = lost.get_mut(event.0 as usize)
        {
            *lost = lost.saturating_add(more.lost);
        }
    }
    lost
}

/// perf takes one word for a symbol filter; a file name often stands there by mistake.
fn refuse_word(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let Some(word) = matches.get_one::<String>("symbol-filter-word") else {
        return Ok(());
    };
    let error = CliError::usage(format!("{} report: '{word}' is no option", context.program));
    Err(error.hint(format!(
        "-i {word} reads a file of that name, --symbol-filter {word} shows functions whose names contain it"
    )))
}

fn no_samples(input: &Input, data: &PerfData<'_>) -> CliError {
    let names: Vec<&str> = data
        .events()
        .iter()
        .map(|event| event.name.as_str())
        .collect();
    let message = format!("The {} data has no samples!", input.path.display());
    CliError::message(255, message).hint(format!(
        "none of these events occurred while recording: {}",
        names.join(", ")
    ))
}

fn none_left(input: &Input) -> CliError {
    let message = format!("The {} data has no samples!", input.path.display());
    CliError::message(255, message)
        .hint("--time, --cpu, --hide-unresolved and such leave none of them")
}

/// What is asked of a recording.
struct Question<'q> {
    plan: &'q Plan,
    tracepoints: &'q Tracepoints<'q>,
    tables: &'q [Table],
    select: Option<&'q dyn Select>,
    /// The stretches of time that were asked for.
    times: Option<&'q str>,
    /// The socket that was asked for.
    socket: Option<i32>,
    /// The socket of each processor.
    sockets: Vec<i32>,
    /// `--inline`, `--no-inline`.
    inlines: Option<bool>,
    symbols: &'q Symbols,
    /// Threads to work with.
    jobs: NonZeroUsize,
    /// Whether what would spoil the report is looked for.
    hints: bool,
    /// Whether it is asked of the whole recording.
    is_all: bool,
}

/// What was counted.
struct Counts {
    histograms: Vec<Histogram>,
    /// By event the stretches of code between branches, where these are shown.
    blocks: Vec<BlockTable>,
    branches: BranchCounts,
    stacks: StackSummary,
    /// What would spoil the truth of the report.
    hints: Vec<String>,
}

/// Counts the samples of every event, and the user stacks that were unwound for it.
fn count(
    context: &Context,
    replay: &Replay<'_>,
    question: &Question<'_>,
) -> Result<Counts, CliError> {
    let data = replay.data();
    let mut options = question.plan.options.clone();
    let threads = question.jobs;
    let resolver = question
        .symbols
        .resolver(context, replay.world(), data.features());
    let limit = unwinding_limit(data.described(), &mut options);
    let mut source = Source {
        groups: question
            .tables
            .iter()
            .map(|table| table.events.clone())
            .collect(),
        sockets: question.sockets.clone(),
        payloads: &question.tracepoints.text(&resolver),
        ..source(data.described(), question.inlines)
    };
    if question.plan.options.branch_chains {
        let with_branches = data.events().iter().map(settings::has_branches);
        let chains = source.callchains.iter_mut().zip(with_branches);
        chains.for_each(|(has, branches)| *has |= branches);
    }
    let naming = Naming::new(&options, &source, &resolver, threads);
    let select = question.select;
    let (folded, stacks) = fold(replay, (&naming, &resolver), limit, select, threads);
    let branches = folded.branch_counts.clone();
    let histograms = naming.histograms(folded);
    let blocks = match question.plan.shows_blocks {
        true => blocks(replay, &resolver, question)?,
        false => Vec::new(),
    };
    if question.is_all {
        tell_of_symbols(context, &resolver, question.plan.options.places);
    }
    let hints = match question.hints {
        true => diagnose(replay, &resolver, question.select, threads),
        false => Vec::new(),
    };
    Ok(Counts {
        histograms,
        blocks,
        branches,
        stacks,
        hints,
    })
}

/// By event, the stretches of code between branches.
fn blocks(
    replay: &Replay<'_>,
    resolver: &Resolver<'_>,
    question: &Question<'_>,
) -> Result<Vec<BlockTable>, CliError> {
    let events = replay.data().events();
    let mut branches = events.iter().map(|event| event.attr.branch_sample_type);
    let all = branches.any(|branches| branches.contains(BranchSampleType::ANY));
    let select = question.select;
    let folded = replay.fold(question.jobs, || Blocks::new(resolver, select, all));
    let tables = folded.tables(events.len());
    match tables.iter().all(|table| table.cycles == 0) {
        true => Err(CliError::message(
            255,
            "--total-cycles was given, but the processor counted no cycles between branches",
        )),
        false => Ok(tables),
    }
}

/// The socket of each processor, if the recording tells.
fn sockets(recording: Described<'_>) -> Vec<i32> {
    let topology = recording.features.cpu_topology();
    let places = topology.map(|topology| topology.cpus).unwrap_or_default();
    places.iter().map(|place| place.socket).collect()
}

/// Whether no event of it has samples; a group's leader alone may have none.
fn is_empty(histogram: &Histogram) -> bool {
    histogram.all.samples == 0 && histogram.whole().samples == 0
}

/// Whether a person reads the report. Advice is for readers: scripts get the same text every time.
fn is_read(context: &Context, settings: &Settings) -> bool {
    context.output.is_terminal() && !settings.quiet
}

/// Writes the reports of the events that have samples, in the order of the file.
fn print(
    context: &Context,
    question: &Question<'_>,
    counts: &Counts,
    lost: u64,
    settings: &Settings,
) -> io::Result<()> {
    let out = &mut context.stdout();
    let values = &question.plan.values;
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (*key, &**value)).collect();
    write_values(out, &values)?;
    if !settings.quiet {
        write_lost(out, lost)?;
    }
    for (table, histogram) in question.tables.iter().zip(&counts.histograms) {
        if settings.skip_empty && is_empty(histogram) {
            continue;
        }
        let event = Event {
            name: &table.name,
            plural: table.plural,
            times: question.times,
            socket: question.socket,
            costs_by: question.plan.costs_by.as_deref(),
            histogram,
            blocks: table
                .events
                .first()
                .and_then(|event| counts.blocks.get(*event)),
        };
        write_event(out, event, &question.plan.layout, settings.quiet)?;
    }
    if is_read(context, settings) {
        write_tip(out, settings.tip())?;
    }
    out.flush()
}
