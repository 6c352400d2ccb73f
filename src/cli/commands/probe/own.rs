//! Events of one run: made for it, and taken away when it ends.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rperf_events::EventSpec;
use rperf_probe::{Event, distinct_name, parse};
use rperf_sys::Signals;

use super::add::{list_of, told};
use super::args::Given;
use super::tables::Tables;
use super::target::{Subject, is_file};
use super::{Defined, apart, args, events, targets};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;

/// The signals that end a run: they wait until its events are gone.
pub(super) const HELD: [i32; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
/// How often an event that is still in use is tried again, and how long after.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(50);

/// What this run has made so far.
#[derive(Debug, Default)]
pub(crate) struct OwnProbes {
    made: Mutex<Vec<Made>>,
    signals: Mutex<Option<Signals>>,
}

/// What an option asks for, as the parser of events takes it.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// Names.
    Text(String),
    /// Events that have no names for the kernel.
    Events(Vec<EventSpec>),
}

/// One event of the run.
#[derive(Debug)]
struct Made {
    list: &'static str,
    /// `GROUP:EVENT`.
    name: String,
    removal: String,
}

impl OwnProbes {
    /// Makes the events of a definition, given as words of the `probe` command, and tells their names (`GROUP:EVENT`). Events that are
    /// there keep their names; several places share one where their values are alike.
    ///
    /// # Errors
    /// Those of `probe --add`. What was made before the error stays until [`Self::remove`].
    pub(crate) fn make(&self, words: &[&str], context: &Context) -> Result<Vec<String>, CliError> {
        self.add_all(defined(words, context)?, context)
    }

    fn add_all(&self, all: Vec<Defined>, context: &Context) -> Result<Vec<String>, CliError> {
        let (mut names, mut lines) = (Vec::new(), Vec::new());
        self.hold()?;
        for defined in all {
            self.add(defined, (&mut names, &mut lines), context)?;
        }
        let several = if lines.len() > 1 { "s" } else { "" };
        context.note(format_args!("Added new event{several} for this run:"));
        for line in lines {
            context.note(line);
        }
        Ok(names)
    }

    /// Makes the events of `[PROGRAM:]DEFINITION`, the kernel's where no program stands before it. Where tracefs is not mounted, places
    /// of programs are observed without.
    ///
    /// # Errors
    /// As of [`Self::make`].
    pub(crate) fn define(&self, text: &str, context: &Context) -> Result<Wanted, CliError> {
        let defined = match split(text, |name| is_file(Path::new(name), context)) {
            (Some(program), definition) => defined(&["-x", program, "--add", definition], context)?,
            (None, definition) => defined(&["--add", definition], context)?,
        };
        let tables = Tables::find(context);
        match tables.existing() {
            Err(error) if tables.are_forbidden() => Err(error),
            Ok(_) => Ok(Wanted::Text(self.add_all(defined, context)?.join(","))),
            Err(error) => apart::specs(defined, error, context).map(Wanted::Events),
        }
    }

    /// Whether the build-id cache knows of `%[GROUP:]EVENT`.
    pub(crate) fn are_cached(&self, text: &str, context: &Context) -> bool {
        let given = Given {
            target: Subject::Kernel,
            definition: text.to_owned(),
        };
        parse(text).is_ok_and(|definition| targets::of(&given, &definition, context).is_ok())
    }

    /// Holds back what would end the process before its events are gone.
    fn hold(&self) -> Result<(), CliError> {
        let mut signals = locked(&self.signals);
        if signals.is_none() {
            *signals = Some(Signals::hold_for_run(&HELD).map_err(anyhow::Error::new)?);
        }
        Ok(())
    }

    fn add(
        &self,
        defined: Defined,
        (names, lines): (&mut Vec<String>, &mut Vec<String>),
        context: &Context,
    ) -> Result<(), CliError> {
        let tables = Tables::find(context);
        let _alone = tables.lock();
        let mut taken: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (event, _) in tables.existing()? {
            taken.entry(event.group).or_default().insert(event.name);
        }
        let Defined {
            definition, events, ..
        } = defined;
        // By their names before they are made distinct: what they are called now, and the lines that tell of them.
        let mut shared: BTreeMap<String, (String, usize)> = BTreeMap::new();
        let mut places: BTreeMap<usize, usize> = BTreeMap::new();
        for (mut event, _) in events {
            let (asked, base) = (event.full_name(), event.name.clone());
            let told = told(&definition, None, &event.target);
            if let Some((name, line)) = shared.get(&asked) {
                event.name.clone_from(name);
                // The kernel appends places of the same values to an event.
                if tables
                    .try_write(list_of(&event), &event.to_string())
                    .is_ok()
                {
                    *places.entry(*line).or_insert(1) += 1;
                    continue;
                }
            }
            let taken = taken.entry(event.group.clone()).or_default();
            event.name = base;
            create(&mut event, taken, &tables)?;
            shared.insert(asked, (event.name.clone(), lines.len()));
            let name = event.full_name();
            lines.push(format!("  {name:<20} {told}"));
            locked(&self.made).push(Made::of(&event));
            names.push(name);
        }
        for (line, count) in places {
            if let Some(line) = lines.get_mut(line) {
                line.push_str(&format!(" at {count} places"));
            }
        }
        Ok(())
    }

    /// Takes the events away that this run has made, and says which are left because others use them. Signals that came
    /// meanwhile take their effect.
    pub(crate) fn remove(&self, context: &Context) {
        let made = std::mem::take(&mut *locked(&self.made));
        if !made.is_empty() {
            let tables = Tables::find(context);
            for Made {
                list,
                name,
                removal,
            } in made
            {
                if let Err(error) = removed(&tables, list, &removal) {
                    context.warn(format_args!(
                        "{name} is left: {}; '{} probe -d {name}' removes it",
                        reason(&error),
                        context.program
                    ));
                }
            }
        }
        let signals = locked(&self.signals).take();
        let came = signals.as_ref().and_then(|signals| signals.next().ok()?);
        drop(signals);
        if let Some(signal) = came {
            rperf_sys::die_by(signal);
        }
    }
}

impl Made {
    fn of(event: &Event) -> Self {
        Self {
            list: list_of(event),
            name: event.full_name(),
            removal: event.removal(),
        }
    }
}

/// The events of definitions, given as words of the `probe` command.
fn defined(words: &[&str], context: &Context) -> Result<Vec<Defined>, CliError> {
    let parser = args::command().no_binary_name(true);
    let matches = parser.try_get_matches_from(words)?;
    let given = args::definitions(&matches, "add")?;
    let defined = given.iter().map(|given| events(given, &matches, context));
    defined.collect()
}

/// Also after a panic: what was made is to be removed.
fn locked<T>(held: &Mutex<T>) -> MutexGuard<'_, T> {
    held.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes an event under its name, or with a number behind that where it is taken.
fn create(
    event: &mut Event,
    taken: &mut BTreeSet<String>,
    tables: &Tables,
) -> Result<(), CliError> {
    let base = event.name.clone();
    loop {
        event.name = distinct_name(&base, taken).ok_or_else(|| too_many(&base))?;
        taken.insert(event.name.clone());
        match tables.try_write(list_of(event), &event.to_string()) {
            // Another tool was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return tables.write(list_of(event), &event.to_string()),
            Ok(()) => return Ok(()),
        }
    }
}

/// The kernel lets go of an event a moment after the last who uses it.
fn removed(tables: &Tables, list: &str, removal: &str) -> io::Result<()> {
    let mut result = tables.try_write(list, removal);
    for _ in 0..TRIES {
        match &result {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            _ => break,
        }
        sleep(PAUSE);
        result = tables.try_write(list, removal);
    }
    match result {
        // Somebody else has removed it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// `./calc:middle n` in two. What stands before a colon is a program where `is_file` says so, or where it has a slash and no number
/// follows; a name of a function is followed by the number of a line.
fn split(text: &str, is_file: impl Fn(&str) -> bool) -> (Option<&str>, &str) {
    let end = text.find([' ', '=', ';']).unwrap_or(text.len());
    let colons = text.match_indices(':').take_while(|(at, _)| *at < end);
    let halves = colons.map(|(at, _)| (text.get(..at).unwrap_or_default(), &text[at + 1..]));
    let halves: Vec<(&str, &str)> = halves.collect();
    let is_line = |rest: &str| {
        rest.starts_with(|first: char| first.is_ascii_digit()) && !rest.starts_with("0x")
    };
    let is_program = |(name, rest): &(&str, &str)| !is_line(rest) && is_file(name);
    let absent = |(name, rest): &(&str, &str)| name.contains('/') && !is_line(rest);
    let found = halves.iter().find(|halves| is_program(halves));
    match found.or_else(|| halves.iter().find(|halves| absent(halves))) {
        Some((program, definition)) => (Some(program), definition),
        None => (None, text),
    }
}

fn too_many(base: &str) -> CliError {
    CliError::message(
        super::add::EXISTS,
        format!("Too many events are named {base}."),
    )
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn programs_stand_before_definitions() {
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
