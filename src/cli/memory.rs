//! The message and the hint for running out of memory: for errors, and for failed allocations that no error can report.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use rperf_input::UnmappedObjects;
use rperf_names::counted;
use rperf_sys::{OutOfMemoryMessage, address_space_limit, explain_out_of_memory};

use super::context::ProgramName;
use super::error::CliError;
use super::output::OutputStreams;

/// The exit status when memory runs out.
const STATUS: u8 = 255;
/// Texts that identify an out-of-memory error, our own and the system's.
const MARKS: [&str; 2] = ["out of memory", "Cannot allocate memory"];

/// The hint for running out of memory, which depends on the command.
pub(crate) struct MemoryHint {
    program: ProgramName,
    hint: Mutex<String>,
}

impl MemoryHint {
    /// Creates the hint before the command is known.
    pub(crate) fn new(program: ProgramName) -> Self {
        let is_threaded = false;
        Self {
            program,
            hint: Mutex::new(advice(is_threaded, address_space_limit())),
        }
    }

    /// Sets whether the command uses more than one thread and has `-j`; if so, the hint suggests `-j1`.
    /// Updates the message of failed allocations, too.
    pub(crate) fn set_threaded(&self, is_threaded: bool) {
        *self.hint.lock().unwrap_or_else(PoisonError::into_inner) =
            advice(is_threaded, address_space_limit());
        self.set_message();
    }

    /// Adds the hint to an out-of-memory error that has none.
    pub(crate) fn add_to(&self, error: CliError) -> CliError {
        let text = error.text();
        let needs_hint = MARKS.iter().any(|mark| text.contains(mark)) && !error.has_hints();
        match needs_hint {
            true => error.hint(&*self.hint.lock().unwrap_or_else(PoisonError::into_inner)),
            false => error,
        }
    }

    /// Sets the message and the hint that this process prints when an allocation fails and no error can be returned.
    pub(crate) fn set_message(&self) {
        let hint = self.hint.lock().unwrap_or_else(PoisonError::into_inner);
        explain_out_of_memory(OutOfMemoryMessage {
            before: format!(
                "{}{}: out of memory: ",
                OutputStreams::error_start(),
                self.program
            ),
            after: format!(" bytes could not be allocated\nhint: {hint}\n"),
            status: STATUS,
        });
    }
}

/// Returns the error for object files that could not be mapped for lack of memory; `None` if all could be mapped.
pub(crate) fn unmapped_objects_error() -> Option<CliError> {
    let UnmappedObjects { first, paths } = UnmappedObjects::found()?;
    let mut text = first;
    // `paths` includes the object of the first message.
    if let others @ 1.. = paths.len() - 1 {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "; {} could not be mapped either",
            counted(others as u64, "other file")
        );
    }
    text.push_str("; symbols and code of functions are missing above");
    Some(CliError::message(STATUS, text))
}

/// Returns the text of the hint; `limit` is the limit of the address space in bytes, `None` if there is none.
fn advice(is_threaded: bool, limit: Option<u64>) -> String {
    let mut text = String::new();
    if is_threaded {
        text.push_str("use one thread (-j1), which needs less memory, or ");
    }
    // Writing to a String cannot fail.
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
    fn the_hint_depends_on_threads_and_the_limit() {
        let (threaded, not_threaded) = (true, false);
        assert_eq!(
            advice(threaded, Some(300_000 * 1024)),
            "use one thread (-j1), which needs less memory, or raise the limit of the address space (ulimit -v, now 300000 KiB)"
        );
        assert_eq!(
            advice(not_threaded, None),
            "free memory on this machine, or raise the limit of the control group"
        );
    }

    #[test]
    fn out_of_memory_errors_get_one_hint() {
        let hint = MemoryHint {
            program: ProgramName::new(None),
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
