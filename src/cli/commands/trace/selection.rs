//! `-e`: system calls and other events.

use clap::ArgMatches;
use rperf_events::{Catalogue, EventSpec};
use rperf_names::{is_pattern, matches_pattern};
use rperf_sys::Tracefs;
use rperf_syscalls::{SyscallTable, group_members};
use std::collections::{BTreeMap, BTreeSet};

use super::exec_tree::TREE_CALLS;
use crate::cli::error::CliError;
use crate::cli::live::events::{
    ListedEvents, attach_filters, parsed, refuse_bpf_counters, refuse_sample_filters,
};
use crate::cli::options::{flag, is_given};

/// The system calls and other events that `-e` selects.
#[derive(Debug)]
pub(super) struct Selection {
    /// Whether system calls are traced.
    pub(super) traces_calls: bool,
    /// The numbers of the calls to show; `None` for all.
    pub(super) calls: Option<BTreeSet<u32>>,
    /// For each of the other events with a limit (`nr=`), by its [`shown_name`]: the maximum number of lines.
    pub(super) limits: BTreeMap<String, u64>,
    /// The other events: a list for each `-e` option, empty if the option names only calls.
    lists: Vec<ListedEvents>,
}

impl Selection {
    /// Reads `-e`, `--exec-tree`, `--syscalls` and `--no-syscalls`. Without `catalogue` (with `-i`), other events are refused.
    pub(super) fn new(
        matches: &ArgMatches,
        table: &SyscallTable,
        catalogue: Option<&Catalogue<'_>>,
    ) -> Result<Self, CliError> {
        let mut listed = Listed::default();
        let texts = matches.get_many::<String>("event").into_iter().flatten();
        let indices = matches.indices_of("event").into_iter().flatten();
        let mut lists = Vec::new();
        for (index, text) in indices.zip(texts) {
            listed.add(text, table, catalogue)?;
            let events = std::mem::take(&mut listed.events);
            lists.push(ListedEvents { index, events });
        }
        if flag(matches, "exec-tree") == Some(true) {
            if !lists.is_empty() {
                return Err(
                    CliError::usage("--exec-tree selects its own calls").hint("leave out -e")
                );
            }
            let numbers = TREE_CALLS.iter().filter_map(|name| table.number(name));
            listed.calls.extend(numbers);
        }
        let has_events = lists.iter().any(|list| !list.events.is_empty());
        let has_calls = !listed.calls.is_empty() || !listed.excluded.is_empty();
        let traces_calls = match flag(matches, "syscalls") {
            Some(traces_calls) => traces_calls,
            None => has_calls || !has_events,
        };
        let calls = if !listed.calls.is_empty() {
            Some(listed.calls.difference(&listed.excluded).copied().collect())
        } else if !listed.excluded.is_empty() {
            let all = table.all().into_iter().map(|(number, _)| number);
            let rest = all.filter(|number| !listed.excluded.contains(number));
            Some(rest.collect())
        } else {
            None
        };
        // With -i, the other events of the recording are shown even if there is no -e.
        let is_live = catalogue.is_some();
        if is_live && !traces_calls && !has_events && !is_given(matches, "pf") {
            return Err(CliError::usage("--no-syscalls leaves nothing to trace")
                .hint("name other events with -e"));
        }
        Ok(Self {
            traces_calls,
            calls: if traces_calls {
                calls
            } else {
                Some(BTreeSet::new())
            },
            limits: listed.limits,
            lists,
        })
    }

    /// Returns the other events.
    pub(super) fn events(&self) -> impl Iterator<Item = &EventSpec> {
        self.lists.iter().flat_map(|list| &list.events)
    }

    /// Attaches each `--filter` to the events of the `-e` option before it.
    pub(super) fn attach_filters(
        &mut self,
        matches: &ArgMatches,
        tracefs: &Tracefs,
    ) -> Result<(), CliError> {
        for index in matches.indices_of("filter").into_iter().flatten() {
            let mut from_last = self.lists.iter().rev();
            let list = from_last.find(|list| list.index < index);
            if list.is_some_and(|list| list.events.is_empty()) {
                let message = "--filter: system calls have no fields to filter";
                return Err(CliError::usage(message).hint(
                    "filter a tracepoint: -e syscalls:sys_enter_openat --filter 'dfd == 3'",
                ));
            }
        }
        attach_filters(matches, &mut self.lists, tracefs)?;
        let events: Vec<EventSpec> = self.events().cloned().collect();
        refuse_sample_filters(&events)?;
        refuse_bpf_counters(&events)
    }
}

/// What the `-e` options that are parsed so far select.
#[derive(Default)]
struct Listed {
    calls: BTreeSet<u32>,
    /// The calls after `!`.
    excluded: BTreeSet<u32>,
    /// The other events of the last option.
    events: Vec<EventSpec>,
    /// [`Selection::limits`].
    limits: BTreeMap<String, u64>,
}

impl Listed {
    /// Adds the calls and events of one `-e` option.
    fn add(
        &mut self,
        text: &str,
        table: &SyscallTable,
        catalogue: Option<&Catalogue<'_>>,
    ) -> Result<(), CliError> {
        let (is_excluded, text) = match text.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        for word in words(text) {
            let numbers = numbers(word, table);
            let is_call = !numbers.is_empty();
            match (is_call, is_excluded, catalogue) {
                (true, true, _) => self.excluded.extend(numbers),
                (true, false, _) => self.calls.extend(numbers),
                (false, true, _) => return Err(not_excluded(word, table)),
                // A word that neither is an event nor has the syntax of one is probably a misspelled call.
                (false, false, Some(catalogue)) => match self.add_event(word, catalogue) {
                    Ok(()) => {}
                    Err(error) if word.contains([':', '/', '{']) => return Err(error),
                    Err(_) => return Err(unknown(word, table)),
                },
                (false, false, None) => return Err(not_in_recordings(word, table)),
            }
        }
        Ok(())
    }

    /// Adds an event other than a system call, or a group of them (`{event,event}`).
    fn add_event(&mut self, word: &str, catalogue: &Catalogue<'_>) -> Result<(), CliError> {
        let group = word.strip_prefix('{');
        let group = group.and_then(|rest| rest.rsplit_once('}'));
        let members = group.map_or(vec![word], |(members, _)| words(members));
        let mut names = Vec::new();
        for member in members {
            let LimitedEvent { event, limit } = LimitedEvent::parse(member)?;
            if let Some(limit) = limit {
                let events = parsed(&event, catalogue)?;
                let limits = events.iter().map(|event| (shown_name(event), limit));
                self.limits.extend(limits);
            }
            names.push(event);
        }
        let names = names.join(",");
        let events = match group {
            Some((_, modifiers)) => format!("{{{names}}}{modifiers}"),
            None => names,
        };
        self.events.extend(parsed(&events, catalogue)?);
        Ok(())
    }
}

/// An event without its term `nr=N`, and `N`, if given.
#[derive(Debug, PartialEq, Eq)]
struct LimitedEvent {
    event: String,
    limit: Option<u64>,
}

impl LimitedEvent {
    fn parse(word: &str) -> Result<Self, CliError> {
        let mut limited = Self {
            event: word.to_owned(),
            limit: None,
        };
        let Some((name, rest)) = word.split_once('/') else {
            return Ok(limited);
        };
        let Some((terms, modifiers)) = rest.rsplit_once('/') else {
            return Ok(limited);
        };
        let mut others = Vec::new();
        for term in terms.split(',') {
            match term.trim().strip_prefix("nr=") {
                None => others.push(term),
                Some(number) => {
                    let limit = number.parse().ok().filter(|limit| *limit > 0);
                    let limit = limit.ok_or_else(|| {
                        CliError::usage(format!("-e {word}: '{number}' is not a number of events"))
                    })?;
                    limited.limit = Some(limit);
                }
            }
        }
        if limited.limit.is_some() {
            let modifiers = modifiers.trim_start_matches(':');
            limited.event = match (others.is_empty(), modifiers) {
                (true, "") => name.to_owned(),
                (true, modifiers) => format!("{name}:{modifiers}"),
                (false, modifiers) => format!("{name}/{}/{modifiers}", others.join(",")),
            };
        }
        Ok(limited)
    }
}

/// Returns the name of an event as lines show it: for a tracepoint, without terms.
pub(super) fn shown_name(event: &EventSpec) -> String {
    match &event.tracepoint {
        Some(tracepoint) => format!("{}:{}", tracepoint.system, tracepoint.name),
        None => event.name.clone(),
    }
}

/// Splits a list at commas outside of braces and terms.
fn words(text: &str) -> Vec<&str> {
    let (mut depth, mut in_terms) = (0_usize, false);
    text.split(move |letter| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            '/' => in_terms = !in_terms,
            _ => {}
        }
        letter == ',' && depth == 0 && !in_terms
    })
    .map(str::trim)
    .filter(|word| !word.is_empty())
    .collect()
}

/// Returns the numbers of the calls that a word names.
fn numbers(word: &str, table: &SyscallTable) -> Vec<u32> {
    if let Some(number) = table.number(word) {
        return vec![number];
    }
    if let Some(names) = group_members(word, table) {
        return names
            .into_iter()
            .filter_map(|name| table.number(name))
            .collect();
    }
    if !is_pattern(word) || word.contains(':') {
        return Vec::new();
    }
    let all = table.all().into_iter();
    let matching = all.filter(|(_, call)| matches_pattern(word, call.name));
    matching.map(|(number, _)| number).collect()
}

/// The error for a word after `!` that is no call.
fn not_excluded(word: &str, table: &SyscallTable) -> CliError {
    match word.contains([':', '/']) {
        true => CliError::usage(format!("-e !...: '{word}' is no system call"))
            .hint("leave out other events: they are traced only if they are named without '!'"),
        false => unknown(word, table),
    }
}

/// The error for a word that is no call, with `-i`.
fn not_in_recordings(word: &str, table: &SyscallTable) -> CliError {
    match word.contains([':', '/']) {
        true => CliError::usage(format!(
            "-e with -i selects system calls, and '{word}' is none"
        ))
        .hint("other events of the recording are always shown; --no-syscalls shows only them"),
        false => unknown(word, table),
    }
}

/// The error for a name that is neither a call nor an event.
fn unknown(word: &str, table: &SyscallTable) -> CliError {
    let error = CliError::usage(format!("event syntax error: '{word}'")).detail(
        "                     \\___ neither a system call, nor a group of them, nor an event",
    );
    let all = table.all();
    let names = all.iter().map(|(_, call)| call.name);
    match rperf_names::nearest(word, names) {
        Some(nearest) => error.hint(format!("did you mean '{nearest}'? 'list' shows other events")),
        None => error.hint("'list' shows events; groups of system calls are file, desc, net, process, signal and memory"),
    }
}

#[cfg(test)]
mod tests {
    use super::{LimitedEvent, words};

    #[test]
    fn limits_of_events() {
        let parse = |word: &str| {
            let limited = LimitedEvent::parse(word).ok()?;
            Some((limited.event, limited.limit))
        };
        let of = |event: &str, limit| Some((event.to_owned(), limit));
        assert_eq!(parse("a:b/nr=2/"), of("a:b", Some(2)));
        assert_eq!(parse("a:b/nr=2/u"), of("a:b:u", Some(2)));
        assert_eq!(
            parse("a:b/max-stack=3,nr=2/"),
            of("a:b/max-stack=3/", Some(2))
        );
        assert_eq!(parse("a:b/max-stack=3/"), of("a:b/max-stack=3/", None));
        assert_eq!(parse("a:b/nr=0/"), None);
    }

    #[test]
    fn commas_within_terms_do_not_split() {
        let split = words("open*,sched:*switch/nr=2,call-graph=fp/, {a,b},read");
        assert_eq!(
            split,
            [
                "open*",
                "sched:*switch/nr=2,call-graph=fp/",
                "{a,b}",
                "read"
            ]
        );
    }
}
