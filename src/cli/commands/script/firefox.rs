//! The script `gecko`: a profile for profiler.firefox.com, which `data convert` writes.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use clap::ArgMatches;

use super::installed::{run_both, take_input};
use crate::cli::context::Context;
use crate::cli::dispatch;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::options::flag;
use crate::cli::shared::built_in_scripts::BuiltInScript;

/// The output file if `--save-only` is not given.
const PROFILE: &str = "gecko_profile.json";

/// Converts a recording.
///
/// # Errors
///
/// Status 129: unknown or incomplete arguments. Otherwise those of `data convert`.
pub(super) fn report(
    words: &[OsString],
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    // `--` is ignored: it is only for the words for `record`, which `report` does not take.
    let mut words: Vec<OsString> = words.iter().filter(|word| *word != "--").cloned().collect();
    let input = take_input(&mut words)?;
    let input = input.or_else(|| matches.get_one::<String>("input").map(OsString::from));
    let (profile, others) = take_profile(words)?;
    if let Some(word) = others.first() {
        let word = word.to_string_lossy();
        return Err(
            CliError::usage(format!("script gecko: unknown word '{word}'"))
                .detail("usage: script report gecko [--save-only FILE]"),
        );
    }
    let mut call = convert_arguments(&profile);
    if let Some(input) = input {
        call.extend(["-i".into(), input]);
    }
    call.extend((flag(matches, "force") == Some(true)).then(|| "-f".into()));
    dispatch(context, OsStr::new("data"), &call)
}

/// Records to a pipe, and converts the recording that arrives. Words other than `--save-only FILE` are those of `record`; without
/// any, the whole system is recorded. `all_cpus` is the option `-a` of `script`.
///
/// # Errors
///
/// Status 129: `--save-only` without a file. Status 255: a process cannot be started.
pub(super) fn live(
    script: &BuiltInScript,
    words: Vec<OsString>,
    all_cpus: bool,
) -> Result<ExitStatus, CliError> {
    let (profile, mut record_words) = take_profile(words)?;
    if record_words.is_empty() || all_cpus {
        record_words.insert(0, "-a".into());
    }
    let program = std::env::current_exe()?;
    let mut recorder = Command::new(&program);
    recorder.arg("record").args(script.record_options);
    recorder.args(["-q", "-o", "-"]).args(record_words);
    let mut reporter = Command::new(&program);
    reporter
        .arg("data")
        .args(convert_arguments(&profile))
        .args(["-i", "-"]);
    run_both(recorder, reporter)
}

fn convert_arguments(profile: &OsStr) -> Vec<OsString> {
    let words = ["convert".into(), "--to-firefox".into(), profile.to_owned()];
    words.into()
}

/// Removes `--save-only FILE` from the words before `--`. Returns the file, by default [`PROFILE`], and the other words.
fn take_profile(mut words: Vec<OsString>) -> Result<(OsString, Vec<OsString>), CliError> {
    let end = words.iter().take_while(|word| *word != "--").count();
    let place = words
        .iter()
        .take(end)
        .position(|word| word == "--save-only");
    let Some(place) = place else {
        return Ok((PROFILE.into(), words));
    };
    words.remove(place);
    match place + 1 < end {
        true => Ok((words.remove(place), words)),
        false => Err(CliError::usage("script gecko: --save-only needs a file")),
    }
}
