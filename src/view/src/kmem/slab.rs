//! The tables of `kmem stat --slab`: objects of the slab allocator, by caller and by address.

use std::io::{self, Write};

use rperf_analysis::kmem::{SlabRow, SlabTotals};

use super::{CallSiteNames, ShownRows, write_rule};

/// The type of the first column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabTable {
    /// Callers.
    Callers,
    /// Addresses of the memory.
    Addresses,
}

/// Writes a table.
///
/// # Errors
///
/// Those of `out`.
pub fn write(
    out: &mut dyn Write,
    table: SlabTable,
    rows: &ShownRows<SlabRow>,
    names: &CallSiteNames<'_>,
) -> io::Result<()> {
    let title = match table {
        SlabTable::Callers => "Callsite",
        SlabTable::Addresses => "Alloc Ptr",
    };
    write_rule(out)?;
    writeln!(
        out,
        " {title:<34} | Total_alloc/Per | Total_req/Per   | Hit      | Ping-pong | Frag"
    )?;
    write_rule(out)?;
    for row in rows.shown() {
        let name = match table {
            SlabTable::Callers => caller(row.call_site, names),
            SlabTable::Addresses => format!("{:#x}", row.pointer),
        };
        let SlabRow {
            allocated,
            requested,
            hits,
            ping_pong,
            ..
        } = *row;
        writeln!(
            out,
            " {name:<34} | {allocated:9}/{:<5} | {requested:9}/{:<5} | {hits:8} | {ping_pong:9} | {:6.3}%",
            per(allocated, hits),
            per(requested, hits),
            row.fragmentation()
        )?;
    }
    if rows.is_truncated() {
        writeln!(
            out,
            " {:<34} | {:<15} | {:<15} | {:<8} | {:<9} | {:<6}",
            "...", "...", "...", "...", "...", "..."
        )?;
    }
    write_rule(out)
}

/// Returns a caller as it is shown: `SYMBOL+OFFSET`, or its address; both numbers are hexadecimal.
#[must_use]
pub fn caller(address: u64, names: &CallSiteNames<'_>) -> String {
    match names(address) {
        Some(site) => format!("{}+{:x}", site.symbol, site.offset),
        None => format!("{address:#x}"),
    }
}

/// Returns the mean of `hits` allocations, rounded down; 0 if there are none.
fn per(sum: u64, hits: u64) -> u64 {
    sum.checked_div(hits).unwrap_or_default()
}

/// Writes the sums of all allocations.
///
/// # Errors
///
/// Those of `out`.
pub fn write_summary(out: &mut dyn Write, totals: SlabTotals) -> io::Result<()> {
    let SlabTotals {
        allocations,
        requested,
        allocated,
        freed,
        other_node,
    } = totals;
    writeln!(out, "\nSUMMARY (SLAB allocator)")?;
    writeln!(out, "========================")?;
    writeln!(out, "Total bytes requested: {requested}")?;
    writeln!(out, "Total bytes allocated: {allocated}")?;
    writeln!(out, "Total bytes freed:     {freed}")?;
    if let Some(net) = allocated.checked_sub(freed).filter(|net| *net > 0) {
        writeln!(out, "Net total bytes allocated: {net}")?;
    }
    writeln!(
        out,
        "Total bytes wasted on internal fragmentation: {}",
        allocated.saturating_sub(requested)
    )?;
    let share = totals.fragmentation();
    writeln!(out, "Internal fragmentation: {share:.6}%")?;
    // As in perf, "CPU" means the NUMA node of the CPU.
    writeln!(out, "Cross CPU allocations: {other_node}/{allocations}")
}
