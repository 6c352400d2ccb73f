//! `report --stats`: the number of records by type.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_wire::RecordKind;

use crate::percent::Percent;

/// Record counts by type.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stats(BTreeMap<RecordKind, u64>);

impl Stats {
    /// Counts a record.
    pub fn add(&mut self, kind: RecordKind) {
        self.add_many(kind, 1);
    }

    /// Counts records of a type.
    pub fn add_many(&mut self, kind: RecordKind, count: u64) {
        if count > 0 {
            *self.0.entry(kind).or_default() += count;
        }
    }
}

/// The counts of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventStats<'a> {
    /// Its name.
    pub name: &'a str,
    /// Number of samples in the recording.
    pub samples: u64,
    /// Number of lost samples.
    pub lost: u64,
}

/// Writes the number of records by type, then the numbers of recorded and of lost samples by event, except those that are 0.
///
/// # Errors
/// Errors of `out`.
pub fn write_stats(
    out: &mut dyn Write,
    stats: &Stats,
    events: &[EventStats<'_>],
) -> io::Result<()> {
    let total: u64 = stats.0.values().sum();
    let has_trace = stats.0.contains_key(&RecordKind::AUXTRACE_INFO);
    let note = match has_trace {
        true => " (excludes AUX area (e.g. instruction trace) decoded / synthesized events)",
        false => "",
    };
    writeln!(out, "\nAggregated stats:{note}")?;
    write_count(out, "TOTAL", total)?;
    out.write_all(b"\n")?;
    for (kind, count) in &stats.0 {
        let number = kind.0.to_string();
        write_count(out, kind.name().map_or(&number, perf_name), *count)?;
        let share = Percent::of(*count, total).value();
        writeln!(out, "  ({share:4.1}%)")?;
    }
    for event in events {
        let counts = [("SAMPLE", event.samples), ("LOST_SAMPLES", event.lost)];
        let mut counts = counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .peekable();
        if counts.peek().is_some() {
            writeln!(out, "{} stats:", event.name)?;
        }
        for (name, count) in counts {
            write_count(out, name, count)?;
            out.write_all(b"\n")?;
        }
    }
    Ok(())
}

fn write_count(out: &mut dyn Write, name: &str, count: u64) -> io::Result<()> {
    write!(out, "{name:>16} events: {count:10}")
}

/// perf's name for a record type: without `HEADER_`.
fn perf_name(name: &str) -> &str {
    name.strip_prefix("HEADER_").unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_sorted_by_number_and_event_counts_of_0_are_omitted() {
        let mut stats = Stats::default();
        for (kind, count) in [
            (RecordKind::HEADER_ATTR, 1),
            (RecordKind::SAMPLE, 998),
            (RecordKind(99), 1),
        ] {
            stats.add_many(kind, count);
        }
        let mut out = Vec::new();
        let event = |name, samples, lost| EventStats {
            name,
            samples,
            lost,
        };
        let events = [event("cycles", 998, 3), event("faults", 0, 0)];
        write_stats(&mut out, &stats, &events).expect("writing to memory succeeds");
        let expected = "
Aggregated stats:
           TOTAL events:       1000
          SAMPLE events:        998  (99.8%)
            ATTR events:          1  ( 0.1%)
              99 events:          1  ( 0.1%)
cycles stats:
          SAMPLE events:        998
    LOST_SAMPLES events:          3
";
        assert_eq!(String::from_utf8(out).expect("text"), expected);
    }
}
