//! Records the events to count: of a command, of running processes, or of the whole system.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::ArgMatches;

use super::numbers::NumberSource;
use super::text;
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::temporary_folder::TemporaryFolder;

/// A temporary recording, written by `record`.
pub(super) struct Recorded {
    pub(super) path: PathBuf,
    /// The exit status of `record`.
    pub(super) exit: ExitStatus,
    /// Removes the file when dropped.
    _temporary: TemporaryFolder,
}

impl Recorded {
    /// Records the events of `source` if a workload, a number of seconds (stored in `source`), `-p` or `-a` is given;
    /// otherwise returns `None`. `-p` overrides `-a`, with a warning.
    ///
    /// # Errors
    ///
    /// Status 129: `-i` was given as well. Otherwise the errors of the temporary folder and of `record`.
    pub(super) fn new(
        matches: &ArgMatches,
        source: &NumberSource,
        context: &Context,
    ) -> Result<Option<Self>, CliError> {
        let workload = matches.get_many::<OsString>("workload");
        let workload: Vec<OsString> = workload.unwrap_or_default().cloned().collect();
        let attached = text(matches, "attach");
        let is_system = flag(matches, "all-cpus") == Some(true);
        let seconds = source.seconds();
        if workload.is_empty() && attached.is_none() && !is_system && seconds.is_none() {
            return Ok(None);
        }
        if text(matches, "input").is_some() {
            return Err(CliError::usage(
                "-i reads a recording, so nothing can be recorded: omit seconds, command, -a and -p",
            ));
        }
        let folder = TemporaryFolder::create("histogram")?;
        let path = folder.recording();
        // The arguments of `record`: quiet, and without build-ids.
        let mut arguments: Vec<OsString> =
            vec!["-q".into(), "-B".into(), "-o".into(), (&path).into()];
        for event in source.events() {
            arguments.extend(["-e".into(), event.into()]);
        }
        if let Some(seconds) = seconds {
            arguments.extend(["--duration".into(), seconds.into()]);
        }
        if let Some(processes) = attached {
            arguments.extend(["-p".into(), processes.into()]);
            if is_system {
                // The warning of `record`, which does not print it here because of `-q`.
                context.warn("PID/TID switch overriding SYSTEM");
            }
        } else if is_system || workload.is_empty() {
            // Also if only the seconds are given.
            arguments.push("-a".into());
        }
        if !workload.is_empty() {
            arguments.push("--".into());
            arguments.extend(workload);
        }
        Ok(Some(Self {
            exit: dispatch(context, OsStr::new("record"), &arguments)?,
            path,
            _temporary: folder,
        }))
    }
}
