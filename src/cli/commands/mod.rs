//! The commands. [`COMMANDS`] is the one table: dispatch, help, `--list-cmds` and the manual are made from it.

mod annotate;
mod archive;
mod buildid_cache;
mod buildid_list;
mod completion;
mod config;
mod data;
mod evlist;
mod flamegraph;
mod heatmap;
mod help;
mod kallsyms;
mod list;
pub(super) mod probe;
mod record;
mod report;
mod script;
mod stat;
mod top;
mod version;

use clap::{ArgMatches, Command};

use super::context::Context;
use super::error::{CliError, Exit};
use rperf_events::nearest;

/// One command.
pub(crate) struct Entry {
    /// The word on the command line.
    pub(crate) name: &'static str,
    /// What it does, in one line.
    pub(crate) summary: &'static str,
    /// The forms of its command line after the name.
    pub(crate) usage: &'static [&'static str],
    /// Its options. Built only for the command that runs.
    pub(crate) build: fn() -> Command,
    /// The command itself.
    pub(crate) run: fn(&ArgMatches, &Context) -> Result<Exit, CliError>,
}

/// Every command, in the order the help lists them.
pub(crate) const COMMANDS: &[Entry] = &[
    Entry {
        name: "annotate",
        summary: "Show the instructions that samples fell on, with their source",
        usage: &["[<options>] [<symbol>]"],
        build: annotate::command,
        run: annotate::run,
    },
    Entry {
        name: "archive",
        summary: "Pack the objects that a recording needs, to be read elsewhere",
        usage: &["[<options>] [<file>]"],
        build: archive::command,
        run: archive::run,
    },
    Entry {
        name: "buildid-cache",
        summary: "Add files to the build-id cache, list it, take files out",
        usage: &["[<options>]"],
        build: buildid_cache::command,
        run: buildid_cache::run,
    },
    Entry {
        name: "buildid-list",
        summary: "List the build-ids of a recording, a file or the kernel",
        usage: &["[<options>]"],
        build: buildid_list::command,
        run: buildid_list::run,
    },
    Entry {
        name: "completion",
        summary: "Print the script that completes command lines in a shell",
        usage: &["[<options>] bash|zsh|fish", "words -- <word>..."],
        build: completion::command,
        run: completion::run,
    },
    Entry {
        name: "config",
        summary: "Show and change settings",
        usage: &["[<options>]", "[<options>] <section.name>[=<value>]..."],
        build: config::command,
        run: config::run,
    },
    Entry {
        name: "data",
        summary: "Convert a recording for other tools, or check whether it is whole",
        usage: &["convert [<options>]", "check [<options>] [<file>]"],
        build: data::command,
        run: data::run,
    },
    Entry {
        name: "evlist",
        summary: "List the events of a recording",
        usage: &["[<options>]"],
        build: evlist::command,
        run: evlist::run,
    },
    Entry {
        name: "flamegraph",
        summary: "Draw a recording, or a command while it runs, as a flame graph",
        usage: &["[<options>]", "[<options>] -- <command> [<options>]"],
        build: flamegraph::command,
        run: flamegraph::run,
    },
    Entry {
        name: "heatmap",
        summary: "Draw when samples were taken, or how long things took, as a heat map",
        usage: &["[<options>]", "[<options>] --from <event> --to <event>"],
        build: heatmap::command,
        run: heatmap::run,
    },
    Entry {
        name: "help",
        summary: "Explain a command, or show examples",
        usage: &["[<command>]", "examples", "--man <directory>"],
        build: help::command,
        run: help::run,
    },
    Entry {
        name: "kallsyms",
        summary: "Look up functions of the running kernel",
        usage: &["[<options>] <name>..."],
        build: kallsyms::command,
        run: kallsyms::run,
    },
    Entry {
        name: "list",
        summary: "List the events that can be recorded",
        usage: &["[<options>] [hw|sw|cache|pmu|tracepoint|sdt|<pattern>]..."],
        build: list::command,
        run: list::run,
    },
    Entry {
        name: "probe",
        summary: "Make events at functions and lines of programs, with values of variables",
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
    Entry {
        name: "record",
        summary: "Run a command, or watch the system, and write samples to perf.data",
        usage: &[
            "[<options>] [<command>]",
            "[<options>] -- <command> [<options>]",
        ],
        build: record::command,
        run: record::run,
    },
    Entry {
        name: "report",
        summary: "Read perf.data and show where the time went",
        usage: &["[<options>]"],
        build: report::command,
        run: report::run,
    },
    Entry {
        name: "script",
        summary: "Read perf.data and print every sample",
        usage: &[
            "[<options>]",
            "[<options>] report <script> [<options>]",
            "[<options>] record <script> [<options>] <command>",
            "[<options>] <script> <command>",
        ],
        build: script::command,
        run: script::run,
    },
    Entry {
        name: "stat",
        summary: "Run a command, or watch the system, and count events",
        usage: &[
            "[<options>] [<command>]",
            "[<options>] -- <command> [<options>]",
            "record [<options>] [<command>]",
            "report [<options>]",
        ],
        build: stat::command,
        run: stat::run,
    },
    Entry {
        name: "top",
        summary: "Show which code runs right now",
        usage: &["[<options>]"],
        build: top::command,
        run: top::run,
    },
    Entry {
        name: "version",
        summary: "Show the version and what is built in",
        usage: &["[<options>]"],
        build: version::command,
        run: version::run,
    },
];

/// Parts of commands, which the first word behind these names.
pub(crate) const PARTS: &[Entry] = &[
    Entry {
        name: "stat record",
        summary: "Count events, and keep the counts in a file",
        usage: &[
            "[<options>] [<command>]",
            "[<options>] -- <command> [<options>]",
        ],
        build: stat::record_command,
        run: stat::record,
    },
    Entry {
        name: "stat report",
        summary: "Show counts that were kept",
        usage: &["[<options>]"],
        build: stat::report_command,
        run: stat::report,
    },
];

/// Commands of Linux perf that are not built yet, each with what does the job meanwhile.
const TO_COME: &[(&str, &str)] = &[
    ("bench", "Linux perf has it"),
    ("c2c", "Linux perf has it"),
    ("daemon", "run 'record' from a service"),
    ("diff", "compare two outputs of 'report --stdio'"),
    ("ftrace", "Linux perf and trace-cmd have it"),
    ("inject", "Linux perf has it"),
    ("iostat", "Linux perf has it"),
    ("kmem", "Linux perf has it"),
    ("kvm", "Linux perf has it"),
    ("kwork", "Linux perf has it"),
    ("lock", "Linux perf has it"),
    ("mem", "Linux perf has it"),
    (
        "sched",
        "'record -e context-switches -ag' shows who gives up the processor",
    ),
    ("test", "the tests of the source tree take its place"),
    ("timechart", "Linux perf has it"),
    (
        "trace",
        "'strace -f' follows system calls; to read a file use 'script'",
    ),
];

/// The part of a command that `word` names.
pub(crate) fn part(command: &Entry, word: &str) -> Option<&'static Entry> {
    let name = |entry: &&Entry| {
        let word_of = entry.name.strip_prefix(command.name);
        word_of.and_then(|rest| rest.strip_prefix(' ')) == Some(word)
    };
    PARTS.iter().find(name)
}

/// The command of that name.
pub(crate) fn find(context: &Context, name: &str) -> Result<&'static Entry, CliError> {
    if let Some(entry) = COMMANDS.iter().find(|entry| entry.name == name) {
        return Ok(entry);
    }
    let program = context.program;
    if let Some((_, instead)) = TO_COME.iter().find(|(coming, _)| *coming == name) {
        return Err(CliError::usage(format!(
            "{program}: '{name}' is not built yet; meanwhile: {instead}"
        )));
    }
    let known = COMMANDS
        .iter()
        .map(|entry| entry.name)
        .chain(TO_COME.iter().map(|(name, _)| *name));
    let error = CliError::message(
        1,
        format!("{program}: '{name}' is not a perf-command. See '{program} --help'."),
    );
    Err(match nearest(name, known) {
        Some(near) => error.hint(format!("the nearest command is '{near}'")),
        None => error,
    })
}
