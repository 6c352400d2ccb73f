//! Puts blocks that were rendered side by side in order, and fills in what depends on the samples before.

use std::collections::HashMap;
use std::io::Write as _;

use rperf_lines::{EventSwitch, Form, Metric, Metrics};

use super::late::{Block, Clock, What, time};
use super::number;

/// Fills the gaps of the blocks of one recording, which must come in order.
#[derive(Debug, Clone, Default)]
pub struct Join {
    clock: Clock,
    nanoseconds: bool,
    /// Time of the first sample or of the one before; 0 where there is none, as in perf.
    origin: u64,
    /// The longest text of the column so far.
    column: usize,
    /// By thread, the line of source that it was in last.
    sources: HashMap<u32, u64>,
    metrics: Metrics,
    switch: EventSwitch,
    joined: Vec<u8>,
    parts: Vec<Part>,
    /// Whether samples are kept apart by event.
    apart: bool,
}

/// Text of one event's samples.
#[derive(Debug, Clone, Copy)]
struct Part {
    /// The place of the event; `None` for records that are no samples.
    event: Option<usize>,
    /// Whether a sample begins with it.
    start: usize,
}

impl Join {
    /// Fills in times as `clock` and `nanoseconds` say.
    #[must_use]
    pub fn new(clock: Clock, nanoseconds: bool) -> Self {
        Self {
            clock,
            nanoseconds,
            ..Self::default()
        }
    }

    /// Leaves out the samples that `switch` is off for, from here on.
    pub fn follow(&mut self, switch: EventSwitch) {
        self.switch = switch;
    }

    /// Keeps the samples of events apart, for [`Join::parts`].
    pub fn keep_apart(&mut self) {
        self.apart = true;
    }

    /// Counts the samples of groups by `metrics` from here on.
    pub fn set_metrics(&mut self, metrics: Metrics) {
        self.metrics = metrics;
    }

    /// The whole text of the next block.
    pub fn join<'a>(&'a mut self, block: &'a Block) -> &'a [u8] {
        if block.late.is_empty() {
            return &block.text;
        }
        self.fill(block);
        &self.joined
    }

    /// The text of the next block in parts, each with the place of its event, or none for records that are no samples.
    pub fn parts<'a>(
        &'a mut self,
        block: &'a Block,
    ) -> impl Iterator<Item = (Option<usize>, &'a [u8])> {
        self.fill(block);
        let ends = self.parts.iter().skip(1).map(|part| part.start);
        let ends = ends.chain(std::iter::once(self.joined.len()));
        let parts = self.parts.iter().zip(ends);
        parts.map(|(part, end)| {
            let text = self.joined.get(part.start..end).unwrap_or_default();
            (part.event, text)
        })
    }

    fn fill(&mut self, block: &Block) {
        self.joined.clear();
        self.parts.clear();
        let mut done = 0;
        let mut shown = true;
        for late in &block.late {
            if shown {
                let before = block.text.get(done..late.offset).unwrap_or_default();
                self.joined.extend_from_slice(before);
            }
            done = late.offset.max(done);
            if let What::Part(event) = late.what {
                shown = event.is_none_or(|event| self.switch.shows(event));
                if shown && self.apart {
                    let start = self.joined.len();
                    self.parts.push(Part { event, start });
                }
            } else if shown {
                let behind = block.text.get(late.offset..).unwrap_or_default();
                done += self.fill_in(late.what, behind);
            }
        }
        if shown {
            let rest = block.text.get(done..).unwrap_or_default();
            self.joined.extend_from_slice(rest);
        }
    }

    /// Appends what stands for `what`; returns how much it took of the text `behind` it.
    fn fill_in(&mut self, what: What, behind: &[u8]) -> usize {
        match what {
            What::Time(at) => {
                self.time(at);
                0
            }
            What::Blanks(length) => {
                self.column = self.column.max(length);
                number::blanks(&mut self.joined, self.column - length);
                0
            }
            What::Source { tid, line, length } => {
                let text = behind.get(..length).unwrap_or_default();
                if self.sources.insert(tid, line) != Some(line) {
                    self.joined.extend_from_slice(text);
                }
                length
            }
            What::Metric {
                event,
                period,
                cpu,
                time,
                length,
            } => {
                let start = behind.get(..length).unwrap_or_default();
                let mut found = Vec::new();
                self.metrics
                    .add(event, period, cpu, |metric| found.push(metric));
                for metric in &found {
                    self.metric(metric, start, time);
                }
                length
            }
            What::Part(_) => 0,
        }
    }

    /// A line with a metric.
    fn metric(&mut self, metric: &Metric, start: &[u8], at: Option<u64>) {
        // Where perf begins another line, it says its start, and says it again before the value.
        for _ in 0..1 + usize::from(metric.is_second) {
            self.joined.extend_from_slice(start);
            if let Some(at) = at {
                self.time(at);
            }
            self.joined.extend_from_slice(b"\tmetric: ");
        }
        let (value, out) = (metric.value, &mut self.joined);
        // Writing to a vector cannot fail.
        let _ = match metric.form {
            Form::Ratio => write!(out, "{value:7.2} "),
            Form::Percent => write!(out, "{value:7.2}%"),
            Form::FinePercent => write!(out, "{value:8.3} %"),
            Form::Rate => write!(out, "{value:8.3}"),
        };
        out.push(b' ');
        out.extend_from_slice(metric.unit.as_bytes());
        out.push(b'\n');
    }

    fn time(&mut self, at: u64) {
        let shown = match self.clock {
            Clock::Recorded => at,
            Clock::SinceFirst | Clock::SinceBefore => self.since(at),
        };
        time(&mut self.joined, shown, self.nanoseconds);
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
    fn times_count_across_blocks() {
        assert_eq!(joined(Clock::SinceFirst), "<0: ><2: ><5: >");
        assert_eq!(joined(Clock::SinceBefore), "<0: ><2: ><3: >");
    }
}
