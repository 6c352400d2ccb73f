//! `-D`, `-k` and `--max-size`: when events run, by which clock, and for how many bytes.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::Switch;

use super::size::with_unit;
use crate::cli::error::CliError;

/// When events are started and stopped; `None` where they run from the start.
pub(super) fn switches(matches: &ArgMatches) -> Result<Option<Vec<Switch>>, CliError> {
    let Some(word) = matches.get_one::<String>("delay") else {
        return Ok(None);
    };
    parse_delay(word).ok_or_else(|| {
        CliError::usage(format!("-D: '{word}' is no delay")).hint(
            "give milliseconds (500), ranges of them in order (10-20,30-40), or -1 to start nothing",
        )
    })
}

fn parse_delay(word: &str) -> Option<Option<Vec<Switch>>> {
    if word == "-1" {
        return Some(Some(Vec::new()));
    }
    let switch = |millis, on| Switch {
        after: Duration::from_millis(millis),
        on,
    };
    let millis = |text: &str| text.parse::<u32>().ok().map(u64::from);
    if let Some(delay) = millis(word) {
        return Some((delay > 0).then(|| vec![switch(delay, true)]));
    }
    let mut switches: Vec<Switch> = Vec::new();
    for range in word.split(',') {
        let (from, to) = range.split_once('-')?;
        let (from, to) = (switch(millis(from)?, true), switch(millis(to)?, false));
        let in_order = switches.last().is_none_or(|last| last.after < from.after);
        if !in_order || from.after >= to.after {
            return None;
        }
        switches.extend([from, to]);
    }
    Some(Some(switches))
}

/// Names of clocks, some of them twice.
const CLOCKS: [(&str, i32); 9] = [
    ("monotonic", libc::CLOCK_MONOTONIC),
    ("monotonic_raw", libc::CLOCK_MONOTONIC_RAW),
    ("realtime", libc::CLOCK_REALTIME),
    ("boottime", libc::CLOCK_BOOTTIME),
    ("tai", libc::CLOCK_TAI),
    ("mono", libc::CLOCK_MONOTONIC),
    ("raw", libc::CLOCK_MONOTONIC_RAW),
    ("real", libc::CLOCK_REALTIME),
    ("boot", libc::CLOCK_BOOTTIME),
];

/// The clock of all times; `None` for the kernel's own.
pub(super) fn clockid(matches: &ArgMatches) -> Result<Option<i32>, CliError> {
    let Some(word) = matches.get_one::<String>("clockid") else {
        return Ok(None);
    };
    if let Ok(number) = word.parse() {
        return Ok(Some(number));
    }
    let lower = word.to_lowercase();
    let name = lower.strip_prefix("clock_").unwrap_or(&lower);
    let known = CLOCKS.iter().find(|(known, _)| *known == name);
    let (_, clockid) = known.ok_or_else(|| {
        let names: Vec<&str> = CLOCKS.iter().take(5).map(|(name, _)| *name).collect();
        CliError::usage(format!("-k: there is no clock '{word}'")).hint(format!(
            "choose from {}, or give its number",
            names.join(", ")
        ))
    })?;
    Ok(Some(*clockid))
}

/// Bytes of output after which the recording ends.
pub(super) fn max_size(matches: &ArgMatches) -> Result<Option<u64>, CliError> {
    let Some(word) = matches.get_one::<String>("max-size") else {
        return Ok(None);
    };
    with_unit(word).map(Some).ok_or_else(|| {
        CliError::usage(format!("--max-size: '{word}' is no size"))
            .hint("give bytes with a unit: 100B, 64K, 5M, 2G")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_are_one_number_or_ranges_in_order() {
        let parsed = |word| {
            let switches = parse_delay(word)??;
            let plain = |switch: &Switch| (switch.after.as_millis(), switch.on);
            Some(switches.iter().map(plain).collect::<Vec<_>>())
        };
        assert_eq!(parsed("50"), Some(vec![(50, true)]));
        assert_eq!(parsed("-1"), Some(vec![]));
        assert_eq!(
            parsed("10-20,30-40"),
            Some(vec![(10, true), (20, false), (30, true), (40, false)])
        );
        assert_eq!(parse_delay("0"), Some(None), "no delay at all");
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
