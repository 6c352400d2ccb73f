//! `-F` and `-c`: the sampling rate.

use clap::ArgMatches;
use rperf_events::{DEFAULT_FREQUENCY, Sampling};
use rperf_sys::Sysctl;

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// perf's exit status for an invalid rate (`-EINVAL`).
const BAD_RATE: u8 = 234;
/// The sysctl file that limits the rate.
const LIMIT: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// Returns the sampling rate given by `-F` or `-c`, otherwise the default. `-c 0` counts as not given. A frequency above the
/// kernel's limit is lowered to the limit with a warning; with `--strict-freq`, it is refused if given by `-F`.
pub(crate) fn sampling(
    matches: &ArgMatches,
    context: &Context,
    sysctl: &Sysctl,
) -> Result<Sampling, CliError> {
    let known_limit = sysctl.perf_event_max_sample_rate();
    let limit = known_limit.unwrap_or(u64::MAX);
    let period = matches.get_one::<u64>("count").copied();
    let Some(word) = matches.get_one::<String>("freq") else {
        return Ok(match period {
            Some(0) | None if limit < DEFAULT_FREQUENCY => {
                context.warn(format_args!("the sampling rate is lowered from {DEFAULT_FREQUENCY} Hz to {limit} Hz, the limit in {LIMIT}"));
                Sampling::Default(limit)
            }
            Some(0) | None => Sampling::Default(DEFAULT_FREQUENCY),
            Some(period) => Sampling::Period(period),
        });
    };
    if period.is_some_and(|period| period > 0) {
        return Err(CliError::message(
            BAD_RATE,
            "cannot set frequency and period at the same time",
        ));
    }
    if word.eq_ignore_ascii_case("max") {
        return maximum(known_limit, context);
    }
    let frequency: u64 = word.parse().map_err(|_| {
        CliError::usage(format!(
            "'{word}' is not a frequency: give samples per second, or max"
        ))
    })?;
    match frequency {
        0 => Err(CliError::message(
            BAD_RATE,
            "frequency and count are zero, aborting",
        )),
        frequency if frequency <= limit => Ok(Sampling::Frequency(frequency)),
        frequency if flag(matches, "strict-freq") == Some(true) => Err(CliError::message(
            BAD_RATE,
            format!(
                "error: Maximum frequency rate ({limit} Hz) exceeded, {frequency} Hz is asked for."
            ),
        )
        .hint(format!(
            "use a lower -F, or raise the limit in {LIMIT} as root"
        ))),
        frequency => {
            context.note(format_args!("warning: Maximum frequency rate ({limit} Hz) exceeded, throttling from {frequency} Hz to {limit} Hz."));
            context.note(format_args!("hint: root can raise the limit in {LIMIT}"));
            Ok(Sampling::Frequency(limit))
        }
    }
}

/// Returns the rate for `-F max`.
fn maximum(limit: Option<u64>, context: &Context) -> Result<Sampling, CliError> {
    let Some(limit) = limit else {
        let message = format!("-F max: the limit in {LIMIT} cannot be read");
        return Err(CliError::message(BAD_RATE, message).hint("give -F samples per second"));
    };
    context.note(format_args!(
        "info: Using a maximum frequency rate of {limit} Hz"
    ));
    Ok(Sampling::Frequency(limit))
}
