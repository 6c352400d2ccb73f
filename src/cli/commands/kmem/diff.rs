//! `kmem diff`: the allocations in two recordings.

use std::path::PathBuf;

use clap::{ArgMatches, Command};
use rperf_view::kmem::comparison::{RecordedUsage, UsageDiffKey, compare, write, write_json};
use rperf_view::kmem::usage::UsageTotals;

use super::recorded_allocators;
use super::usage::UsageNames;
use super::usage_keys::{self, KeyPart, UsageAnalysis, UsageKeys};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, OpenedInput};
use crate::cli::jobs::{self, jobs};
use crate::cli::options::{counter, flag, number, switch, value};
use crate::cli::shared::analysis::Analysis;
use crate::cli::shared::losses::conclude;
use crate::cli::shared::recording_pair;
use crate::cli::symbol_options::SymbolSources;
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Compares the allocations of two recordings, by default by caller and cache: bytes and allocations per second, bytes that were not freed, and their growth per \
second. Rates are per second between the first and the last event, so that recordings of different length can be compared. Callers are matched by \
function and offset: compare different kernels with --by function,cache. Without files it compares perf.data.old with perf.data.";

/// The number of rows shown by default; with `--json`, all are shown.
const ROWS: u64 = 20;

/// The numbers that may be wrong where records were lost.
const DOUBTFUL: &str = "sums of allocations";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    let [page, slab] = recorded_allocators();
    Command::new("kmem diff")
        .long_about(ABOUT)
        .args([
            usage_keys::option("caller,cache"),
            value("line", "n")
                .short('l')
                .value_parser(number)
                .help("show only the first n rows (default: 20)"),
            value("sort", "key").short('s').help(
                "sort by the largest difference in: bytes, hit, growth, live (bytes not freed) (default: bytes)",
            ),
            switch("json").help("print the rows as JSON, sizes in bytes"),
            input::force(),
            counter("verbose")
                .short('v')
                .help("list all stretches of time in which records were lost"),
            page,
            switch("raw-ip").help("show addresses of callers instead of symbols"),
            slab,
            symbol_args::vmlinux().short(None),
            symbol_args::kallsyms(),
            symbol_args::symfs(),
            jobs::option(),
        ])
        .arg(recording_pair::operands())
}

/// Prints the comparison.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let [before, after] = recording_pair::earlier_and_later(matches, "kmem diff")?;
    let sort = sort_key(matches)?;
    let keys = UsageKeys::given(matches, &[KeyPart::Caller, KeyPart::Cache])?;
    let recordings = [
        recorded_usage(before, &keys, matches, context)?,
        recorded_usage(after, &keys, matches, context)?,
    ];
    let rows = compare(&recordings, sort);
    let is_json = flag(matches, "json") == Some(true);
    let row_limit = matches.get_one::<u64>("line").copied();
    let row_limit = row_limit.unwrap_or(if is_json { u64::MAX } else { ROWS });
    let row_limit = usize::try_from(row_limit).unwrap_or(usize::MAX);
    context.paginate("kmem")?;
    let out = &mut context.stdout();
    match is_json {
        true => {
            let rows = rows.get(..row_limit).unwrap_or(&rows);
            write_json(out, &recordings, rows, &keys.titles())?;
        }
        false => write(out, &recordings, &rows, row_limit)?,
    }
    Ok(ExitStatus::Ok)
}

fn sort_key(matches: &ArgMatches) -> Result<UsageDiffKey, CliError> {
    let Some(word) = matches.get_one::<String>("sort") else {
        return Ok(UsageDiffKey::Bytes);
    };
    Ok(match word.as_str() {
        "bytes" => UsageDiffKey::Bytes,
        "hit" => UsageDiffKey::Hits,
        "growth" => UsageDiffKey::Growth,
        "live" => UsageDiffKey::Live,
        _ => {
            return Err(CliError::usage(format!("Unknown --sort key: '{word}'"))
                .hint("the keys are bytes, hit, growth and live"));
        }
    })
}

/// Returns the allocations of the recording at `path`, summed up by `keys`, each row with its names. Warns about
/// lost records.
fn recorded_usage(
    path: PathBuf,
    keys: &UsageKeys,
    matches: &ArgMatches,
    context: &Context,
) -> Result<RecordedUsage, CliError> {
    let force = flag(matches, "force") == Some(true);
    let symbols = SymbolSources::new(matches, context)?.with_recording(&path);
    let input = OpenedInput::named(Some(path), force, context)?.complete(context)?;
    let data = input.parse(context)?;
    let analysis = Analysis::open(&input, &data, jobs(matches, context)?, context)?;
    let resolver = analysis.resolver(&symbols);
    let UsageAnalysis {
        report,
        delivered,
        losses,
        has_objects,
    } = keys.analyse(&analysis, &resolver, matches)?;
    let names = UsageNames {
        keys,
        resolver: &resolver,
        // The World: the processes and cgroups of the recording.
        world: analysis.replay.world(),
        is_raw: flag(matches, "raw-ip") == Some(true),
    };
    let all_rows = usize::MAX;
    let usage = RecordedUsage {
        seconds: report.seconds(),
        // `has_objects`: events of the slab allocator were read, not only those of the page allocator.
        totals: UsageTotals::of(&report, has_objects),
        rows: names.named(&report, all_rows),
    };
    conclude(&analysis, delivered, &losses, DOUBTFUL, matches)?;
    Ok(usage)
}
