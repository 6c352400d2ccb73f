//! The workload: the command that is run and observed.

use std::ffi::OsString;
use std::io;

use clap::{Arg, ArgMatches};
use rperf_sys::Program;

use crate::cli::context::Context;

/// Declares the positional words of a command with a workload: the first and everything after it belong to the workload.
pub(crate) fn words() -> Arg {
    Arg::new("workload")
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
}

/// Returns the words as given; empty without a workload.
pub(crate) fn workload_words(matches: &ArgMatches) -> Vec<OsString> {
    let words = matches.get_many("workload").into_iter().flatten();
    words.cloned().collect()
}

/// Finds the program of the workload; `None` without a workload. An error is returned with the word that was looked up.
pub(crate) fn find(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<Program>, (String, io::Error)> {
    let words = workload_words(matches);
    let Some(word) = words.first() else {
        return Ok(None);
    };
    let word = word.to_string_lossy().into_owned();
    let found = Program::find(words, context.var("PATH").as_deref());
    found.map(Some).map_err(|cause| (word, cause))
}
