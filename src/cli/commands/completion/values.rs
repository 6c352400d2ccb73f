//! Completion candidates for the values of options.

use clap::Arg;
use rperf_events::branch_names;
use rperf_events::list::{EventKind, ListedEvent};
use rperf_hist::{field_names, find_field};
use rperf_lines::LineFields;
use rperf_workloads::WORKLOADS;

use super::candidates::{Candidate, Completion, ShellCandidates};
use crate::cli::context::Context;
use crate::cli::shared::event_listing;

/// Values of options that take one of a few words, by command (any if empty) and option. Other options may list their words in
/// the name of the value: see [`alternatives`].
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
            "hot",
            "kind",
            "java",
            "js",
            "perl",
            "mem",
            "io",
            "red",
            "orange",
            "yellow",
            "green",
            "aqua",
            "blue",
            "blue-green",
            "purple",
        ],
    ),
    ("", "cputype", &["core", "atom"]),
    ("", "debug", &["verbose", "perf-event-open", "stderr"]),
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
    ("kmem diff", "sort", &["bytes", "hit", "growth", "live"]),
    (
        "kmem leaks",
        "sort",
        &["suspect", "bytes", "count", "age", "growth"],
    ),
    (
        "kmem usage",
        "sort",
        &["bytes", "hit", "live", "peak", "life"],
    ),
    ("record", "call-graph", &["fp", "dwarf", "lbr"]),
    ("script", "gen-script", &["python", "perl"]),
    ("top", "call-graph", &["fp", "dwarf"]),
    ("trace", "call-graph", &["fp", "dwarf"]),
    ("trace", "pf", &["all", "maj", "min"]),
    ("trace", "summary-mode", &["thread", "total", "cgroup"]),
];

/// Keys of `--by`, by which allocations are summed up.
const KMEM_KEYS: &[&str] = &[
    "stack",
    "caller",
    "function",
    "cache",
    "cgroup",
    "container",
    "process",
];

/// Keys of `--sort` of `kmem` and `kmem stat`, for `--slab` and for `--page`.
const KMEM_SORT_KEYS: &[&str] = &[
    "ptr", "page", "callsite", "bytes", "hit", "pingpong", "frag", "order", "migtype", "gfp",
];

/// Values of options that take a list of words, by command (any if empty) and option.
const LISTS: &[(&str, &str, &[&str])] = &[
    ("", "synth", &["no", "all", "task", "mmap", "cgroup"]),
    ("kmem diff", "by", KMEM_KEYS),
    ("kmem", "sort", KMEM_SORT_KEYS),
    ("kmem stat", "sort", KMEM_SORT_KEYS),
    ("kmem usage", "by", KMEM_KEYS),
    ("kwork latency", "sort", &["avg", "max", "count"]),
    ("kwork report", "sort", &["runtime", "max", "count"]),
    ("kwork top", "sort", &["rate", "runtime", "tid"]),
    (
        "report",
        "call-graph",
        &[
            "graph", "fractal", "flat", "folded", "none", "caller", "callee", "function",
            "address", "srcline", "branch", "percent", "period", "count",
        ],
    ),
    (
        "sched latency",
        "sort",
        &["avg", "max", "switch", "runtime", "pid"],
    ),
];

/// Commands whose `-e` can name events of this machine, not only those of a recording.
const LIVE_COMMANDS: &[&str] = &[
    "flamegraph",
    "record",
    "stat",
    "stat record",
    "top",
    "trace",
];

/// A value that is being typed.
pub(super) struct PartialValue<'a> {
    /// The name of the command, empty for the program itself.
    pub(super) command: &'a str,
    pub(super) arg: &'a Arg,
    /// The text before the value in its word: `--sort=`, `-e` or nothing.
    pub(super) prefix: &'a str,
    /// The typed part of the value.
    pub(super) value: &'a str,
}

impl PartialValue<'_> {
    /// The candidates for the value.
    pub(super) fn answer(&self, context: &Context) -> Completion {
        let id = self.arg.get_id().as_str();
        let names = self.arg.get_value_names().unwrap_or_default();
        let value_name = names.first().map_or("", |name| name.as_str());
        if let Some(words) = self.find(CHOICES) {
            return self.one_of(words.iter().copied());
        }
        if let Some(words) = self.find(LISTS) {
            return self.list_of(words.iter().copied());
        }
        match (value_name, id) {
            ("file" | "path" | "program or library" | "module or its file", _) => {
                ShellCandidates::Files(self.prefix.to_owned()).into()
            }
            ("file[,file...]", _) => {
                ShellCandidates::Files(format!("{}{}", self.prefix, self.elements_before())).into()
            }
            ("directory" | "folder", _) => {
                ShellCandidates::Directories(self.prefix.to_owned()).into()
            }
            (_, "event" | "switch-output-event") if LIVE_COMMANDS.contains(&self.command) => {
                self.events(&event_listing::events(context)).into()
            }
            (_, "metrics") => {
                self.list_of(event_listing::metrics(context).iter().map(String::as_str))
            }
            (_, "branch-filter") => self.list_of(branch_names()),
            (_, "workload") => self.one_of(WORKLOADS.iter().map(|workload| workload.name)),
            (_, "sort") => self.list_of(sort_keys()),
            (_, "fields") if self.command == "script" => {
                self.list_of(LineFields::ALL.iter().map(rperf_lines::LineField::name))
            }
            (_, "fields") => self.list_of(field_names()),
            _ => self.one_of(alternatives(value_name)),
        }
    }

    /// The words of this option in `table`.
    fn find(
        &self,
        table: &[(&str, &str, &'static [&'static str])],
    ) -> Option<&'static [&'static str]> {
        let id = self.arg.get_id().as_str();
        let entry = table.iter().find(|(command, option, _)| {
            *option == id && (command.is_empty() || *command == self.command)
        });
        entry.map(|(_, _, words)| *words)
    }

    /// The elements of a list before the one being typed, with the comma after them.
    fn elements_before(&self) -> &str {
        let end = self.value.rfind(',').map_or(0, |comma| comma + 1);
        self.value.get(..end).unwrap_or_default()
    }

    fn one_of<'w>(&self, words: impl Iterator<Item = &'w str>) -> Completion {
        let prefix = self.prefix;
        let candidate = |word: &str| Candidate::new(format!("{prefix}{word}"), "");
        words.map(candidate).collect::<Vec<_>>().into()
    }

    /// Returns candidates for the last element of a list, without the elements that the list already contains.
    fn list_of<'w>(&self, words: impl Iterator<Item = &'w str>) -> Completion {
        let head = self.elements_before();
        // A sign before the first element applies to the list: -F +addr.
        let given: Vec<&str> = head.trim_start_matches(['+', '-']).split(',').collect();
        let sign = match self.value.get(..1) {
            Some(sign @ ("+" | "-")) if head.is_empty() => sign,
            _ => "",
        };
        let prefix = format!("{}{head}{sign}", self.prefix);
        let remaining = words.filter(|word| !given.contains(word));
        let candidate = |word: &str| Candidate::new(format!("{prefix}{word}"), "");
        remaining.map(candidate).collect::<Vec<_>>().into()
    }

    /// The candidates for the last event of a list or group. Before a colon is typed, tracepoints and USDT probes are offered by
    /// their system only.
    fn events(&self, rows: &[ListedEvent]) -> Vec<Candidate> {
        let start = self.value.rfind([',', '{']).map_or(0, |at| at + 1);
        let (head, name) = self.value.split_at_checked(start).unwrap_or_default();
        let prefix = format!("{}{head}", self.prefix);
        let mut candidates: Vec<Candidate> = Vec::new();
        // After a `/`, nothing is completed: whether a comma separates events or the terms of a PMU event is unclear.
        if self.value.contains('/') {
            return candidates;
        }
        let typed_system = name.split_once(':').map(|(system, _)| system);
        for row in rows {
            let system = match row.kind {
                EventKind::Tracepoint | EventKind::Sdt => {
                    row.name.split_once(':').map(|(system, _)| system)
                }
                _ => None,
            };
            let word = match (system, typed_system) {
                (Some(system), None) => format!("{system}:"),
                (Some(system), Some(typed)) if system == typed => row.name.clone(),
                (None, None) => event_name(row).to_owned(),
                _ => continue,
            };
            let word = format!("{prefix}{word}");
            // The rows are sorted: tracepoints of a system follow each other.
            if candidates.last().is_none_or(|last| last.word != word) {
                candidates.push(Candidate::new(word, row.kind.to_string()));
            }
        }
        candidates
    }
}

/// The unambiguous name of the event: with its PMU if it has one.
fn event_name(row: &ListedEvent) -> &str {
    match (row.kind, &row.alias) {
        (EventKind::Pmu, Some(alias)) => alias,
        _ => &row.name,
    }
}

/// The keys of `--sort` of commands that show histograms, such as `report`. The other commands with `--sort` are in the tables
/// above.
fn sort_keys() -> impl Iterator<Item = &'static str> {
    field_names().filter(|name| find_field(name).is_some_and(|field| field.key().is_some()))
}

/// The alternatives in a value's name, such as `svg|json` or `n|max`, without what may follow them (`dwarf[,bytes]`); none if the
/// name has no `|`. Single letters are left out: they are placeholders for numbers.
fn alternatives(name: &str) -> impl Iterator<Item = &str> {
    let list = if name.contains('|') { name } else { "" };
    let words = list.split('|');
    let plain = words.map(|word| word.split(['[', ',']).next().unwrap_or_default());
    plain.filter(|word| word.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::commands::{COMMANDS, SUBCOMMANDS};
    use crate::cli::globals;
    use crate::cli::options::{list as list_option, value};

    #[test]
    fn table_values_occur_in_the_help_of_their_options() {
        for (command, option, words) in CHOICES.iter().chain(LISTS) {
            let all = COMMANDS.iter().chain(SUBCOMMANDS);
            let entries = all.filter(|entry| command.is_empty() || entry.name == *command);
            let built = entries
                .map(|entry| (entry.build)())
                .chain([globals::options()]);
            let commands: Vec<clap::Command> = built.collect();
            let arguments = commands.iter().flat_map(clap::Command::get_arguments);
            let help_texts = arguments.filter(|arg| arg.get_id() == *option).map(|arg| {
                format!(
                    "{:?} {} {}",
                    arg.get_value_names(),
                    arg.get_help().cloned().unwrap_or_default(),
                    arg.get_long_help().cloned().unwrap_or_default()
                )
            });
            let text: String = help_texts.collect();
            for word in *words {
                assert!(text.contains(word), "{command} --{option} {word}: {text}");
            }
        }
    }

    fn words(arg: &Arg, prefix: &str, value: &str, rows: &[ListedEvent]) -> Vec<String> {
        let partial = PartialValue {
            command: "record",
            arg,
            prefix,
            value,
        };
        partial
            .events(rows)
            .into_iter()
            .map(|candidate| candidate.word)
            .collect()
    }

    #[test]
    fn events_are_completed_in_lists_and_groups_and_by_system() {
        let row = |kind, name: &str| ListedEvent {
            name: name.to_owned(),
            alias: None,
            kind,
            terms: None,
            config: None,
            description: None,
        };
        let rows = [
            row(EventKind::Hardware, "cycles"),
            row(EventKind::Tracepoint, "sched:sched_switch"),
            row(EventKind::Tracepoint, "sched:sched_waking"),
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
    fn list_completion_skips_present_items_and_keeps_the_sign() {
        let arg = value("sort", "key[,key...]");
        let complete = |value| {
            let partial = PartialValue {
                command: "report",
                arg: &arg,
                prefix: "--sort=",
                value,
            };
            let candidates = partial.list_of(["comm", "dso"].into_iter()).candidates;
            candidates
                .into_iter()
                .map(|candidate| candidate.word)
                .collect::<Vec<_>>()
        };
        assert_eq!(complete("comm,"), ["--sort=comm,dso"]);
        assert_eq!(complete("+"), ["--sort=+comm", "--sort=+dso"]);
        assert_eq!(complete("+comm,"), ["--sort=+comm,dso"]);
    }

    #[test]
    fn value_names_may_list_alternatives() {
        assert_eq!(alternatives("n|max").collect::<Vec<_>>(), ["max"]);
        assert_eq!(
            alternatives("fp|dwarf[,bytes]").collect::<Vec<_>>(),
            ["fp", "dwarf"]
        );
        assert_eq!(alternatives("text").count(), 0);
    }
}
