//! `--switch-output`: rotation of output files.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::{RotationOptions, RotationTrigger};

use crate::cli::error::CliError;
use crate::cli::shared::sampling::size::parse_with_unit;

/// When the output is switched, and how many files are kept (all if `--switch-max-files` is not given or 0); `None` for a single
/// file. `--switch-output-event` alone implies `--switch-output=signal`, as in perf.
pub(super) fn rotation(
    matches: &ArgMatches,
    is_stream: bool,
) -> Result<Option<RotationOptions>, CliError> {
    let max_files = matches.get_one::<u64>("switch-max-files");
    let max_files = max_files
        .and_then(|keep| usize::try_from(*keep).ok())
        .filter(|keep| *keep > 0);
    let word = matches.get_one::<String>("switch-output");
    let at_event = matches.contains_id("switch-output-event");
    let Some(word) = word.map(String::as_str).or(at_event.then_some("signal")) else {
        return Ok(None);
    };
    if is_stream {
        return Err(CliError::usage(
            "--switch-output: the output is a pipe, name a file with -o",
        ));
    }
    let trigger = parse(word).ok_or_else(|| {
        CliError::usage(format!(
            "--switch-output: '{word}' is not a signal, size or time"
        ))
        .hint("give signal (SIGUSR2), a size (64K, 5M, 2G) or a time (10s, 5m, 1h, 1d)")
    })?;
    Ok(Some(RotationOptions { trigger, max_files }))
}

fn parse(word: &str) -> Option<RotationTrigger> {
    // Empty: `--switch-output` without a value.
    if matches!(word, "" | "signal") {
        return Some(RotationTrigger::Signal);
    }
    let seconds = match word.chars().last()? {
        's' => 1,
        'm' => 60,
        'h' => 3600,
        'd' => 86400,
        _ => return parse_with_unit(word).map(RotationTrigger::Size),
    };
    let number: u64 = word.get(..word.len() - 1)?.parse().ok()?;
    let time = number.checked_mul(seconds).filter(|seconds| *seconds > 0)?;
    Some(RotationTrigger::Time(Duration::from_secs(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suffix_distinguishes_sizes_and_times() {
        assert_eq!(
            [parse(""), parse("signal")],
            [Some(RotationTrigger::Signal); 2]
        );
        assert_eq!(parse("5M"), Some(RotationTrigger::Size(5 << 20)));
        assert_eq!(
            parse("5m"),
            Some(RotationTrigger::Time(Duration::from_secs(300)))
        );
        assert_eq!(
            parse("2h"),
            Some(RotationTrigger::Time(Duration::from_secs(7200)))
        );
        for bad in [
            "5",
            "0s",
            "xs",
            "s",
            "1.5s",
            "SIGUSR1",
            "99999999999999999999d",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
