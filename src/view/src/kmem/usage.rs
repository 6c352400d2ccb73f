//! The table of `kmem usage`.

use std::io::{self, Write};

use rperf_analysis::kmem::{CacheOrOrder, MemoryKind, RequestCount, UsageReport, UsageRow};
use rperf_names::counted;
use serde_json::{Map, Value, json};

use super::distributions::{SummarizedValues, histogram_json};
use super::fragmentation::cache_name;
use crate::percent::Percent;

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const USAGE_JSON_VERSION: u32 = 1;

/// The number of characters before the names of a row: the width of the other columns.
const BEFORE_NAMES: usize = 103;
/// The indentation of frames below the names of their row, in characters.
const INDENT: usize = 4;

/// A row with the names of its key.
#[derive(Debug, Clone, PartialEq)]
pub struct NamedUsage {
    /// The row.
    pub row: UsageRow,
    /// The names of the parts of its key, without the stack.
    pub names: Vec<String>,
    /// The frames of the stack, if it is part of the key, innermost first.
    pub frames: Vec<String>,
}

impl NamedUsage {
    /// Returns the names and the innermost frame in one line; `unknown` if there are neither names nor frames.
    #[must_use]
    pub fn title(&self) -> String {
        let names = self.names.iter().map(String::as_str);
        let frame = self.frames.first().map(String::as_str);
        let title = names.chain(frame).collect::<Vec<_>>().join("  ");
        match title.as_str() {
            "" => "unknown".to_owned(),
            _ => title,
        }
    }
}

/// Sums of all rows of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindTotals {
    /// The kind.
    pub kind: MemoryKind,
    /// All allocations.
    pub allocated: RequestCount,
    /// The allocations that were freed.
    pub freed: RequestCount,
    /// The allocations that were not freed.
    pub live: RequestCount,
    /// Whether the bytes are part of the sum of all memory. Those of slab pages are not if the objects in them are.
    pub is_counted: bool,
}

/// Sums of all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageTotals {
    /// By kind; kinds without allocations are omitted.
    pub kinds: Vec<KindTotals>,
    /// Number of frees without a recorded allocation, such as of memory that was allocated before the recording: frees of
    /// objects, then frees of pages.
    pub unmatched_frees: [u64; 2],
}

impl UsageTotals {
    /// Sums up the rows of a report. With `has_objects`, slab pages are not part of the sum of all memory: they contain the
    /// objects.
    #[must_use]
    pub fn of(report: &UsageReport, has_objects: bool) -> Self {
        let kinds = [
            MemoryKind::Objects,
            MemoryKind::Pages,
            MemoryKind::SlabPages,
        ];
        let of_kind = |kind| {
            let rows = report.rows.iter().filter(move |row| row.kind == kind);
            let sum = |part: fn(&UsageRow) -> RequestCount| {
                rows.clone().map(part).fold(RequestCount::default(), add)
            };
            KindTotals {
                kind,
                allocated: sum(|row| row.allocated),
                freed: sum(|row| row.freed),
                live: sum(|row| row.live),
                is_counted: kind != MemoryKind::SlabPages || !has_objects,
            }
        };
        let kinds = kinds.into_iter().map(of_kind);
        Self {
            kinds: kinds
                .filter(|totals| totals.allocated.requests > 0)
                .collect(),
            unmatched_frees: report.unmatched_frees,
        }
    }

    /// Returns the sum of what `part` selects, over the kinds whose bytes are part of the sum of all memory.
    #[must_use]
    pub fn counted_sum(&self, part: fn(&KindTotals) -> RequestCount) -> RequestCount {
        let counted = self.kinds.iter().filter(|totals| totals.is_counted);
        counted.map(part).fold(RequestCount::default(), add)
    }

    /// Whether the bytes of a kind are part of the sum of all memory; false for kinds without allocations.
    #[must_use]
    pub fn is_counted(&self, kind: MemoryKind) -> bool {
        let mut kinds = self.kinds.iter();
        kinds.any(|totals| totals.kind == kind && totals.is_counted)
    }
}

fn add(sum: RequestCount, count: RequestCount) -> RequestCount {
    RequestCount {
        requests: sum.requests.saturating_add(count.requests),
        bytes: sum.bytes.saturating_add(count.bytes),
    }
}

/// Returns the name of a kind.
#[must_use]
pub fn kind_name(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Objects => "objects",
        MemoryKind::Pages => "pages",
        MemoryKind::SlabPages => "slab pages",
    }
}

/// Returns the name of the cache or order of a row; `unknown` for `None`.
#[must_use]
pub fn cache_or_order(cache: Option<&CacheOrOrder>) -> String {
    match cache {
        Some(CacheOrOrder::Slab(cache)) => cache_name(cache),
        Some(CacheOrOrder::Order(order)) => format!("order {order}"),
        None => "unknown".to_owned(),
    }
}

/// The table of a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageTable {
    /// Seconds between the first and the last event.
    pub seconds: f64,
    /// Sums of all rows.
    pub totals: UsageTotals,
    /// The column titles of the parts of the key; [`NamedUsage::title`] is the text of a row below them.
    pub titles: Vec<&'static str>,
    /// The rows that are shown.
    pub rows: Vec<NamedUsage>,
    /// The number of rows that are not shown because of a limit.
    pub hidden: usize,
    /// Maximum number of frames of a stack in the table as text; JSON has all of [`NamedUsage::frames`].
    pub frames: usize,
}

impl UsageTable {
    /// Writes sums and rows.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.write_sums(out)?;
        writeln!(
            out,
            "\n{:>14} {:>7} {:>10} {:>14} {:>10} {:>14} {:>14}  {:<10}  {}",
            "Bytes",
            "Share",
            "Hits",
            "Live bytes",
            "Live",
            "Peak bytes",
            "Median life us",
            "Memory",
            self.titles.join("  ")
        )?;
        for row in &self.rows {
            self.write_row(out, row)?;
        }
        match self.hidden {
            0 => Ok(()),
            hidden => writeln!(out, "... {hidden} more; -l shows more"),
        }
    }

    fn write_sums(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(
            out,
            "Memory that was allocated within {:.6} s:",
            self.seconds
        )?;
        for totals in &self.totals.kinds {
            let note = match totals.is_counted {
                true => "",
                false => "  (contain the objects, not counted)",
            };
            write_sum(out, totals.allocated, totals.live, kind_name(totals.kind))?;
            writeln!(out, "{note}")?;
        }
        if self.totals.kinds.len() > 1 {
            let allocated = self.totals.counted_sum(|totals| totals.allocated);
            let live = self.totals.counted_sum(|totals| totals.live);
            write_sum(out, allocated, live, "in total")?;
            writeln!(out)?;
        }
        let [objects, pages] = self.totals.unmatched_frees;
        // `counted` is a number with its noun here, not the sum of all memory.
        writeln!(
            out,
            "  frees of memory that was allocated earlier: {}, {} of pages",
            counted(objects, "object"),
            counted(pages, "block")
        )
    }

    fn write_row(&self, out: &mut dyn Write, named: &NamedUsage) -> io::Result<()> {
        let row = &named.row;
        let all = self.totals.counted_sum(|totals| totals.allocated).bytes;
        let share = match self.totals.is_counted(row.kind) {
            true => Percent::of(row.allocated.bytes, all).to_string(),
            false => "-".to_owned(),
        };
        // 500 per mille: the median.
        let median_life = row.lifetimes.percentile(500).map_or_else(
            || "-".to_owned(),
            |nanos| format!("{}.{:03}", nanos / 1000, nanos % 1000),
        );
        writeln!(
            out,
            "{:>14} {share:>7} {:>10} {:>14} {:>10} {:>14} {median_life:>14}  {:<10}  {}",
            row.allocated.bytes,
            row.allocated.requests,
            row.live.bytes,
            row.live.requests,
            row.peak,
            kind_name(row.kind),
            named.title()
        )?;
        // The innermost frame is in the title.
        let outer = named.frames.iter().skip(1);
        for frame in outer.take(self.frames.saturating_sub(1)) {
            writeln!(out, "{:BEFORE_NAMES$}{:INDENT$}{frame}", "", "")?;
        }
        Ok(())
    }

    /// Writes sums and rows as JSON, sizes in bytes, lifetimes in nanoseconds. `lost` is the number of records lost while
    /// recording.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write, lost: u64) -> io::Result<()> {
        let count_json =
            |count: RequestCount| json!({"requests": count.requests, "bytes": count.bytes});
        let kinds = self.totals.kinds.iter().map(|totals| {
            json!({
                "memory": kind_name(totals.kind),
                "is_counted": totals.is_counted,
                "allocated": count_json(totals.allocated),
                "freed": count_json(totals.freed),
                "live": count_json(totals.live),
            })
        });
        let [objects, pages] = self.totals.unmatched_frees;
        let total = json!({
            "allocated": count_json(self.totals.counted_sum(|totals| totals.allocated)),
            "freed": count_json(self.totals.counted_sum(|totals| totals.freed)),
            "live": count_json(self.totals.counted_sum(|totals| totals.live)),
        });
        write!(
            out,
            "{{\"version\":{USAGE_JSON_VERSION},\"lost_records\":{lost},\"seconds\":{},\"unmatched_object_frees\":{objects},\
            \"unmatched_page_frees\":{pages},\"total\":{total},\"kinds\":{},\"rows\":[",
            json!(self.seconds),
            Value::from(kinds.collect::<Vec<_>>()),
        )?;
        for (number, row) in self.rows.iter().enumerate() {
            out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
            serde_json::to_writer(&mut *out, &self.row_json(row))?;
        }
        out.write_all(b"]}\n")
    }

    fn row_json(&self, named: &NamedUsage) -> Value {
        let row = &named.row;
        let mut object: Map<String, Value> = names_json(&self.titles, named);
        let numbers = json!({
            "allocations": row.allocated.requests,
            "allocated_bytes": row.allocated.bytes,
            "requested_bytes": row.requested,
            "frees": row.freed.requests,
            "freed_bytes": row.freed.bytes,
            "live": row.live.requests,
            "live_bytes": row.live.bytes,
            "peak_bytes": row.peak,
            "lifetimes_ns": histogram_json(SummarizedValues::of(&row.lifetimes)),
        });
        if let Value::Object(numbers) = numbers {
            object.extend(numbers);
        }
        object.into()
    }
}

/// Returns the kind and the names of a row, with `titles` as keys; the value of `stack` is an array of frames.
pub(super) fn names_json(titles: &[&'static str], named: &NamedUsage) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("memory".to_owned(), kind_name(named.row.kind).into());
    let mut names = named.names.iter();
    for title in titles {
        let name = match *title {
            "stack" => Some(named.frames.clone().into()),
            _ => names.next().map(|name| name.clone().into()),
        };
        object.insert((*title).to_owned(), name.unwrap_or_default());
    }
    object
}

/// Writes a sum without the end of the line, so that a note can follow. `name` follows the number of allocations: the name of
/// their kind, or `in total`.
fn write_sum(
    out: &mut dyn Write,
    allocated: RequestCount,
    live: RequestCount,
    name: &str,
) -> io::Result<()> {
    write!(
        out,
        "  {:>14} bytes in {:>9} {name:<10}  not freed: {:>14} bytes in {:>9}",
        allocated.bytes, allocated.requests, live.bytes, live.requests
    )
}
