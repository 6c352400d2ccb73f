//! Commands whose first argument is a subcommand, such as `sched` and `kwork`.

use std::ffi::OsString;

use clap::{Arg, ArgMatches};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The argument with the subcommand's name and everything after it, including options.
pub(crate) fn words_option() -> Arg {
    Arg::new("words")
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
        .value_name("word")
}

/// Returns the first of `names` that begins with `word`. Returns `word` itself if there is none, or, as in perf, if `word` has
/// fewer than three letters.
pub(crate) fn full_name<'w>(word: &'w str, names: &[&'static str]) -> &'w str {
    let mut names = names.iter();
    let name = names.find(|name| word.len() > 2 && name.starts_with(word));
    name.copied().unwrap_or(word)
}

/// Returns the error for a subcommand that `command` does not have; `known`, which lists its subcommands, is the hint.
pub(crate) fn unknown_subcommand(
    command: &str,
    name: &str,
    known: &str,
    context: &Context,
) -> CliError {
    let program = context.program;
    CliError::usage(format!("{program} {command}: unknown subcommand '{name}'")).hint(known)
}

/// Returns the subcommand's name as the user wrote it, and the words after it.
///
/// # Errors
///
/// Status 129: no subcommand was given; `known`, which lists the subcommands, is the hint.
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
