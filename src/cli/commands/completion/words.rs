//! Words of commands that are no options.

use std::ffi::OsString;

use super::answer::{Answer, Candidate, Source, commands};
use crate::cli::commands::script;
use crate::cli::config;

/// The kinds of events that `list` knows by a word.
const KINDS: [(&str, &str); 8] = [
    ("hw", "hardware events"),
    ("sw", "software events"),
    ("cache", "events of caches"),
    ("pmu", "events that PMUs name"),
    ("tracepoint", "tracepoints"),
    ("sdt", "probes that programs bring along"),
    ("metric", "metrics"),
    ("metricgroup", "groups of metrics"),
];

/// What may be the word of `command` after `before` others.
pub(super) fn of(command: &str, before: usize, typed: &str) -> Answer {
    match (command, before) {
        ("archive", 0) => Source::Files(String::new()).into(),
        ("completion", 0) => {
            let shells = super::SCRIPTS.iter();
            let script = |shell: &str| Candidate::new(shell, format!("the script for {shell}"));
            shells
                .map(|(shell, _)| script(shell))
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
            Candidate::new("convert", "write the recording in another format"),
            Candidate::new("check", "report what is wrong with the recording"),
        ]
        .into(),
        ("data", _) => Source::Files(String::new()).into(),
        ("help", 0) => {
            let mut topics = commands();
            topics.push(Candidate::new("examples", "a page of command lines"));
            topics.into()
        }
        ("list", _) => {
            let kinds = KINDS.iter();
            let kind = kinds.map(|(word, meaning)| Candidate::new(*word, *meaning));
            kind.collect::<Vec<_>>().into()
        }
        // A path before the definition names the object.
        ("probe", 0) if typed.starts_with('/') => Source::Files(String::new()).into(),
        _ => Answer::default(),
    }
}

/// What may be the last of the words of `script`: scripts that are built in, and what is theirs.
pub(super) fn of_script(words: &[OsString]) -> Answer {
    let names = script::built_in_names();
    let mut names: Vec<Candidate> = names
        .map(|(name, text)| Candidate::new(name, text))
        .collect();
    match words {
        [_] => {
            names.push(Candidate::new("record", "record what a script needs"));
            names.push(Candidate::new("report", "run a script on a recording"));
            names.into()
        }
        [verb, _] if verb == "record" || verb == "report" => names.into(),
        _ => Source::Files(String::new()).into(),
    }
}
