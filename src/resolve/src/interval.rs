//! Time intervals of `--time`, in seconds or in percent of the recording.

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// An interval, inclusive, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimeInterval {
    /// 0 for the start of the recording.
    start: u64,
    /// 0 for the end of the recording.
    end: u64,
}

/// The selected intervals of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeIntervals(Vec<TimeInterval>);

/// Why a time string is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IntervalError {
    /// It is not a list of intervals. Also for intervals given as times that overlap, are not in order, or end before they
    /// begin; percentages may do all that.
    #[error("Invalid time string")]
    Invalid,
    /// Percentages or relative times for a recording without the times of its first and last
    /// sample.
    #[error("HINT: no first/last sample time found in perf data.")]
    NoBoundaries,
}

impl TimeIntervals {
    /// Parses `1.5,2.25`, `,2.25 3,`, `10%/2,10%/4`, `0%-10%,30%-40%` or `20%`. Intervals given as times, `START,END`, are
    /// separated by blanks, those in percent by commas. `boundaries` are the times of the first and last sample. If `relative`,
    /// times count from the time of the first sample; percentages always do.
    ///
    /// # Errors
    ///
    /// Those of [`IntervalError`].
    pub fn parse(
        text: &str,
        boundaries: Option<(u64, u64)>,
        relative: bool,
    ) -> Result<Self, IntervalError> {
        let percents = text.contains('%');
        if !percents && !relative {
            return parse_moments(text).map(Self).ok_or(IntervalError::Invalid);
        }
        // A recording without sample times may have the boundaries (0, 0).
        let known = boundaries.filter(|times| *times != (0, 0));
        let (first, last) = known.ok_or(IntervalError::NoBoundaries)?;
        let intervals = if percents {
            let parts = text.split(',');
            let parts = parts.map(|part| parse_percents(part.trim(), first, last));
            parts.collect()
        } else {
            parse_moments(text).map(|intervals| shifted(intervals, first))
        };
        intervals.map(Self).ok_or(IntervalError::Invalid)
    }

    /// Whether a sample of this time is selected. As in perf, the time 0 always is; `u64::MAX`, the time of a sample whose event
    /// records none, is compared like any other.
    #[must_use]
    pub fn contain(&self, time: u64) -> bool {
        let within = |interval: &TimeInterval| {
            time >= interval.start && (interval.end == 0 || time <= interval.end)
        };
        time == 0 || self.0.iter().any(within)
    }
}

fn shifted(mut intervals: Vec<TimeInterval>, by: u64) -> Vec<TimeInterval> {
    for interval in &mut intervals {
        interval.start = interval.start.saturating_add(by);
        // Open ends stay open.
        if interval.end != 0 {
            interval.end = interval.end.saturating_add(by);
        }
    }
    intervals
}

/// Parses `START,END` pairs separated by blanks, in order of time. A single pair may have blanks after its comma, as in perf.
fn parse_moments(text: &str) -> Option<Vec<TimeInterval>> {
    let single = without_blanks(text);
    let text = single.as_deref().unwrap_or(text);
    let mut intervals: Vec<TimeInterval> = Vec::new();
    for (index, pair) in text.split(' ').enumerate() {
        // Several blanks are one separator; a blank at the end makes the text invalid, as no interval follows it.
        let is_last = index + 1 == text.split(' ').count();
        if pair.is_empty() && !is_last {
            continue;
        }
        let (start, end) = pair.split_once(',')?;
        let moment = |text: &str| match text {
            "" => Some(0),
            text => parse_moment(text),
        };
        let interval = TimeInterval {
            start: moment(start)?,
            end: moment(end)?,
        };
        let backwards = interval.end != 0 && interval.end < interval.start;
        // An interval may begin at the time at which the previous one ends, although both include this time.
        let overlaps = intervals
            .last()
            .is_some_and(|previous| previous.end == 0 || previous.end > interval.start);
        if backwards || overlaps {
            return None;
        }
        intervals.push(interval);
    }
    Some(intervals)
}

/// `START, END` as `START,END`; `None` unless `text` is a single pair with blanks after its comma.
fn without_blanks(text: &str) -> Option<String> {
    let (start, end) = text.split_once(", ")?;
    let end = end.trim_start_matches(' ');
    let is_single = text.matches(',').count() == 1 && !end.is_empty();
    is_single.then(|| format!("{start},{end}"))
}

/// Parses seconds with at most nine decimals, and returns nanoseconds. Larger times than `u64::MAX` nanoseconds become
/// `u64::MAX`.
fn parse_moment(text: &str) -> Option<u64> {
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let seconds: u64 = seconds.parse().ok()?;
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().ok()?;
    let whole = seconds.saturating_mul(NANOS_PER_SECOND);
    Some(whole.saturating_add(nanoseconds))
}

/// Parses `10%/2`, the second tenth; `10%-20%`; `10%`, the first tenth.
fn parse_percents(text: &str, first: u64, last: u64) -> Option<TimeInterval> {
    let (from, to) = if let Some((part, number)) = text.split_once('/') {
        let part = parse_percent(part).filter(|part| *part > 0.0)?;
        let number: i32 = number.parse().ok()?;
        let number = f64::from(number);
        (part * (number - 1.0), part * number)
    } else if let Some((from, to)) = text.split_once('-') {
        (parse_percent(from)?, parse_percent(to)?)
    } else {
        (0.0, parse_percent(text)?)
    };
    let valid = 0.0..=1.0;
    if !valid.contains(&from) || !valid.contains(&to) {
        return None;
    }
    let duration = last.saturating_sub(first) as f64;
    let at = |share: f64| first.saturating_add((share * duration).round() as u64);
    let (start, mut end) = (at(from), at(to));
    // Excludes the end, at which the next interval starts.
    if end > start && end != last {
        end -= 1;
    }
    Some(TimeInterval { start, end })
}

/// Parses a percentage as a fraction.
fn parse_percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.parse().ok()?;
    (0.0..=100.0).contains(&number).then_some(number / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = NANOS_PER_SECOND;
    // Values of the argument `relative`.
    const ABSOLUTE: bool = false;
    const RELATIVE: bool = true;

    fn parsed(text: &str) -> Option<Vec<(u64, u64)>> {
        let intervals = TimeIntervals::parse(text, Some((100, 1100)), ABSOLUTE).ok()?;
        let pairs = intervals.0.iter();
        Some(pairs.map(|one| (one.start, one.end)).collect())
    }

    #[test]
    fn start_and_end_times_are_parsed() {
        assert_eq!(parsed("1,2"), Some(vec![(SECOND, 2 * SECOND)]));
        assert_eq!(parsed("1,  2"), Some(vec![(SECOND, 2 * SECOND)]));
        assert_eq!(parsed("1, 2,3"), None);
        assert_eq!(parsed("1.5,"), Some(vec![(1_500_000_000, 0)]));
        assert_eq!(parsed(",0.000000001"), Some(vec![(0, 1)]));
        // More nanoseconds than `u64::MAX`.
        assert_eq!(parsed("0,18446744069414584"), Some(vec![(0, u64::MAX)]));
        assert_eq!(
            parsed("1,2  3,"),
            Some(vec![(SECOND, 2 * SECOND), (3 * SECOND, 0)])
        );
        for wrong in [
            "",
            "1",
            "2,1",
            "x,",
            "1.x,",
            "1.1234567890,",
            "3,4 1,2",
            "1,3 2,4",
            "1,2 ",
            "1, 2,3",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn percentages_are_parsed() {
        assert_eq!(parsed("10%/1"), Some(vec![(100, 199)]));
        assert_eq!(parsed("10%/10"), Some(vec![(1000, 1100)]));
        assert_eq!(parsed("20%"), Some(vec![(100, 299)]));
        assert_eq!(parsed("0%-10%,30%-40%"), Some(vec![(100, 199), (400, 499)]));
        for wrong in [
            "10%/0",
            "10%/11",
            "10%/-2147483648",
            "-10%",
            "101%",
            "0%/1",
            "1%/x",
            "%",
            "5,10%",
        ] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn relative_times_and_percentages_need_the_recordings_times() {
        let relative = TimeIntervals::parse("0,1", Some((7, 9)), RELATIVE).unwrap();
        assert_eq!(
            relative.0,
            [TimeInterval {
                start: 7,
                end: SECOND + 7
            }]
        );
        let percents = TimeIntervals::parse("20%", Some((100, 1100)), RELATIVE).unwrap();
        assert_eq!(
            percents.0,
            [TimeInterval {
                start: 100,
                end: 299
            }]
        );
        for text in ["10%", "0,1"] {
            let parsed = TimeIntervals::parse(text, Some((0, 0)), RELATIVE);
            assert_eq!(parsed, Err(IntervalError::NoBoundaries));
        }
    }

    #[test]
    fn both_ends_are_included() {
        let boundaries = None;
        let intervals = TimeIntervals::parse("1,2 3,", boundaries, ABSOLUTE).unwrap();
        for (time, is_selected) in [
            (0, true),
            (SECOND - 1, false),
            (SECOND, true),
            (2 * SECOND, true),
            (2 * SECOND + 1, false),
            (3 * SECOND, true),
            (u64::MAX, true),
        ] {
            assert_eq!(intervals.contain(time), is_selected, "{time}");
        }
    }
}
