//! The two recordings that a command compares.

use std::path::PathBuf;

use clap::{Arg, ArgMatches};

use crate::cli::error::CliError;

/// The operands: recordings; [`earlier_and_later`] checks their number.
pub(crate) fn operands() -> Arg {
    Arg::new("files").num_args(0..).value_name("file")
}

/// Returns the earlier and the later recording: by default `perf.data.old` and `perf.data`; a single operand replaces
/// `perf.data`.
///
/// # Errors
///
/// Status 129: more than two files. The message names `command`, such as `sched diff`.
pub(crate) fn earlier_and_later(
    matches: &ArgMatches,
    command: &str,
) -> Result<[PathBuf; 2], CliError> {
    let files = matches.get_many::<String>("files").unwrap_or_default();
    let files: Vec<PathBuf> = files.map(PathBuf::from).collect();
    match &files[..] {
        [] => Ok(["perf.data.old", "perf.data"].map(PathBuf::from)),
        [later] => Ok(["perf.data.old".into(), later.clone()]),
        [earlier, later] => Ok([earlier.clone(), later.clone()]),
        _ => {
            let message = format!("{command}: give two recordings, BASELINE NEW");
            Err(CliError::usage(message))
        }
    }
}
