//! Counts the samples of one of the compared recordings.

use std::mem;
use std::num::NonZeroUsize;

use rperf_hist::{
    Block, BlockTable, Blocks, ComparisonMethod, CountedItems, Histogram, HistogramOptions, Key,
    NamingContext, RecordingInfo, SelectSamples, compared_columns,
};
use rperf_perfdata::PerfData;
use rperf_resolve::SampleCriteria;
use rperf_view::dump::Dump;
use rperf_wire::{EventType, RecordKind, SampleType};

use super::settings::DiffSettings;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::Input;
use crate::cli::record_dump;
use crate::cli::shared::analysis::{Analysis, sockets};
use crate::cli::shared::columns::check;
use crate::cli::shared::report_options::{DEFAULT_PARENT_PATTERN, compile};
use crate::cli::shared::tracepoints::RecordedTracepoints;
use crate::cli::stack_folding::{StackFolding, fold, recording_info, take_unwinding_limit};

/// The default sort keys.
const KEYS: &str = "dso,symbol";

/// Types of records that perf's diff does not handle, but its report does.
const UNHANDLED_RECORDS: &[RecordKind] = &[RecordKind::ID_INDEX, RecordKind::EVENT_UPDATE];

/// The counted samples of a recording.
pub(super) struct SamplesFile {
    /// The file as the user named it.
    pub(super) name: String,
    pub(super) events: Vec<ComparedEvent>,
    /// The error if not all records could be read, reported after the comparison.
    pub(super) damage: Result<(), CliError>,
}

/// One event of a recording.
pub(super) struct ComparedEvent {
    pub(super) name: String,
    kind: EventType,
    config: u64,
    pub(super) histogram: Histogram,
    /// The histogram of the samples that are selected without the filters of tasks and code (other filters, such as those of
    /// time, still apply). Only with `--baseline-only` and absolute percentages: the baseline's shares then refer to the sum of
    /// those of its rows that another file has, too. Otherwise `None`.
    pub(super) unfiltered: Option<Histogram>,
    /// With `-c cycles`, the basic blocks between branches.
    pub(super) blocks: Vec<Block>,
}

impl SamplesFile {
    /// Counts the samples of a file; `number` is its index among the compared files.
    pub(super) fn count(
        input: &Input,
        data: &PerfData<'_>,
        number: usize,
        settings: &DiffSettings,
        context: &Context,
    ) -> Result<Self, CliError> {
        let path = &*input.path;
        let analysis = Analysis::open(input, data, settings.jobs, context)?;
        if settings.dumps {
            context.paginate("diff")?;
            dump(&analysis)?;
        }
        let requested = settings.filters.of_file(number);
        // Times are those of the recording's clock.
        let relative_times = false;
        let filter = requested
            .filter(data.metadata(), relative_times)?
            .non_empty();
        let filter_of_total = filter
            .as_ref()
            .and_then(|filter| without_tasks_and_code(filter, settings));
        let mut selections = vec![filter.as_ref().map(|filter| filter as &dyn SelectSamples)];
        selections.extend(filter_of_total.as_ref().map(|filter| Some(filter as _)));
        let (histograms, blocks) = histograms(&analysis, settings, &selections)?;
        let mut histograms = histograms.into_iter();
        let mut blocks = blocks.into_iter();
        let mut filtered = histograms.next().unwrap_or_default();
        // Without a second selection, no event has an unfiltered histogram.
        let mut unfiltered = histograms.next().unwrap_or_default();
        analysis.end_progress();
        let damage = analysis.conclude();
        let events = data.events().iter().enumerate();
        let events = events.map(|(index, event)| ComparedEvent {
            name: event.name.clone(),
            kind: event.attr.kind,
            config: event.attr.config,
            histogram: filtered.get_mut(index).map(mem::take).unwrap_or_default(),
            unfiltered: unfiltered.get_mut(index).map(mem::take),
            blocks: blocks.next().unwrap_or_default().blocks,
        });
        Ok(Self {
            name: path.display().to_string(),
            events: events.collect(),
            damage,
        })
    }

    /// Returns this file's event to compare with `baseline`, an event of the baseline file: the first of the same type and
    /// configuration, otherwise the first of the same name.
    pub(super) fn pair_of(&self, baseline: &ComparedEvent) -> Option<&ComparedEvent> {
        let is_same =
            |event: &&ComparedEvent| (event.kind, event.config) == (baseline.kind, baseline.config);
        let has_name = |event: &&ComparedEvent| event.name == baseline.name;
        let same = self.events.iter().find(is_same);
        same.or_else(|| self.events.iter().find(has_name))
    }

    /// The number of samples of all events.
    pub(super) fn sample_count(&self) -> u64 {
        let events = self.events.iter();
        events.map(|event| event.histogram.total().samples).sum()
    }
}

/// Returns the filter without its conditions on tasks and code, if a second histogram is needed for the total of percentages.
fn without_tasks_and_code(
    filter: &SampleCriteria,
    settings: &DiffSettings,
) -> Option<SampleCriteria> {
    // Unless `--percentage relative` is given, percentages refer to a total that includes the samples of tasks and code that are
    // not selected. Usually it is the histogram's own total, which counts them, too. But with `--baseline-only` it is the sum of
    // the rows that another file has, too, and rows have only selected samples. So the rows are paired and summed a second time,
    // in histograms without these conditions.
    let is_needed = settings.compare.baseline_only && !settings.relative;
    is_needed.then(|| SampleCriteria {
        comms: None,
        pids: None,
        tids: None,
        dsos: None,
        symbols: None,
        ..filter.clone()
    })
}

/// Returns for each selection of samples the histogram of each event; a selection of `None` is all samples. With `-c cycles`,
/// also returns the blocks of each event for the first selection.
fn histograms(
    analysis: &Analysis<'_>,
    settings: &DiffSettings,
    selections: &[Option<&dyn SelectSamples>],
) -> Result<(Vec<Vec<Histogram>>, Vec<BlockTable>), CliError> {
    let data = analysis.data();
    let context = analysis.context;
    // `diff` has neither `--raw-trace` nor `--inline`.
    let (raw, inlines) = (false, None);
    let mut tracepoints =
        RecordedTracepoints::new(context, &analysis.input.path, data.metadata(), raw);
    let mut options = options(settings, &mut tracepoints)?;
    if options.shows_payload() {
        tracepoints.read()?;
    }
    let symbols = settings.symbols.with_recording(&analysis.input.path);
    let resolver = analysis.resolver(&symbols);
    let limit = take_unwinding_limit(data.metadata(), &mut options);
    let source = RecordingInfo {
        // Each event has its own histogram, even if it was recorded in a group.
        groups: (0..data.events().len()).map(|event| vec![event]).collect(),
        sockets: sockets(data.metadata()),
        payloads: &tracepoints.text(&resolver),
        ..recording_info(data.metadata(), inlines)
    };
    let threads: NonZeroUsize = analysis.jobs;
    let histograms = selections.iter().map(|select| {
        let naming = NamingContext::new(&options, &source, &resolver, threads);
        let folding = StackFolding {
            naming: &naming,
            resolver: &resolver,
            limit,
            select: *select,
            weight: None,
            jobs: threads,
        };
        let (folded, _) = fold(&analysis.replay, &folding);
        naming.histograms(folded)
    });
    let histograms = histograms.collect();
    let blocks = match settings.compare.method {
        ComparisonMethod::Cycles => {
            check_branches(analysis)?;
            let select = selections.first().copied().flatten();
            // As in perf, it is assumed that branches of all types were recorded: then each block starts at the target of the
            // previous branch.
            let is_consecutive = true;
            let blocks = || Blocks::new(&resolver, select, is_consecutive);
            let folded = analysis.replay.fold(threads, blocks);
            folded.tables(data.events().len())
        }
        _ => Vec::new(),
    };
    report_symbol_problems(context, &resolver, settings.verbose);
    Ok((histograms, blocks))
}

/// Checks that the samples of at least one event have branch stacks.
fn check_branches(analysis: &Analysis<'_>) -> Result<(), CliError> {
    let mut events = analysis.data().events().iter();
    if events.any(|event| event.attr.sample_type.contains(SampleType::BRANCH_STACK)) {
        return Ok(());
    }
    let path = analysis.input.path.display();
    let error = CliError::message(255, format!("-c cycles: {path} has no branch stacks"));
    Err(error.hint("record them with 'record -b'"))
}

/// Returns the options of the histograms.
fn options(
    settings: &DiffSettings,
    tracepoints: &mut RecordedTracepoints<'_>,
) -> Result<HistogramOptions, CliError> {
    // No default columns of shares: the comparison calculates the shares.
    let resolved = settings.columns.resolve(KEYS, &[], &mut |option, word| {
        tracepoints.find(option, word)
    })?;
    let fields = resolved.columns.iter().chain(&resolved.order_by);
    check(fields.clone(), CountedItems::Samples)?;
    if fields.clone().any(|field| field.number().is_some()) {
        let error = CliError::usage("--sort takes keys, not numbers: rows are paired by keys");
        return Err(error.hint("-p shows periods"));
    }
    let mut keys = fields.filter_map(|field| field.key());
    if keys.clone().any(Key::shows_parallelism) {
        return Err(CliError::usage("--sort parallelism: not supported by diff"));
    }
    let parent = keys.any(Key::shows_parent);
    let parent = parent
        .then(|| compile("parent", DEFAULT_PARENT_PATTERN))
        .transpose()?;
    Ok(HistogramOptions {
        columns: compared_columns(&resolved.columns, &resolved.order_by),
        order_by: resolved.order_by,
        relative: settings.relative,
        addresses: settings.verbose,
        parent,
        ..HistogramOptions::default()
    })
}

/// Prints every record in the format of `report -D`.
pub(super) fn dump(analysis: &Analysis<'_>) -> Result<(), CliError> {
    let path = analysis.input.path.to_string_lossy();
    let records = Dump::new(analysis.metadata(), &path)
        .with_unhandled(record_dump::UNHANDLED_RECORDS)
        .with_unhandled(UNHANDLED_RECORDS);
    Ok(record_dump::write_whole(analysis, records)?)
}
