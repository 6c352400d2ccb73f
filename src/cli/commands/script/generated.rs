//! `script -g python`, `-g perl`, `-g FILE.py`, `-g FILE.pl`: writes a script for the events of a recording.

use std::io::Write as _;
use std::path::Path;

use clap::ArgMatches;
use rperf_scripting::{ScriptLanguage, perl_script, python_script};

use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::input::Input;

/// The files that are written if only the language is given, as in perf.
const PYTHON_FILE: &str = "perf-script.py";
const PERL_FILE: &str = "perf-script.pl";

/// Generates the script that `-g` requests; `None` without `-g`.
///
/// # Errors
///
/// Status 129: `-g` names an unknown language. Status 255: the recording cannot be read, has no tracepoints, or the file cannot
/// be written.
pub(super) fn run(matches: &ArgMatches, context: &Context) -> Result<Option<ExitStatus>, CliError> {
    let Some(given) = matches.get_one::<String>("gen-script") else {
        return Ok(None);
    };
    let (language_or_suffix, file) = match given.rsplit_once('.') {
        Some((_, suffix)) => (suffix, Some(given.as_str())),
        None => (given.as_str(), None),
    };
    let (language, default_file) = match language_or_suffix.to_ascii_lowercase().as_str() {
        "python" | "py" => (ScriptLanguage::Python, PYTHON_FILE),
        "perl" | "pl" => (ScriptLanguage::Perl, PERL_FILE),
        _ => {
            let error = CliError::usage(format!("invalid language specifier: -g {given}"));
            return Err(error.hint(
                "the languages are python (py) and perl (pl); a file's name ends in .py or .pl",
            ));
        }
    };
    let file = file.unwrap_or(default_file);
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let formats = data.metadata().formats();
    let formats = formats.map_err(|error| CliError::failure(255, error))?;
    let mut tracepoints = Vec::new();
    for event in data.events() {
        let Ok(tracepoint) = formats.of_event(&event.attr) else {
            // Not a tracepoint, or a tracepoint without a valid format.
            continue;
        };
        // Events with the same tracepoint share a handler.
        let has_same_name =
            |known: &&rperf_tracepoint::Tracepoint| known.name() == tracepoint.name();
        if !tracepoints.iter().any(has_same_name) {
            tracepoints.push(&**tracepoint);
        }
    }
    if tracepoints.is_empty() {
        let message = format!(
            "{}: the recording has no tracepoints to handle",
            input.path.display()
        );
        return Err(CliError::message(255, message)
            .hint("samples of other events are passed to a function process_event(dict)"));
    }
    let (text, language_name) = match language {
        ScriptLanguage::Python => (python_script(tracepoints), "Python"),
        ScriptLanguage::Perl => (perl_script(tracepoints), "Perl"),
    };
    let written = rperf_safefs::write_atomic(Path::new(file), |out| out.write_all(text.as_bytes()));
    written.map_err(|error| CliError::message(255, format!("{file}: {error}")))?;
    context.note(format_args!("generated {language_name} script: {file}"));
    Ok(Some(ExitStatus::Ok))
}
