//! Values of options as candidates.

use clap::Arg;
use rperf_events::branch_names;
use rperf_events::list::{Kind, Row};
use rperf_hist::{field_names, find_field};
use rperf_lines::Fields;

use super::answer::{Answer, Candidate, Source};
use crate::cli::commands::list;
use crate::cli::context::Context;

/// Values of options that take one of a few words, by command (any if it is empty) and option.
const CHOICES: &[(&str, &str, &[&str])] = &[
    ("", "affinity", &["sys", "node", "cpu"]),
    (
        "",
        "clockid",
        &["monotonic", "monotonic_raw", "realtime", "boottime", "tai"],
    ),
    (
        "",
        "colors",
        &[
            "hot", "kind", "java", "js", "perl", "mem", "io", "red", "orange", "yellow", "green",
            "aqua", "blue", "purple",
        ],
    ),
    ("", "cputype", &["core", "atom"]),
    ("", "debug", &["verbose"]),
    ("", "per-cache", &["l1", "l2", "l3"]),
    (
        "",
        "percent-type",
        &["local-period", "local-hits", "global-period", "global-hits"],
    ),
    ("", "pretty", &["normal", "raw"]),
    ("", "stdio-color", &["always", "never", "auto"]),
    ("", "switch-output", &["signal"]),
    ("", "threads", &["cpu", "core", "package", "numa"]),
    ("", "unwind", &["later", "live"]),
    ("record", "call-graph", &["fp", "dwarf", "lbr"]),
    ("top", "call-graph", &["fp", "dwarf"]),
];

/// The same for options that take a list of words.
const LISTS: &[(&str, &str, &[&str])] = &[
    ("", "synth", &["no", "all", "task", "mmap", "cgroup"]),
    (
        "report",
        "call-graph",
        &[
            "graph", "fractal", "flat", "folded", "none", "caller", "callee", "function",
            "address", "srcline", "branch", "percent", "period", "count",
        ],
    ),
];

/// Commands whose `-e` names events of this machine, not of a recording.
const OBSERVERS: &[&str] = &["flamegraph", "record", "stat", "stat record", "top"];

/// A value that is being typed.
pub(super) struct Place<'a> {
    /// The command, empty for the program itself.
    pub(super) command: &'a str,
    /// The option.
    pub(super) arg: &'a Arg,
    /// What is before the value in its word: `--sort=`, `-e` or nothing.
    pub(super) prefix: &'a str,
    /// The value as far as it is typed.
    pub(super) value: &'a str,
}

impl Place<'_> {
    /// What may take its place.
    pub(super) fn answer(&self, context: &Context) -> Answer {
        let id = self.arg.get_id().as_str();
        let names = self.arg.get_value_names().unwrap_or_default();
        let name = names.first().map_or("", |name| name.as_str());
        if let Some(words) = self.find(CHOICES) {
            return self.one_of(words.iter().copied());
        }
        if let Some(words) = self.find(LISTS) {
            return self.list_of(words.iter().copied());
        }
        match (name, id) {
            ("file" | "path" | "program or library" | "module or its file", _) => {
                Source::Files(self.prefix.to_owned()).into()
            }
            ("file[,file...]", _) => {
                Source::Files(format!("{}{}", self.prefix, self.head())).into()
            }
            ("directory" | "folder", _) => Source::Directories(self.prefix.to_owned()).into(),
            (_, "event" | "switch-output-event") if OBSERVERS.contains(&self.command) => {
                self.events(&list::events(context)).into()
            }
            (_, "metrics") => self.list_of(list::metrics(context).iter().map(String::as_str)),
            (_, "branch-filter") => self.list_of(branch_names()),
            (_, "sort") => self.list_of(sort_keys()),
            (_, "fields") if self.command == "script" => {
                self.list_of(Fields::ALL.iter().map(rperf_lines::Field::name))
            }
            (_, "fields") => self.list_of(field_names()),
            _ => self.one_of(alternatives(name)),
        }
    }

    /// The words of a table.
    fn find(
        &self,
        table: &[(&str, &str, &'static [&'static str])],
    ) -> Option<&'static [&'static str]> {
        let id = self.arg.get_id().as_str();
        let found = table.iter().find(|(command, option, _)| {
            *option == id && (command.is_empty() || *command == self.command)
        });
        found.map(|(_, _, words)| *words)
    }

    /// The elements of a list that are typed, with the comma behind them.
    fn head(&self) -> &str {
        let end = self.value.rfind(',').map_or(0, |comma| comma + 1);
        self.value.get(..end).unwrap_or_default()
    }

    fn one_of<'w>(&self, words: impl Iterator<Item = &'w str>) -> Answer {
        let prefix = self.prefix;
        let candidate = |word: &str| Candidate::new(format!("{prefix}{word}"), "");
        words.map(candidate).collect::<Vec<_>>().into()
    }

    /// Elements that are not in the list already.
    fn list_of<'w>(&self, words: impl Iterator<Item = &'w str>) -> Answer {
        let head = self.head();
        let given: Vec<&str> = head.split(',').collect();
        // A sign before the first element belongs to the list: -F +addr.
        let sign = match self.value.get(..1) {
            Some(sign @ ("+" | "-")) if head.is_empty() => sign,
            _ => "",
        };
        let prefix = format!("{}{head}{sign}", self.prefix);
        let left = words.filter(|word| !given.contains(word));
        let candidate = |word: &str| Candidate::new(format!("{prefix}{word}"), "");
        left.map(candidate).collect::<Vec<_>>().into()
    }

    /// Names of events, in lists and groups. Those that have a system are offered once the system is typed.
    fn events(&self, rows: &[Row]) -> Vec<Candidate> {
        let start = self.value.rfind([',', '{']).map_or(0, |at| at + 1);
        let (head, name) = self.value.split_at_checked(start).unwrap_or_default();
        let prefix = format!("{}{head}", self.prefix);
        let mut found: Vec<Candidate> = Vec::new();
        // The terms of a PMU are no names.
        if self.value.contains('/') {
            return found;
        }
        let typed = name.split_once(':').map(|(system, _)| system);
        for row in rows {
            let system = match row.kind {
                Kind::Tracepoint | Kind::Sdt => row.name.split_once(':').map(|(system, _)| system),
                _ => None,
            };
            let word = match (system, typed) {
                (Some(system), None) => format!("{system}:"),
                (Some(system), Some(typed)) if system == typed => row.name.clone(),
                (None, None) => event_name(row).to_owned(),
                _ => continue,
            };
            let word = format!("{prefix}{word}");
            if found.last().is_none_or(|last| last.word != word) {
                found.push(Candidate::new(word, row.kind.to_string()));
            }
        }
        found
    }
}

/// What names the event alone: with its PMU if it has one.
fn event_name(row: &Row) -> &str {
    match (row.kind, &row.alias) {
        (Kind::Pmu, Some(alias)) => alias,
        _ => &row.name,
    }
}

/// The keys of `--sort`.
fn sort_keys() -> impl Iterator<Item = &'static str> {
    field_names().filter(|name| find_field(name).is_some_and(|field| field.key().is_some()))
}

/// The words that the name of a value lists: `svg|json`, `n|max`; single letters stand for numbers.
fn alternatives(name: &str) -> impl Iterator<Item = &str> {
    let is_list = name.contains('|');
    let words = name.split('|').filter(move |_| is_list);
    let plain = words.map(|word| word.split(['[', ',']).next().unwrap_or_default());
    plain.filter(|word| word.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::{COMMANDS, PARTS};
    use crate::cli::globals;
    use crate::cli::options::{list as list_option, value};

    #[test]
    fn tables_hold_words_that_the_help_of_their_options_names() {
        for (command, option, words) in CHOICES.iter().chain(LISTS) {
            let all = COMMANDS.iter().chain(PARTS);
            let of = all.filter(|entry| command.is_empty() || entry.name == *command);
            let built = of.map(|entry| (entry.build)()).chain([globals::options()]);
            let commands: Vec<clap::Command> = built.collect();
            let found = commands.iter().flat_map(clap::Command::get_arguments);
            let texts = found.filter(|arg| arg.get_id() == *option).map(|arg| {
                format!(
                    "{:?} {} {}",
                    arg.get_value_names(),
                    arg.get_help().cloned().unwrap_or_default(),
                    arg.get_long_help().cloned().unwrap_or_default()
                )
            });
            let text: String = texts.collect();
            for word in *words {
                assert!(text.contains(word), "{command} --{option} {word}: {text}");
            }
        }
    }

    fn words(arg: &Arg, prefix: &str, value: &str, rows: &[Row]) -> Vec<String> {
        let place = Place {
            command: "record",
            arg,
            prefix,
            value,
        };
        place
            .events(rows)
            .into_iter()
            .map(|found| found.word)
            .collect()
    }

    #[test]
    fn events_are_completed_in_lists_and_groups_and_by_system() {
        let row = |kind, name: &str| Row {
            name: name.to_owned(),
            alias: None,
            kind,
            terms: None,
            config: None,
            described: None,
        };
        let rows = [
            row(Kind::Hardware, "cycles"),
            row(Kind::Tracepoint, "sched:sched_switch"),
            row(Kind::Tracepoint, "sched:sched_waking"),
        ];
        let arg = list_option("event", "event");
        assert_eq!(words(&arg, "", "", &rows), ["cycles", "sched:"]);
        assert_eq!(
            words(&arg, "-e", "{x,c", &rows),
            ["-e{x,cycles", "-e{x,sched:"]
        );
        assert_eq!(
            words(&arg, "", "cycles,sched:s", &rows),
            ["cycles,sched:sched_switch", "cycles,sched:sched_waking"]
        );
        assert!(words(&arg, "", "cpu/ev", &rows).is_empty());
    }

    #[test]
    fn lists_leave_out_what_they_have_and_keep_their_sign() {
        let arg = value("sort", "key[,key...]");
        let complete = |value| {
            let place = Place {
                command: "report",
                arg: &arg,
                prefix: "--sort=",
                value,
            };
            let found = place.list_of(["comm", "dso"].into_iter()).candidates;
            found
                .into_iter()
                .map(|found| found.word)
                .collect::<Vec<_>>()
        };
        assert_eq!(complete("comm,"), ["--sort=comm,dso"]);
        assert_eq!(complete("+"), ["--sort=+comm", "--sort=+dso"]);
    }

    #[test]
    fn names_of_values_may_list_them() {
        assert_eq!(alternatives("n|max").collect::<Vec<_>>(), ["max"]);
        assert_eq!(
            alternatives("fp|dwarf[,bytes]").collect::<Vec<_>>(),
            ["fp", "dwarf"]
        );
        assert_eq!(alternatives("text").count(), 0);
    }
}
