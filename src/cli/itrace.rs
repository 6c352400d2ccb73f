//! `--itrace`: the samples that are synthesized from a hardware trace when a recording is read.

use clap::{Arg, ArgMatches};
use rperf_input::RecordingBytes;
use rperf_wire::RecordKind;

use super::context::Context;
use super::error::CliError;
use super::input::Input;
use super::options::attached;

/// The `--itrace` option.
pub(crate) fn option() -> Arg {
    attached("itrace", "letters")
        .help("samples to synthesize from a hardware trace (intel_bts): b for branches (default); e (errors) has no effect")
}

/// Returns a copy of the recording with a sample for each branch of its intel_bts trace; `None` if it has no such trace that can
/// be decoded, or if the samples are not requested. `by_default`: whether they are requested if the option is not given.
///
/// # Errors
///
/// Status 129: unknown letters. Status 255: the copy cannot be created, or the option requests branches of another type of trace.
/// Also those of [`Input::parse_quietly`].
pub(crate) fn decoded(
    input: &Input,
    matches: &ArgMatches,
    by_default: bool,
    context: &Context,
) -> Result<Option<Input>, CliError> {
    let requested = match matches.get_one::<String>("itrace") {
        Some(letters) => requests_branches(letters).map(Some)?,
        None => None,
    };
    if !requested.unwrap_or(by_default) {
        return Ok(None);
    }
    let data = input.parse_quietly(context)?;
    let decoded = data.with_branches();
    let decoded = decoded.map_err(|error| CliError::failure(255, error))?;
    let (path, mtime) = (input.path.clone(), input.mtime);
    if let Some(bytes) = decoded {
        // Damage of the original is not visible in the copy.
        input.warn_of_damage(&data, context);
        // The copy is in memory, not a mapped file.
        let mut copy = Input::new(path, mtime, RecordingBytes::Read(bytes));
        copy.is_truncated_copy = data.is_truncated();
        return Ok(Some(copy));
    }
    let has_trace = || {
        let mut records = data.records().filter_map(Result::ok);
        records.any(|record| record.raw.kind == RecordKind::AUXTRACE_INFO)
    };
    if requested == Some(true) && has_trace() {
        let message = format!(
            "--itrace: {}: only the hardware trace intel_bts can be decoded",
            path.display()
        );
        return Err(CliError::message(255, message));
    }
    Ok(None)
}

fn requests_branches(letters: &str) -> Result<bool, CliError> {
    if let Some(letter) = letters.chars().find(|letter| !"be".contains(*letter)) {
        let message =
            format!("--itrace: unknown letter '{letter}' in '{letters}': b is for branches");
        return Err(CliError::usage(message));
    }
    Ok(letters.is_empty() || letters.contains('b'))
}
