//! The number of threads that analyse a recording: `-j`, or `rperf.jobs` of the configuration.

use std::num::NonZeroUsize;

use clap::{Arg, ArgMatches};

use super::context::Context;
use super::error::CliError;
use super::options::{given_value, number, value};

/// The `-j` option.
pub(crate) fn option() -> Arg {
    value("jobs", "n")
        .short('j')
        .value_parser(number)
        .help("number of worker threads (default: one per CPU)")
}

/// Returns the number of threads: the option, otherwise the setting `rperf.jobs`, each lowered to at most [`MAX_THREADS`];
/// one per CPU if neither is given.
///
/// # Errors
///
/// Status 129: the option or the setting is 0.
pub(crate) fn jobs(matches: &ArgMatches, context: &Context) -> Result<NonZeroUsize, CliError> {
    let given: Option<u64> = given_value(matches, "jobs").copied();
    // `ok`: the setting is a number, which is checked when the configuration is read.
    let configured = || context.config.text("rperf.jobs")?.parse().ok();
    let Some(requested) = given.or_else(configured) else {
        return Ok(default_jobs());
    };

    let requested = usize::try_from(requested)
        .unwrap_or(MAX_THREADS)
        .min(MAX_THREADS);
    NonZeroUsize::new(requested).ok_or_else(|| {
        CliError::usage(match given {
            Some(_) => "-j 0: give at least one thread",
            None => "the setting rperf.jobs = 0: give at least one thread",
        })
    })
}

/// Returns the default number of threads: one for each CPU that this process may use.
pub(crate) fn default_jobs() -> NonZeroUsize {
    NonZeroUsize::new(rperf_sys::parallelism()).unwrap_or(NonZeroUsize::MIN)
}

/// The maximum number of threads: a larger requested number is lowered to it.
const MAX_THREADS: usize = 1024;
