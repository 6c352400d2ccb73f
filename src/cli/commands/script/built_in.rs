//! Those scripts of Linux perf that are built in: `script report NAME`, `script record NAME`, `script NAME`, `script -l`.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;

use clap::ArgMatches;
use rperf_events::nearest;

use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, Exit};
use crate::cli::options::flag;

/// One of them; `flamegraph` does the work.
struct Script {
    name: &'static str,
    /// What its list shows behind the name.
    arguments: &'static str,
    description: &'static str,
    /// What its samples are recorded with.
    record: &'static [&'static str],
    /// What makes it of `flamegraph`.
    words: &'static [&'static str],
    /// Its own options, and those that stand for them.
    options: &'static [(&'static str, &'static [&'static str])],
}

const SCRIPTS: [Script; 2] = [
    Script {
        name: "flamegraph",
        arguments: "[-f svg|json] [-o file]",
        description: "stacks as a picture, or as a tree in JSON",
        record: &["-g"],
        words: &[],
        options: &[("-f", &["--format"]), ("--format", &["--format"])],
    },
    Script {
        name: "stackcollapse",
        arguments: "",
        description: "stacks in lines, with their samples at the end",
        record: &[],
        words: &["--folded"],
        options: &[
            ("--include-pid", &["--root", "pid"]),
            ("--include-tid", &["--root", "tid"]),
            ("--no-comm", &["--root", "none"]),
            ("--kernel", &["--marks"]),
        ],
    },
];

/// Their names, each with what it does.
pub(in crate::cli::commands) fn names() -> impl Iterator<Item = (&'static str, &'static str)> {
    SCRIPTS
        .iter()
        .map(|script| (script.name, script.description))
}

/// Lists them, as `perf script --list` does.
pub(super) fn list(context: &Context) -> Result<Exit, CliError> {
    let mut out = context.stdout();
    writeln!(out, "List of available trace scripts:")?;
    for script in &SCRIPTS {
        let call = format!("{} {}", script.name, script.arguments);
        writeln!(out, "  {:<36} {}", call.trim_end(), script.description)?;
    }
    Ok(Exit::Ok)
}

/// Runs the script that words name; `None` where there are none.
///
/// # Errors
///
/// Status 129: a name that none of them has.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Option<Exit>, CliError> {
    let words = matches.get_many::<OsString>("script-word");
    let words: Vec<&OsString> = words.unwrap_or_default().collect();
    let Some((first, rest)) = words.split_first() else {
        return Ok(None);
    };
    let (verb, name, rest) = match (first.to_str(), rest) {
        (Some(verb @ ("record" | "report")), [name, rest @ ..]) => (verb, *name, rest),
        _ => ("", *first, rest),
    };
    let script = SCRIPTS.iter().find(|script| name == script.name);
    let script = script.ok_or_else(|| unknown(context, &name.to_string_lossy()))?;
    if verb == "record" {
        let words = script.record.iter().map(OsString::from);
        let words: Vec<OsString> = words.chain(rest.iter().copied().cloned()).collect();
        return dispatch(context, OsStr::new("record"), &words).map(Some);
    }
    let mut call: Vec<OsString> = script.words.iter().map(OsString::from).collect();
    if let Some(input) = matches.get_one::<String>("input") {
        call.extend(["-i".into(), input.into()]);
    }
    if flag(matches, "force") == Some(true) {
        call.push("-f".into());
    }
    match (verb, rest) {
        ("report", _) => call.extend(rest.iter().flat_map(|word| script.translated(word))),
        (_, []) => return Err(lacks_command(context, script)),
        (_, [first, ..]) => {
            call.extend((*first != "--").then(|| OsString::from("--")));
            call.extend(rest.iter().copied().cloned());
        }
    }
    dispatch(context, OsStr::new("flamegraph"), &call).map(Some)
}

impl Script {
    /// What stands for one of its words.
    fn translated(&self, word: &OsStr) -> Vec<OsString> {
        match self.options.iter().find(|(own, _)| word == *own) {
            Some((_, words)) => words.iter().map(OsString::from).collect(),
            None => vec![word.to_owned()],
        }
    }
}

fn lacks_command(context: &Context, script: &Script) -> CliError {
    let (program, name) = (context.program, script.name);
    CliError::usage(format!("{program} script {name}: no command to record")).hint(format!(
        "'{program} script report {name}' reads a recording"
    ))
}

fn unknown(context: &Context, word: &str) -> CliError {
    let error = CliError::usage(format!(
        "{} script: there is no script '{word}', and others are not run yet",
        context.program
    ));
    let fields = [
        "comm", "tid", "pid", "time", "cpu", "event", "trace", "ip", "sym", "dso", "period",
    ];
    if word.split(',').all(|part| fields.contains(&part)) {
        return error.hint(format!("-F {word} prints these fields; -f is --force"));
    }
    let near = nearest(word, SCRIPTS.iter().map(|script| script.name));
    error.hint(match near {
        Some(near) => format!("the nearest is '{near}'"),
        None => format!("-i {word} reads a recording of that name; --list names the scripts"),
    })
}
