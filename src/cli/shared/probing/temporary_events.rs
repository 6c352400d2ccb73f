//! Temporary events: created for one run, and deleted when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rperf_events::EventSpec;
use rperf_probe::{ProbeEvent, distinct_name, parse};
use rperf_sys::Signals;

use super::args::ProbeSpec;
use super::event_lists::{EventLists, list_of};
use super::place_messages::EXISTS;
use super::target::{ProbedObject, is_file};
use super::{DefinitionResult, args, described, events, targets, uprobe_pmu};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;

/// The signals that end a run: they are blocked until its events are deleted.
pub(crate) const BLOCKED_SIGNALS: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// The number of further attempts to delete an event that is still in use, and the delay before each.
const DELETE_ATTEMPTS: u32 = 20;
const DELETE_DELAY: Duration = Duration::from_millis(50);

/// The events created by this run.
#[derive(Debug, Default)]
pub(crate) struct OwnProbes {
    created: Mutex<Vec<TemporaryEvent>>,
    /// The blocked [`BLOCKED_SIGNALS`]; `None` before the first event is created, and after [`Self::remove`].
    signals: Mutex<Option<Signals>>,
}

/// The events that an option names or defines, for the event parser.
#[derive(Debug)]
pub(crate) enum ParserEvents {
    /// Events in the syntax of `-e`: names separated by commas.
    Text(String),
    /// Events of the uprobe PMU, which have no names in the kernel.
    Events(Vec<EventSpec>),
}

/// Added events: their names, and the lines to print (not the lines of tracefs that define them).
#[derive(Debug, Default)]
struct AddedEvents {
    names: Vec<String>,
    lines: Vec<String>,
}

/// A temporary event.
#[derive(Debug)]
struct TemporaryEvent {
    /// The list of events in tracefs that it belongs to: `uprobe_events` or `kprobe_events`.
    list: &'static str,
    /// `GROUP:EVENT`.
    name: String,
    /// The line that deletes it when written to the list.
    removal: String,
}

impl OwnProbes {
    /// Creates the events of a definition, given as words of the `probe` command, and returns their names (`GROUP:EVENT`). If a
    /// name is taken, the new event gets a numeric suffix. Several places of a definition are probed by one event if they have
    /// the same arguments.
    ///
    /// # Errors
    /// Those of `probe --add`. Events created before the error are kept until [`Self::remove`].
    pub(crate) fn make(&self, words: &[&str], context: &Context) -> Result<Vec<String>, CliError> {
        self.add_all(find_events(words, context)?, context)
    }

    fn add_all(
        &self,
        definitions: Vec<DefinitionResult>,
        context: &Context,
    ) -> Result<Vec<String>, CliError> {
        let mut added = AddedEvents::default();
        self.block_signals()?;
        for result in definitions {
            self.add(result, &mut added, context)?;
        }
        let AddedEvents { names, lines } = added;
        let plural = if lines.len() > 1 { "s" } else { "" };
        context.note(format_args!("Added new event{plural} for this run:"));
        for line in lines {
            context.note(line);
        }
        Ok(names)
    }

    /// Creates the events of `[PROGRAM:]DEFINITION`, by default in the kernel. If tracefs is not mounted, events of programs use
    /// the uprobe PMU.
    ///
    /// # Errors
    /// Those of [`Self::make`].
    pub(crate) fn define(&self, text: &str, context: &Context) -> Result<ParserEvents, CliError> {
        if text.starts_with('-') {
            return Err(with_options(text));
        }
        let results = match split(text, |name| is_file(Path::new(name), context)) {
            (Some(program), definition) => {
                find_events(&["-x", program, "--add", definition], context)?
            }
            (None, definition) => find_events(&["--add", definition], context)?,
        };
        let tables = EventLists::find(context);
        match tables.existing() {
            // tracefs is mounted, but this user may not read it: creating the events would fail, too.
            Err(error) if tables.are_forbidden() => Err(error),
            Ok(_) => Ok(ParserEvents::Text(
                self.add_all(results, context)?.join(","),
            )),
            Err(error) => uprobe_pmu::specs(results, error, context).map(ParserEvents::Events),
        }
    }

    /// Whether the build-id cache has `%[GROUP:]EVENT`.
    pub(crate) fn has_cached_event(&self, text: &str, context: &Context) -> bool {
        let spec = ProbeSpec {
            // The target if `-x` and `-m` are not given: the event is looked up in the whole cache, also for programs.
            target: ProbedObject::Kernel,
            definition: text.to_owned(),
        };
        parse(text).is_ok_and(|definition| targets::of(&spec, &definition, context).is_ok())
    }

    /// Blocks the signals that would end the process before its events are deleted.
    fn block_signals(&self) -> Result<(), CliError> {
        let mut signals = locked(&self.signals);
        if signals.is_none() {
            *signals = Some(Signals::block_for_run(&BLOCKED_SIGNALS).map_err(anyhow::Error::new)?);
        }
        Ok(())
    }

    /// Creates the events of one definition, and appends them to `added`.
    fn add(
        &self,
        result: DefinitionResult,
        added: &mut AddedEvents,
        context: &Context,
    ) -> Result<(), CliError> {
        let AddedEvents { names, lines } = added;
        // The kernel's lists of events in tracefs.
        let tables = EventLists::find(context);
        // Until the end of this function: two runs must not choose the same name.
        let _lock = tables.lock();
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (event, _) in tables.existing()? {
            taken.entry(event.group).or_default().insert(event.name);
        }
        let DefinitionResult {
            definition, events, ..
        } = result;
        // The final name (without the group) and the index of its line in `lines`, by `GROUP:EVENT` before the name was made
        // unique.
        let mut shared: BTreeMap<String, (String, usize)> = BTreeMap::new();
        // The number of places of an event, by the index of its line; events at one place are absent.
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        // The text of each event's place is not used.
        for (mut event, _) in events {
            let (requested, base) = (event.full_name(), event.name.clone());
            // The printed line of an event names no place; it only has the number of places, if there are several.
            let place = None;
            let described = described(&definition, place, &event.target);
            if let Some((name, line)) = shared.get(&requested) {
                event.name.clone_from(name);
                // If an event of this name with the same arguments exists, the kernel adds the place to that event.
                if tables
                    .try_write(list_of(&event), &event.to_string())
                    .is_ok()
                {
                    *places.entry(*line).or_insert(1) += 1;
                    continue;
                }
            }
            let taken = taken.entry(event.group.clone()).or_default();
            // If the attempt above failed, it has changed the name.
            event.name = base;
            create(&mut event, taken, &tables)?;
            shared.insert(requested, (event.name.clone(), lines.len()));
            let name = event.full_name();
            lines.push(format!("  {name:<20} {described}"));
            locked(&self.created).push(TemporaryEvent::of(&event));
            names.push(name);
        }
        for (line, count) in places {
            if let Some(line) = lines.get_mut(line) {
                line.push_str(&format!(" at {count} places"));
            }
        }
        Ok(())
    }

    /// Deletes the events of this run, and reports those that cannot be deleted. If a blocked signal has arrived, it then ends
    /// the process.
    pub(crate) fn remove(&self, context: &Context) {
        let created = std::mem::take(&mut *locked(&self.created));
        if !created.is_empty() {
            let tables = EventLists::find(context);
            for TemporaryEvent {
                list,
                name,
                removal,
            } in created
            {
                if let Err(error) = delete_event(&tables, list, &removal) {
                    context.warn(format_args!(
                        "{name} remains: {}; '{} probe -d {name}' removes it",
                        reason(&error),
                        context.program
                    ));
                }
            }
        }
        let signals = locked(&self.signals).take();
        let arrived = signals.as_ref().and_then(|signals| signals.next().ok()?);
        drop(signals);
        if let Some(signal) = arrived {
            rperf_sys::exit_by_signal(signal);
        }
    }
}

impl TemporaryEvent {
    fn of(event: &ProbeEvent) -> Self {
        Self {
            list: list_of(event),
            name: event.full_name(),
            removal: event.removal(),
        }
    }
}

/// Returns the events of definitions, given as words of the `probe` command.
fn find_events(words: &[&str], context: &Context) -> Result<Vec<DefinitionResult>, CliError> {
    let parser = args::command().no_binary_name(true);
    let matches = parser.try_get_matches_from(words)?;
    let specs = args::definitions(&matches, "add");
    let results = specs.iter().map(|spec| events(spec, &matches, context));
    results.collect()
}

/// Ignores poisoning: events are deleted even after a panic.
fn locked<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Creates an event under its name, with a numeric suffix if the name is taken.
fn create(
    event: &mut ProbeEvent,
    taken: &mut BTreeSet<String>,
    tables: &EventLists,
) -> Result<(), CliError> {
    let base = event.name.clone();
    loop {
        event.name = distinct_name(&base, taken).ok_or_else(|| too_many(&base))?;
        taken.insert(event.name.clone());
        match tables.try_write(list_of(event), &event.to_string()) {
            // Another tool has just created an event of this name.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // Writes the line of the event to the list again: unlike `try_write`, `write` returns an error with an explanation.
            Err(_) => return tables.write(list_of(event), &event.to_string()),
            Ok(()) => return Ok(()),
        }
    }
}

/// Deletes an event, with retries: the kernel releases an event shortly after its last user.
fn delete_event(tables: &EventLists, list: &str, removal: &str) -> io::Result<()> {
    let mut result = tables.try_write(list, removal);
    for _ in 0..DELETE_ATTEMPTS {
        match &result {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            _ => break,
        }
        sleep(DELETE_DELAY);
        result = tables.try_write(list, removal);
    }
    match result {
        // Another process has deleted the event.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Splits `./calc:middle n` into program and definition at a colon:
/// 1. the first one for which all text before it names an existing file (`is_file`);
/// 2. otherwise, the first one with a slash in the text before it: the path of a program that is missing.
///
/// Without such a colon, there is no program. A colon before a decimal number is skipped: the text before it is a function or a
/// source file, and the number is that of a line. Colons after the first blank, `=` or `;` belong to the definition.
fn split(text: &str, is_file: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    let end = text.find([' ', '=', ';']).unwrap_or(text.len());
    let colons = text.match_indices(':').take_while(|(at, _)| *at < end);
    let splits = colons.map(|(at, _)| (text.get(..at).unwrap_or_default(), &text[at + 1..]));
    let splits: Vec<(&str, &str)> = splits.collect();
    let is_line = |rest: &str| {
        rest.starts_with(|first: char| first.is_ascii_digit()) && !rest.starts_with("0x")
    };
    let is_program = |(name, rest): &(&str, &str)| !is_line(rest) && is_file(name);
    let is_missing_file = |(name, rest): &(&str, &str)| name.contains('/') && !is_line(rest);
    let program = splits.iter().find(|split| is_program(split));
    match program.or_else(|| splits.iter().find(|split| is_missing_file(split))) {
        Some((program, definition)) => (Some(program), definition),
        None => (None, text),
    }
}

/// The error for `--probe '-x PROGRAM FUNCTION'`.
fn with_options(text: &str) -> CliError {
    let message = format!("--probe: '{text}' begins with an option, not with a definition");
    CliError::usage(message).hint(
        "--probe takes [PROGRAM:]DEFINITION: './calc:middle it->val', 'libc.so.6:malloc size=%di', 'vfs_read'",
    )
}

fn too_many(base: &str) -> CliError {
    CliError::message(EXISTS, format!("Too many events are named {base}."))
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn programs_precede_definitions() {
        let is_file = |name: &str| ["./calc", "libc.so.6", "/a:b", "read"].contains(&name);
        for (text, program, definition) in [
            ("./calc:middle it->val", Some("./calc"), "middle it->val"),
            ("./calc:middle:4 s", Some("./calc"), "middle:4 s"),
            ("./calc:calc.c:12", Some("./calc"), "calc.c:12"),
            ("./calc:g:e=leaf n:u8", Some("./calc"), "g:e=leaf n:u8"),
            ("./calc:0x1139", Some("./calc"), "0x1139"),
            (
                "libc.so.6:malloc size=%di",
                Some("libc.so.6"),
                "malloc size=%di",
            ),
            ("/a:b:main", Some("/a:b"), "main"),
            ("./none:main", Some("./none"), "main"),
            ("vfs_read", None, "vfs_read"),
            ("read:5", None, "read:5"),
            ("fs/open.c:12 n", None, "fs/open.c:12 n"),
            ("g:e=vfs_read", None, "g:e=vfs_read"),
            ("vfs_read n:u8", None, "vfs_read n:u8"),
        ] {
            assert_eq!(split(text, is_file), (program, definition), "{text}");
        }
    }
}
