//! What depends on the samples before, and so is only known when blocks rendered side by side are put in order.

use super::number;

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
    time: u64,
}

impl Block {
    pub(super) fn put_time_off(&mut self, time: u64) {
        self.late.push(Late {
            offset: self.text.len(),
            time,
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
            let shown = self.since(late.time);
            time(&mut self.joined, shown, self.nanoseconds);
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
    fn times_count_across_blocks() {
        assert_eq!(joined(Clock::SinceFirst), "<0: ><2: ><5: >");
        assert_eq!(joined(Clock::SinceBefore), "<0: ><2: ><3: >");
    }
}
