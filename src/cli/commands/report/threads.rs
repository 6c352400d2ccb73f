//! `--threads`: event counts per thread.

use clap::ArgMatches;
use rperf_view::report::ThreadLayout;

use crate::cli::error::CliError;
use crate::cli::options::flag;

/// Returns the layout of the event counts per thread; `None` without `--threads`.
///
/// # Errors
///
/// An unknown layout in `--pretty`.
pub(super) fn layout(matches: &ArgMatches) -> Result<Option<ThreadLayout>, CliError> {
    let layout = match matches.get_one::<String>("pretty").map(String::as_str) {
        None | Some("normal") => ThreadLayout::Normal,
        Some("raw") => ThreadLayout::Raw,
        Some(word) => {
            let message = format!("--pretty: '{word}' is neither normal nor raw");
            return Err(CliError::usage(message));
        }
    };
    Ok((flag(matches, "threads") == Some(true)).then_some(layout))
}
