//! `--stream`: compares the hot streams of two recordings.

use std::io::Write;
use std::path::Path;

use clap::ArgMatches;
use rperf_hist::{
    GraphForm, GraphOptions, HistogramOptions, HotStreams, NamingContext, RecordingInfo,
    ReportField, SelectSamples, find_field,
};
use rperf_perfdata::FeatureId;
use rperf_view::diff::{StreamsEvent, write_streams, write_streams_json};
use rperf_wire::SampleType;

use super::settings::DiffSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::report_symbol_problems;
use crate::cli::input::OpenedInput;
use crate::cli::options::is_given;
use crate::cli::shared::analysis::Analysis;
use crate::cli::stack_folding::{
    StackFolding, fold, has_branches, mark_branch_chains, recording_info, take_unwinding_limit,
};

/// The columns and sort keys of the rows whose callchains are the streams, as in perf; the greatest overhead comes first.
const FIELDS: [&str; 4] = ["overhead", "srcline", "symbol", "dso"];

/// Options of tables, which `--stream` does not print.
const OF_TABLES: [&str; 11] = [
    "runs",
    "baseline-only",
    "compute",
    "period",
    "formula",
    "cycles-hist",
    "order",
    "percentage",
    "sort",
    "field-separator",
    "fail-above",
];

/// The streams of a recording.
struct StreamsFile {
    /// The file as the user named it.
    name: String,
    /// The name and the streams of each event.
    events: Vec<(String, HotStreams)>,
    /// The error if not all records could be read, reported after the comparison.
    damage: Result<(), CliError>,
}

/// Refuses options of tables, and any number of files other than two.
pub(super) fn check(matches: &ArgMatches, files: usize) -> Result<(), CliError> {
    if let Some(option) = OF_TABLES.into_iter().find(|id| is_given(matches, id)) {
        let message = format!("--stream and --{option} exclude each other");
        return Err(CliError::usage(message));
    }
    match files {
        2 => Ok(()),
        _ => Err(CliError::usage("--stream compares two recordings")),
    }
}

/// Prints the streams of the events that both recordings have, paired by name.
pub(super) fn run(settings: &DiffSettings, context: &Context) -> Result<ExitStatus, CliError> {
    let files = settings.files.iter().enumerate();
    let files = files.map(|(number, path)| StreamsFile::read(path, number, settings, context));
    let files = files.collect::<Result<Vec<_>, _>>()?;
    let [before, after] = &files[..] else {
        return Err(CliError::usage("--stream compares two recordings"));
    };
    let mut compared = Vec::new();
    for (name, streams) in &before.events {
        let mut others = after.events.iter();
        match others.find(|(other, _)| other == name) {
            Some((_, other)) => compared.push(StreamsEvent {
                name,
                before: streams,
                after: other,
            }),
            None => context.warn(format_args!("{} has no event '{name}'", after.name)),
        }
    }
    if compared.is_empty() {
        let message = "nothing to compare: the files have no event of the same name";
        return Err(CliError::message(255, message));
    }
    if settings.json {
        let names = [&*before.name, &*after.name];
        write_streams_json(&mut context.stdout(), names, &compared)?;
    } else {
        context.paginate("diff")?;
        let out = &mut context.stdout();
        for event in &compared {
            let escapes_control_characters = context.output.is_terminal();
            write_streams(out, event, escapes_control_characters)?;
        }
    }
    context.stdout().flush()?;
    for file in files {
        file.damage?;
    }
    Ok(ExitStatus::Ok)
}

impl StreamsFile {
    /// Reads a file; `number` is its index among the files to compare.
    fn read(
        path: &Path,
        number: usize,
        settings: &DiffSettings,
        context: &Context,
    ) -> Result<Self, CliError> {
        let name = path.display().to_string();
        let opened = OpenedInput::named(Some(path.to_owned()), settings.force, context)?;
        let input = opened.complete(context)?;
        let data = input.parse(context)?;
        // Streams are made of callchains; branch stacks become callchains, see `options`.
        let has_chains = |sample_type: SampleType| sample_type.contains(SampleType::CALLCHAIN);
        let mut events = data.events().iter();
        let has_stacks =
            events.any(|event| has_branches(event) || has_chains(event.attr.sample_type));
        // A recording of `stat` has counts instead of samples.
        if data.features().has(FeatureId::STAT) || !has_stacks {
            let message = format!("--stream: {name} has neither branch stacks nor callchains");
            return Err(
                CliError::message(255, message).hint("record with 'record -b' or 'record -g'")
            );
        }
        let analysis = Analysis::open(&input, &data, settings.jobs, context)?;
        if settings.dumps {
            context.paginate("diff")?;
            super::counting::dump(&analysis)?;
        }
        let filter = settings.filters.of_file(number);
        // The times of `--time` are those of the recording, not counted from its first sample.
        let relative_times = false;
        let filter = filter.filter(data.metadata(), relative_times)?.non_empty();
        let select = filter.as_ref().map(|filter| filter as &dyn SelectSamples);
        let streams = streams(&analysis, settings, select);
        analysis.end_progress();
        let names = data.events().iter().map(|event| event.name.clone());
        Ok(Self {
            name,
            events: names.zip(streams).collect(),
            damage: analysis.conclude(),
        })
    }
}

/// The streams of each event.
fn streams(
    analysis: &Analysis<'_>,
    settings: &DiffSettings,
    select: Option<&dyn SelectSamples>,
) -> Vec<HotStreams> {
    let data = analysis.data();
    let symbols = settings.symbols.with_recording(&analysis.input.path);
    let resolver = analysis.resolver(&symbols);
    let mut options = options();
    // The maximum number of frames, if user stacks are unwound: then unwinding applies it instead of `options`.
    let limit = take_unwinding_limit(data.metadata(), &mut options);
    // `diff` has no `--inline`.
    let inlines = None;
    let mut source = RecordingInfo {
        // Each event has streams of its own, also if it was recorded in a group.
        groups: (0..data.events().len()).map(|event| vec![event]).collect(),
        ..recording_info(data.metadata(), inlines)
    };
    mark_branch_chains(&mut source, data.events());
    let naming = NamingContext::new(&options, &source, &resolver, analysis.jobs);
    let folding = StackFolding {
        naming: &naming,
        resolver: &resolver,
        limit,
        select,
        // Samples count with their periods.
        weight: None,
        jobs: analysis.jobs,
    };
    // The statistics on unwound stacks are not used: `--stream` does not warn of incomplete stacks.
    let (folded, _) = fold(&analysis.replay, &folding);
    let streams = naming.hot_streams(folded);
    report_symbol_problems(analysis.context, &resolver, settings.verbose);
    streams
}

/// Returns the histogram options: callchains begin with the branches, and their frames are distinguished by source line.
fn options() -> HistogramOptions {
    let fields = FIELDS.iter().filter_map(|key| find_field(key));
    let fields: Vec<ReportField> = fields.collect();
    HistogramOptions {
        columns: fields.clone(),
        order_by: fields,
        branch_chains: true,
        graph: Some(GraphOptions {
            form: GraphForm::Flat,
            min_percent: 0.0,
            by_address: false,
            by_line: true,
            annotates_branches: true,
        }),
        ..HistogramOptions::default()
    }
}
