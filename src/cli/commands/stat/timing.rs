//! `-D`, `-I`, `--timeout`: when counting starts, when counters are read, and when counting ends.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::{CountStart, IntervalOptions};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The shortest timeout, and the shortest one without a warning about overhead, in milliseconds.
const MIN_MILLIS: u64 = 10;
const MIN_MILLIS_WITHOUT_WARNING: u64 = 100;

/// The start of counting.
pub(super) fn start(matches: &ArgMatches) -> Result<CountStart, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(CountStart::AtOnce);
    };
    if word == "-1" {
        // Events stay disabled until a command of `--control` enables them.
        return Ok(CountStart::Never);
    }
    match word.parse::<u32>() {
        Ok(0) => Ok(CountStart::AtOnce),
        Ok(millis) => Ok(CountStart::After(Duration::from_millis(millis.into()))),
        Err(_) => Err(CliError::usage(format!("-D: '{word}' is not a delay"))
            .hint("give milliseconds (500), or -1 to leave events disabled")),
    }
}

/// The interval between readings, if any.
pub(super) fn interval(matches: &ArgMatches) -> Result<Option<IntervalOptions>, CliError> {
    let Some(millis) = matches.get_one::<u64>("interval-print").copied() else {
        return Ok(None);
    };
    if millis == 0 {
        return Err(CliError::usage("-I: an interval is at least 1 millisecond"));
    }
    // A count of 0 is no limit.
    let count = matches.get_one::<u64>("interval-count").copied();
    Ok(Some(IntervalOptions {
        every: Duration::from_millis(millis),
        max_intervals: count.filter(|count| *count > 0),
    }))
}

/// The time after which counting ends, if limited.
pub(super) fn timeout(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<Duration>, CliError> {
    let Some(millis) = matches.get_one::<u64>("timeout").copied() else {
        return Ok(None);
    };
    if millis < MIN_MILLIS {
        return Err(CliError::usage("timeout must be >= 10ms."));
    }
    if millis < MIN_MILLIS_WITHOUT_WARNING {
        context.note("timeout < 100ms. The overhead percentage could be high in some cases. Please proceed with caution.");
    }
    Ok(Some(Duration::from_millis(millis)))
}
