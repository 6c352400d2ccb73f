//! The tables of `kmem fragmentation`.

use std::io::{self, Write};

use rperf_analysis::kmem::{
    CacheRow, Fallback, FragmentationReport, MigrateTypes, Pageblocks, SlabCache, is_fragmenting,
};
use rperf_names::{counted, was_or_were};

use super::{CallSiteNames, slab};
use crate::table::{Cell, Column, Table, TextStyle};

/// The version of the JSON object; it changes if a key is removed or gets another meaning.
pub const FRAGMENTATION_JSON_VERSION: u32 = 1;

/// The fragmentation of a recording, with what its tables need.
pub struct FragmentationView<'a> {
    /// The fragmentation.
    pub report: &'a FragmentationReport,
    /// The size of a page in bytes, if recorded; otherwise, the text assumes 4096.
    pub page_size: Option<u32>,
    /// The numbering of migrate types.
    pub types: MigrateTypes,
    /// Binary logarithm of the number of pages of a pageblock, if known.
    pub pageblock_order: Option<u32>,
    /// Whether the event kmem:mm_page_alloc_extfrag is in the recording, even if it never occurred.
    pub has_fallback_event: bool,
    /// Whether the text has the tables of the page allocator.
    pub shows_pages: bool,
    /// Whether the text has the table of the slab allocator's caches.
    pub shows_objects: bool,
    /// Maximum number of rows of each table of callers or caches.
    pub most: usize,
    /// Names of callers.
    pub names: &'a CallSiteNames<'a>,
}

/// Returns the name of a migrate type; `type NUMBER` if it is unknown.
#[must_use]
pub fn migrate_type(types: MigrateTypes, number: i32) -> String {
    let name = match (number, types) {
        (0, _) => "unmovable",
        (1, MigrateTypes::UpTo4_3) | (2, MigrateTypes::Since4_4) => "reclaimable",
        (2, MigrateTypes::UpTo4_3) | (1, MigrateTypes::Since4_4) => "movable",
        (3, MigrateTypes::UpTo4_3) => "reserve",
        (3, MigrateTypes::Since4_4) => "highatomic",
        // Kernels without CMA have isolated pages here.
        (4, _) => "cma/isolate",
        (5, _) => "isolate",
        _ => return format!("type {number}"),
    };
    name.to_owned()
}

/// Returns the name of a cache as in /proc/slabinfo: for objects of kmalloc(), the name of the plain `kmalloc-*` cache of their
/// size; `objects of N bytes` if the event does not name the cache.
#[must_use]
pub fn cache_name(cache: &SlabCache) -> String {
    match cache {
        SlabCache::Named(name) => String::from_utf8_lossy(name).into_owned(),
        SlabCache::Kmalloc(bytes) => match bytes % 1024 {
            0 if *bytes > 0 => format!("kmalloc-{}k", bytes / 1024),
            _ => format!("kmalloc-{bytes}"),
        },
        SlabCache::Unnamed(bytes) => format!("objects of {bytes} bytes"),
    }
}

impl FragmentationView<'_> {
    /// Writes the tables.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.shows_pages {
            self.write_pages(out)?;
        }
        if self.shows_objects {
            if self.shows_pages {
                writeln!(out)?;
            }
            writeln!(
                out,
                "Objects of the slab allocator by cache, sizes in bytes:\n"
            )?;
            self.write_limited(out, &self.caches(&TEXT_TITLES), self.report.caches.len())?;
        }
        Ok(())
    }

    fn write_pages(&self, out: &mut dyn Write) -> io::Result<()> {
        let size = self.page_size.unwrap_or(4096);
        writeln!(
            out,
            "Pages of {size} bytes by order and migrate type of the allocation:\n"
        )?;
        let classes = self.classes(&TEXT_TITLES);
        classes.write_text(out, TextStyle::PLAIN)?;
        self.write_notes(out)?;
        match &self.report.pageblocks {
            Some(blocks) => self.write_pageblocks(out, blocks)?,
            None => writeln!(
                out,
                "\nPageblocks are not shown: {}.",
                self.unknown_pageblocks()
            )?,
        }
        self.write_fallbacks(out)
    }

    /// Returns why the distribution over pageblocks is unknown.
    fn unknown_pageblocks(&self) -> &'static str {
        match (self.pageblock_order, self.has_fallback_event) {
            (Some(_), _) => "the frame numbers of some pages were not recorded",
            (None, true) => {
                "the recorded format of the event kmem:mm_page_alloc_extfrag does not contain their size"
            }
            (None, false) => {
                "their size is unknown without the event kmem:mm_page_alloc_extfrag, which 'kmem record --page' records"
            }
        }
    }

    /// Writes the numbers of pages whose allocation or free was not recorded.
    fn write_notes(&self, out: &mut dyn Write) -> io::Result<()> {
        let freed = self.report.unmatched_freed_pages.values();
        let freed: u64 = freed.fold(0, |sum, pages| sum.saturating_add(*pages));
        if freed > 0 {
            let orders = self.report.unmatched_freed_pages.iter();
            let orders = orders.map(|(order, pages)| format!("order {order}: {pages}"));
            let orders = orders.collect::<Vec<_>>().join(", ");
            writeln!(
                out,
                "\n{} {} freed that had been allocated earlier ({orders}).",
                counted(freed, "page"),
                was_or_were(freed)
            )?;
        }
        let reused = self.report.classes.values().map(|counts| counts.reused);
        let reused: u64 = reused.fold(0, u64::saturating_add);
        if reused > 0 {
            writeln!(
                out,
                "\n{} {} allocated again although no free was recorded; counted as freed.",
                counted(reused, "page"),
                was_or_were(reused)
            )?;
        }
        Ok(())
    }

    fn write_pageblocks(&self, out: &mut dyn Write, blocks: &Pageblocks) -> io::Result<()> {
        let pages = 1_u64.checked_shl(blocks.order).unwrap_or(u64::MAX);
        writeln!(out, "\nOutstanding pages in pageblocks of {pages} pages:\n")?;
        self.pageblocks(blocks, &TEXT_TITLES)
            .write_text(out, TextStyle::PLAIN)?;
        writeln!(
            out,
            "\n{} of {} pageblocks have pages that can be moved and pages that cannot.",
            blocks.mixed, blocks.all.pageblocks
        )?;
        if blocks.pinning.is_empty() {
            return Ok(());
        }
        writeln!(
            out,
            "\nCallers of outstanding pages that cannot be moved, by number of pageblocks:\n"
        )?;
        self.write_limited(
            out,
            &self.pinning(blocks, &TEXT_TITLES),
            blocks.pinning.len(),
        )
    }

    fn write_fallbacks(&self, out: &mut dyn Write) -> io::Result<()> {
        if !self.has_fallback_event {
            return writeln!(
                out,
                "\nEvents of external fragmentation (kmem:mm_page_alloc_extfrag) were not recorded."
            );
        }
        let report = self.report;
        let all: u64 = report.fallbacks.values().sum();
        let fragmenting = report.fallbacks.iter();
        let fragmenting = fragmenting
            .filter(|(fallback, _)| is_fragmenting(fallback.from_order, self.pageblock_order));
        let fragmenting: u64 = fragmenting.map(|(_, count)| count).sum();
        write!(out, "\nEvents of external fragmentation: {all}")?;
        match self.pageblock_order {
            Some(_) => writeln!(
                out,
                ", {fragmenting} of them from blocks smaller than a pageblock"
            )?,
            None => writeln!(out)?,
        }
        if report.fallbacks.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        self.fallbacks(&TEXT_TITLES)
            .write_text(out, TextStyle::PLAIN)?;
        writeln!(out, "\nTheir callers:\n")?;
        let callers = self.fallback_callers(&TEXT_TITLES);
        self.write_limited(out, &callers, report.fallback_callers.len())
    }

    /// Writes a table of at most `most` rows, and how many of its `all` rows are hidden.
    fn write_limited(&self, out: &mut dyn Write, table: &Table, all: usize) -> io::Result<()> {
        table.write_text(out, TextStyle::PLAIN)?;
        match all.saturating_sub(self.most) {
            0 => Ok(()),
            hidden => writeln!(out, "  ... {hidden} more; -l shows more"),
        }
    }

    /// Writes the tables as JSON; sizes of objects are in bytes. `lost` is the number of records lost while recording.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn write_json(&self, out: &mut dyn Write, lost: u64) -> io::Result<()> {
        let report = self.report;
        let earlier: serde_json::Map<String, serde_json::Value> = report
            .unmatched_freed_pages
            .iter()
            .map(|(order, pages)| (order.to_string(), (*pages).into()))
            .collect();
        let blocks = report.pageblocks.as_ref();
        let outstanding = blocks.map(|blocks| {
            serde_json::json!({
                "order": blocks.order,
                "pageblocks": blocks.all.pageblocks,
                "pages": blocks.all.pages,
                "mixed": blocks.mixed,
            })
        });
        write!(
            out,
            "{{\"version\":{FRAGMENTATION_JSON_VERSION},\"lost_records\":{lost},\"page_size\":{},\"freed_earlier_pages\":{},\"outstanding\":{}",
            serde_json::json!(self.page_size),
            serde_json::Value::from(earlier),
            serde_json::json!(outstanding),
        )?;
        let mut tables = vec![
            ("orders", self.classes(&JSON_TITLES)),
            ("fallbacks", self.fallbacks(&JSON_TITLES)),
            ("fallback_callers", self.fallback_callers(&JSON_TITLES)),
            ("caches", self.caches(&JSON_TITLES)),
        ];
        if let Some(blocks) = blocks {
            tables.push(("outstanding_types", self.pageblocks(blocks, &JSON_TITLES)));
            tables.push(("pinning_callers", self.pinning(blocks, &JSON_TITLES)));
        }
        for (key, table) in tables {
            write!(out, ",\"{key}\":")?;
            table.write_json(out)?;
        }
        writeln!(out, "}}")
    }

    fn classes(&self, titles: &Titles) -> Table {
        let mut table = table(titles.classes);
        for (class, counts) in &self.report.classes {
            table.push([
                class.order.into(),
                migrate_type(self.types, class.migrate_type).into(),
                counts.requests.into(),
                counts.failed.into(),
                counts.allocated.into(),
                counts.freed.into(),
                counts.reused.into(),
                counts.outstanding().into(),
            ]);
        }
        table
    }

    fn pageblocks(&self, blocks: &Pageblocks, titles: &Titles) -> Table {
        let mut table = table(titles.pageblocks);
        let pages_per_block = 1_u64.checked_shl(blocks.order).unwrap_or(u64::MAX);
        for (number, counts) in &blocks.by_type {
            table.push([
                migrate_type(self.types, *number).into(),
                counts.pages.into(),
                counts.pageblocks.into(),
                Cell::share(
                    counts.pages,
                    counts.pageblocks.saturating_mul(pages_per_block),
                ),
            ]);
        }
        table
    }

    fn pinning(&self, blocks: &Pageblocks, titles: &Titles) -> Table {
        let mut table = table(titles.pinning);
        for row in blocks.pinning.iter().take(self.most) {
            table.push([
                row.counts.pageblocks.into(),
                row.counts.pages.into(),
                self.caller(row.caller).into(),
            ]);
        }
        table
    }

    fn fallbacks(&self, titles: &Titles) -> Table {
        let mut table = table(titles.fallbacks);
        for (fallback, count) in &self.report.fallbacks {
            let Fallback {
                order,
                from_order,
                migrate_type: requested_type,
                from_migrate_type: taken_type,
                changes_ownership,
            } = *fallback;
            let changes = changes_ownership.map(|changes| if changes { "yes" } else { "no" });
            let fragments = self.pageblock_order.map(|pageblock| {
                match is_fragmenting(from_order, Some(pageblock)) {
                    true => "yes",
                    false => "no",
                }
            });
            table.push([
                order_cell(order),
                migrate_type(self.types, requested_type).into(),
                order_cell(from_order),
                migrate_type(self.types, taken_type).into(),
                fragments.map_or(Cell::missing(), Cell::from),
                changes.map_or(Cell::missing(), Cell::from),
                (*count).into(),
            ]);
        }
        table
    }

    fn fallback_callers(&self, titles: &Titles) -> Table {
        let mut table = table(titles.fallback_callers);
        for row in self.report.fallback_callers.iter().take(self.most) {
            // `row.fragmenting` is always 0 if the order of pageblocks is unknown.
            let fragmenting = self.pageblock_order.map(|_| row.fragmenting);
            table.push([
                row.events.into(),
                fragmenting.map_or(Cell::missing(), Cell::from),
                self.caller(row.caller).into(),
            ]);
        }
        table
    }

    fn caches(&self, titles: &Titles) -> Table {
        let mut table = table(titles.caches);
        for row in self.report.caches.iter().take(self.most) {
            table.push(cache_cells(row));
        }
        table
    }

    fn caller(&self, address: u64) -> String {
        match address {
            0 => "unknown".to_owned(),
            address => slab::caller(address, self.names),
        }
    }
}

/// `requests` are numbers of objects; `requested` and `bytes` are sizes.
fn cache_cells(row: &CacheRow) -> Vec<Cell> {
    vec![
        cache_name(&row.cache).into(),
        row.allocated.requests.into(),
        row.failed.into(),
        row.requested.into(),
        row.allocated.bytes.into(),
        row.wasted().into(),
        Cell::share(row.wasted(), row.allocated.bytes),
        row.live.requests.into(),
        row.live.bytes.into(),
        row.live_wasted().into(),
    ]
}

/// Returns the cell of an order; only damaged recordings have negative ones.
fn order_cell(value: i32) -> Cell {
    match u32::try_from(value) {
        Ok(value) => value.into(),
        Err(_) => value.to_string().into(),
    }
}

/// The titles of the columns of each table; a column is left-aligned if its title begins with a blank, which is not shown.
struct Titles {
    classes: &'static [&'static str],
    pageblocks: &'static [&'static str],
    pinning: &'static [&'static str],
    fallbacks: &'static [&'static str],
    fallback_callers: &'static [&'static str],
    caches: &'static [&'static str],
}

#[rustfmt::skip]
const TEXT_TITLES: Titles = Titles {
    classes: &["Order", " Type", "Requests", "Failed", "Allocated", "Freed", "Reused", "Outstanding"],
    pageblocks: &[" Type", "Pages", "Pageblocks", "Fill"],
    pinning: &["Pageblocks", "Pages", " Caller"],
    fallbacks: &["Order", " Type", "From order", " From type", " Fragments", " Changes type", "Events"],
    fallback_callers: &["Events", "Fragmenting", " Caller"],
    caches: &[
        " Cache", "Objects", "Failed", "Requested", "Allocated", "Wasted", "Share", "Live", "Live bytes", "Live wasted",
    ],
};

#[rustfmt::skip]
const JSON_TITLES: Titles = Titles {
    classes: &[
        "order", "migrate_type", "requests", "failed", "allocated_pages", "freed_pages", "reused_pages", "outstanding_pages",
    ],
    pageblocks: &["migrate_type", "pages", "pageblocks", "fill_percent"],
    pinning: &["pageblocks", "pages", "caller"],
    fallbacks: &[
        "order", "migrate_type", "from_order", "from_migrate_type", "is_fragmenting", "changes_ownership", "events",
    ],
    fallback_callers: &["events", "fragmenting", "caller"],
    caches: &[
        "cache", "objects", "failed", "requested_bytes", "allocated_bytes", "wasted_bytes", "wasted_percent", "live",
        "live_bytes", "live_wasted_bytes",
    ],
};

fn table(titles: &[&'static str]) -> Table {
    let last_if_left = titles.last().and_then(|title| title.strip_prefix(' '));
    let columns = titles.iter().map(|title| match title.strip_prefix(' ') {
        // A left-aligned last column is not padded.
        Some(title) if Some(&title) == last_if_left.as_ref() => Column::left(title).fixed(0),
        Some(title) => Column::left(title),
        None => Column::right(*title),
    });
    Table::new(columns.collect::<Vec<_>>())
}
