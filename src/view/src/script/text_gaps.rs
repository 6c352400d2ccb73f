//! Text that depends on earlier records, and is filled in when blocks rendered in parallel are joined.

use rperf_lines::SourceFileLine;

use crate::digits;
use crate::header::calendar;

/// Columns of a source line's number.
const SOURCE_COLUMNS: usize = 8;

/// The origin of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The recording's clock.
    #[default]
    Recorded,
    /// The first sample or other record shown with its time (`--reltime`).
    SinceFirst,
    /// The previous sample or other record shown with its time (`--deltatime`).
    SinceBefore,
}

/// Converts timestamps to local dates and times.
#[derive(Debug, Clone, Copy)]
pub struct TimeOfDay {
    /// An instant in nanoseconds since 1970.
    pub wall: u64,
    /// The same instant on the clock of the timestamps.
    pub clock: u64,
    /// Offset of local time from UTC in seconds, at a time in seconds since 1970.
    pub zone: fn(i64) -> i64,
}

impl TimeOfDay {
    /// Appends the local date and time.
    pub(super) fn write(&self, time: u64, with_nanoseconds: bool, out: &mut Vec<u8>) {
        let wall = self.wall.wrapping_add(time.wrapping_sub(self.clock));
        let (seconds, nanos) = (wall / 1_000_000_000, wall % 1_000_000_000);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let local = calendar::iso(seconds.saturating_add((self.zone)(seconds)));
        out.extend_from_slice(local.as_bytes());
        fraction(out, nanos, with_nanoseconds);
        out.push(b' ');
    }
}

/// The text of consecutive records, with gaps that [`BlockJoiner`](super::BlockJoiner) fills.
#[derive(Debug, Clone, Default)]
pub struct ScriptBlock {
    /// The text without the times and blanks that fill gaps, but with all source lines and the prefixes of metric lines.
    pub text: Vec<u8>,
    /// The gaps, in order of their offsets.
    pub(super) gaps: Vec<TextGap>,
}

/// A gap at an offset of the block's text, or a mark there.
#[derive(Debug, Clone, Copy)]
pub(super) struct TextGap {
    pub(super) offset: usize,
    pub(super) content: LateField,
}

/// The content of a gap, or the meaning of a mark.
#[derive(Debug, Clone, Copy)]
pub(super) enum LateField {
    /// The time of a record in nanoseconds, which is shown relative to an earlier time.
    Time(u64),
    /// Blanks that pad a column to its longest text so far. The number is the length in bytes of the column's text in this
    /// line, which ends at the gap. A line has at most one such column.
    Blanks(usize),
    /// The next `length` bytes of the block are a source line. They are shown unless the thread's previous source line has the
    /// same id.
    Source {
        tid: u32,
        line_id: u64,
        length: usize,
    },
    /// A sample for the metrics of its group. The next `length` bytes of the block are the prefix of a metric's line, before the
    /// time.
    Metric {
        event: usize,
        period: u64,
        cpu: u32,
        /// The sample's time in nanoseconds, if it is shown after the prefix.
        time: Option<u64>,
        length: usize,
    },
    /// A sample of the event with this index follows; a record other than a sample if `None`.
    Part(Option<usize>),
}

impl ScriptBlock {
    /// Removes everything and keeps the memory for reuse.
    pub fn clear(&mut self) {
        self.text.clear();
        self.gaps.clear();
    }

    /// Marks the start of a sample of the event at this index, or of another record, so that
    /// [`BlockJoiner`](super::BlockJoiner) can omit or separate it.
    pub fn begin_part(&mut self, event: Option<usize>) {
        self.defer(LateField::Part(event));
    }

    /// Leaves a gap for a time relative to an earlier time; `time` is in nanoseconds.
    pub(super) fn defer_time(&mut self, time: u64) {
        self.defer(LateField::Time(time));
    }

    /// Appends the text of a column that is as wide as its longest text so far.
    pub(super) fn put_column(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.defer(LateField::Blanks(text.len()));
    }

    /// Appends a source line of thread `tid`. The joiner omits it if it is the previous source line of the thread, too.
    pub fn put_source(&mut self, source: &SourceFileLine, tid: u32) {
        let offset = self.text.len();
        self.text.push(b'|');
        let start = self.text.len();
        digits::decimal(&mut self.text, u64::from(source.number()), 0);
        let length = self.text.len() - start;
        digits::blanks(&mut self.text, SOURCE_COLUMNS.saturating_sub(length) + 1);
        self.text.extend_from_slice(source.bytes());
        self.text.push(b'\n');
        self.gaps.push(TextGap {
            offset,
            content: LateField::Source {
                tid,
                line_id: source.id(),
                length: self.text.len() - offset,
            },
        });
    }

    /// Leaves a gap or a mark at the end of the text.
    pub(super) fn defer(&mut self, content: LateField) {
        self.gaps.push(TextGap {
            offset: self.text.len(),
            content,
        });
    }
}

/// Appends a time in nanoseconds as seconds, and `: `. The seconds have nine decimals if `with_nanoseconds`, otherwise six
/// (truncated).
pub(super) fn time(out: &mut Vec<u8>, time: u64, with_nanoseconds: bool) {
    let (seconds, nanos) = (time / 1_000_000_000, time % 1_000_000_000);
    digits::decimal(out, seconds, 5);
    fraction(out, nanos, with_nanoseconds);
    out.extend_from_slice(b": ");
}

/// Appends a point and `nanos`, a fraction of a second, with nine digits if `with_nanoseconds`, otherwise six (truncated).
fn fraction(out: &mut Vec<u8>, nanos: u64, with_nanoseconds: bool) {
    out.push(b'.');
    match with_nanoseconds {
        true => digits::decimal_zeros(out, nanos, 9),
        false => digits::decimal_zeros(out, nanos / 1000, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_before_and_after_the_reference() {
        let clock = TimeOfDay {
            wall: 1_795_248_073_500_000_000,
            clock: 2_000_000_000,
            // One hour east of UTC at all times.
            zone: |_| 3600,
        };
        let text = |time, with_nanoseconds| {
            let mut out = Vec::new();
            clock.write(time, with_nanoseconds, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(2_000_001_999, false), "2026-11-21 09:01:13.500001 ");
        assert_eq!(text(999_999_999, true), "2026-11-21 09:01:12.499999999 ");
    }
}
