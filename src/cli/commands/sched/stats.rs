//! `sched stats`: counters of `/proc/schedstat` in recordings of `sched stats record`.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::sched::stats::SchedStats;
use rperf_perfdata::PerfData;
use rperf_sys::CpuList;
use rperf_view::sched::stats::{write_diff, write_report};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, OpenedInput, foreign};
use crate::cli::options::{counter, flag, unsupported, value};

const ABOUT: &str = "\
Shows how much the scheduler's counters in /proc/schedstat grew: calls of the scheduler, run times and waits of each CPU, and load balancing in each \
of its domains. 'sched stats report' shows the averages over all CPUs and each CPU, 'sched stats diff' compares the averages of two recordings, by default \
perf.data.old and perf.data. The counters are recorded by Linux perf 7.0 and later ('perf sched stats record'), on kernels with CONFIG_SCHEDSTATS.";

/// The hint if the subcommand is missing or unknown.
const KNOWN: &str = "use 'sched stats report' or 'sched stats diff'";

/// The options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("sched stats")
        .long_about(ABOUT)
        .arg(
            value("cpu", "cpus")
                .short('C')
                .help("only these CPUs: 0,2-3"),
        )
        .arg(unsupported("dump-raw-trace", "use Linux perf").short('D'))
        .arg(input::force())
        .arg(input::option())
        .arg(
            counter("verbose")
                .short('v')
                .help("describe the counters instead of naming them"),
        )
        .arg(Arg::new("words").num_args(0..).value_name("word"))
}

/// Prints the counters.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let program = context.program;
    let words = matches.get_many::<String>("words").unwrap_or_default();
    let words: Vec<&str> = words.map(String::as_str).collect();
    let cpus = matches.get_one::<String>("cpu").map(|list| {
        CpuList::parse(list).map_err(|error| CliError::usage(format!("-C {list}: {error}")))
    });
    let cpus = cpus.transpose()?;
    let cpus = cpus.as_ref().map(CpuList::numbers);
    let is_verbose = context.verbosity(matches) > 0;
    let read = |path: Option<PathBuf>| read(path, cpus, matches, context);
    match &words[..] {
        ["report"] => {
            let given = matches.get_one::<String>("input").map(PathBuf::from);
            let stats = read(given)?;
            context.paginate("sched")?;
            write_report(&mut context.stdout(), &stats, is_verbose)?;
        }
        ["diff", files @ ..] => {
            let [before, after] = compared(files, matches)?;
            let stats = [read(Some(before.clone()))?, read(Some(after.clone()))?];
            check_versions(&before, &after, &stats)?;
            context.paginate("sched")?;
            write_diff(&mut context.stdout(), &stats[0], &stats[1], is_verbose)?;
        }
        [] => {
            let message = format!("{program} sched stats: no subcommand given");
            return Err(CliError::usage(message).hint(KNOWN));
        }
        ["record", ..] => {
            return Err(CliError::usage(format!(
                "{program}: 'sched stats record' is not implemented; use Linux perf 7.0 or later"
            )));
        }
        ["report", word, ..] | [word, ..] => {
            let message = format!("{program} sched stats: unexpected word '{word}'");
            return Err(CliError::usage(message).hint(KNOWN));
        }
    }
    Ok(ExitStatus::Ok)
}

/// Returns the two files of a comparison.
fn compared(files: &[&str], matches: &ArgMatches) -> Result<[PathBuf; 2], CliError> {
    if matches.contains_id("input") {
        return Err(CliError::usage(
            "sched stats diff: -i applies to 'sched stats report'; give two recordings, BASELINE NEW",
        ));
    }
    match files {
        [] => Ok(["perf.data.old", "perf.data"].map(PathBuf::from)),
        [after] => Ok(["perf.data.old", after].map(PathBuf::from)),
        [before, after] => Ok([before, after].map(PathBuf::from)),
        _ => Err(CliError::usage(
            "sched stats diff: give two recordings, BASELINE NEW",
        )),
    }
}

/// Reads the counters of a recording.
fn read(
    path: Option<PathBuf>,
    cpus: Option<&[u32]>,
    matches: &ArgMatches,
    context: &Context,
) -> Result<SchedStats, CliError> {
    let force = flag(matches, "force") == Some(true);
    let input = OpenedInput::named(path, force, context)?.complete(context)?;
    let data = PerfData::parse_with_any_events(&input.bytes);
    let data = data.map_err(|cause| foreign(&input.path, &cause))?;
    input.warn_of_damage(&data, context);
    SchedStats::of_recording(&data, cpus).map_err(|error| {
        let error = anyhow::Error::new(error).context(input.path.display().to_string());
        CliError::failure(255, error).hint("record with 'perf sched stats record'")
    })
}

/// Rejects recordings of different versions of `/proc/schedstat`, as their counters differ.
fn check_versions(before: &Path, after: &Path, stats: &[SchedStats; 2]) -> Result<(), CliError> {
    let [first, second] = stats.each_ref().map(|stats| stats.version);
    if first == second {
        return Ok(());
    }
    Err(CliError::message(
        255,
        format!(
            "{} has version {first} of /proc/schedstat, {} has version {second}: their counters differ",
            before.display(),
            after.display()
        ),
    ))
}
