//! Candidates for the arguments of a command that are not options.

use std::ffi::OsString;

use super::candidates::{Candidate, Completion, ShellCandidates, commands};
use crate::cli::config;
use crate::cli::shared::built_in_scripts;

/// The kinds that the help of `list` names.
const KINDS: [(&str, &str); 8] = [
    ("hw", "hardware events"),
    ("sw", "software events"),
    ("cache", "hardware cache events"),
    ("pmu", "PMU events"),
    ("tracepoint", "tracepoints"),
    ("sdt", "USDT probes"),
    ("metric", "metrics"),
    ("metricgroup", "metric groups"),
];

/// Returns candidates for an argument of `command`. `before` is the number of arguments before it, without options; `typed` is
/// the part of the argument that has been typed. The string of [`ShellCandidates::Files`] is the text of the argument before the
/// file name; here it is always empty, because the whole argument is the file name.
pub(super) fn of(command: &str, before: usize, typed: &str) -> Completion {
    match (command, before) {
        ("archive", 0) => ShellCandidates::Files(String::new()).into(),
        ("completion", 0) => {
            // The completion scripts, one per shell.
            let shells = super::SCRIPTS.iter();
            let candidate = |shell: &str| Candidate::new(shell, format!("the script for {shell}"));
            shells
                .map(|(shell, _)| candidate(shell))
                .collect::<Vec<_>>()
                .into()
        }
        ("config", _) => {
            let names = config::known_settings();
            names
                .map(|name| Candidate::new(name, ""))
                .collect::<Vec<_>>()
                .into()
        }
        ("data", 0) => vec![
            Candidate::new("convert", "convert the recording to another format"),
            Candidate::new("check", "check the recording for damage"),
        ]
        .into(),
        ("data", _) => ShellCandidates::Files(String::new()).into(),
        ("diff" | "kmem diff" | "sched diff" | "sched stats diff", _) => {
            ShellCandidates::Files(String::new()).into()
        }
        ("help", 0) => {
            let mut topics = commands();
            topics.push(Candidate::new("examples", "example command lines"));
            topics.into()
        }
        ("list", _) => {
            let kinds = KINDS.iter();
            let candidates = kinds.map(|(word, meaning)| Candidate::new(*word, *meaning));
            candidates.collect::<Vec<_>>().into()
        }
        // A path before the definition names the program or library.
        ("probe", 0) if typed.starts_with('/') => ShellCandidates::Files(String::new()).into(),
        _ => Completion::default(),
    }
}

/// Candidates for the last of `words`. `words` are the arguments of `script` from the first that is not an option: a script, or
/// `record` or `report` with a script, then the script's arguments, for which files are offered.
pub(super) fn of_script(words: &[OsString]) -> Completion {
    let mut scripts: Vec<Candidate> = built_in_scripts::SCRIPTS
        .iter()
        .map(|script| Candidate::new(script.name, script.description))
        .collect();
    match words {
        [_] => {
            scripts.push(Candidate::new("record", "record what a script needs"));
            scripts.push(Candidate::new("report", "run a script on a recording"));
            scripts.into()
        }
        [verb, _] if verb == "record" || verb == "report" => scripts.into(),
        _ => ShellCandidates::Files(String::new()).into(),
    }
}
