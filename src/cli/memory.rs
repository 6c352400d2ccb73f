//! What is printed when memory runs out, whether an error says so or an allocation fails where none can be returned.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::ArgMatches;
use rperf_sys::{OutOfMemoryMessage, address_space_limit, explain_out_of_memory};

use super::context::Program;
use super::error::CliError;
use super::output::Output;

/// Exit status where memory runs out.
const STATUS: u8 = 255;
/// By one of these an error says that it did, in our words or in those of the system.
const MARKS: [&str; 2] = ["out of memory", "Cannot allocate memory"];

/// The hint for the command that runs.
pub(crate) struct MemoryHint {
    program: Program,
    hint: Mutex<String>,
}

impl MemoryHint {
    /// The hint before the command is known.
    pub(crate) fn new(program: Program) -> Self {
        Self {
            program,
            hint: Mutex::new(text(false, address_space_limit())),
        }
    }

    /// Names `-j` where the command has it and more than one thread works.
    pub(crate) fn set_command(&self, matches: &ArgMatches) {
        let has_threads =
            matches!(matches.try_get_one::<u64>("jobs"), Ok(jobs) if jobs != Some(&1));
        *self.hint.lock().unwrap_or_else(PoisonError::into_inner) =
            text(has_threads, address_space_limit());
        self.explain();
    }

    /// Adds the hint to an error that says that memory ran out and has none.
    pub(crate) fn add_to(&self, error: CliError) -> CliError {
        let text = error.text();
        let is_meant = MARKS.iter().any(|mark| text.contains(mark)) && !error.has_hints();
        match is_meant {
            true => error.hint(&*self.hint.lock().unwrap_or_else(PoisonError::into_inner)),
            false => error,
        }
    }

    /// Has it printed when an allocation fails and no error can say so.
    pub(crate) fn explain(&self) {
        let hint = self.hint.lock().unwrap_or_else(PoisonError::into_inner);
        explain_out_of_memory(OutOfMemoryMessage {
            before: format!("{}{}: out of memory: ", Output::error_start(), self.program),
            after: format!(" bytes could not be allocated\nhint: {hint}\n"),
            status: STATUS,
        });
    }
}

/// Objects that did not fit into memory: who asks for one takes another, or goes without.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unmapped {
    /// What is said of the first of them.
    first: String,
    all: BTreeSet<PathBuf>,
}

/// Those of this process.
static UNMAPPED: Mutex<Option<Unmapped>> = Mutex::new(None);

impl Unmapped {
    /// Notes one, so that the end of the run tells of it.
    pub(crate) fn note(path: &Path, error: &io::Error) {
        let mut unmapped = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let unmapped = unmapped.get_or_insert_with(|| Self {
            first: format!("{}: {error}", path.display()),
            all: BTreeSet::new(),
        });
        unmapped.all.insert(path.to_owned());
    }

    /// What is missing for want of memory; `None` if nothing is.
    pub(crate) fn error() -> Option<CliError> {
        let unmapped = UNMAPPED.lock().unwrap_or_else(PoisonError::into_inner);
        let Self { first, all } = unmapped.as_ref()?;
        let mut text = first.clone();
        if let others @ 1.. = all.len() - 1 {
            // A String takes every write.
            let _ = write!(text, ", nor could {others} other files");
        }
        text.push_str("; names and code of functions are missing above");
        Some(CliError::message(STATUS, text))
    }
}

/// What to do, for a command with or without several threads, under a limit of the address space in bytes.
fn text(has_threads: bool, limit: Option<u64>) -> String {
    let mut text = String::new();
    if has_threads {
        text.push_str("use one thread, which needs less memory (-j1), or ");
    }
    // A String takes every write.
    let _ = match limit {
        Some(limit) => write!(
            text,
            "raise the limit of the address space (ulimit -v, now {} KiB)",
            limit / 1024
        ),
        None => write!(
            text,
            "free memory on this machine, or raise the limit of the control group"
        ),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_what_there_is() {
        assert_eq!(
            text(true, Some(300_000 * 1024)),
            "use one thread, which needs less memory (-j1), or raise the limit of the address space (ulimit -v, now 300000 KiB)"
        );
        assert_eq!(
            text(false, None),
            "free memory on this machine, or raise the limit of the control group"
        );
    }

    #[test]
    fn errors_that_name_memory_get_it_once() {
        let hint = MemoryHint {
            program: Program::new(None),
            hint: Mutex::new("buy some".to_owned()),
        };
        let with_hint = |text: &str| hint.add_to(CliError::message(255, text)).text();
        assert_eq!(
            with_hint("a: out of memory: 7 bytes"),
            "a: out of memory: 7 bytes\nhint: buy some\n"
        );
        assert_eq!(with_hint("a: no such file"), "a: no such file\n");
        let own = CliError::message(255, "Cannot allocate memory").hint("a smaller -m");
        assert_eq!(
            hint.add_to(own).text(),
            "Cannot allocate memory\nhint: a smaller -m\n"
        );
    }
}
