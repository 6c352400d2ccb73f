//! `--itrace`: what becomes of a hardware trace when a recording is read.

use clap::{Arg, ArgMatches};
use rperf_wire::RecordKind;

use super::context::Context;
use super::error::CliError;
use super::input::Input;
use super::options::attached;
use super::spool::Bytes;

/// The option.
pub(crate) fn option() -> Arg {
    attached("itrace", "letters").help(
        "make samples of a hardware trace (intel_bts): b for one of each branch, e for errors",
    )
}

/// The recording with a sample for each branch of its trace, where that is asked for, or `usual`; `None` where it stays as it
/// is. Its header, which tells of the records as they were, is that of `input`.
///
/// # Errors
///
/// Status 129: letters that nothing stands behind. Status 255: a trace that cannot be decoded, where it is asked for.
pub(crate) fn decoded(
    input: &Input,
    (matches, usual): (&ArgMatches, bool),
    context: &Context,
) -> Result<Option<Input>, CliError> {
    let asked = match matches.get_one::<String>("itrace") {
        Some(letters) => check(letters).map(Some)?,
        None => None,
    };
    if !asked.unwrap_or(usual) {
        return Ok(None);
    }
    let data = input.read(context)?;
    let decoded = data.with_branches();
    let decoded = decoded.map_err(|error| CliError::failure(255, error))?;
    let (path, changed) = (input.path.clone(), input.changed);
    if let Some(bytes) = decoded {
        // The copy is whole, whatever is missing here.
        input.warn_of_damage(&data, context);
        return Ok(Some(Input::new(path, changed, Bytes::Read(bytes))));
    }
    let mut records = data.records().filter_map(Result::ok);
    let has_trace = records.any(|record| record.raw.kind == RecordKind::AUXTRACE_INFO);
    if asked == Some(true) && has_trace {
        let message = format!(
            "--itrace: {}: its trace is of a kind that is not decoded: of these only intel_bts is",
            path.display()
        );
        return Err(CliError::message(255, message));
    }
    Ok(None)
}

/// Whether there are letters that ask for samples.
fn check(letters: &str) -> Result<bool, CliError> {
    if let Some(letter) = letters.chars().find(|letter| !"be".contains(*letter)) {
        let message = format!(
            "--itrace: '{letter}' in '{letters}' is not available: b is for branches, e for errors"
        );
        return Err(CliError::usage(message));
    }
    Ok(letters.is_empty() || letters.contains('b'))
}
