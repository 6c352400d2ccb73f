//! The memory of two recordings, compared, for `kmem diff`.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::kmem::{MemoryKind, RequestCount};
use serde_json::{Value, json};

use super::usage::{NamedUsage, UsageTotals, kind_name, names_json};
use crate::table::{Cell, Column, Table, TextStyle};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const KMEM_DIFF_JSON_VERSION: u32 = 1;

/// The memory of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedUsage {
    /// Seconds between the first and the last event.
    pub seconds: f64,
    /// All rows with their names.
    pub rows: Vec<NamedUsage>,
    /// Sums of all rows.
    pub totals: UsageTotals,
}

/// Sums of allocations in one recording: of those with one key (kind, names and stack of a row), of one kind of memory, or
/// of all.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct UsageSums {
    /// All allocations.
    pub allocated: RequestCount,
    /// The allocations that were not freed.
    pub live: RequestCount,
    /// Seconds of the recording.
    pub seconds: f64,
}

/// Selects a number of a row, for example the one to sort by (largest absolute difference first). Not the key that pairs rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageDiffKey {
    /// Bytes allocated per second.
    Bytes,
    /// Allocations (perf calls them hits) per second.
    Hits,
    /// Bytes not freed, per second of the recording.
    Growth,
    /// Bytes not freed.
    Live,
}

/// The memory of one key (kind, names and stack of a row) in both recordings.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparedUsage {
    /// The first row with this key, for its kind, names and frames only: its numbers are those of one recording.
    named: NamedUsage,
    /// The sums in the baseline and in the other recording. The counts are 0 in a recording without such allocations.
    pub sums: [UsageSums; 2],
}

impl UsageSums {
    /// Returns a number per second; 0 if the recording has no duration.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn per_second(&self, number: u64) -> f64 {
        match self.seconds > 0.0 {
            true => number as f64 / self.seconds,
            false => 0.0,
        }
    }

    /// Returns the number that `key` selects.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "compared with a rate")]
    pub fn number(&self, key: UsageDiffKey) -> f64 {
        match key {
            UsageDiffKey::Bytes => self.per_second(self.allocated.bytes),
            UsageDiffKey::Hits => self.per_second(self.allocated.requests),
            UsageDiffKey::Growth => self.per_second(self.live.bytes),
            UsageDiffKey::Live => self.live.bytes as f64,
        }
    }

    fn add(&mut self, allocated: RequestCount, live: RequestCount) {
        let sums = [(&mut self.allocated, allocated), (&mut self.live, live)];
        for (sum, more) in sums {
            sum.requests = sum.requests.saturating_add(more.requests);
            sum.bytes = sum.bytes.saturating_add(more.bytes);
        }
    }
}

impl ComparedUsage {
    /// Returns the difference of a number: that of the other recording less that of the baseline.
    #[must_use]
    pub fn difference(&self, key: UsageDiffKey) -> f64 {
        let [before, after] = &self.sums;
        after.number(key) - before.number(key)
    }
}

/// Pairs the rows of two recordings by kind, names and stack. Pairs with the largest absolute difference of `key` come first.
#[must_use]
pub fn compare(recordings: &[RecordedUsage; 2], key: UsageDiffKey) -> Vec<ComparedUsage> {
    type RowNames<'r> = (MemoryKind, &'r [String], &'r [String]);
    let mut pairs: BTreeMap<RowNames<'_>, ComparedUsage> = BTreeMap::new();
    for (file, recording) in recordings.iter().enumerate() {
        for named in &recording.rows {
            let names: RowNames<'_> = (named.row.kind, &named.names, &named.frames);
            let pair = pairs.entry(names).or_insert_with(|| ComparedUsage {
                named: named.clone(),
                sums: recordings.each_ref().map(|recording| UsageSums {
                    seconds: recording.seconds,
                    ..UsageSums::default()
                }),
            });
            if let Some(sums) = pair.sums.get_mut(file) {
                sums.add(named.row.allocated, named.row.live);
            }
        }
    }
    let mut rows: Vec<ComparedUsage> = pairs.into_values().collect();
    // The sort is stable: rows with equal differences remain in order of names.
    rows.sort_by(|left, right| {
        let size = |row: &ComparedUsage| row.difference(key).abs();
        size(right).total_cmp(&size(left))
    });
    rows
}

/// Returns the sums of a kind of memory, or of all memory, in both recordings. `of` returns what was allocated, and what of it
/// was not freed.
fn total_sums(
    recordings: &[RecordedUsage; 2],
    of: impl Fn(&UsageTotals) -> [RequestCount; 2],
) -> [UsageSums; 2] {
    recordings.each_ref().map(|recording| {
        let [allocated, live] = of(&recording.totals);
        UsageSums {
            allocated,
            live,
            seconds: recording.seconds,
        }
    })
}

/// Returns the sums of each kind of memory that occurs, and those of all memory, in which no byte is counted twice
/// ([`UsageTotals::counted_sum`]), with their titles.
fn totals(recordings: &[RecordedUsage; 2]) -> Vec<(&'static str, [UsageSums; 2])> {
    let kinds = [
        MemoryKind::Objects,
        MemoryKind::Pages,
        MemoryKind::SlabPages,
    ];
    let occurring = kinds.into_iter().filter(|kind| {
        let mut kind_totals = recordings.iter().flat_map(|one| &one.totals.kinds);
        kind_totals.any(|of_kind| of_kind.kind == *kind)
    });
    let mut rows: Vec<(&'static str, [UsageSums; 2])> = occurring
        .map(|kind| {
            let kind_sums = |totals: &UsageTotals| {
                let mut kind_totals = totals.kinds.iter();
                let found = kind_totals.find(|of_kind| of_kind.kind == kind);
                found.map_or([RequestCount::default(); 2], |of_kind| {
                    [of_kind.allocated, of_kind.live]
                })
            };
            (kind_name(kind), total_sums(recordings, kind_sums))
        })
        .collect();
    let counted = |totals: &UsageTotals| {
        [
            totals.counted_sum(|of_kind| of_kind.allocated),
            totals.counted_sum(|of_kind| of_kind.live),
        ]
    };
    rows.push(("total", total_sums(recordings, counted)));
    rows
}

/// The titles of the columns of numbers. The first "Delta" is of the bytes per second, the second of the live bytes.
const TITLES: [&str; 10] = [
    "Bytes/s",
    "New bytes/s",
    "Delta",
    "Hits/s",
    "New hits/s",
    "Growth/s",
    "New growth/s",
    "Live bytes",
    "New live",
    "Delta",
];

/// Writes the totals and the first `most` rows as a table.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    recordings: &[RecordedUsage; 2],
    rows: &[ComparedUsage],
    most: usize,
) -> io::Result<()> {
    let [before, after] = recordings;
    writeln!(
        out,
        "# Duration: baseline {:.6} s, new {:.6} s. Growth: bytes that were not freed, per second\n#",
        before.seconds, after.seconds
    )?;
    let numbers = TITLES.into_iter().map(Column::right);
    // The last column is not padded.
    let columns = numbers.chain([Column::left("Memory"), Column::left("").fixed(0)]);
    let mut table = Table::new(columns.collect::<Vec<_>>());
    for (name, sums) in totals(recordings) {
        let mut cells = number_cells(&sums);
        cells.extend([Cell::from(name), "(all)".into()]);
        table.push(cells);
    }
    for row in rows.iter().take(most) {
        let mut cells = number_cells(&row.sums);
        let name = kind_name(row.named.row.kind);
        cells.extend([Cell::from(name), title(&row.named).into()]);
        table.push(cells);
    }
    table.write_text(out, TextStyle::PLAIN)?;
    match rows.len().saturating_sub(most) {
        0 => Ok(()),
        hidden => writeln!(out, "  ... {hidden} more; -l shows more"),
    }
}

/// Returns the names of a row in one line, with all frames of a stack.
fn title(named: &NamedUsage) -> String {
    // The row's own title has the innermost frame.
    let outer = named.frames.iter().skip(1);
    outer.fold(named.title(), |title, frame| title + " < " + frame)
}

/// Returns the cells of the columns [`TITLES`].
fn number_cells(sums: &[UsageSums; 2]) -> Vec<Cell> {
    let [before, after] = sums;
    let number = |key| [before.number(key), after.number(key)];
    let rounded = |value: f64| Cell::from(format!("{value:.0}"));
    let delta = |[before, after]: [f64; 2]| Cell::from(format!("{:+.0}", after - before));
    let bytes = number(UsageDiffKey::Bytes);
    let hits = number(UsageDiffKey::Hits);
    let growth = number(UsageDiffKey::Growth);
    let live = number(UsageDiffKey::Live);
    vec![
        rounded(bytes[0]),
        rounded(bytes[1]),
        delta(bytes),
        rounded(hits[0]),
        rounded(hits[1]),
        rounded(growth[0]),
        rounded(growth[1]),
        rounded(live[0]),
        rounded(live[1]),
        delta(live),
    ]
}

/// Writes the totals and all rows as JSON, with sums and with rates per second. `titles` are the JSON keys of the names of a row.
///
/// # Errors
///
/// Those of `out`.
pub fn write_json(
    out: &mut dyn Write,
    recordings: &[RecordedUsage; 2],
    rows: &[ComparedUsage],
    titles: &[&'static str],
) -> io::Result<()> {
    let totals = totals(recordings).into_iter();
    let totals = totals.map(|(name, sums)| (name.to_owned(), sums_json(&sums)));
    let totals: serde_json::Map<String, Value> = totals.collect();
    let [before, after] = recordings;
    write!(
        out,
        "{{\"version\":{KMEM_DIFF_JSON_VERSION},\"baseline_seconds\":{},\"new_seconds\":{},\"totals\":{},\"rows\":[",
        json!(before.seconds),
        json!(after.seconds),
        Value::from(totals),
    )?;
    for (number, row) in rows.iter().enumerate() {
        out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        let mut object = names_json(titles, &row.named);
        if let Value::Object(sums) = sums_json(&row.sums) {
            object.extend(sums);
        }
        serde_json::to_writer(&mut *out, &object)?;
    }
    out.write_all(b"]}\n")
}

fn sums_json(sums: &[UsageSums; 2]) -> Value {
    let file_json = |sums: &UsageSums| {
        json!({
            "allocations": sums.allocated.requests,
            "allocated_bytes": sums.allocated.bytes,
            "live": sums.live.requests,
            "live_bytes": sums.live.bytes,
            "allocations_per_second": sums.number(UsageDiffKey::Hits),
            "bytes_per_second": sums.number(UsageDiffKey::Bytes),
            "growth_per_second": sums.number(UsageDiffKey::Growth),
        })
    };
    let [before, after] = sums;
    let delta = |key| after.number(key) - before.number(key);
    json!({
        "baseline": file_json(before),
        "new": file_json(after),
        "delta": {
            "allocations_per_second": delta(UsageDiffKey::Hits),
            "bytes_per_second": delta(UsageDiffKey::Bytes),
            "growth_per_second": delta(UsageDiffKey::Growth),
            "live_bytes": delta(UsageDiffKey::Live),
        },
    })
}
