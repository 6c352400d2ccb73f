//! `sched stats` and `sched stats record`: read the counters before and after a command.

use std::path::PathBuf;

use clap::{ArgMatches, Command};
use rperf_analysis::sched::stats::SchedStats;
use rperf_perfdata::PerfData;
use rperf_session::{SchedstatOutput, SchedstatRequest, SchedstatSummary, observe_schedstat};
use rperf_view::sched::stats::write_report;

use super::{cpu_option, verbose_option, wanted_cpus};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::live::{PROC, explain, workload};
use crate::cli::options::{unsupported, value};
use crate::cli::pmus;
use crate::cli::shared::recording_output;
use crate::cli::shared::sampling::command_line;

const ABOUT: &str = "\
Shows by how much the scheduler's counters of /proc/schedstat rise while a command runs, or until Ctrl-C: calls of the scheduler, run times and waits of each \
CPU, and load balancing in each of its domains. The averages over all CPUs precede the numbers of each CPU.

'sched stats record' writes the counters to a file, 'sched stats report' shows the file, 'sched stats diff' compares the averages of two files. The kernel needs \
CONFIG_SCHEDSTATS. Counters that kernel.sched_schedstats disables are enabled for this time, which needs root.";

const RECORD_ABOUT: &str = "\
Writes the counters of /proc/schedstat to a file, as they are before and after a command, or until Ctrl-C. The kernel needs CONFIG_SCHEDSTATS. Counters \
that kernel.sched_schedstats disables are enabled for this time, which needs root.";

/// The name of the collected data in messages.
const COLLECTED: &str = "/proc/schedstat";
/// The environment variable with the mount point of procfs (default: `/proc`), as in perf 7.2.
const PROC_VARIABLE: &str = "PROCFS_PATH";

/// The options of `sched stats` without a further subcommand.
pub(in crate::cli::commands) fn command() -> Command {
    let report_hint = "use 'sched stats report -i FILE'";
    Command::new("sched stats")
        .long_about(ABOUT)
        .arg(cpu_option())
        .arg(verbose_option())
        .arg(unsupported("force", report_hint).short('f'))
        .arg(unsupported("input", report_hint).short('i').num_args(1))
        .arg(
            unsupported("output", "use 'sched stats record -o FILE'")
                .short('o')
                .num_args(1),
        )
        .arg(unsupported("dump-raw-trace", "use Linux perf").short('D'))
        .arg(workload::words())
}

/// The options of `sched stats record`.
pub(in crate::cli::commands) fn record_command() -> Command {
    Command::new("sched stats record")
        .long_about(RECORD_ABOUT)
        .arg(cpu_option())
        .arg(
            value("output", "file")
                .short('o')
                .help("output file (default: perf.data)"),
        )
        .arg(workload::words())
}

/// Reads the counters before and after the workload, and prints the differences.
pub(in crate::cli::commands) fn run_live(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let no_file = None;
    let observed = observe(matches, context, no_file)?;
    let data = PerfData::parse_even_without_events(&observed.recording);
    let data = data.map_err(|error| CliError::failure(255, error))?;
    // `-C` already limited the observation.
    let all_cpus = None;
    let stats = SchedStats::of_recording(&data, all_cpus);
    let stats = stats.map_err(|error| CliError::failure(255, error))?;
    let is_verbose = context.verbosity(matches) > 0;
    context.paginate("sched")?;
    write_report(&mut context.stdout(), &stats, is_verbose)?;
    Ok(ExitStatus::Ok)
}

/// Writes the counters before and after the workload to a file.
pub(in crate::cli::commands) fn record(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let program = context.program;
    let given = matches.get_one::<String>("output").map(String::as_str);
    if given == Some("-") {
        let message = format!("{program} sched stats record: -o -: the counters need a file");
        return Err(CliError::usage(message));
    }
    let output = SchedstatOutput {
        path: PathBuf::from(given.unwrap_or(crate::cli::input::DEFAULT)),
        naming: recording_output::path_origin(matches),
    };
    let path = output.path.clone();
    observe(matches, context, Some(output))?;
    // perf's message, which calls the counters samples.
    context.note(format_args!(
        "[ {program} sched stats: Wrote samples to {} ]",
        path.display()
    ));
    Ok(ExitStatus::Ok)
}

/// Reads the counters before and after the workload. Also writes them to `output` if given.
fn observe(
    matches: &ArgMatches,
    context: &Context,
    output: Option<SchedstatOutput>,
) -> Result<SchedstatSummary, CliError> {
    let workload = workload::find(matches, context);
    let workload =
        workload.map_err(|(word, cause)| explain::workload_failed(COLLECTED, &word, &cause))?;
    let request = SchedstatRequest {
        proc: context
            .var(PROC_VARIABLE)
            .map_or_else(|| PROC.into(), PathBuf::from),
        sysfs: pmus::sysfs_root(context),
        cpus: wanted_cpus(matches)?,
        workload,
        output,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command_line: command_line(context),
    };
    observe_schedstat(&request).map_err(|error| explain::explain(context, COLLECTED, error))
}
