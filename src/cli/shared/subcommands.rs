//! Commands whose first words name a subcommand, such as `sched` and `kwork`.

use std::ffi::OsString;

use clap::{Arg, ArgMatches};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The subcommand's name and all that follows it, options too.
pub(crate) fn words_option() -> Arg {
    Arg::new("words")
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
        .value_name("word")
}

/// Returns the complete name of a subcommand that is abbreviated to at least three letters: the first of `names`.
pub(crate) fn full_name<'w>(word: &'w str, names: &[&'static str]) -> &'w str {
    let mut names = names.iter();
    let name = names.find(|name| word.len() > 2 && name.starts_with(word));
    name.copied().unwrap_or(word)
}

/// Returns the subcommand's name as given to `command`, and the words that follow it.
///
/// # Errors
///
/// Status 129: none was given; `known` is the hint.
pub(crate) fn split_words(
    command: &str,
    known: &str,
    matches: &ArgMatches,
    context: &Context,
) -> Result<(String, Vec<OsString>), CliError> {
    let mut words = matches
        .get_many::<OsString>("words")
        .unwrap_or_default()
        .cloned();
    let Some(name) = words.next() else {
        let program = context.program;
        let error = CliError::usage(format!("{program} {command}: no subcommand given"));
        return Err(error.hint(known));
    };
    Ok((name.to_string_lossy().into_owned(), words.collect()))
}
