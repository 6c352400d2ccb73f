//! The tables of `kmem stat --page` (pages by caller, and by page frame) and its summary.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rperf_analysis::kmem::{MigrateTypes, PageRow, PageStatistics, RequestCount};

use super::gfp::abbreviated;
use super::{CallSiteNames, ShownRows, write_rule};

/// The number of orders in the table of allocations by order and migrate type, as in perf; allocations of higher orders are not
/// in it.
const ORDERS: u32 = 11;
/// The number of migrate types in that table, as in perf. Number 4 is CMA, or isolated in kernels without CMA.
const TYPES: usize = 5;
/// The title of the column of flags.
const GFP_TITLE: &str = "GFP flags";

/// The property by which a table groups pages into rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageTable {
    /// Callers.
    Callers,
    /// Page frames.
    Pages,
}

/// How pages are shown.
#[derive(Debug, Clone)]
pub struct PageLayout {
    /// The numbering of migrate types.
    types: MigrateTypes,
    /// Whether the sizes are those of pages that were not freed.
    is_live: bool,
    /// Short names of the combinations of flags that occurred.
    gfp: BTreeMap<u64, String>,
    /// The number of characters of the longest of these.
    gfp_width: usize,
}

impl PageLayout {
    /// Creates the layout for the flags that occurred. With `is_live`, the title of the sizes says that they are those of pages
    /// that were not freed.
    #[must_use]
    pub fn new(statistics: &PageStatistics, types: MigrateTypes, is_live: bool) -> Self {
        let names = statistics.gfp_names();
        let gfp: BTreeMap<u64, String> = names
            .map(|(flags, name)| (flags, abbreviated(name)))
            .collect();
        let widths = gfp.values().map(|name| name.chars().count());
        let gfp_width = widths.max().unwrap_or_default();
        Self {
            types,
            is_live,
            gfp,
            gfp_width,
        }
    }

    /// Writes what the short names of flags mean.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_flag_legend(
        &self,
        out: &mut dyn Write,
        statistics: &PageStatistics,
    ) -> io::Result<()> {
        writeln!(out, "#\n# GFP flags\n# ---------")?;
        let width = self.gfp_width;
        for (flags, name) in statistics.gfp_names() {
            let short = self.short(flags);
            writeln!(out, "# {flags:08x}: {short:>width$}: {name}")?;
        }
        writeln!(out)
    }

    /// Writes a table.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(
        &self,
        out: &mut dyn Write,
        table: PageTable,
        rows: &ShownRows<PageRow>,
        names: &CallSiteNames<'_>,
    ) -> io::Result<()> {
        let width = self.gfp_width.max(GFP_TITLE.len());
        let with_pfn = table == PageTable::Pages;
        let sum = if self.is_live { " Live" } else { "Total" };
        write_rule(out)?;
        if with_pfn {
            write!(out, " {:<16} |", "PFN")?;
        }
        writeln!(
            out,
            " {sum} alloc (KB) | Hits      | Order | Mig.type | {GFP_TITLE:<width$} | Callsite"
        )?;
        write_rule(out)?;
        for row in rows.shown() {
            if with_pfn {
                write!(out, " {:16} |", row.page)?;
            }
            let (kilobytes, hits, order) = (row.bytes / 1024, row.hits, row.order);
            let migrate_type = self.migrate_type(row.migrate_type);
            let gfp = self.short(row.gfp);
            let site = caller(row.call_site, names);
            writeln!(
                out,
                " {kilobytes:16} | {hits:9} | {order:5} | {migrate_type:>8} | {gfp:<width$} | {site}"
            )?;
        }
        if rows.is_truncated() {
            if with_pfn {
                write!(out, " {:<16} |", "...")?;
            }
            writeln!(
                out,
                " ...              | ...       | ...   | ...      | {:<width$} | ...",
                "..."
            )?;
        }
        write_rule(out)
    }

    /// Writes the sums of all requests, and allocations by order and migrate type.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_summary(
        &self,
        out: &mut dyn Write,
        statistics: &PageStatistics,
    ) -> io::Result<()> {
        let totals = statistics.totals();
        let matched = totals.freed.without(totals.unmatched);
        let lines = [
            ("Total allocation requests", totals.allocated, "\n"),
            ("Total free requests", totals.freed, "\n\n"),
            ("Total alloc+freed requests", matched, "\n"),
            (
                "Total alloc-only requests",
                totals.allocated.without(matched),
                "\n",
            ),
            ("Total free-only requests", totals.unmatched, "\n\n"),
            ("Total allocation failures", totals.failed, "\n\n"),
        ];
        writeln!(out, "\nSUMMARY (page allocator)")?;
        writeln!(out, "========================")?;
        for (name, RequestCount { requests, bytes }, end) in lines {
            let kilobytes = bytes / 1024;
            write!(
                out,
                "{name:<30}: {requests:16}   [ {kilobytes:16} KB ]{end}"
            )?;
        }
        self.write_orders(out, statistics)
    }

    fn write_orders(&self, out: &mut dyn Write, statistics: &PageStatistics) -> io::Result<()> {
        write!(out, "{:<5}", "Order")?;
        for title in self.titles() {
            write!(out, "  {title:>12}")?;
        }
        write!(out, "\n{:-<5}", "")?;
        for _ in 0..TYPES {
            write!(out, "  {:-<12}", "")?;
        }
        writeln!(out)?;
        for order in 0..ORDERS {
            write!(out, "{order:5}")?;
            for migrate_type in (0..).take(TYPES) {
                match statistics.allocation_count(order, migrate_type) {
                    0 => write!(out, "  {:>12}", ".")?,
                    count => write!(out, "  {count:12}")?,
                }
            }
            writeln!(out)?;
        }
        Ok(())
    }

    /// Returns the titles of the columns of migrate types, in the order of their numbers.
    fn titles(&self) -> [&'static str; TYPES] {
        match self.types {
            MigrateTypes::UpTo4_3 => [
                "Unmovable",
                "Reclaimable",
                "Movable",
                "Reserved",
                "CMA/Isolated",
            ],
            MigrateTypes::Since4_4 => [
                "Unmovable",
                "Movable",
                "Reclaimable",
                "HighAtomic",
                "CMA/Isolated",
            ],
        }
    }

    /// Returns the name of a migrate type in a row.
    #[must_use]
    pub fn migrate_type(&self, number: i32) -> &'static str {
        match (number, self.types) {
            (0, _) => "UNMOVABL",
            (1, MigrateTypes::UpTo4_3) | (2, MigrateTypes::Since4_4) => "RECLAIM",
            (2, MigrateTypes::UpTo4_3) | (1, MigrateTypes::Since4_4) => "MOVABLE",
            (3, MigrateTypes::UpTo4_3) => "RESERVED",
            (3, MigrateTypes::Since4_4) => "HIGHATOM",
            (4, _) => "CMA/ISLT",
            _ => "UNKNOWN",
        }
    }

    /// Returns the short names of a combination of flags; empty if there are none.
    fn short(&self, flags: u64) -> &str {
        self.gfp.get(&flags).map_or("", String::as_str)
    }
}

/// Returns a caller as it is shown: its symbol, or its address in hexadecimal.
#[must_use]
pub fn caller(address: u64, names: &CallSiteNames<'_>) -> String {
    match names(address) {
        Some(site) => site.symbol,
        None => format!("{address:016x}"),
    }
}
