//! `sched stats report` and `sched stats diff`: counters of `/proc/schedstat` in recordings.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::sched::stats::SchedStats;
use rperf_perfdata::PerfData;
use rperf_sys::CpuList;
use rperf_view::sched::stats::{write_diff, write_report};

use super::{cpu_option, verbose_option, wanted_cpus};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::{self, OpenedInput, invalid_recording};
use crate::cli::options::{flag, unsupported};
use crate::cli::shared::recording_pair;

const REPORT_ABOUT: &str = "\
Shows by how much the scheduler's counters of /proc/schedstat rose during a recording of 'sched stats record': the averages over all CPUs, then each CPU.";

const DIFF_ABOUT: &str = "\
Compares the averages over all CPUs of two recordings of 'sched stats record', by default perf.data.old and perf.data.";

/// The options of `sched stats report`.
pub(in crate::cli::commands) fn report_command() -> Command {
    Command::new("sched stats report")
        .long_about(REPORT_ABOUT)
        .args(reading_options())
        .arg(input::option())
}

/// The options of `sched stats diff`.
pub(in crate::cli::commands) fn diff_command() -> Command {
    Command::new("sched stats diff")
        .long_about(DIFF_ABOUT)
        .args(reading_options())
        .arg(
            unsupported("input", "give two recordings: BASELINE NEW")
                .short('i')
                .num_args(1),
        )
        .arg(recording_pair::operands())
}

fn reading_options() -> [Arg; 4] {
    [
        cpu_option(),
        unsupported("dump-raw-trace", "use Linux perf").short('D'),
        input::force(),
        verbose_option(),
    ]
}

/// Prints the counters of a recording.
pub(in crate::cli::commands) fn report(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let given = matches.get_one::<String>("input").map(PathBuf::from);
    let cpus = wanted_cpus(matches)?;
    let stats = read(given, cpus.as_ref(), matches, context)?;
    let is_verbose = context.verbosity(matches) > 0;
    context.paginate("sched")?;
    write_report(&mut context.stdout(), &stats, is_verbose)?;
    Ok(ExitStatus::Ok)
}

/// Prints the averages of two recordings.
pub(in crate::cli::commands) fn diff(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let cpus = wanted_cpus(matches)?;
    let [before, after] = recording_pair::earlier_and_later(matches, "sched stats diff")?;
    let read = |path: &Path| read(Some(path.to_owned()), cpus.as_ref(), matches, context);
    let stats = [read(&before)?, read(&after)?];
    check_versions(&before, &after, &stats)?;
    let is_verbose = context.verbosity(matches) > 0;
    context.paginate("sched")?;
    write_diff(&mut context.stdout(), &stats[0], &stats[1], is_verbose)?;
    Ok(ExitStatus::Ok)
}

/// Reads the counters of a recording.
fn read(
    path: Option<PathBuf>,
    cpus: Option<&CpuList>,
    matches: &ArgMatches,
    context: &Context,
) -> Result<SchedStats, CliError> {
    let force = flag(matches, "force") == Some(true);
    // `complete` reads a pipe to its end.
    let input = OpenedInput::named(path, force, context)?.complete(context)?;
    let data = PerfData::parse_even_without_events(&input.bytes);
    let data = data.map_err(|cause| invalid_recording(&input.path, &cause))?;
    input.warn_of_damage(&data, context);
    SchedStats::of_recording(&data, cpus.map(CpuList::numbers)).map_err(|error| {
        let error = anyhow::Error::new(error).context(input.path.display().to_string());
        CliError::failure(255, error).hint("record with 'sched stats record'")
    })
}

/// Checks that both recordings have the same version of /proc/schedstat: counters of different versions cannot be compared.
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
