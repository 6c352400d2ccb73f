//! `rperf kwork`: records interrupts, softirqs and work items, and analyses them.

mod details;
mod latency;
mod record;
mod recording;
mod report;
mod table;
mod timehist;
mod top;

use clap::{Arg, ArgMatches, Command};
use rperf_analysis::kwork::{KworkClass, KworkSelection};

pub(super) use self::latency::{command as latency_command, run as latency};
pub(super) use self::report::{command as report_command, run as report};
pub(super) use self::timehist::{command as timehist_command, run as timehist};
pub(super) use self::top::{command as top_command, run as top};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::filter::{cpus, words};
use crate::cli::input;
use crate::cli::options::{counter, given_value, unsupported, value};
use crate::cli::shared::subcommands::{self, split_words, words_option};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
'kwork record' records interrupts, softirqs and work items (of workqueues) on the whole system. 'kwork report' shows how long \
each of them ran, 'kwork latency' how long they were pending, and 'kwork timehist' each run. 'kwork top' shows the CPU time of tasks \
without that of interrupts; it needs a recording of 'kwork -k sched,irq,softirq record'. -i and -k may precede the subcommand.";

const SUBCOMMANDS: &str =
    "use 'kwork record', 'kwork report', 'kwork latency', 'kwork timehist' or 'kwork top'";

/// The numbers that may be wrong where records of a CPU were lost, for the warning; "its" refers to the CPU.
const DOUBTFUL: &str = "run times and delays of its work";

/// The command that prints the times of events, for the hint if `--time` is invalid.
const TIMES_PRINTED_BY: &str = "kwork timehist";

/// The subcommands, which may be abbreviated to three or more letters, as in perf.
const ABBREVIATED: &[&str] = &["record", "report", "latency", "timehist", "top"];

/// The options of `kwork` and of its subcommands that read a recording.
fn common() -> [Arg; 5] {
    [
        unsupported("dump-raw-trace", "use 'script -D'").short('D'),
        input::force(),
        input::option(),
        value("kwork", "class[,class...]")
            .short('k')
            .help("only these classes: irq, softirq, workqueue, sched"),
        counter("verbose")
            .short('v')
            .help("list all stretches of time in which records were lost"),
    ]
}

/// The options that select work; `name_help` is the help of `-n`.
fn filters(name_help: &'static str) -> [Arg; 3] {
    [
        value("cpu", "cpu[,cpu...]")
            .short('C')
            .help("only these CPUs: 0,2-3"),
        value("name", "name").short('n').help(name_help),
        value("time", "start,end").help(
            "only events of this time range: seconds, or percent of the recording: 10%/2, 10%-20%",
        ),
    ]
}

/// Options on the sources of symbols.
fn symbol_options() -> [Arg; 3] {
    // The short form of --vmlinux elsewhere, -k, selects classes in `kwork`.
    let vmlinux = symbol_args::vmlinux().short(None);
    [vmlinux, symbol_args::kallsyms(), symbol_args::symfs()]
}

/// `-b`, which Linux perf refuses too if it is built without BPF.
fn use_bpf() -> Arg {
    unsupported("use-bpf", "record with 'kwork record'").short('b')
}

/// Returns the command with its options.
pub(super) fn command() -> Command {
    Command::new("kwork")
        .long_about(ABOUT)
        .args(common())
        .arg(words_option())
}

/// Returns the complete name of an abbreviated subcommand, and any other word unchanged.
pub(super) fn full_name(word: &str) -> &str {
    subcommands::full_name(word, ABBREVIATED)
}

/// Runs `kwork record`; refuses other words. The subcommands that read a recording are commands of their own, and are not run
/// from here.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<ExitStatus, CliError> {
    let (name, rest) = split_words("kwork", SUBCOMMANDS, matches, context)?;
    match full_name(&name) {
        "record" => record::run(&rest, matches, context),
        _ => Err(subcommands::unknown_subcommand(
            "kwork",
            &name,
            SUBCOMMANDS,
            context,
        )),
    }
}

/// Returns the classes of `-k` in the given order, each once; `None` if `-k` is not given.
fn classes(matches: &ArgMatches) -> Result<Option<Vec<KworkClass>>, CliError> {
    let Some(list) = given_value::<String>(matches, "kwork") else {
        return Ok(None);
    };
    let mut classes: Vec<KworkClass> = Vec::new();
    for word in list.split([',', ' ']).filter(|word| !word.is_empty()) {
        let class = KworkClass::named(word).ok_or_else(|| {
            // The text of Linux perf, although the option is -k (`--kwork`) and the word should be a class.
            let error = CliError::usage(format!("  Error: Unknown --event key: `{word}'"));
            // The hint names --vmlinux for users who gave a kernel image to -k, as in other commands.
            error.hint("-k: the classes are irq, softirq, workqueue and sched; --vmlinux names a kernel image")
        })?;
        if !classes.contains(&class) {
            classes.push(class);
        }
    }
    match classes.is_empty() {
        true => Err(CliError::usage("-k: no class given")
            .hint("the classes are irq, softirq, workqueue and sched")),
        false => Ok(Some(classes)),
    }
}

/// Returns the selection by `-C` and `-n` among work of `classes`.
fn selection(matches: &ArgMatches, classes: Vec<KworkClass>) -> Result<KworkSelection, CliError> {
    let name = matches.get_one::<String>("name");
    Ok(KworkSelection {
        classes,
        cpus: cpus(matches)?,
        name: name.map(|name| name.clone().into_bytes()),
    })
}

/// Parses the keys of `-s`, each with `named`; returns `default` if `-s` is not given. `known` lists the names, for messages.
fn sort_keys<K: Copy>(
    matches: &ArgMatches,
    default: &[K],
    known: &str,
    named: impl Fn(&str) -> Option<K>,
) -> Result<Vec<K>, CliError> {
    let Some(list) = words(matches, "sort") else {
        return Ok(default.to_vec());
    };
    let keys = list.iter().map(|word| {
        named(word.trim()).ok_or_else(|| {
            let error = CliError::usage(format!("  Error: Unknown --sort key: `{word}'"));
            error.hint(format!("the keys are {known}"))
        })
    });
    keys.collect()
}
