//! `rperf diff`: compares the samples or the counts of recordings.

mod args;
mod counting;
mod counts;
mod runs;
mod settings;
mod streams;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;

use clap::ArgMatches;
use rperf_hist::{
    Block, BlockLine, ComparedRow, Comparison, ComparisonMethod, Histogram, compare_blocks,
};
use rperf_names::counted;
use rperf_perfdata::FeatureId;
use rperf_view::diff::{DiffEvent, write_diff, write_json};

use self::counting::{ComparedEvent, SamplesFile};
use self::counts::CountsFile;
use self::settings::DiffSettings;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::OpenedInput;

pub(super) use self::args::command;

/// Maximum number of rows that a message lists.
const LISTED: usize = 3;

/// A file to compare.
enum ComparedFile {
    /// A recording with samples.
    Samples(SamplesFile),
    /// A file of `stat record`.
    Counts(CountsFile),
}

impl ComparedFile {
    /// Reads a file; `number` is its index among the files to compare.
    fn read(
        path: &Path,
        number: usize,
        settings: &DiffSettings,
        context: &Context,
    ) -> Result<Self, CliError> {
        let opened = OpenedInput::named(Some(path.to_owned()), settings.force, context)?;
        let input = opened.complete(context)?;
        let data = input.parse(context)?;
        match data.features().has(FeatureId::STAT) {
            true => {
                let name = path.display().to_string();
                CountsFile::read(name, &input, &data, context).map(Self::Counts)
            }
            false => {
                SamplesFile::count(&input, &data, number, settings, context).map(Self::Samples)
            }
        }
    }
}

/// The comparison of one event of the baseline.
struct EventComparison {
    name: String,
    comparison: Comparison,
    /// With `-c cycles`, the blocks of each row.
    blocks: Option<Vec<Vec<BlockLine>>>,
    /// Whether another file has the event.
    is_paired: bool,
}

/// Prints the comparison of samples, or of counts if all files are of `stat record`.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let settings = DiffSettings::new(matches, context)?;
    if settings.streams {
        let compared = streams::run(&settings, context);
        return compared.map_err(|error| with_advice(error, matches, context));
    }
    let (mut files, mut counts_files) = (Vec::new(), Vec::new());
    for (number, path) in settings.files.iter().enumerate() {
        let file = ComparedFile::read(path, number, &settings, context);
        match file.map_err(|error| with_advice(error, matches, context))? {
            ComparedFile::Samples(file) => files.push(file),
            ComparedFile::Counts(file) => counts_files.push(file),
        }
    }
    match (files.first(), counts_files.first()) {
        (Some(samples), Some(counts)) => {
            let message = format!("{} has counts, {} has samples", counts.name, samples.name);
            return Err(CliError::message(255, message).hint("compare files of one kind"));
        }
        (None, Some(_)) => {
            let printed = counts::print(&counts_files, &settings, matches, context);
            // A damaged file is reported after what could be read of it was printed; so are damaged files with samples below.
            for file in counts_files {
                file.damage?;
            }
            return printed.map(|()| ExitStatus::Ok);
        }
        _ => {}
    }
    warn_of_files(&files, &settings, context);
    let compared = compare(&files, &settings, context);
    // `--runs`: the recordings are two groups of runs.
    if let Some(options) = &settings.runs {
        let printed = runs::print(&files, &compared, options, &settings, context);
        for file in files {
            file.damage?;
        }
        return printed.map(|()| ExitStatus::Ok);
    }
    print(&files, &compared, &settings, context)?;
    if files.iter().all(|file| file.sample_count() == 0) {
        return Err(CliError::message(
            255,
            "nothing to compare: no file has samples",
        ));
    }
    if !compared.iter().any(|event| event.is_paired) {
        return Err(no_pairs(&files));
    }
    for file in files {
        file.damage?;
    }
    check_growth(changes(&compared), settings.fail_above, PERCENTAGE_POINTS)?;
    Ok(ExitStatus::Ok)
}

/// Adds a hint on the default files to an error without hints, if fewer than two files are given.
fn with_advice(error: CliError, matches: &ArgMatches, context: &Context) -> CliError {
    let given = ["files", "new-files"].map(|id| matches.get_many::<String>(id));
    let is_default_used = given.into_iter().flatten().flatten().count() < 2;
    match is_default_used && !error.has_hints() {
        true => error.hint(format!(
            "name both files: '{} diff OLD NEW'; without a second one the baseline is perf.data.old",
            context.program
        )),
        false => error,
    }
}

/// Warns about files without samples and files that are given twice. Suggests `sched diff` if all files have task switches.
fn warn_of_files(files: &[SamplesFile], settings: &DiffSettings, context: &Context) {
    let mut seen = BTreeSet::new();
    for (file, path) in files.iter().zip(&settings.files) {
        let real_path = path.canonicalize().unwrap_or_else(|_| path.clone());
        if !seen.insert(real_path) {
            context.warn(format_args!("{} is compared with itself", file.name));
        }
        if file.sample_count() == 0 {
            context.warn(format_args!("{} has no samples", file.name));
        }
    }
    let has_switches = |file: &SamplesFile| {
        let mut events = file.events.iter();
        events.any(|event| event.name == "sched:sched_switch")
    };
    if files.iter().all(has_switches) {
        context.note(format_args!(
            "hint: '{} sched diff' compares how long tasks waited for a CPU",
            context.program
        ));
    }
}

/// Compares each event of the baseline. If the event has samples in the baseline, warns of each file that lacks the event.
fn compare(
    files: &[SamplesFile],
    settings: &DiffSettings,
    context: &Context,
) -> Vec<EventComparison> {
    let Some((baseline, others)) = files.split_first() else {
        return Vec::new();
    };
    let mut compared = Vec::new();
    for event in &baseline.events {
        let pairs: Vec<_> = others.iter().map(|file| file.pair_of(event)).collect();
        let has_samples = event.histogram.total().samples > 0;
        for (file, _) in others.iter().zip(&pairs).filter(|(_, pair)| pair.is_none()) {
            if has_samples {
                context.warn(format_args!("{} has no event '{}'", file.name, event.name));
            }
        }
        let baseline_event = std::iter::once(Some(event));
        let events: Vec<_> = baseline_event.chain(pairs.iter().copied()).collect();
        let comparison = comparison(&events, settings);
        let has_blocks = settings.compare.method == ComparisonMethod::Cycles;
        compared.push(EventComparison {
            name: event.name.clone(),
            blocks: has_blocks.then(|| blocks(&events, &comparison)),
            comparison,
            is_paired: pairs.iter().any(Option::is_some),
        });
    }
    compared
}

/// The blocks of each row. Rows have the keys dso and symbol, because `-c cycles` excludes `--sort`.
fn blocks(events: &[Option<&ComparedEvent>], comparison: &Comparison) -> Vec<Vec<BlockLine>> {
    let by_function = events.iter().map(|event| {
        let mut functions: BTreeMap<(&str, &str), Vec<&Block>> = BTreeMap::new();
        for block in event.iter().flat_map(|event| &event.blocks) {
            let key = (&*block.object, &*block.function);
            functions.entry(key).or_default().push(block);
        }
        functions
    });
    let by_function: Vec<_> = by_function.collect();
    let rows = comparison.rows.iter().map(|row| {
        // With -v, the cell has the object's path; blocks have its short name.
        let object = row.cells.first().map_or("", |cell| cell.trim());
        let object = object.rsplit('/').next().unwrap_or(object);
        let files = by_function.iter().zip(&row.periods);
        let files = files.map(|(functions, period)| {
            let blocks = functions.get(&(object, &*row.function));
            // `None` if the file has no such row.
            period.map(|_| blocks.cloned().unwrap_or_default())
        });
        compare_blocks(&files.collect::<Vec<_>>())
    });
    rows.collect()
}

/// Compares an event; `events` has `None` for files without it.
fn comparison(events: &[Option<&ComparedEvent>], settings: &DiffSettings) -> Comparison {
    let of_histograms =
        |histograms: Vec<Option<&Histogram>>| Comparison::new(&histograms, &settings.compare);
    let filtered = events
        .iter()
        .map(|event| event.map(|event| &event.histogram));
    let mut comparison = of_histograms(filtered.collect());
    let baseline = events.first().copied().flatten();
    // Unfiltered: without the filters for tasks, dsos and symbols; others apply. These histograms exist only with
    // `--baseline-only` and without `--percentage relative`: the filtered histogram then lacks the total that shares refer to.
    if baseline.is_some_and(|event| event.unfiltered.is_some()) {
        let unfiltered = events
            .iter()
            .map(|event| event.and_then(|event| event.unfiltered.as_ref()));
        comparison.baseline_total = of_histograms(unfiltered.collect()).baseline_total;
    }
    comparison
}

fn print(
    files: &[SamplesFile],
    compared: &[EventComparison],
    settings: &DiffSettings,
    context: &Context,
) -> Result<(), CliError> {
    let names: Vec<String> = files.iter().map(|file| file.name.clone()).collect();
    let events = compared.iter().map(|event| DiffEvent {
        name: &event.name,
        files: &names,
        comparison: &event.comparison,
        blocks: event.blocks.as_deref(),
    });
    let events: Vec<DiffEvent<'_>> = events.collect();
    if settings.json {
        let out = &mut context.stdout();
        write_json(out, &names, &events)?;
        out.flush()?;
        return Ok(());
    }
    context.paginate("diff")?;
    let out = &mut context.stdout();
    for (number, event) in events.iter().enumerate() {
        let is_first = number == 0;
        write_diff(out, event, &settings.layout, is_first)?;
    }
    out.flush()?;
    Ok(())
}

fn no_pairs(files: &[SamplesFile]) -> CliError {
    let listed = files.iter().map(|file| {
        let names: Vec<&str> = file.events.iter().map(|event| &*event.name).collect();
        format!("{} has {}", file.name, names.join(", "))
    });
    let listed: Vec<String> = listed.collect();
    CliError::message(255, "nothing to compare: the files have no event in common")
        .hint(listed.join("; "))
}

/// Returns for each row how much its share changed from the baseline, in percentage points, and the row's name. With several
/// other files, the greatest increase (or the smallest decrease) counts. Files without samples are ignored; if no other file has
/// any, the change is negative infinity, which is above no limit.
fn changes(compared: &[EventComparison]) -> impl Iterator<Item = (f64, String)> {
    let rows = compared.iter().flat_map(|event| {
        let rows = event.comparison.rows.iter();
        rows.map(move |row| (&event.comparison, row))
    });
    rows.map(|(comparison, row)| {
        let has_samples =
            |file: &usize| comparison.totals.get(*file).is_some_and(|total| *total > 0);
        let files = (1..comparison.totals.len()).filter(has_samples);
        let change = files.map(|file| comparison.change(row, file));
        (change.fold(f64::NEG_INFINITY, f64::max), label(row))
    })
}

/// The unit of [`changes`] in a message.
const PERCENTAGE_POINTS: &str = " percentage points";

/// Returns an error with status 1 if a change is above `limit`; the error lists the rows with the greatest changes. `unit` is the
/// unit of the changes and of `limit`.
fn check_growth(
    changes: impl Iterator<Item = (f64, String)>,
    limit: Option<f64>,
    unit: &str,
) -> Result<(), CliError> {
    let Some(limit) = limit else {
        return Ok(());
    };
    let mut grown: Vec<(f64, String)> = changes.filter(|(change, _)| *change > limit).collect();
    if grown.is_empty() {
        return Ok(());
    }
    grown.sort_by(|(left, _), (right, _)| right.total_cmp(left));
    let listed = grown.iter().take(LISTED);
    let listed = listed.map(|(change, name)| format!("{name} ({change:+.2}%)"));
    let mut listed: Vec<String> = listed.collect();
    if grown.len() > LISTED {
        listed.push("...".to_owned());
    }
    let message = format!(
        "{} grew by more than {limit}{unit}: {}",
        counted(grown.len() as u64, "row"),
        listed.join(", ")
    );
    Err(CliError::message(1, message))
}

/// The name of a row in a message: its function or, if it has none, all its keys.
fn label(row: &ComparedRow) -> String {
    match row.function.is_empty() {
        true => {
            let cells: Vec<&str> = row.cells.iter().map(|cell| cell.trim()).collect();
            cells.join(" ")
        }
        false => row.function.clone(),
    }
}
