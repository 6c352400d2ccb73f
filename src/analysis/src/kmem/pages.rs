//! Page allocations by page and by caller.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

use rustc_hash::FxHashMap;

/// An allocation, as its event describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageAllocation {
    /// Frame number of the first page, or address of its `struct page`; `None` if the allocation failed.
    pub(super) page: Option<u64>,
    pub(super) order: u32,
    pub(super) migrate_type: i32,
    pub(super) gfp: u64,
    pub(super) call_site: u64,
}

/// The numbering of migrate types. It changed in Linux 4.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MigrateTypes {
    /// From 0: unmovable, reclaimable, movable, reserve, CMA (if configured), isolated.
    UpTo4_3,
    /// From 0: unmovable, movable, reclaimable, high-order atomic, CMA (if configured), isolated.
    #[default]
    Since4_4,
}

impl MigrateTypes {
    /// Returns the numbering of a kernel release, such as `6.1.0-amd64`; the current numbering if the release does not
    /// begin with a version.
    #[must_use]
    pub fn of_release(release: &str) -> Self {
        let mut numbers = release
            .split(|character: char| !character.is_ascii_digit())
            .map(str::parse::<u32>);
        match (numbers.next(), numbers.next()) {
            (Some(Ok(major)), Some(Ok(minor))) if (major, minor) < (4, 4) => Self::UpTo4_3,
            _ => Self::Since4_4,
        }
    }
}

impl MigrateTypes {
    /// Whether the kernel can move pages of this type to other frames: movable ones, and those of the contiguous memory
    /// allocator.
    #[must_use]
    pub fn is_movable(self, number: i32) -> bool {
        match self {
            Self::UpTo4_3 => matches!(number, 2 | 4),
            Self::Since4_4 => matches!(number, 1 | 4),
        }
    }
}

/// Sums of the allocations of one page or one caller with the same order, migrate type and flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageRow {
    /// Frame number of the first page, or the address of its `struct page`. Rows of callers have the page of their
    /// latest allocation.
    pub page: u64,
    /// The address after the call, 0 if unknown. Rows of pages have the caller of their latest allocation.
    pub call_site: u64,
    /// Binary logarithm of the number of pages.
    pub order: u32,
    /// Number of the migrate type.
    pub migrate_type: i32,
    /// Allocation flags.
    pub gfp: u64,
    /// Allocations; with [`PageStatistics::live_only`], only those that were not freed.
    pub hits: u64,
    /// Bytes of these allocations.
    pub bytes: u64,
}

/// Numbers and bytes of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PageTotals {
    /// Allocations, including failed ones.
    pub allocated: RequestCount,
    /// Frees.
    pub freed: RequestCount,
    /// Frees of pages whose allocation is not in the recording.
    pub unmatched: RequestCount,
    /// Failed allocations.
    pub failed: RequestCount,
}

/// A number of requests, and the sum of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestCount {
    /// The number of requests.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl RequestCount {
    pub(super) fn add(&mut self, bytes: u64) {
        self.requests += 1;
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns the difference; 0 where `other` is larger.
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            bytes: self.bytes.saturating_sub(other.bytes),
        }
    }
}

/// A column to sort by: highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageSortKey {
    /// Frame number, or address of the `struct page`.
    Page,
    /// Address of the caller.
    CallSite,
    /// Bytes.
    Bytes,
    /// Allocations.
    Hits,
    /// Binary logarithm of the number of pages.
    Order,
    /// Number of the migrate type. It is signed: negative numbers, which no kernel defines, sort last.
    MigrateType,
    /// Allocation flags.
    Gfp,
}

impl PageSortKey {
    /// Returns the key of this name, as in `-s`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "page" => Self::Page,
            "callsite" => Self::CallSite,
            "bytes" => Self::Bytes,
            "hit" => Self::Hits,
            "order" => Self::Order,
            "migtype" => Self::MigrateType,
            "gfp" => Self::Gfp,
            _ => return None,
        })
    }

    fn compare(self, left: &PageRow, right: &PageRow) -> Ordering {
        match self {
            Self::Page => right.page.cmp(&left.page),
            Self::CallSite => right.call_site.cmp(&left.call_site),
            Self::Bytes => right.bytes.cmp(&left.bytes),
            Self::Hits => right.hits.cmp(&left.hits),
            Self::Order => right.order.cmp(&left.order),
            Self::MigrateType => right.migrate_type.cmp(&left.migrate_type),
            Self::Gfp => right.gfp.cmp(&left.gfp),
        }
    }
}

/// A page or the address of a caller, and the properties that its allocations have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct PageKey {
    address: u64,
    order: u32,
    migrate_type: i32,
    gfp: u64,
}

/// Counts allocations and frees of pages. A page that is allocated again although no free was recorded belongs to its
/// latest allocation.
///
/// Its own memory grows with the number of live pages and of callers: by some 50 bytes for each live page, and 220 more for each
/// page with [`PageStatistics::with_pages`].
#[derive(Debug, Default)]
pub struct PageStatistics {
    page_size: PageSize,
    /// Whether freed pages are subtracted from the rows.
    live_only: bool,
    /// The live pages, each with the index in `caller_keys` of the caller of its latest allocation.
    live: FxHashMap<u64, u32>,
    /// The number of each caller key: its index in `caller_keys`.
    caller_numbers: FxHashMap<PageKey, u32>,
    /// The caller keys, so that `live` needs only an index for each page.
    caller_keys: Vec<PageKey>,
    /// Rows by page, if requested.
    pages: Option<FxHashMap<PageKey, PageRow>>,
    callers: FxHashMap<PageKey, PageRow>,
    totals: PageTotals,
    /// The number of allocations by order and migrate type; with `live_only`, of those that were not freed.
    orders: BTreeMap<(u32, i32), u64>,
    /// The names of each combination of flags that occurred.
    gfp_names: BTreeMap<u64, String>,
}

/// The size of a page in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageSize(u64);

/// The page size of most kernels.
impl Default for PageSize {
    fn default() -> Self {
        Self(4096)
    }
}

impl PageSize {
    /// Returns the recorded size, or the default if there is none.
    pub(super) fn recorded_or_default(size: Option<u32>) -> Self {
        size.map_or(Self::default(), |size| Self(size.into()))
    }

    /// Returns the bytes of an allocation; saturated for orders that no kernel has.
    pub(super) fn bytes_of_order(self, order: u32) -> u64 {
        let pages = 1_u64.checked_shl(order).unwrap_or(u64::MAX);
        pages.saturating_mul(self.0)
    }
}

impl PageStatistics {
    /// Returns statistics that subtract freed pages from all rows, and from [`PageStatistics::allocation_count`].
    #[must_use]
    pub fn live_only(self) -> Self {
        Self {
            live_only: true,
            ..self
        }
    }

    /// Returns statistics that also sum up each page, for [`PageStatistics::by_page`].
    #[must_use]
    pub fn with_pages(self) -> Self {
        Self {
            pages: Some(FxHashMap::default()),
            ..self
        }
    }

    /// Sets the page size of the recording kernel in bytes, if it is known.
    pub fn set_page_size(&mut self, size: Option<u32>) {
        self.page_size = PageSize::recorded_or_default(size);
    }

    /// Counts an allocation. `flags` is displayed as the names of its allocation flags.
    pub(super) fn allocate(&mut self, allocation: &PageAllocation, flags: impl fmt::Display) {
        let bytes = self.page_size.bytes_of_order(allocation.order);
        self.totals.allocated.add(bytes);
        let Some(page) = allocation.page else {
            self.totals.failed.add(bytes);
            return;
        };
        self.gfp_names
            .entry(allocation.gfp)
            .or_insert_with(|| flags.to_string());
        let site = allocation.call_site;
        let caller = allocation.key(site);
        let number = self.caller_number(caller);
        self.live.insert(page, number);
        let pages = self.pages.as_mut().map(|rows| (rows, page));
        for (rows, address) in pages.into_iter().chain([(&mut self.callers, site)]) {
            let key = allocation.key(address);
            let row = rows.entry(key).or_insert_with(|| allocation.row(page));
            row.page = page;
            row.call_site = site;
            row.hits += 1;
            row.bytes = row.bytes.saturating_add(bytes);
        }
        let class = (allocation.order, allocation.migrate_type);
        *self.orders.entry(class).or_default() += 1;
    }

    /// Returns the index in `caller_keys` of a key of callers, which is added if it is new.
    fn caller_number(&mut self, key: PageKey) -> u32 {
        let keys = &mut self.caller_keys;
        *self.caller_numbers.entry(key).or_insert_with(|| {
            keys.push(key);
            u32::try_from(keys.len() - 1).unwrap_or(u32::MAX)
        })
    }

    pub(super) fn free(&mut self, page: u64, order: u32) {
        let bytes = self.page_size.bytes_of_order(order);
        self.totals.freed.add(bytes);
        let Some(number) = self.live.remove(&page) else {
            self.totals.unmatched.add(bytes);
            return;
        };
        if !self.live_only {
            return;
        }
        let Some(caller) = self.caller_keys.get(number as usize).copied() else {
            return;
        };
        let class = (caller.order, caller.migrate_type);
        if let Some(count) = self.orders.get_mut(&class) {
            *count = count.saturating_sub(1);
        }
        let pages = self.pages.as_mut().map(|rows| (rows, page));
        let callers = (&mut self.callers, caller.address);
        for (rows, address) in pages.into_iter().chain([callers]) {
            let key = PageKey { address, ..caller };
            let Some(row) = rows.get_mut(&key) else {
                continue;
            };
            row.hits = row.hits.saturating_sub(1);
            row.bytes = row.bytes.saturating_sub(bytes);
            if row.hits == 0 {
                rows.remove(&key);
            }
        }
    }

    /// Returns the sums of all requests.
    #[must_use]
    pub fn totals(&self) -> PageTotals {
        self.totals
    }

    /// Returns a row per caller, order, migrate type and flags, sorted by `keys`.
    #[must_use]
    pub fn by_caller(&self, keys: &[PageSortKey]) -> Vec<PageRow> {
        sorted(&self.callers, keys)
    }

    /// Returns a row per page, order, migrate type and flags, sorted by `keys`; none without [`PageStatistics::with_pages`].
    #[must_use]
    pub fn by_page(&self, keys: &[PageSortKey]) -> Vec<PageRow> {
        let pages = self.pages.as_ref();
        let mut rows = pages.map_or_else(Vec::new, |pages| sorted(pages, keys));
        if self.live_only {
            // With `--live`, perf puts the highest page first among equal rows; otherwise the lowest.
            rows.sort_by(|left, right| {
                compare(keys, left, right).then_with(|| right.page.cmp(&left.page))
            });
        }
        rows
    }

    /// Returns the number of successful allocations of an order and a migrate type; with [`PageStatistics::live_only`], of those
    /// that were not freed.
    #[must_use]
    pub fn allocation_count(&self, order: u32, migrate_type: i32) -> u64 {
        let count = self.orders.get(&(order, migrate_type));
        count.copied().unwrap_or_default()
    }

    /// Returns, in ascending order, the combinations of allocation flags that occurred, each with its names:
    /// `GFP_KERNEL|__GFP_ZERO`.
    pub fn gfp_names(&self) -> impl Iterator<Item = (u64, &str)> {
        let names = self.gfp_names.iter();
        names.map(|(flags, name)| (*flags, name.as_str()))
    }
}

impl PageAllocation {
    fn key(&self, address: u64) -> PageKey {
        PageKey {
            address,
            order: self.order,
            migrate_type: self.migrate_type,
            gfp: self.gfp,
        }
    }

    fn row(&self, page: u64) -> PageRow {
        PageRow {
            page,
            call_site: self.call_site,
            order: self.order,
            migrate_type: self.migrate_type,
            gfp: self.gfp,
            hits: 0,
            bytes: 0,
        }
    }
}

/// Compares by the first of `keys` that differs.
fn compare(keys: &[PageSortKey], left: &PageRow, right: &PageRow) -> Ordering {
    let mut comparisons = keys.iter().map(|key| key.compare(left, right));
    comparisons
        .find(|result| result.is_ne())
        .unwrap_or(Ordering::Equal)
}

/// Returns the rows sorted by `keys`, each highest first; equal rows by address, order, migrate type and flags, ascending.
fn sorted(rows: &FxHashMap<PageKey, PageRow>, keys: &[PageSortKey]) -> Vec<PageRow> {
    let mut rows: Vec<(&PageKey, &PageRow)> = rows.iter().collect();
    rows.sort_unstable_by(|(left_key, left), (right_key, right)| {
        compare(keys, left, right).then_with(|| left_key.cmp(right_key))
    });
    rows.into_iter().map(|(_, row)| *row).collect()
}
