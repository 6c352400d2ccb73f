//! The kernel's lists of probe events in tracefs.

use std::collections::HashMap;
use std::fs::File;
use std::io;

use rperf_probe::{ExistingEvent, ProbeEvent, ProbeTarget};
use rperf_safefs::Folder;
use rperf_sys::Tracefs;

use super::place_messages::FAILED;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::tracefs::MachineTracepoints;

/// perf's exit status for EACCES.
const NOT_PERMITTED: u8 = 243;
/// The kernel's log of recent errors.
const ERRORS: &str = "error_log";

/// The maximum number of repeated reads of a list that keeps changing.
const MAX_REREADS: usize = 32;

/// The list files of uprobe and kprobe events.
pub(crate) const UPROBE_EVENTS: &str = "uprobe_events";
pub(crate) const KPROBE_EVENTS: &str = "kprobe_events";

/// The lists of uprobe and of kprobe events in a tracefs.
pub(crate) struct EventLists(Tracefs);

impl EventLists {
    pub(crate) fn find(context: &Context) -> Self {
        Self(MachineTracepoints::find(context.globals.debugfs_dir.as_deref()).tracefs)
    }

    /// Returns all events, each with the list it is in, sorted by line. The error is worded for a command that changes the lists.
    pub(crate) fn existing(&self) -> Result<Vec<(ExistingEvent, &'static str)>, CliError> {
        let read = self.read();
        read.map_err(|error| self.refused(&error, UPROBE_EVENTS))
    }

    /// Like [`Self::existing`]; the error is worded for a command that only reads the lists.
    pub(crate) fn existing_to_list(&self) -> Result<Vec<(ExistingEvent, &'static str)>, CliError> {
        self.read().map_err(|error| self.unreadable(&error))
    }

    /// Returns how often events were hit while enabled, from the kernel's profiles. The key is the path of the program (empty for
    /// the kernel) and the name of the event without its group, which the profiles do not have.
    pub(crate) fn hits(&self) -> HashMap<(String, String), u64> {
        let text = |profile| {
            let bytes = self.0.read(profile).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let (programs, kernel) = (text("uprobe_profile"), text("kprobe_profile"));
        let programs = programs.lines().filter_map(program_hits);
        programs
            .chain(kernel.lines().filter_map(kernel_hits))
            .collect()
    }

    /// Reads both lists. Fails only if neither can be read, as a kernel may have only one.
    fn read(&self) -> io::Result<Vec<(ExistingEvent, &'static str)>> {
        let mut lines = Vec::new();
        let mut failures = Vec::new();
        for list in [KPROBE_EVENTS, UPROBE_EVENTS] {
            match self.read_settled(list) {
                Ok(text) => {
                    let text = String::from_utf8_lossy(&text).into_owned();
                    lines.extend(text.lines().map(|line| (line.to_owned(), list)));
                }
                Err(error) => failures.push(error),
            }
        }
        if failures.len() == 2
            && let Some(error) = failures.pop()
        {
            return Err(error);
        }
        lines.sort();
        let parsed = lines
            .iter()
            .map(|(line, list)| (ExistingEvent::parse(line), *list));
        Ok(parsed
            .filter_map(|(existing, list)| Some((existing?, list)))
            .collect())
    }

    /// Reads a list until two consecutive reads agree, at most [`MAX_REREADS`] times more. The kernel delivers a list in chunks
    /// by line number: if lines are removed between two chunks, other lines are skipped.
    fn read_settled(&self, list: &str) -> io::Result<Vec<u8>> {
        let mut text = self.0.read(list)?;
        for _ in 0..MAX_REREADS {
            let again = self.0.read(list)?;
            if again == text {
                break;
            }
            text = again;
        }
        Ok(text)
    }

    /// Locks the first list that can be opened, so that two runs of rperf do not choose the same event name: the second waits for
    /// the first. The lock is held until the result is dropped; `None` if neither list can be opened.
    pub(crate) fn lock(&self) -> Option<File> {
        let mut locks = [UPROBE_EVENTS, KPROBE_EVENTS]
            .into_iter()
            .map(|list| self.0.lock(list));
        locks.find_map(Result::ok)
    }

    /// Writes the line of a new event.
    pub(crate) fn write(&self, list: &str, line: &str) -> Result<(), CliError> {
        self.try_write(list, line)
            .map_err(|error| match error.raw_os_error() {
                // If the list can be read, the error is taken to be about the event, such as ENOENT for an unknown symbol.
                Some(libc::EPERM | libc::ENOENT) if !self.has(list) => self.refused(&error, list),
                // The list may be readable, but not writable, for a group.
                Some(libc::EACCES | libc::EROFS) => self.refused(&error, list),
                _ => self.explained(&error, line),
            })
    }

    /// Returns the error for an event that could not be deleted.
    pub(crate) fn removal_error(&self, error: &io::Error, list: &str, name: &str) -> CliError {
        let failure = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => self.refused(error, list),
            Some(libc::EBUSY) => CliError::message(FAILED, format!("{name} is in use"))
                .hint("remove it after the recordings that use it have ended"),
            _ => CliError::message(FAILED, format!("{name}: {}", reason(error))),
        };
        failure.detail("  Error: Failed to delete events.")
    }

    /// Appends one line to a list; the error is the kernel's, without explanation.
    pub(crate) fn try_write(&self, list: &str, line: &str) -> io::Result<()> {
        self.0.append(list, line)
    }

    /// Whether this user may not read the list of uprobe events.
    pub(crate) fn are_forbidden(&self) -> bool {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        self.0.read(UPROBE_EVENTS).is_err_and(denied)
    }

    /// Whether the list `list` exists and can be read.
    pub(crate) fn has(&self, list: &str) -> bool {
        self.0.read(list).is_ok()
    }

    /// Returns the error for lists that cannot be read, for a command that does not change them.
    fn unreadable(&self, error: &io::Error) -> CliError {
        if error.kind() != io::ErrorKind::PermissionDenied {
            return self.refused(error, UPROBE_EVENTS);
        }
        let root = self.0.root().display();
        CliError::message(NOT_PERMITTED, "No permission to read tracefs.")
            .detail(format!("Please try 'sudo mount -o remount,mode=755 {root}'"))
            .hint(format!(
                "the lists of probes have mode 640 since Linux 5.16: 'sudo mount -o remount,mode=750,gid=GROUP {root}' lets a group read them"
            ))
    }

    /// Returns the error for a list that cannot be read or written. If permission is denied, the error is worded for a command
    /// that changes the list.
    fn refused(&self, error: &io::Error, list: &str) -> CliError {
        let root = self.0.root().display();
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                CliError::message(NOT_PERMITTED, "No permission to write tracefs.")
                    .detail("Please run this command again with sudo.")
            }
            io::ErrorKind::NotFound if Folder::open(self.0.events_folder()).is_err() => {
                CliError::message(FAILED, format!("tracefs is not mounted at {root}"))
                    .hint(format!("run as root: mount -t tracefs nodev {root}"))
            }
            io::ErrorKind::NotFound => {
                let option = match list {
                    KPROBE_EVENTS => "CONFIG_KPROBE_EVENTS",
                    _ => "CONFIG_UPROBE_EVENTS",
                };
                CliError::message(FAILED, format!("{root}/{list} does not exist."))
                    .detail(format!("Please rebuild kernel with {option}=y."))
            }
            io::ErrorKind::ReadOnlyFilesystem => {
                CliError::message(FAILED, format!("tracefs is mounted read-only at {root}"))
                    .hint(format!("run as root: mount -o remount,rw {root}"))
            }
            _ => {
                let reason = reason(error);
                CliError::message(FAILED, format!("{root}/{list}: {reason}"))
            }
        }
    }

    /// Returns the error for a line that the kernel rejected, with the explanation in the kernel's error log, if any.
    fn explained(&self, error: &io::Error, line: &str) -> CliError {
        let failure = CliError::message(
            FAILED,
            format!("the kernel refused the event: {}", reason(error)),
        );
        let log = self.0.read(ERRORS).unwrap_or_default();
        let log = String::from_utf8_lossy(&log).into_owned();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines
            .iter()
            .rposition(|line| line.contains("error: "))
            .and_then(|at| lines.get(at..))
            .unwrap_or_default();
        let is_about_line = last.iter().any(|message| message.contains(line));
        let failure = match is_about_line {
            true => last
                .iter()
                .fold(failure, |failure, line| failure.detail(*line)),
            false => failure.detail(format!("  {line}")),
        };
        failure.detail("  Error: Failed to add events.")
    }
}

/// Parses `  PATH EVENT HITS`; a path may contain blanks.
fn program_hits(line: &str) -> Option<((String, String), u64)> {
    let (rest, hits) = line.trim().rsplit_once(char::is_whitespace)?;
    let (path, event) = rest.trim_end().rsplit_once(char::is_whitespace)?;
    Some((
        (path.trim().to_owned(), event.to_owned()),
        hits.parse().ok()?,
    ))
}

/// Parses `  EVENT HITS MISSES`.
fn kernel_hits(line: &str) -> Option<((String, String), u64)> {
    let mut words = line.split_whitespace();
    let (event, hits) = (words.next()?, words.next()?);
    Some(((String::new(), event.to_owned()), hits.parse().ok()?))
}

/// Returns the list that an event belongs to.
pub(crate) fn list_of(event: &ProbeEvent) -> &'static str {
    match event.target {
        ProbeTarget::Program { .. } => UPROBE_EVENTS,
        ProbeTarget::Kernel { .. } => KPROBE_EVENTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profile_lines_are_parsed() {
        let key = |path: &str, event: &str| (path.to_owned(), event.to_owned());
        let line = "  /opt/my program middle                                              12";
        assert_eq!(
            program_hits(line),
            Some((key("/opt/my program", "middle"), 12))
        );
        let line = "  vfs_read                                                 7               1";
        assert_eq!(kernel_hits(line), Some((key("", "vfs_read"), 7)));
        for damaged in ["", "  x", "x y z"] {
            assert_eq!(program_hits(damaged), None);
            assert_eq!(kernel_hits(damaged), None);
        }
    }
}
