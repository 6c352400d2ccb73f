//! How many threads analyse a recording: `-j`, or `rperf.jobs` of the configuration.

use std::num::NonZeroUsize;

use clap::{Arg, ArgMatches};

use super::context::Context;
use super::error::CliError;
use super::options::{number, value};

/// The option. What is printed does not depend on it.
pub(crate) fn option() -> Arg {
    value("jobs", "n")
        .short('j')
        .value_parser(number)
        .help("threads to work with (default: one for each processor)")
}

/// The threads to work with.
///
/// # Errors
///
/// Usage: none.
pub(crate) fn jobs(matches: &ArgMatches, context: &Context) -> Result<NonZeroUsize, CliError> {
    let configured = || context.config.text("rperf.jobs")?.parse().ok();
    let asked = matches.get_one::<u64>("jobs").copied().or_else(configured);
    let Some(asked) = asked else {
        let processors = NonZeroUsize::new(rperf_sys::parallelism());
        return Ok(processors.unwrap_or(NonZeroUsize::MIN));
    };
    // Far more than any machine has would only take memory.
    let asked = usize::try_from(asked).unwrap_or(MOST).min(MOST);
    NonZeroUsize::new(asked)
        .ok_or_else(|| CliError::usage("-j 0: at least one thread has to do the work".to_owned()))
}

/// Most threads.
const MOST: usize = 1024;
