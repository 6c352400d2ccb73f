//! Latencies from text of two columns (end time and latency), as `heatmap --format text` writes them.

use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use clap::{Arg, ArgMatches};
use rperf_analysis::TimedSpan;
use rperf_safefs::open_regular;

use super::text;
use crate::cli::error::CliError;
use crate::cli::filter::args as filter_args;
use crate::cli::options::flag;
use crate::cli::symbol_options::args as symbol_args;

/// Options of recordings that are refused with `--latencies`. Filters of samples, symbol options and `--no-idle` are
/// refused, too.
const OF_RECORDINGS: [&str; 5] = ["input", "event", "from", "to", "key"];

/// The only symbol option that is not refused: it does not change which names are shown.
const JOBS: &str = "jobs";

/// The name of the standard input.
const STDIN: &str = "-";

/// Reads the latencies of `--latencies`, sorted by end; `None` without the option. Blank lines and lines that begin with `#` are
/// skipped.
///
/// # Errors
///
/// Status 129: an option of recordings is given. Status 255: the file cannot be read or has no latencies, or a line does not
/// consist of two numbers.
pub(super) fn read(matches: &ArgMatches) -> Result<Option<Vec<TimedSpan>>, CliError> {
    let Some(path) = text(matches, "latencies") else {
        return Ok(None);
    };
    refuse_recording_options(matches)?;
    let failed = |error: &io::Error| CliError::message(255, format!("{path}: {error}"));
    let file: Box<dyn Read> = match path {
        STDIN => Box::new(io::stdin()),
        path => Box::new(open_regular(Path::new(path)).map_err(|error| failed(&error))?),
    };
    let mut latencies = Vec::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(|error| failed(&error))?;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let latency = parse(&line).ok_or_else(|| {
            CliError::message(
                255,
                format!("{path} line {number}: expected a time and a latency, not '{line}'"),
            )
            .hint("both are in microseconds: '1204.5 17.25'")
        })?;
        latencies.push(latency);
    }
    if latencies.is_empty() {
        return Err(CliError::message(255, format!("{path}: no latencies")));
    }
    latencies.sort_by_key(|latency| latency.end);
    Ok(Some(latencies))
}

fn refuse_recording_options(matches: &ArgMatches) -> Result<(), CliError> {
    let declared: Vec<Arg> = filter_args::common()
        .into_iter()
        .chain(symbol_args::all())
        .collect();
    let declared = declared.iter().map(|arg| arg.get_id().as_str());
    let mut ids = OF_RECORDINGS
        .into_iter()
        .chain(declared.filter(|id| *id != JOBS));
    let no_idle = (flag(matches, "idle") == Some(false)).then_some("no-idle");
    let given = ids.find(|id| matches.contains_id(id)).or(no_idle);
    given.map_or(Ok(()), |id| {
        Err(CliError::usage(format!(
            "--{id} and --latencies exclude each other: --latencies reads no recording"
        )))
    })
}

/// Parses a line of two numbers; `None` if it has fewer or more words, or a word is not a number.
fn parse(line: &str) -> Option<TimedSpan> {
    let mut words = line.split_whitespace();
    let (end, latency) = (words.next()?, words.next()?);
    words.next().is_none().then_some(())?;
    Some(TimedSpan {
        end: nanoseconds(end)?,
        nanos: nanoseconds(latency)?,
    })
}

/// Parses decimal microseconds; digits below a nanosecond are dropped.
fn nanoseconds(word: &str) -> Option<u64> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let is_number = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let padded = format!("{fraction:0<3}");
    let nanos: u64 = padded.get(..3)?.parse().ok()?;
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(1000)?
        .checked_add(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_time_and_a_latency() {
        let latency = |end, nanos| Some(TimedSpan { end, nanos });
        assert_eq!(parse("1204.5 17.256789"), latency(1_204_500, 17_256));
        assert_eq!(parse("  7\t0.001 "), latency(7000, 1));
        for line in [
            "",
            "1",
            "1 2 3",
            "a 1",
            "1 -2",
            "1 2e3",
            "99999999999999999999 1",
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }
}
