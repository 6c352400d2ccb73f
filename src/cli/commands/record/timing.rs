//! `-D`, `--duration`, `-k` and `--max-size`: when events are enabled, when the recording ends, the clock, and the maximum size
//! of the output.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::TimedSwitch;

use crate::cli::error::CliError;
use crate::cli::shared::sampling::size::parse_with_unit;

/// When events are enabled and disabled; `None` if they are enabled from the start, empty if they stay disabled.
pub(super) fn timed_switches(matches: &ArgMatches) -> Result<Option<Vec<TimedSwitch>>, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(None);
    };
    parse_delay(word).ok_or_else(|| {
        CliError::usage(format!("-D: '{word}' is not a delay")).hint(
            "give milliseconds (500), ascending ranges (10-20,30-40), or -1 to leave events disabled",
        )
    })
}

/// Parses the argument of `-D`: `None` if it is invalid, `Some(None)` if there is no delay.
fn parse_delay(word: &str) -> Option<Option<Vec<TimedSwitch>>> {
    if word == "-1" {
        return Some(Some(Vec::new()));
    }
    let switch = |millis, on| TimedSwitch {
        after: Duration::from_millis(millis),
        on,
    };
    let enable_after = |millis| switch(millis, true);
    let disable_after = |millis| switch(millis, false);
    let millis = |text: &str| text.parse::<u32>().ok().map(u64::from);
    if let Some(delay) = millis(word) {
        return Some((delay > 0).then(|| vec![enable_after(delay)]));
    }
    let mut switches: Vec<TimedSwitch> = Vec::new();
    for range in word.split(',') {
        let (from, to) = range.split_once('-')?;
        let (from, to) = (enable_after(millis(from)?), disable_after(millis(to)?));
        let in_order = switches.last().is_none_or(|last| last.after < from.after);
        if !in_order || from.after >= to.after {
            return None;
        }
        switches.extend([from, to]);
    }
    Some(Some(switches))
}

/// The time after which the recording ends; `None` if not given.
pub(super) fn duration(matches: &ArgMatches) -> Result<Option<Duration>, CliError> {
    let Some(word) = matches.get_one::<String>("duration") else {
        return Ok(None);
    };
    let duration = parse_duration(word).ok_or_else(|| {
        CliError::usage(format!("--duration: '{word}' is not a duration"))
            .hint("give seconds (10, 0.5), or a number with a unit: 500ms, 10s, 5m, 1h")
    });
    duration.map(Some)
}

fn parse_duration(word: &str) -> Option<Duration> {
    let end = word.find(|letter: char| letter.is_ascii_alphabetic());
    let (number, unit) = word.split_at(end.unwrap_or(word.len()));
    let unit = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    let is_decimal = number
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = number.parse::<f64>().ok().filter(|_| is_decimal)? * unit;
    let duration = Duration::try_from_secs_f64(seconds).ok()?;
    (!duration.is_zero()).then_some(duration)
}

/// The clocks of `-k` by name.
const CLOCKS: [(&str, i32); 5] = [
    ("monotonic", libc::CLOCK_MONOTONIC),
    ("monotonic_raw", libc::CLOCK_MONOTONIC_RAW),
    ("realtime", libc::CLOCK_REALTIME),
    ("boottime", libc::CLOCK_BOOTTIME),
    ("tai", libc::CLOCK_TAI),
];

/// Short names of some clocks.
const CLOCK_ALIASES: [(&str, i32); 4] = [
    ("mono", libc::CLOCK_MONOTONIC),
    ("raw", libc::CLOCK_MONOTONIC_RAW),
    ("real", libc::CLOCK_REALTIME),
    ("boot", libc::CLOCK_BOOTTIME),
];

/// The clock of timestamps; `None` for the kernel's default.
pub(super) fn clockid(matches: &ArgMatches) -> Result<Option<i32>, CliError> {
    let Some(word) = matches.get_one::<String>("clockid") else {
        return Ok(None);
    };
    if let Ok(number) = word.parse() {
        return Ok(Some(number));
    }
    let lower = word.to_lowercase();
    let name = lower.strip_prefix("clock_").unwrap_or(&lower);
    let mut clocks = CLOCKS.iter().chain(&CLOCK_ALIASES);
    let known = clocks.find(|(known, _)| *known == name);
    let (_, clockid) = known.ok_or_else(|| {
        let names: Vec<&str> = CLOCKS.iter().map(|(name, _)| *name).collect();
        CliError::usage(format!("-k: unknown clock '{word}'")).hint(format!(
            "choose from {}, or give its number",
            names.join(", ")
        ))
    })?;
    Ok(Some(*clockid))
}

/// The output size in bytes at which the recording ends; `None` if not given.
pub(super) fn max_size(matches: &ArgMatches) -> Result<Option<u64>, CliError> {
    let Some(word) = matches.get_one::<String>("max-size") else {
        return Ok(None);
    };
    parse_with_unit(word).map(Some).ok_or_else(|| {
        CliError::usage(format!("--max-size: '{word}' is not a size"))
            .hint("give bytes with a unit: 100B, 64K, 5M, 2G")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        for (word, millis) in [
            ("10", 10_000),
            ("0.5", 500),
            ("1.5s", 1500),
            ("20ms", 20),
            ("2m", 120_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(
                parse_duration(word),
                Some(Duration::from_millis(millis)),
                "{word}"
            );
        }
        for bad in ["", "0", "-1", "s", "1x", "1e3", "+1", "1..2", "1s5", "inf"] {
            assert_eq!(parse_duration(bad), None, "{bad}");
        }
    }

    #[test]
    fn delays_are_one_number_or_ranges_in_order() {
        let parsed = |word| {
            let switches = parse_delay(word)??;
            let plain = |switch: &TimedSwitch| (switch.after.as_millis(), switch.on);
            Some(switches.iter().map(plain).collect::<Vec<_>>())
        };
        assert_eq!(parsed("50"), Some(vec![(50, true)]));
        assert_eq!(parsed("-1"), Some(vec![]));
        assert_eq!(
            parsed("10-20,30-40"),
            Some(vec![(10, true), (20, false), (30, true), (40, false)])
        );
        assert_eq!(parse_delay("0"), Some(None), "no delay");
        for bad in [
            "",
            "x",
            "-2",
            "10-",
            "20-10",
            "10-20,15-30",
            "10-20,30",
            "5,10",
        ] {
            assert_eq!(parse_delay(bad), None, "{bad}");
        }
    }
}
