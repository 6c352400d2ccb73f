//! Joins blocks that were rendered in parallel, and fills in what depends on earlier samples and other records.

use std::collections::HashMap;
use std::io::Write as _;

use rperf_lines::{EventSwitch, GroupMetric, GroupMetrics, MetricFormat};

use super::text_gaps::{Clock, LateField, ScriptBlock, time};
use crate::digits;

/// Fills the gaps in the blocks of one recording. The blocks must be passed in order.
#[derive(Debug, Clone, Default)]
pub struct BlockJoiner {
    clock: Clock,
    nanoseconds: bool,
    /// The time that shown times are relative to: of the first or of the previous record, see [`Clock`]. 0 if there is none yet,
    /// as in perf.
    origin: u64,
    /// The length of the longest text so far in the column that `ScriptBlock::put_column` fills, in bytes.
    column_width: usize,
    /// The id of the last source line of each thread, by thread id.
    sources: HashMap<u32, u64>,
    metrics: GroupMetrics,
    switch: EventSwitch,
    /// The text of the current block, with its gaps filled.
    joined: Vec<u8>,
    /// The parts of `joined`; empty unless `keeps_parts`.
    parts: Vec<EventText>,
    keeps_parts: bool,
}

/// A part of the text: one sample, or one other record.
#[derive(Debug, Clone, Copy)]
struct EventText {
    /// The index of the sample's event; `None` for a record other than a sample.
    event: Option<usize>,
    /// The offset of the text in `joined`. The text ends where the next one starts.
    start: usize,
}

impl BlockJoiner {
    /// Creates a joiner that fills in times of `clock`, with nine decimals if `nanoseconds`, otherwise with six.
    #[must_use]
    pub fn new(clock: Clock, nanoseconds: bool) -> Self {
        Self {
            clock,
            nanoseconds,
            ..Self::default()
        }
    }

    /// From here on, omits samples while `switch` is off.
    pub fn set_switch(&mut self, switch: EventSwitch) {
        self.switch = switch;
    }

    /// From here on, keeps the parts of each block, for [`BlockJoiner::parts`].
    pub fn keep_parts(&mut self) {
        self.keeps_parts = true;
    }

    /// From here on, computes the metrics of groups with `metrics`.
    pub fn set_metrics(&mut self, metrics: GroupMetrics) {
        self.metrics = metrics;
    }

    /// Returns the text of the next block with its gaps filled.
    pub fn join<'a>(&'a mut self, block: &'a ScriptBlock) -> &'a [u8] {
        if block.gaps.is_empty() {
            return &block.text;
        }
        self.fill(block);
        &self.joined
    }

    /// Returns the shown parts of the next block: each sample with the index of its event, and each other record with `None`.
    /// Requires [`BlockJoiner::keep_parts`], and [`ScriptBlock::begin_part`] before each sample and record.
    pub fn parts<'a>(
        &'a mut self,
        block: &'a ScriptBlock,
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

    /// Sets `joined`, and `parts` if they are kept.
    fn fill(&mut self, block: &ScriptBlock) {
        self.joined.clear();
        self.parts.clear();
        let mut consumed = 0;
        // Whether the current part is shown. A block without marked parts is shown completely; in one with marked parts, the
        // first begins at the start of the block and replaces this value.
        let mut is_shown = true;
        for gap in &block.gaps {
            if is_shown {
                let before = block.text.get(consumed..gap.offset).unwrap_or_default();
                self.joined.extend_from_slice(before);
            }
            consumed = gap.offset.max(consumed);
            if let LateField::Part(event) = gap.content {
                // Records other than samples are always shown.
                is_shown = event.is_none_or(|event| self.switch.shows(event));
                if is_shown && self.keeps_parts {
                    let start = self.joined.len();
                    self.parts.push(EventText { event, start });
                }
            } else if is_shown {
                let after = block.text.get(gap.offset..).unwrap_or_default();
                consumed += self.fill_in(gap.content, after);
            }
        }
        if is_shown {
            let rest = block.text.get(consumed..).unwrap_or_default();
            self.joined.extend_from_slice(rest);
        }
    }

    /// Appends the text of a late field. Returns how many bytes of `after`, the text after the gap, belong to the field.
    fn fill_in(&mut self, field: LateField, after: &[u8]) -> usize {
        match field {
            LateField::Time(at) => {
                self.time(at);
                0
            }
            // `length` is that of the text before the gap, not the number of blanks.
            LateField::Blanks(length) => {
                self.column_width = self.column_width.max(length);
                digits::blanks(&mut self.joined, self.column_width - length);
                0
            }
            LateField::Source {
                tid,
                line_id,
                length,
            } => {
                let text = after.get(..length).unwrap_or_default();
                if self.sources.insert(tid, line_id) != Some(line_id) {
                    self.joined.extend_from_slice(text);
                }
                length
            }
            LateField::Metric {
                event,
                period,
                cpu,
                time,
                length,
            } => {
                let prefix = after.get(..length).unwrap_or_default();
                let mut computed = Vec::new();
                self.metrics
                    .add(event, period, cpu, |metric| computed.push(metric));
                for metric in &computed {
                    self.metric(metric, prefix, time);
                }
                length
            }
            LateField::Part(_) => 0,
        }
    }

    /// Appends a line with a metric. `prefix` is the start of the line before the time, and `at` the time if it is shown.
    fn metric(&mut self, metric: &GroupMetric, prefix: &[u8], at: Option<u64>) {
        // Before some metrics, perf requests a new line. In `script` that prints the start of a line (prefix, time, `metric:`),
        // but no line break, so that the metric's line has it twice.
        for _ in 0..1 + usize::from(metric.repeats_start) {
            self.joined.extend_from_slice(prefix);
            if let Some(at) = at {
                self.time(at);
            }
            self.joined.extend_from_slice(b"\tmetric: ");
        }
        let (value, out) = (metric.value, &mut self.joined);
        // Writing to a vector cannot fail.
        let _ = match metric.form {
            MetricFormat::Ratio => write!(out, "{value:7.2} "),
            MetricFormat::Percent => write!(out, "{value:7.2}%"),
            MetricFormat::FinePercent => write!(out, "{value:8.3} %"),
            MetricFormat::Rate => write!(out, "{value:8.3}"),
        };
        out.push(b' ');
        out.extend_from_slice(metric.unit.as_bytes());
        out.push(b'\n');
    }

    /// Appends a recorded time, converted to the clock; the imported function `time` formats it.
    fn time(&mut self, at: u64) {
        let displayed = match self.clock {
            Clock::Recorded => at,
            Clock::SinceFirst | Clock::SinceBefore => self.since(at),
        };
        time(&mut self.joined, displayed, self.nanoseconds);
    }

    /// Returns the time since the first or the previous record.
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

    /// Returns the text of three records in three blocks, with times in nanoseconds without the leading zeros.
    fn joined(clock: Clock) -> String {
        let nanoseconds = true;
        let mut joiner = BlockJoiner::new(clock, nanoseconds);
        let mut text = String::new();
        for times in [&[5_u64, 7][..], &[], &[10]] {
            let mut block = ScriptBlock::default();
            for time in times {
                block.text.push(b'<');
                block.defer_time(*time);
                block.text.push(b'>');
            }
            text += std::str::from_utf8(joiner.join(&block)).unwrap();
        }
        text.replace("    0.00000000", "")
    }

    #[test]
    fn columns_grow_across_blocks() {
        let mut joiner = BlockJoiner::default();
        let mut text = String::new();
        for words in [&["ab", "a"][..], &["abc"], &["a", ""]] {
            let mut block = ScriptBlock::default();
            for word in words {
                block.put_column(word.as_bytes());
                block.text.push(b'|');
            }
            text += std::str::from_utf8(joiner.join(&block)).unwrap();
        }
        assert_eq!(text, "ab|a |abc|a  |   |");
    }

    #[test]
    fn times_count_across_blocks() {
        assert_eq!(joined(Clock::SinceFirst), "<0: ><2: ><5: >");
        assert_eq!(joined(Clock::SinceBefore), "<0: ><2: ><3: >");
    }
}
