//! Records the samples to draw: of a command, of running processes, or of the whole system.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use super::text;
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::temporary_folder::TemporaryFolder;

/// Options with a value that only matter for recording. `event` is not one of them: it also selects the event to draw.
const VALUES: [&str; 4] = ["freq", "call-graph", "unwind", "keep"];

/// A finished recording.
pub(super) struct Recorded {
    pub(super) path: PathBuf,
    /// The exit status of `record`.
    pub(super) exit: ExitStatus,
    /// Removes the temporary recording when dropped.
    _temporary: Option<TemporaryFolder>,
}

impl Recorded {
    /// Records the command, the processes or the system that the options name; `None` if they name none of these.
    ///
    /// # Errors
    ///
    /// Status 129 if options for recording are given, but nothing to record. Also the errors of `record`, and of creating the
    /// temporary folder.
    pub(super) fn record(
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Option<Self>, CliError> {
        let workload = matches.get_many::<OsString>("workload");
        let workload: Vec<OsString> = workload.unwrap_or_default().cloned().collect();
        let system = flag(matches, "all-cpus") == Some(true);
        let attached = text(matches, "attach");
        if workload.is_empty() && attached.is_none() && !system {
            return refuse_record_options(matches, context).map(|()| None);
        }
        // With something to record, `-i` is the file to write, which is then drawn.
        let given_path = text(matches, "keep").or_else(|| text(matches, "input"));
        let (path, temporary) = match given_path {
            Some(path) => (PathBuf::from(path), None),
            None => {
                let folder = TemporaryFolder::create("flamegraph")
                    .map_err(|error| error.hint("--keep FILE writes the recording elsewhere"))?;
                (folder.recording(), Some(folder))
            }
        };
        let mut arguments = record_options(matches, &path);
        if system {
            arguments.push("-a".into());
        }
        if let Some(processes) = attached {
            arguments.extend(["-p".into(), processes.into()]);
        }
        if !workload.is_empty() {
            arguments.push("--".into());
            arguments.extend(workload.iter().cloned());
        }
        let exit = dispatch(context, OsStr::new("record"), &arguments);
        Ok(Some(Self {
            exit: exit.map_err(|error| match recording_named(&workload) {
                Some(file) => error.hint(format!("-i {} draws this file", file.display())),
                None => error,
            })?,
            path,
            _temporary: temporary,
        }))
    }
}

/// Returns the only word of the command if it is a file that cannot be executed: probably a recording given without `-i`.
fn recording_named(workload: &[OsString]) -> Option<&Path> {
    let [only] = workload else {
        return None;
    };
    let mode = std::fs::metadata(only).ok()?.permissions().mode();
    (mode & 0o111 == 0).then_some(Path::new(only))
}

/// Returns an error if options for recording are given, since nothing is recorded.
fn refuse_record_options(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let value = VALUES.into_iter().find(|id| text(matches, id).is_some());
    let off_cpu = (flag(matches, "off-cpu") == Some(true)).then_some("off-cpu");
    match value.or(off_cpu) {
        None => Ok(()),
        Some(option) => {
            let message = format!(
                "{} flamegraph: --{option} applies to recording",
                context.program
            );
            Err(CliError::usage(message).hint("give a command to record, processes (-p) or -a"))
        }
    }
}

/// Returns the options of `record`, except those that say what to record: the command, `-p` and `-a`.
fn record_options(matches: &ArgMatches, path: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["-o".into(), path.into()];
    let unwind = text(matches, "unwind");
    let default_mode = match unwind {
        // `record` refuses live unwinding in other modes: only stack copies are unwound.
        Some("live") => "dwarf",
        _ => "fp",
    };
    arguments.push("--call-graph".into());
    arguments.push(text(matches, "call-graph").unwrap_or(default_mode).into());
    for (option, id) in [("-F", "freq"), ("-e", "event"), ("--unwind", "unwind")] {
        if let Some(value) = text(matches, id) {
            arguments.extend([option.into(), value.into()]);
        }
    }
    if flag(matches, "off-cpu") == Some(true) {
        arguments.push("--off-cpu".into());
    }
    arguments
}
