//! `kmem stat --json`.

use std::io::{self, Write};

use rperf_analysis::kmem::{PageRow, PageStatistics, SlabRow, SlabTotals};

use super::pages::PageLayout;
use super::{CallSiteNames, ShownRows, pages, slab};
use crate::table::{Cell, Column, Table};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const KMEM_JSON_VERSION: u32 = 1;

/// Writes the beginning of the object. `lost` is the number of records lost while recording.
///
/// # Errors
///
/// Those of `out`.
pub fn write_begin(out: &mut dyn Write, lost: u64) -> io::Result<()> {
    write!(
        out,
        "{{\"version\":{KMEM_JSON_VERSION},\"lost_records\":{lost}"
    )
}

/// Writes the end of the object.
///
/// # Errors
///
/// Those of `out`.
pub fn write_end(out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "}}")
}

/// Writes the sums of the slab allocator.
///
/// # Errors
///
/// Those of `out`.
pub fn write_slab_totals(out: &mut dyn Write, totals: SlabTotals) -> io::Result<()> {
    write!(
        out,
        ",\"slab\":{{\"allocations\":{},\"requested_bytes\":{},\"allocated_bytes\":{},\"freed_bytes\":{},\
        \"cross_node_allocations\":{}}}",
        totals.allocations, totals.requested, totals.allocated, totals.freed, totals.other_node
    )
}

/// Writes rows of the slab allocator; `key` is `slab_callers` or `slab_addresses`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_slab_rows(
    out: &mut dyn Write,
    key: &str,
    rows: &ShownRows<SlabRow>,
    names: &CallSiteNames<'_>,
) -> io::Result<()> {
    let titles = [
        "address",
        "caller",
        "caller_address",
        "allocations",
        "requested_bytes",
        "allocated_bytes",
        "freed_on_other_cpu",
    ];
    let mut table = Table::new(Vec::from(titles.map(Column::left)));
    for row in rows.shown() {
        table.push(vec![
            format!("{:#x}", row.pointer).into(),
            slab::caller(row.call_site, names).into(),
            format!("{:#x}", row.call_site).into(),
            row.hits.into(),
            row.requested.into(),
            row.allocated.into(),
            row.ping_pong.into(),
        ]);
    }
    write!(out, ",\"{key}\":")?;
    table.write_json(out)
}

/// Writes the sums of the page allocator.
///
/// # Errors
///
/// Those of `out`.
pub fn write_page_totals(out: &mut dyn Write, statistics: &PageStatistics) -> io::Result<()> {
    let totals = statistics.totals();
    let counts = [
        ("allocated", totals.allocated),
        ("freed", totals.freed),
        ("freed_only", totals.unmatched),
        ("failed", totals.failed),
    ];
    write!(out, ",\"pages\":{{")?;
    for (number, (name, count)) in counts.into_iter().enumerate() {
        let comma = if number > 0 { "," } else { "" };
        let (requests, bytes) = (count.requests, count.bytes);
        write!(
            out,
            "{comma}\"{name}_requests\":{requests},\"{name}_bytes\":{bytes}"
        )?;
    }
    write!(out, "}}")
}

/// Writes rows of the page allocator; `key` is `page_callers` or `page_frames`.
///
/// # Errors
///
/// Those of `out`.
pub fn write_page_rows(
    out: &mut dyn Write,
    key: &str,
    rows: &ShownRows<PageRow>,
    layout: &PageLayout,
    names: &CallSiteNames<'_>,
) -> io::Result<()> {
    let titles = [
        "page",
        "caller",
        "caller_address",
        "order",
        "migrate_type",
        "gfp_flags",
        "allocations",
        "bytes",
    ];
    let mut table = Table::new(Vec::from(titles.map(Column::left)));
    for row in rows.shown() {
        let cells: Vec<Cell> = vec![
            format!("{:#x}", row.page).into(),
            pages::caller(row.call_site, names).into(),
            format!("{:#x}", row.call_site).into(),
            row.order.into(),
            layout.migrate_type(row.migrate_type).into(),
            format!("{:#x}", row.gfp).into(),
            row.hits.into(),
            row.bytes.into(),
        ];
        table.push(cells);
    }
    write!(out, ",\"{key}\":")?;
    table.write_json(out)
}
