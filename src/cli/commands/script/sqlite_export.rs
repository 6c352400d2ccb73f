//! The script `export-to-sqlite`: writes a recording as a database, with a Python script that is part of rperf.

use std::ffi::OsString;
use std::path::Path;

use clap::ArgMatches;
use rperf_safefs::Folder;
use rperf_scripting::EXPORT_TO_SQLITE;

use super::language::ScriptFile;
use super::run_script::run_file;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};

/// Exports a recording to a database. `words` are the script's arguments, first the path of the database.
///
/// # Errors
///
/// Status 129: `words` are invalid. Status 255: the database exists, or its folder cannot be opened. Otherwise those of
/// [`run_file`].
pub(super) fn export(
    words: Vec<OsString>,
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    let database = check(&words)?;
    let path = Path::new(&database).display().to_string();
    let failed = |error| CliError::message(255, format!("export-to-sqlite: {path}: {error}"));
    let (folder, name) = Folder::parent_of(Path::new(&database)).map_err(failed)?;
    if folder.kind(name).map_err(failed)?.is_some() {
        let message = format!("export-to-sqlite: {path} exists");
        return Err(CliError::message(255, message).hint("remove it, or name another file"));
    }
    let script = ScriptFile::built_in("export-to-sqlite", EXPORT_TO_SQLITE, words);
    let status = run_file(&script, matches, context);
    if !matches!(status, Ok(ExitStatus::Ok)) {
        // An incomplete database is of no use. A failure to remove it is ignored: `status` has the cause.
        let _ = folder.remove_file(name);
    }
    status
}

/// Checks the script's arguments, and returns the path of the database.
///
/// # Errors
///
/// Status 129: the database is missing, or a further word is unknown.
pub(super) fn check(words: &[OsString]) -> Result<OsString, CliError> {
    let usage_error = |message: String| {
        CliError::usage(format!("script export-to-sqlite: {message}")).detail(
            "usage: script report export-to-sqlite <database> [all|branches] [calls] [callchains]",
        )
    };
    let Some((database, rest)) = words.split_first() else {
        return Err(usage_error("the name of a database is missing".to_owned()));
    };
    for (index, word) in rest.iter().enumerate() {
        let allowed: &[&str] = match index {
            0 => &["all", "branches"],
            _ => &["calls", "callchains"],
        };
        if !allowed.iter().any(|allowed_word| word == allowed_word) {
            let word = word.to_string_lossy();
            return Err(usage_error(format!("unknown word '{word}'")));
        }
    }
    Ok(database.clone())
}
