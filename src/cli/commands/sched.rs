//! `rperf sched`: records the scheduler's events and analyses them.

mod diff;
mod latency;
mod map;
mod off_cpu;
mod perfetto;
mod record;
mod recording;
mod replay;
mod stats;
mod task_lists;
mod timehist;

use std::ffi::{OsStr, OsString};

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::{counter, flag, switch, unsupported};
use crate::cli::shared::subcommands::{self, split_words, words_option};
use crate::cli::{dispatch, input, record_dump};

pub(super) use self::diff::{command as diff_command, run as diff};
pub(super) use self::latency::{command as latency_command, run as latency};
pub(super) use self::map::{command as map_command, run as map};
pub(super) use self::off_cpu::{command as off_cpu_command, run as off_cpu};
pub(super) use self::perfetto::{command as perfetto_command, run as perfetto};
pub(super) use self::replay::{command as replay_command, run as replay};
pub(super) use self::stats::{
    command as stats_command, diff as stats_diff, diff_command as stats_diff_command,
    record as stats_record, record_command as stats_record_command, report as stats_report,
    report_command as stats_report_command, stats,
};
pub(super) use self::timehist::{command as timehist_command, run as timehist};

const ABOUT: &str = "\
'sched record' records context switches, wakeups, migrations and run times of all tasks. 'sched latency' shows the run time \
of each task and how long it waited for a CPU, 'sched timehist' each time that a task ran, 'sched map' the tasks on all CPUs \
after each switch, 'sched off-cpu' where tasks wait and who wakes them. 'sched diff' compares two recordings, 'sched perfetto' \
writes a trace for Perfetto's viewer, 'sched replay' replays the recorded load on this machine, 'sched script' prints the \
events. 'sched stats' shows counters of /proc/schedstat. -i may precede the subcommand.";

/// The hint for a missing or unknown subcommand.
const KNOWN: &str = "\
use 'sched record', 'sched latency', 'sched timehist', 'sched map', 'sched off-cpu', 'sched diff', 'sched perfetto', \
'sched replay', 'sched stats' or 'sched script'";

/// The subcommands that may be abbreviated to three or more letters, as in Linux perf.
const ABBREVIATED: &[&str] = &["record", "latency", "replay"];

/// The options of `sched` and of most of its subcommands that read a recording.
fn common() -> [Arg; 4] {
    [
        switch("dump-raw-trace")
            .short('D')
            .help("first print every record, in hexadecimal and decoded"),
        input::force(),
        input::option(),
        counter("verbose")
            .short('v')
            .help("list all stretches of time in which records were lost"),
    ]
}

/// The common options, with `-D` refused: for subcommands that Linux perf does not have.
fn without_dump() -> [Arg; 4] {
    let [_dump_raw_trace, force, input, verbose] = common();
    let refused = unsupported("dump-raw-trace", "use 'script -D'").short('D');
    [refused, force, input, verbose]
}

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("sched")
        .long_about(ABOUT)
        .args(common())
        .arg(words_option())
}

/// Returns the complete name of an abbreviated subcommand.
pub(super) fn full_name(word: &str) -> &str {
    subcommands::full_name(word, ABBREVIATED)
}

/// Runs the subcommands that call another command (`record`, `script`); refuses unknown ones. All other subcommands are in the
/// table of subcommands and do not get here.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let (name, rest) = split_words("sched", KNOWN, matches, context)?;
    match full_name(&name) {
        "record" => record::run(&rest, matches, context),
        "script" => {
            let words = [reading_options(matches), rest].concat();
            dispatch(context, OsStr::new("script"), &words)
        }
        name => Err(subcommands::unknown_subcommand(
            "sched", name, KNOWN, context,
        )),
    }
}

/// Returns the options given before the subcommand as words for a command that reads a recording.
fn reading_options(matches: &ArgMatches) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    if let Some(path) = matches.get_one::<String>("input") {
        words.extend(["-i".into(), path.into()]);
    }
    if flag(matches, "force") == Some(true) {
        words.push("-f".into());
    }
    if record_dump::is_wanted(matches) {
        words.push("-D".into());
    }
    let verbose = usize::from(matches.get_count("verbose"));
    words.extend(std::iter::repeat_n("-v".into(), verbose));
    words
}
