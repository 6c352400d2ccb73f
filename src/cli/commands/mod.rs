//! The commands. Dispatch, help, `--list-cmds` and the manual use the table [`COMMANDS`].

mod annotate;
mod archive;
mod bench;
mod buildid_cache;
mod buildid_list;
mod check;
mod completion;
mod config;
mod data;
mod diff;
mod evlist;
mod flamegraph;
mod heatmap;
mod help;
mod histogram;
mod inject;
mod kallsyms;
mod kmem;
mod kwork;
mod list;
mod lock;
mod probe;
mod record;
mod report;
mod sched;
mod script;
mod stat;
mod subcommands;
mod test;
mod timechart;
mod top;
mod trace;
mod version;

#[cfg(test)]
pub(crate) use self::bench::benchmark_commands;
use clap::{ArgMatches, Command};

pub(crate) use self::subcommands::SUBCOMMANDS;
use super::context::Context;
use super::error::{CliError, ExitStatus};
use rperf_names::nearest;

/// A command or a subcommand.
pub(crate) struct CommandEntry {
    /// The words on the command line; several for a subcommand.
    pub(crate) name: &'static str,
    /// A summary of one line.
    pub(crate) summary: &'static str,
    /// Its synopses, without the name.
    pub(crate) usage: &'static [&'static str],
    /// Builds the options of this command only: a run rarely needs those of other commands.
    pub(crate) build: fn() -> Command,
    /// Runs the command.
    pub(crate) run: fn(&ArgMatches, &Context) -> Result<ExitStatus, CliError>,
}

impl CommandEntry {
    /// Returns the title of the command's help.
    pub(crate) fn title(&self) -> CommandTitle<'static> {
        CommandTitle {
            name: self.name,
            summary: self.summary,
            usage: self.usage,
        }
    }
}

/// The title of a command's help: name, summary and synopses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandTitle<'a> {
    /// The words on the command line.
    pub(crate) name: &'a str,
    /// A summary of one line.
    pub(crate) summary: &'a str,
    /// Its synopses, without the name.
    pub(crate) usage: &'a [&'a str],
}

/// Every command, in the order of the help.
pub(crate) const COMMANDS: &[CommandEntry] = &[
    CommandEntry {
        name: "annotate",
        summary: "Show the instructions of sampled functions, with source lines",
        usage: &["[<options>] [<symbol>]"],
        build: annotate::command,
        run: annotate::run,
    },
    CommandEntry {
        name: "archive",
        summary: "Pack the objects of a recording for another machine",
        usage: &["[<options>] [<file>]"],
        build: archive::command,
        run: archive::run,
    },
    CommandEntry {
        name: "bench",
        summary: "Measure the kernel, the machine and this program",
        usage: &[
            "[<options>] <collection> <benchmark> [<options>]",
            "[<options>] <collection> all",
            "[<options>] all",
        ],
        build: bench::command,
        run: bench::run,
    },
    CommandEntry {
        name: "buildid-cache",
        summary: "Add files to the build-id cache, list and remove them",
        usage: &["[<options>]"],
        build: buildid_cache::command,
        run: buildid_cache::run,
    },
    CommandEntry {
        name: "buildid-list",
        summary: "List the build-ids of a recording, an ELF file or the kernel",
        usage: &["[<options>]"],
        build: buildid_list::command,
        run: buildid_list::run,
    },
    CommandEntry {
        name: "check",
        summary: "Check whether features are built in",
        usage: &["[<options>] feature <name>[,<name>]..."],
        build: check::command,
        run: check::run,
    },
    CommandEntry {
        name: "completion",
        summary: "Print the completion script for a shell",
        usage: &["[<options>] bash|zsh|fish", "words -- <word>..."],
        build: completion::command,
        run: completion::run,
    },
    CommandEntry {
        name: "config",
        summary: "Show and change settings",
        usage: &["[<options>]", "[<options>] <section.name>[=<value>]..."],
        build: config::command,
        run: config::run,
    },
    CommandEntry {
        name: "data",
        summary: "Convert a recording for other tools, or check it for damage",
        usage: &["convert [<options>]", "check [<options>] [<file>]"],
        build: data::command,
        run: data::run,
    },
    CommandEntry {
        name: "diff",
        summary: "Compare the profiles of recordings",
        usage: &[
            "[<options>] [<baseline>] [<file>]...",
            "[<options>] --runs <file>... -- <file>...",
        ],
        build: diff::command,
        run: diff::run,
    },
    CommandEntry {
        name: "evlist",
        summary: "List the events of a recording",
        usage: &["[<options>]"],
        build: evlist::command,
        run: evlist::run,
    },
    CommandEntry {
        name: "flamegraph",
        summary: "Draw a flame graph of a recording or a command",
        usage: &["[<options>]", "[<options>] -- <command> [<options>]"],
        build: flamegraph::command,
        run: flamegraph::run,
    },
    CommandEntry {
        name: "heatmap",
        summary: "Draw a heat map of sample times or latencies",
        usage: &[
            "[<options>]",
            "[<options>] --from <event> --to <event>",
            "[<options>] --latencies <file>",
        ],
        build: heatmap::command,
        run: heatmap::run,
    },
    CommandEntry {
        name: "help",
        summary: "Show the manual of a command, or examples",
        usage: &["[<command>]", "examples", "--man <directory>"],
        build: help::command,
        run: help::run,
    },
    CommandEntry {
        name: "histogram",
        summary: "Count fields, periods or latencies by size",
        usage: &[
            "[<options>] <event> [<field>|period]",
            "[<options>] <event> <field>|period <seconds>",
            "[<options>] <event> [<field>|period] -- <command>",
            "[<options>] --from <event> --to <event> [<seconds>]",
        ],
        build: histogram::command,
        run: histogram::run,
    },
    CommandEntry {
        name: "inject",
        summary: "Copy a recording: add build-ids or JIT code, or remove names",
        usage: &["[<options>]"],
        build: inject::command,
        run: inject::run,
    },
    CommandEntry {
        name: "kallsyms",
        summary: "Look up functions of the running kernel",
        usage: &["[<options>] <name>..."],
        build: kallsyms::command,
        run: kallsyms::run,
    },
    CommandEntry {
        name: "kmem",
        summary: "Record allocations of kernel memory; show sums",
        usage: &[
            "[<options>] record [<record options>] [<command>]",
            "[<options>] stat [<options>]",
            "[<options>] usage [<options>]",
            "[<options>] leaks [<options>]",
            "[<options>] fragmentation [<options>]",
            "[<options>] diff [<options>] [<baseline>] [<new>]",
        ],
        build: kmem::command,
        run: kmem::run,
    },
    CommandEntry {
        name: "kwork",
        summary: "Record interrupts, softirqs and work items; show times",
        usage: &[
            "[<options>] record [<record options>] [<command>]",
            "[<options>] report [<options>]",
            "[<options>] latency [<options>]",
            "[<options>] timehist [<options>]",
            "[<options>] top [<options>]",
        ],
        build: kwork::command,
        run: kwork::run,
    },
    CommandEntry {
        name: "list",
        summary: "List the events that can be counted and recorded",
        usage: &[
            "[<options>] [<pattern>]...",
            "[<options>] hw|sw|cache|pmu|tracepoint|sdt|metric|metricgroup",
        ],
        build: list::command,
        run: list::run,
    },
    CommandEntry {
        name: "lock",
        summary: "Record waits for locks of the kernel; show times",
        usage: &[
            "[<options>] record [<record options>] [<command>]",
            "[<options>] contention [<options>]",
            "[<options>] deadlock [<options>]",
            "[<options>] info [<options>]",
            "[<options>] report [<options>]",
            "[<options>] script [<script options>]",
        ],
        build: lock::command,
        run: lock::run,
    },
    CommandEntry {
        name: "probe",
        summary: "Define probe events at functions and lines, with variables",
        usage: &[
            "[<options>] <definition>",
            "[<options>] --add <definition> [--add <definition>]...",
            "--del [<group>:]<event>",
            "--list [[<group>:]<event>]",
            "[<options>] --line <range>",
            "[<options>] --vars <place>",
            "[<options>] --funcs [<pattern>]",
        ],
        build: probe::command,
        run: probe::run,
    },
    CommandEntry {
        name: "record",
        summary: "Sample a command or the system and write perf.data",
        usage: &[
            "[<options>] [<command>]",
            "[<options>] -- <command> [<options>]",
        ],
        build: record::command,
        run: record::run,
    },
    CommandEntry {
        name: "report",
        summary: "Read perf.data and show a profile",
        usage: &["[<options>]"],
        build: report::command,
        run: report::run,
    },
    CommandEntry {
        name: "sched",
        summary: "Record scheduler events, and show run times and delays",
        usage: &[
            "record [<record options>] [<command>]",
            "[<options>] latency [<options>]",
            "[<options>] timehist [<options>]",
            "[<options>] map [<options>]",
            "[<options>] off-cpu [<options>]",
            "[<options>] perfetto [<options>]",
            "[<options>] replay [<options>]",
            "[<options>] script [<script options>]",
            "diff [<options>] [<baseline>] [<new>]",
            "stats [<options>] [<command>]",
        ],
        build: sched::command,
        run: sched::run,
    },
    CommandEntry {
        name: "script",
        summary: "Read perf.data and print its samples",
        usage: &[
            "[<options>]",
            "[<options>] report <script> [<options>]",
            "[<options>] record <script> [<options>] <command>",
            "[<options>] <script> <command>",
        ],
        build: script::command,
        run: script::run,
    },
    CommandEntry {
        name: "stat",
        summary: "Count events of a command or the system",
        usage: &[
            "[<options>] [<command>]",
            "[<options>] -- <command> [<options>]",
            "record [<options>] [<command>]",
            "report [<options>]",
        ],
        build: stat::command,
        run: stat::run,
    },
    CommandEntry {
        name: "test",
        summary: "Check this machine and this program, or run a workload",
        usage: &[
            "[<options>] [<test>]...",
            "list [<test>]...",
            "-w <workload> [<argument>]...",
        ],
        build: test::command,
        run: test::run,
    },
    CommandEntry {
        name: "timechart",
        summary: "Draw what CPUs and tasks did over time",
        usage: &[
            "[<options>]",
            "[<options>] record [<record options>] [<command>]",
        ],
        build: timechart::command,
        run: timechart::run,
    },
    CommandEntry {
        name: "top",
        summary: "Show a live profile of the system",
        usage: &["[<options>]"],
        build: top::command,
        run: top::run,
    },
    CommandEntry {
        name: "trace",
        summary: "Show system calls and other events as they happen",
        usage: &[
            "[<options>] [<command>]",
            "record [<record options>] [<command>]",
        ],
        build: trace::command,
        run: trace::run,
    },
    CommandEntry {
        name: "version",
        summary: "Show the version and the build options",
        usage: &["[<options>]"],
        build: version::command,
        run: version::run,
    },
];

/// Commands of Linux perf that are not implemented, each with the alternative.
const UNSUPPORTED_COMMANDS: &[(&str, &str)] = &[
    ("c2c", "use Linux perf"),
    ("daemon", "run 'record --switch-output' as a service"),
    ("ftrace", "use Linux perf or trace-cmd"),
    ("iostat", "use Linux perf"),
    ("kvm", "use Linux perf"),
    ("mem", "use Linux perf"),
];

/// Returns the subcommand of `command` that `word` names, abbreviated if the command allows it; `None` if there is none.
pub(crate) fn subcommand(command: &CommandEntry, word: &str) -> Option<&'static CommandEntry> {
    let word = match command.name {
        "kmem" => kmem::full_name(word),
        "kwork" => kwork::full_name(word),
        "lock" => lock::full_name(word),
        "sched" => sched::full_name(word),
        "timechart" => timechart::full_name(word),
        _ => word,
    };
    let is_named = |entry: &&CommandEntry| {
        let suffix = entry.name.strip_prefix(command.name);
        suffix.and_then(|rest| rest.strip_prefix(' ')) == Some(word)
    };
    SUBCOMMANDS.iter().find(is_named)
}

/// Returns the command of this name.
///
/// # Errors
///
/// Status 129: a command of Linux perf that is not implemented. Status 1: an unknown command.
pub(crate) fn find(context: &Context, name: &str) -> Result<&'static CommandEntry, CliError> {
    if let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name) {
        return Ok(entry);
    }
    let program = context.program;
    if let Some((_, instead)) = UNSUPPORTED_COMMANDS
        .iter()
        .find(|(unsupported, _)| *unsupported == name)
    {
        return Err(CliError::usage(format!(
            "{program}: '{name}' is not implemented; {instead}"
        )));
    }
    let known = COMMANDS
        .iter()
        .map(|entry| entry.name)
        .chain(UNSUPPORTED_COMMANDS.iter().map(|(name, _)| *name));
    let error = CliError::message(
        1,
        format!("{program}: '{name}' is not a perf-command. See '{program} --help'."),
    );
    Err(match nearest(name, known) {
        Some(near) => error.hint(format!("did you mean '{near}'?")),
        None => error,
    })
}
