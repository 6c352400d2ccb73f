//! `-D`, `-I`, `--timeout`: when counting starts, is read and ends.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::{Interval, Start};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// The shortest time that can be kept, and one below which watching costs what it watches.
const SHORTEST: u64 = 10;
const SHORT: u64 = 100;

/// When events start.
pub(super) fn start(matches: &ArgMatches) -> Result<Start, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(Start::AtOnce);
    };
    if word == "-1" {
        return Ok(Start::Never);
    }
    match word.parse::<u32>() {
        Ok(0) => Ok(Start::AtOnce),
        Ok(millis) => Ok(Start::After(Duration::from_millis(millis.into()))),
        Err(_) => Err(CliError::usage(format!("-D: '{word}' is no delay"))
            .hint("give milliseconds (500), or -1 to start nothing")),
    }
}

/// Whether there are readings in between.
pub(super) fn interval(matches: &ArgMatches) -> Result<Option<Interval>, CliError> {
    let Some(millis) = matches.get_one::<u64>("interval-print").copied() else {
        return Ok(None);
    };
    if millis == 0 {
        return Err(CliError::usage(
            "-I: an interval takes 1 millisecond or more",
        ));
    }
    let times = matches.get_one::<u64>("interval-count").copied();
    Ok(Some(Interval {
        every: Duration::from_millis(millis),
        times: times.filter(|times| *times > 0),
    }))
}

/// When everything ends.
pub(super) fn timeout(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Option<Duration>, CliError> {
    let Some(millis) = matches.get_one::<u64>("timeout").copied() else {
        return Ok(None);
    };
    if millis < SHORTEST {
        return Err(CliError::usage("timeout must be >= 10ms."));
    }
    if millis < SHORT {
        context.note("timeout < 100ms. The overhead percentage could be high in some cases. Please proceed with caution.");
    }
    Ok(Some(Duration::from_millis(millis)))
}
