//! `rperf report`: the profile of a recording.

mod args;
mod browse;
mod call_graph;
mod data_output;
mod mode;
mod selection;
mod settings;
mod threads;

use std::io::{self, Write};

use clap::ArgMatches;
use rperf_analysis::{ThreadCounts, running_threads, task_tree};
use rperf_hist::{
    BlockTable, Blocks, BranchCounts, Histogram, NamingContext, Parallelism, RecordingInfo,
    SelectSamples,
};
use rperf_names::first_names;
use rperf_perfdata::PerfData;
use rperf_replay::{DecodeErrors, RecordContent, Replay};
use rperf_resolve::{Resolver, StackSummary};
use rperf_view::dump::Dump;
use rperf_view::report::{
    EventStats, ReportEvent, Stats, ThreadLayout, write_banner, write_branch_counts,
    write_constant_columns, write_event, write_lost, write_stats, write_tasks, write_threads,
    write_tip,
};
use rperf_wire::{BranchSampleType, Record, RecordKind};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::header::print_header;
use crate::cli::input::Input;
use crate::cli::itrace;
use crate::cli::options::flag;
use crate::cli::record_dump;
use crate::cli::report_hints::diagnose;
use crate::cli::shared::analysis::{Analysis, sockets};
use crate::cli::shared::annotation;
use crate::cli::shared::tracepoints::RecordedTracepoints;
use crate::cli::stack_folding::{
    StackFolding, fold, mark_branch_chains, recording_info, stack_copy_size, take_unwinding_limit,
    warn_of_truncated,
};
use crate::cli::symbol_options::SymbolSources;

pub(super) use self::args::command;

use self::data_output::ReportInput;
use self::selection::SampleSelection;
use self::settings::{ReportPlan, ReportSettings};
use crate::cli::event_tables::TableEvents;

/// Maximum number of events that a message lists.
const MAX_LISTED_EVENTS: usize = 8;

/// Returns a copy of the recording with a sample for each branch of its hardware trace; `None` if the recording is used as it is,
/// such as for a record dump.
fn with_trace(
    matches: &ArgMatches,
    context: &Context,
    input: &Input,
) -> Result<Option<Input>, CliError> {
    // Options that print what the file contains, not samples decoded from the trace.
    let without_samples = ["stats", "tasks", "mmaps", "header-only"];
    let is_without_samples = without_samples
        .iter()
        .any(|option| flag(matches, option) == Some(true));
    match is_without_samples || record_dump::is_wanted(matches) {
        true => Ok(None),
        false => {
            // Without `--itrace`, the trace is decoded, too.
            let by_default = true;
            itrace::decoded(input, matches, by_default, context)
        }
    }
}

/// Prints the report, or opens it in the browser.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    refuse_word(matches, context)?;
    if browse::is_wanted(matches, context)? {
        return browse::run(matches, context);
    }
    if matches.contains_id("samples") {
        context.warn("--samples limits the samples that the browser lists; text lists none");
    }
    let job = ReportJob::new(matches, context)?;
    let thread_layout = threads::layout(matches)?;
    let stored = Input::open(matches, context)?;
    let decoded = with_trace(matches, context, &stored)?;
    let input = decoded.as_ref().unwrap_or(&stored);
    let data = input.parse(context)?;
    if flag(matches, "header-only") == Some(true) {
        print_header(context, input, &data, is_full(matches))?;
        return Ok(ExitStatus::Ok);
    }
    let analysis = Analysis::open(input, &data, job.settings.jobs, context)?;
    let replay = &analysis.replay;
    if print_records(matches, &analysis)? {
        return Ok(ExitStatus::Ok);
    }
    let (settings, lost) = (&job.settings, replay.diagnostics().lost_samples);
    let is_all = true;
    let bad_records = job.count(&analysis, is_all, |parameters, counts| {
        analysis.end_progress();
        context.paginate("report")?;
        if let Some(format) = settings.data_format {
            let events = data.events().iter().map(|event| event.name.as_str());
            let report = ReportInput {
                events: &events.collect::<Vec<_>>(),
                lost,
                skips_empty: settings.skips_empty(),
            };
            format.write(&mut context.stdout(), parameters, &counts, &report)?;
            warn_of_truncated(context, &counts.stacks, stack_copy_size(data.events()));
            return Ok(DecodeErrors::default());
        }
        // The header describes the file, not its copy with decoded samples.
        let original = decoded.as_ref().map(|_| stored.parse_quietly(context));
        let original = original.transpose()?;
        let header = original.as_ref().unwrap_or(&data);
        print_start(matches, context, &stored, header)?;
        print(context, parameters, &counts, lost, settings)?;
        let by_thread = thread_layout.map(|layout| (ThreadCounts::of_recording(replay), layout));
        print_rest(context, &counts, by_thread.as_ref())?;
        warn_of_truncated(context, &counts.stacks, stack_copy_size(data.events()));
        // The pass of `--threads` has decode errors of its own.
        Ok(by_thread
            .map(|(threads, _)| threads.bad)
            .unwrap_or_default())
    })?;
    analysis.conclude_with(bad_records)?;
    Ok(ExitStatus::Ok)
}

/// Whether `-I` requests the complete header.
fn is_full(matches: &ArgMatches) -> bool {
    flag(matches, "show-info") == Some(true)
}

/// Prints the header or banner before the report; nothing with `-q`.
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

/// The options and configuration of a report.
struct ReportJob<'j> {
    matches: &'j ArgMatches,
    context: &'j Context,
    settings: ReportSettings,
    selection: SampleSelection,
    /// How the browser annotates code.
    code: annotation::AnnotationRequest,
}

impl<'j> ReportJob<'j> {
    fn new(matches: &'j ArgMatches, context: &'j Context) -> Result<Self, CliError> {
        Ok(Self {
            matches,
            context,
            settings: ReportSettings::new(matches, context)?,
            selection: SampleSelection::new(matches)?,
            code: annotation::AnnotationRequest::of_browser(matches, context)?,
        })
    }

    /// Counts the samples of a recording, and passes the result to `then`. `is_all` is whether `analysis` covers the complete
    /// recording; the browser first shows a part. If `is_all`, this method reports problems with symbols, and damage and losses
    /// before it returns an error because no samples exist or remain. On success, the caller reports damage and losses.
    fn count<R>(
        &self,
        analysis: &Analysis<'_>,
        is_all: bool,
        then: impl FnOnce(&CountParameters<'_>, ReportCounts) -> Result<R, CliError>,
    ) -> Result<R, CliError> {
        let (matches, context, settings) = (self.matches, self.context, &self.settings);
        let Analysis { input, replay, .. } = analysis;
        let data = replay.data();
        let conclude = || match is_all {
            true => analysis.conclude(),
            false => Ok(()),
        };
        if replay.sample_counts().iter().all(|samples| *samples == 0) {
            conclude()?;
            return Err(no_samples(input, data));
        }
        let raw = settings.raw_trace;
        let mut tracepoints = RecordedTracepoints::new(context, &input.path, data.metadata(), raw);
        let parallelism = running_threads(replay).map(Parallelism::new);
        let plan = settings.plan(data.metadata(), &mut tracepoints, parallelism)?;
        let tables = settings.tables(data.metadata());
        let sockets = sockets(data.metadata());
        let selected = self.selection.of(
            replay,
            &sockets,
            plan.options.parallelism.as_ref(),
            settings.jobs,
        )?;
        if plan.options.shows_payload() {
            tracepoints.read()?;
        }
        let parameters = CountParameters {
            plan: &plan,
            tracepoints: &tracepoints,
            tables: &tables,
            select: selected
                .as_ref()
                .map(|selected| selected as &dyn SelectSamples),
            times: self.selection.time(),
            socket: self.selection.socket,
            sockets,
            inlines: flag(matches, "inline"),
            symbols: &settings.symbols,
            finds_problems: is_all
                && is_for_person(context, settings)
                && flag(matches, "hints") != Some(false),
            is_all,
        };
        let counts = count(analysis, &parameters)?;
        if counts.histograms.iter().all(is_empty) {
            conclude()?;
            return Err(no_samples_left(input));
        }
        then(&parameters, counts)
    }
}

/// Prints the parts after the tables: branch counts, counts by thread, hints.
fn print_rest(
    context: &Context,
    counts: &ReportCounts,
    threads: Option<&(ThreadCounts, ThreadLayout)>,
) -> Result<(), CliError> {
    let out = &mut context.stdout();
    write_branch_counts(out, &counts.branches)?;
    if let Some((threads, layout)) = threads {
        write_threads(out, threads, *layout)?;
    }
    for hint in &counts.hints {
        let line = context.output.wrapped(&format!("# hint: {hint}"));
        writeln!(out, "{line}")?;
    }
    out.flush()?;
    Ok(())
}

/// Prints output that is derived from records rather than samples; returns whether any was requested.
fn print_records(matches: &ArgMatches, analysis: &Analysis<'_>) -> Result<bool, CliError> {
    let Analysis {
        context, replay, ..
    } = analysis;
    let dumps = record_dump::is_wanted(matches);
    if dumps || flag(matches, "stats") == Some(true) {
        context.paginate("report")?;
        if dumps {
            print_dump(matches, analysis)?;
        }
        print_stats(context, replay, !dumps)?;
        analysis.conclude()?;
        return Ok(true);
    }
    let with_mappings = flag(matches, "mmaps") == Some(true);
    if with_mappings || flag(matches, "tasks") == Some(true) {
        context.paginate("report")?;
        // The World: all processes and mappings of the recording.
        let tasks = task_tree(replay.world(), with_mappings);
        write_tasks(&mut context.stdout(), &tasks)?;
        context.stdout().flush()?;
        analysis.conclude()?;
        return Ok(true);
    }
    Ok(false)
}

/// Prints a warning if the records cannot be sorted, the header or banner, and every record: in order of time, or in file order
/// with `--disable-order`.
fn print_dump(matches: &ArgMatches, analysis: &Analysis<'_>) -> Result<(), CliError> {
    let Analysis {
        context,
        input,
        replay,
        ..
    } = analysis;
    let path = input.path.to_string_lossy();
    let mut records =
        Dump::new(replay.data().metadata(), &path).with_unhandled(record_dump::UNHANDLED_RECORDS);
    if flag(matches, "disable-order") == Some(true) {
        records = records.in_file_order();
    }
    records.write_start(&mut context.stdout())?;
    print_start(matches, context, input, replay.data())?;
    // No text follows a record.
    record_dump::write(&mut context.stdout(), replay, records, |_, _| Ok(()))?;
    Ok(())
}

/// Prints the number of records of each type, and for each event the number of samples and, if `with_lost`, of lost samples: perf
/// does not count lost samples when dumping records.
fn print_stats(context: &Context, replay: &Replay<'_>, with_lost: bool) -> io::Result<()> {
    let data = replay.data();
    let mut stats = Stats::default();
    // An incomplete or invalid record ends the iteration; `Analysis::conclude` reports it.
    for record in data.records().flatten() {
        stats.add(record.raw.kind);
    }
    if let Some(unpacked) = data.unpacked() {
        stats.add_many(RecordKind::COMPRESSED, unpacked.compressed);
        stats.add_many(RecordKind::COMPRESSED2, unpacked.compressed2);
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

/// Returns the number of lost samples of each event, from LOST_SAMPLES records.
fn lost_samples(replay: &Replay<'_>) -> Vec<u64> {
    let data = replay.data();
    let mut lost = vec![0_u64; data.events().len()];
    for ordered in replay.ordered_records().in_file_order() {
        if let RecordContent::Kernel { record, .. } = ordered.content
            && let Ok(Record::LostSamples(more)) = Record::decode(&record.raw, data.endian())
            && let Some(event) = record.event
            && let Some(lost) = lost.get_mut(event.0 as usize)
        {
            *lost = lost.saturating_add(more.lost);
        }
    }
    lost
}

/// Refuses a positional word. perf takes it as a symbol filter, but often it is the name of a file, given without `-i`.
fn refuse_word(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let Some(word) = matches.get_one::<String>("symbol-filter-word") else {
        return Ok(());
    };
    let error = CliError::usage(format!(
        "{} report: unexpected word '{word}'",
        context.program
    ));
    Err(error.hint(format!(
        "-i {word} reads this file, --symbol-filter {word} shows functions whose names contain it"
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
        first_names(&names, MAX_LISTED_EVENTS)
    ))
}

fn no_samples_left(input: &Input) -> CliError {
    let message = format!("The {} data has no samples!", input.path.display());
    CliError::message(255, message)
        .hint("check the filters (--time, --cpu, --hide-unresolved, ...)")
}

/// The parameters of counting one recording.
struct CountParameters<'q> {
    plan: &'q ReportPlan,
    tracepoints: &'q RecordedTracepoints<'q>,
    tables: &'q [TableEvents],
    select: Option<&'q dyn SelectSamples>,
    /// The time ranges given with `--time`.
    times: Option<&'q str>,
    /// The socket given as filter.
    socket: Option<i32>,
    /// The socket of each CPU.
    sockets: Vec<i32>,
    /// `--inline`, `--no-inline`.
    inlines: Option<bool>,
    symbols: &'q SymbolSources,
    /// Whether to look for problems that distort the report (`--hints`).
    finds_problems: bool,
    /// Whether the complete recording is counted.
    is_all: bool,
}

/// The results of counting.
struct ReportCounts {
    histograms: Vec<Histogram>,
    /// By event, the basic blocks between branches, if shown.
    blocks: Vec<BlockTable>,
    branches: BranchCounts,
    stacks: StackSummary,
    /// Problems that distort the report.
    hints: Vec<String>,
}

/// Counts the samples of every event, and the user stacks that were unwound. Depending on `parameters`, also counts basic blocks,
/// reports problems with symbols, and looks for problems that distort the report.
fn count(
    analysis: &Analysis<'_>,
    parameters: &CountParameters<'_>,
) -> Result<ReportCounts, CliError> {
    let (replay, data, jobs) = (&analysis.replay, analysis.data(), analysis.jobs);
    let mut options = parameters.plan.options.clone();
    let resolver = analysis.resolver(parameters.symbols);
    // If user stacks are unwound, the limit of frames moves from `options` to the unwinder.
    let limit = take_unwinding_limit(data.metadata(), &mut options);
    let mut recording = RecordingInfo {
        groups: parameters
            .tables
            .iter()
            .map(|table| table.events.clone())
            .collect(),
        sockets: parameters.sockets.clone(),
        payloads: &parameters.tracepoints.text(&resolver),
        ..recording_info(data.metadata(), parameters.inlines)
    };
    if parameters.plan.options.branch_chains {
        mark_branch_chains(&mut recording, data.events());
    }
    let naming = NamingContext::new(&options, &recording, &resolver, jobs);
    let select = parameters.select;
    let (folded, stacks) = fold(
        replay,
        &StackFolding {
            naming: &naming,
            resolver: &resolver,
            limit,
            select,
            weight: None, // Samples are weighted with their periods.
            jobs,
        },
    );
    let branches = folded.branch_counts.clone();
    let histograms = naming.histograms(folded);
    let blocks = match parameters.plan.shows_blocks {
        true => blocks(analysis, &resolver, parameters.select)?,
        false => Vec::new(),
    };
    if parameters.is_all {
        // Addresses are shown with `-v`.
        let is_verbose = parameters.plan.options.addresses;
        report_symbol_problems(analysis.context, &resolver, is_verbose);
    }
    let hints = match parameters.finds_problems {
        true => diagnose(replay, &resolver, parameters.select, jobs),
        false => Vec::new(),
    };
    Ok(ReportCounts {
        histograms,
        blocks,
        branches,
        stacks,
        hints,
    })
}

/// Returns the basic blocks between branches, by event; an error if no branch has a cycle count.
fn blocks(
    analysis: &Analysis<'_>,
    resolver: &Resolver<'_>,
    select: Option<&dyn SelectSamples>,
) -> Result<Vec<BlockTable>, CliError> {
    let events = analysis.data().events();
    let mut branches = events.iter().map(|event| event.attr.branch_sample_type);
    // Whether branches of all types were recorded: then a block starts at the target of the previous branch.
    let any_branch = branches.any(|branches| branches.contains(BranchSampleType::ANY));
    let blocks = || Blocks::new(resolver, select, any_branch);
    let folded = analysis.replay.fold(analysis.jobs, blocks);
    let tables = folded.tables(events.len());
    match tables.iter().all(|table| table.total_cycles == 0) {
        true => Err(CliError::message(
            255,
            "--total-cycles: the branch records contain no cycle counts",
        )),
        false => Ok(tables),
    }
}

/// Whether no event of a table has samples. Neither sum is enough: `all` has only the leader of a group, and always includes
/// samples whose rows the filters hide; `total` has all members of a group, but excludes such samples with `--percentage
/// relative`.
fn is_empty(histogram: &Histogram) -> bool {
    histogram.all.samples == 0 && histogram.total().samples == 0
}

/// Whether the output is probably read by a person. Hints and tips are not printed for scripts, whose input should not vary.
fn is_for_person(context: &Context, settings: &ReportSettings) -> bool {
    context.output.is_terminal() && !settings.quiet && settings.data_format.is_none()
}

/// Writes the columns that a filter restricts to a single value (they are not in the tables), the number of lost samples, the
/// tables of events and groups, and a tip. With `--skip-empty`, tables without samples are omitted.
fn print(
    context: &Context,
    parameters: &CountParameters<'_>,
    counts: &ReportCounts,
    lost: u64,
    settings: &ReportSettings,
) -> io::Result<()> {
    let out = &mut context.stdout();
    let values = &parameters.plan.constant_columns;
    let values: Vec<(&str, &str)> = values.iter().map(|(key, value)| (*key, &**value)).collect();
    write_constant_columns(out, &values)?;
    if !settings.quiet {
        write_lost(out, lost)?;
    }
    for (table, histogram) in parameters.tables.iter().zip(&counts.histograms) {
        if settings.skips_empty() && is_empty(histogram) {
            continue;
        }
        let event = ReportEvent {
            name: &table.name,
            plural: table.plural,
            times: parameters.times,
            socket: parameters.socket,
            access_sort_keys: parameters.plan.access_sort_keys.as_deref(),
            histogram,
            blocks: table
                .events
                .first()
                .and_then(|event| counts.blocks.get(*event)),
        };
        write_event(out, event, &parameters.plan.layout, settings.quiet)?;
    }
    if is_for_person(context, settings) {
        let tip = format!("# (Tip: {})", settings.tip());
        write_tip(out, &context.output.wrapped(&tip))?;
    }
    out.flush()
}
