//! The kernel's lists of probe events in tracefs.

use std::fs::File;
use std::io;

use rperf_probe::Existing;
use rperf_safefs::Folder;
use rperf_sys::Tracefs;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::explain::reason;
use crate::cli::tracefs::MachineTracepoints;

/// The status of perf for EACCES.
const NOT_PERMITTED: u8 = 243;
/// What the kernel keeps of its last refusals.
const ERRORS: &str = "error_log";

/// How often a list is read that keeps changing.
const MAX_READINGS: usize = 32;

/// The probe events of programs and of the kernel.
pub(super) const PROGRAMS: &str = "uprobe_events";
pub(super) const KERNEL: &str = "kprobe_events";

/// Both lists.
pub(super) struct Tables(Tracefs);

impl Tables {
    pub(super) fn find(context: &Context) -> Self {
        Self(MachineTracepoints::find(context.globals.debugfs_dir.as_deref()).0)
    }

    /// All events with the lists they are in, in the order of their lines. A kernel may have one list only.
    pub(super) fn existing(&self) -> Result<Vec<(Existing, &'static str)>, CliError> {
        let mut lines = Vec::new();
        let mut failures = Vec::new();
        for list in [KERNEL, PROGRAMS] {
            match self.settled(list) {
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
            return Err(self.refused(&error, PROGRAMS));
        }
        lines.sort();
        let parsed = lines
            .iter()
            .map(|(line, list)| (Existing::parse(line), *list));
        Ok(parsed
            .filter_map(|(existing, list)| Some((existing?, list)))
            .collect())
    }

    /// A list as two readings after each other agree on it. The kernel hands it out in parts by counting its lines: where some are
    /// taken away in between, others are skipped.
    fn settled(&self, list: &str) -> io::Result<Vec<u8>> {
        let mut text = self.0.read(list)?;
        for _ in 0..MAX_READINGS {
            let again = self.0.read(list)?;
            if again == text {
                break;
            }
            text = again;
        }
        Ok(text)
    }

    /// Keeps other runs of this program from choosing names until it is dropped. Where the lists cannot be read, nothing is chosen
    /// anyway.
    pub(super) fn lock(&self) -> Option<File> {
        let mut locks = [PROGRAMS, KERNEL].into_iter().map(|list| self.0.lock(list));
        locks.find_map(Result::ok)
    }

    /// Hands the kernel the line of a new event.
    pub(super) fn write(&self, list: &str, line: &str) -> Result<(), CliError> {
        self.try_write(list, line)
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EACCES | libc::EPERM | libc::ENOENT) if !self.has(list) => {
                    self.refused(&error, list)
                }
                Some(libc::EROFS) => self.refused(&error, list),
                _ => self.explained(&error, line),
            })
    }

    /// Why the event of this name was not removed.
    pub(super) fn unremoved(&self, error: &io::Error, list: &str, name: &str) -> CliError {
        let told = match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM | libc::EROFS) => self.refused(error, list),
            Some(libc::EBUSY) => CliError::message(super::NOT_FOUND, format!("{name} is in use"))
                .hint("it can be removed when the recordings of it have ended"),
            _ => CliError::message(super::NOT_FOUND, format!("{name}: {}", reason(error))),
        };
        told.detail("  Error: Failed to delete events.")
    }

    /// Hands the kernel one line, without words for the error.
    pub(super) fn try_write(&self, list: &str, line: &str) -> io::Result<()> {
        self.0.append(list, line)
    }

    /// Whether there are lists, but not for this user. Who may not write them may not open the kernel's uprobe PMU either.
    pub(super) fn are_forbidden(&self) -> bool {
        let denied = |error: io::Error| error.kind() == io::ErrorKind::PermissionDenied;
        self.0.read(PROGRAMS).is_err_and(denied)
    }

    /// Whether the kernel has this list.
    pub(super) fn has(&self, list: &str) -> bool {
        self.0.read(list).is_ok()
    }

    /// Why a list cannot be opened.
    fn refused(&self, error: &io::Error, list: &str) -> CliError {
        let root = self.0.root().display();
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                CliError::message(NOT_PERMITTED, "No permission to write tracefs.")
                    .detail("Please run this command again with sudo.")
            }
            io::ErrorKind::NotFound if Folder::open(self.0.events()).is_err() => CliError::message(
                super::NOT_FOUND,
                format!("tracefs is not mounted at {root}"),
            )
            .hint(format!(
                "'mount -t tracefs nodev {root}', as root, mounts it"
            )),
            io::ErrorKind::NotFound => {
                let option = match list {
                    KERNEL => "CONFIG_KPROBE_EVENTS",
                    _ => "CONFIG_UPROBE_EVENTS",
                };
                CliError::message(super::NOT_FOUND, format!("{root}/{list} does not exist."))
                    .detail(format!("Please rebuild kernel with {option}=y."))
            }
            io::ErrorKind::ReadOnlyFilesystem => CliError::message(
                super::NOT_FOUND,
                format!("tracefs is mounted read-only at {root}"),
            )
            .hint(format!(
                "'mount -o remount,rw {root}', as root, makes it writable"
            )),
            _ => {
                let reason = reason(error);
                CliError::message(super::NOT_FOUND, format!("{root}/{list}: {reason}"))
            }
        }
    }

    /// Which part of a line the kernel did not take, by its own log.
    fn explained(&self, error: &io::Error, line: &str) -> CliError {
        let told = CliError::message(
            super::NOT_FOUND,
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
        let is_about_it = last.iter().any(|said| said.contains(line));
        let told = match is_about_it {
            true => last.iter().fold(told, |told, line| told.detail(*line)),
            false => told.detail(format!("  {line}")),
        };
        told.detail("  Error: Failed to add events.")
    }
}
