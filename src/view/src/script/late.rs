//! What depends on the samples before, and so is only known when blocks rendered side by side are put in order.

use rperf_lines::SourceText;

use super::number;
use crate::header::calendar;

/// Columns of a line's number before the text of the line.
const SOURCE_COLUMNS: usize = 8;

/// What times count from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// The recording's own clock.
    #[default]
    Recorded,
    /// The first sample shown (`--reltime`).
    SinceFirst,
    /// The sample shown before (`--deltatime`).
    SinceBefore,
}

/// How timestamps become times of day.
#[derive(Debug, Clone, Copy)]
pub struct TimeOfDay {
    /// A moment in nanoseconds since 1970.
    pub wall: u64,
    /// The same moment on the clock of the timestamps.
    pub clock: u64,
    /// Seconds that local time is ahead of UTC at a moment (seconds since 1970).
    pub zone: fn(i64) -> i64,
}

impl TimeOfDay {
    /// Appends the local date and time.
    pub(super) fn write(&self, time: u64, nanoseconds: bool, out: &mut Vec<u8>) {
        let wall = self.wall.wrapping_add(time.wrapping_sub(self.clock));
        let (seconds, rest) = (wall / 1_000_000_000, wall % 1_000_000_000);
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let local = calendar::iso(seconds.saturating_add((self.zone)(seconds)));
        out.extend_from_slice(local.as_bytes());
        fraction(out, rest, nanoseconds);
        out.push(b' ');
    }
}

/// The text of consecutive samples, with gaps where [`Join`](super::Join) fills in the rest.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The text without what is late.
    pub text: Vec<u8>,
    pub(super) late: Vec<Late>,
}

/// Something to be decided at an offset of the block's text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    pub(super) offset: usize,
    pub(super) what: What,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum What {
    /// A time to be counted from others.
    Time(u64),
    /// Blanks behind a text of this length, up to the longest before it.
    Blanks(usize),
    /// Behind it, text of this length about a line of source, which is shown where the thread was last in another.
    Source { tid: u32, line: u64, length: usize },
    /// A sample that counts for the metrics of its group; behind it, the start of its line, of this length.
    Metric {
        event: usize,
        period: u64,
        cpu: u32,
        /// The time that ends the start of the line, if that is shown.
        time: Option<u64>,
        length: usize,
    },
    /// From here on, a sample of this event; of none, another record.
    Part(Option<usize>),
}

impl Block {
    /// Takes everything out; the memory stays for what comes next.
    pub fn clear(&mut self) {
        self.text.clear();
        self.late.clear();
    }

    /// What follows is of a sample of the event at this place, or of another record: [`Join`](super::Join) can leave it out
    /// or tell it apart.
    pub fn begin_part(&mut self, event: Option<usize>) {
        self.put_off(What::Part(event));
    }

    pub(super) fn put_time_off(&mut self, time: u64) {
        self.put_off(What::Time(time));
    }

    /// Appends text of a column that is as wide as its longest text so far.
    pub(super) fn put_column(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.put_off(What::Blanks(text.len()));
    }

    /// Appends a line with the text of a line of source, unless the thread `tid` was last there.
    pub fn put_source(&mut self, source: &SourceText, tid: u32) {
        let offset = self.text.len();
        self.text.push(b'|');
        let start = self.text.len();
        number::decimal(&mut self.text, u64::from(source.number()), 0);
        let digits = self.text.len() - start;
        number::blanks(&mut self.text, SOURCE_COLUMNS.saturating_sub(digits) + 1);
        self.text.extend_from_slice(source.bytes());
        self.text.push(b'\n');
        self.late.push(Late {
            offset,
            what: What::Source {
                tid,
                line: source.id(),
                length: self.text.len() - offset,
            },
        });
    }

    pub(super) fn put_off(&mut self, what: What) {
        self.late.push(Late {
            offset: self.text.len(),
            what,
        });
    }
}

/// Appends seconds and microseconds, cut; or nanoseconds.
pub(super) fn time(out: &mut Vec<u8>, time: u64, nanoseconds: bool) {
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    number::decimal(out, seconds, 5);
    fraction(out, rest, nanoseconds);
    out.extend_from_slice(b": ");
}

/// Appends the nanoseconds of a second behind a point, all nine digits or the microseconds.
fn fraction(out: &mut Vec<u8>, rest: u64, nanoseconds: bool) {
    out.push(b'.');
    match nanoseconds {
        true => number::decimal_zeros(out, rest, 9),
        false => number::decimal_zeros(out, rest / 1000, 6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_go_both_ways_from_the_known_moment() {
        let clock = TimeOfDay {
            wall: 1_795_248_073_500_000_000,
            clock: 2_000_000_000,
            zone: |_| 3600,
        };
        let text = |time, nanoseconds| {
            let mut out = Vec::new();
            clock.write(time, nanoseconds, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(2_000_001_999, false), "2026-11-21 09:01:13.500001 ");
        assert_eq!(text(999_999_999, true), "2026-11-21 09:01:12.499999999 ");
    }
}
