//! The command to run.

use std::ffi::OsString;
use std::io;

use clap::{Arg, ArgMatches};
use rperf_sys::Program;

use crate::cli::context::Context;

/// The positional words of a command that runs another: everything from the first on belongs to that one.
pub(crate) fn words() -> Arg {
    Arg::new("workload")
        .num_args(0..)
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
}

/// The words as given; none without a workload.
pub(crate) fn given(matches: &ArgMatches) -> Vec<OsString> {
    let words = matches.get_many("workload").into_iter().flatten();
    words.cloned().collect()
}

/// The program to run, found before anything is opened or written; the error comes with the word that was tried.
pub(crate) fn find(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<Program>, (String, io::Error)> {
    let words = given(matches);
    let Some(word) = words.first() else {
        return Ok(None);
    };
    let word = word.to_string_lossy().into_owned();
    let found = Program::find(words, context.var("PATH").as_deref());
    found.map(Some).map_err(|cause| (word, cause))
}
