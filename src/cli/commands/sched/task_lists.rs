//! Options whose value is a list of task ids.

use clap::ArgMatches;

use crate::cli::error::CliError;
use crate::cli::filter::words;

/// Returns the ids of an option's comma-separated value; `None` without the option.
///
/// # Errors
///
/// A word is not a number.
pub(super) fn ids(matches: &ArgMatches, option: &str) -> Result<Option<Vec<i32>>, CliError> {
    let parsed = words(matches, option).map(|words| {
        let ids = words.iter().map(|word| {
            word.parse().map_err(|_| {
                CliError::usage(format!(
                    "problems parsing {option} list: '{word}' is not a number"
                ))
            })
        });
        ids.collect()
    });
    parsed.transpose()
}
