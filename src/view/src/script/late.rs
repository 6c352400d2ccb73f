//! What depends on the samples before, and so is only known when blocks rendered side by side are put in order.

use super::number;
use crate::header::calendar;

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
        out.push(b'.');
        if nanoseconds {
            number::decimal_zeros(out, rest, 9);
        } else {
            number::decimal_zeros(out, rest / 1000, 6);
        }
        out.push(b' ');
    }
}

/// The text of consecutive samples, with gaps where [`Join`] fills in the rest.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// The text without what is late.
    pub text: Vec<u8>,
    late: Vec<Late>,
}

/// Something to be written at an offset of the block's text.
#[derive(Debug, Clone, Copy)]
struct Late {
    offset: usize,
    what: What,
}

#[derive(Debug, Clone, Copy)]
enum What {
    /// A time to be counted from others.
    Time(u64),
    /// Blanks behind a text of this length, up to the longest before it.
    Blanks(usize),
}

impl Block {
    /// Takes everything out; the memory stays for what comes next.
    pub fn clear(&mut self) {
        self.text.clear();
        self.late.clear();
    }

    pub(super) fn put_time_off(&mut self, time: u64) {
        self.put_off(What::Time(time));
    }

    /// Appends text of a column that is as wide as its longest text so far.
    pub(super) fn put_column(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.put_off(What::Blanks(text.len()));
    }

    fn put_off(&mut self, what: What) {
        self.late.push(Late {
            offset: self.text.len(),
            what,
        });
    }
}

/// Fills the gaps of the blocks of one recording, which must come in order.
#[derive(Debug, Clone, Default)]
pub struct Join {
    clock: Clock,
    nanoseconds: bool,
    /// Time of the first sample or of the one before; 0 where there is none, as in perf.
    origin: u64,
    /// The longest text of the column so far.
    column: usize,
    joined: Vec<u8>,
}

impl Join {
    /// Fills in times as `clock` and `nanoseconds` say.
    #[must_use]
    pub fn new(clock: Clock, nanoseconds: bool) -> Self {
        Self {
            clock,
            nanoseconds,
            origin: 0,
            column: 0,
            joined: Vec::new(),
        }
    }

    /// The whole text of the next block.
    pub fn join<'a>(&'a mut self, block: &'a Block) -> &'a [u8] {
        if block.late.is_empty() {
            return &block.text;
        }
        self.joined.clear();
        let mut done = 0;
        for late in &block.late {
            let before = block.text.get(done..late.offset).unwrap_or_default();
            self.joined.extend_from_slice(before);
            done = late.offset;
            match late.what {
                What::Time(at) => {
                    let shown = self.since(at);
                    time(&mut self.joined, shown, self.nanoseconds);
                }
                What::Blanks(length) => {
                    self.column = self.column.max(length);
                    number::blanks(&mut self.joined, self.column - length);
                }
            }
        }
        self.joined
            .extend_from_slice(block.text.get(done..).unwrap_or_default());
        &self.joined
    }

    fn since(&mut self, time: u64) -> u64 {
        if self.origin == 0 {
            self.origin = time;
        }
        let since = time.wrapping_sub(self.origin);
        if self.clock == Clock::SinceBefore {
            self.origin = time;
        }
        since
    }
}

/// Appends seconds and microseconds, cut; or nanoseconds.
pub(super) fn time(out: &mut Vec<u8>, time: u64, nanoseconds: bool) {
    let (seconds, rest) = (time / 1_000_000_000, time % 1_000_000_000);
    number::decimal(out, seconds, 5);
    out.push(b'.');
    if nanoseconds {
        number::decimal_zeros(out, rest, 9);
    } else {
        number::decimal_zeros(out, rest / 1000, 6);
    }
    out.extend_from_slice(b": ");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(clock: Clock) -> String {
        let mut join = Join::new(clock, true);
        let mut text = String::new();
        for times in [&[5_u64, 7][..], &[], &[10]] {
            let mut block = Block::default();
            for time in times {
                block.text.push(b'<');
                block.put_time_off(*time);
                block.text.push(b'>');
            }
            text += std::str::from_utf8(join.join(&block)).unwrap();
        }
        text.replace("    0.00000000", "")
    }

    #[test]
    fn columns_grow_across_blocks() {
        let mut join = Join::default();
        let mut text = String::new();
        for words in [&["ab", "a"][..], &["abc"], &["a", ""]] {
            let mut block = Block::default();
            for word in words {
                block.put_column(word.as_bytes());
                block.text.push(b'|');
            }
            text += std::str::from_utf8(join.join(&block)).unwrap();
        }
        assert_eq!(text, "ab|a |abc|a  |   |");
    }

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

    #[test]
    fn times_count_across_blocks() {
        assert_eq!(joined(Clock::SinceFirst), "<0: ><2: ><5: >");
        assert_eq!(joined(Clock::SinceBefore), "<0: ><2: ><3: >");
    }
}
