//! Objects of the slab allocator by address and by caller.

use std::cmp::Ordering;

use rustc_hash::FxHashMap;

/// An allocation, as its event describes it.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlabAllocation {
    pub(super) pointer: u64,
    pub(super) call_site: u64,
    pub(super) requested: u64,
    pub(super) allocated: u64,
    /// The requested node; negative for any.
    pub(super) node: Option<i32>,
}

/// Sums of the allocations of one address or one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabRow {
    /// The address of the memory; in rows of callers that of the first allocation.
    pub pointer: u64,
    /// The address after the call; in rows of addresses that of the latest allocation.
    pub call_site: u64,
    /// Allocations.
    pub hits: u64,
    /// Bytes requested.
    pub requested: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Objects freed on another CPU than they were allocated on.
    pub ping_pong: u64,
}

impl SlabRow {
    /// Returns the percentage of allocated bytes that were not requested; 0 without allocations.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        fragmentation(self.requested, self.allocated)
    }

    fn add(&mut self, allocation: &SlabAllocation) {
        self.hits += 1;
        self.requested = self.requested.saturating_add(allocation.requested);
        self.allocated = self.allocated.saturating_add(allocation.allocated);
    }
}

/// Sums of all allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabTotals {
    /// Allocations.
    pub allocations: u64,
    /// Bytes requested.
    pub requested: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Bytes of objects freed that were allocated before.
    pub freed: u64,
    /// Allocations from another node than that of the CPU.
    pub other_node: u64,
}

impl SlabTotals {
    /// Returns the percentage of allocated bytes that were not requested; 0 without allocations.
    #[must_use]
    pub fn fragmentation(&self) -> f64 {
        fragmentation(self.requested, self.allocated)
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "as perf: 53 bits are enough for six decimals"
)]
fn fragmentation(requested: u64, allocated: u64) -> f64 {
    match allocated {
        0 => 0.0,
        allocated => 100.0 - 100.0 * requested as f64 / allocated as f64,
    }
}

/// A column to sort by: highest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlabSortKey {
    /// Address of the memory.
    Pointer,
    /// Address of the caller.
    CallSite,
    /// Bytes allocated.
    Bytes,
    /// Allocations.
    Hits,
    /// Objects freed on another CPU.
    PingPong,
    /// Bytes allocated but not requested, by bytes allocated.
    Fragmentation,
}

impl SlabSortKey {
    /// Returns the key of this name, as in `-s`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "ptr" => Self::Pointer,
            "callsite" => Self::CallSite,
            "bytes" => Self::Bytes,
            "hit" => Self::Hits,
            "pingpong" => Self::PingPong,
            "frag" => Self::Fragmentation,
            _ => return None,
        })
    }

    fn compare(self, left: &SlabRow, right: &SlabRow) -> Ordering {
        match self {
            Self::Pointer => right.pointer.cmp(&left.pointer),
            Self::CallSite => right.call_site.cmp(&left.call_site),
            Self::Bytes => right.allocated.cmp(&left.allocated),
            Self::Hits => right.hits.cmp(&left.hits),
            Self::PingPong => right.ping_pong.cmp(&left.ping_pong),
            Self::Fragmentation => right.fragmentation().total_cmp(&left.fragmentation()),
        }
    }
}

/// The objects at one address.
#[derive(Debug, Default)]
struct SlabPointer {
    row: SlabRow,
    /// The latest allocation.
    latest: LatestAllocation,
}

#[derive(Debug, Clone, Copy, Default)]
struct LatestAllocation {
    /// `None` once freed.
    cpu: Option<u32>,
    time: u64,
    requested: u64,
    allocated: u64,
}

/// Counts allocations and frees.
///
/// Objects allocated before the recording are not counted when they are freed. Memory grows with the number of addresses and callers, not with
/// the number of events.
#[derive(Debug, Default)]
pub struct SlabStatistics {
    pointers: FxHashMap<u64, SlabPointer>,
    callers: FxHashMap<u64, SlabRow>,
    totals: SlabTotals,
    /// The node of each CPU, if known.
    nodes: Vec<Option<u32>>,
}

impl SlabStatistics {
    /// Sets the node of each CPU, by CPU number.
    pub fn set_nodes(&mut self, nodes: Vec<Option<u32>>) {
        self.nodes = nodes;
    }

    pub(super) fn allocate(&mut self, time: u64, cpu: u32, allocation: SlabAllocation) {
        let SlabAllocation {
            pointer, call_site, ..
        } = allocation;
        let object = self.pointers.entry(pointer).or_default();
        object.row.pointer = pointer;
        object.row.call_site = call_site;
        object.row.add(&allocation);
        object.latest = LatestAllocation {
            cpu: Some(cpu),
            time,
            requested: allocation.requested,
            allocated: allocation.allocated,
        };
        let caller = self.callers.entry(call_site).or_insert_with(|| SlabRow {
            pointer,
            call_site,
            ..SlabRow::default()
        });
        caller.add(&allocation);
        let totals = &mut self.totals;
        totals.allocations += 1;
        totals.requested = totals.requested.saturating_add(allocation.requested);
        totals.allocated = totals.allocated.saturating_add(allocation.allocated);
        let wanted = allocation.node.and_then(|node| u32::try_from(node).ok());
        let own = self.nodes.get(cpu as usize).copied().flatten();
        let is_other = wanted.zip(own).is_some_and(|(wanted, own)| wanted != own);
        totals.other_node += u64::from(is_other);
    }

    pub(super) fn free(&mut self, cpu: u32, pointer: u64) {
        let Some(object) = self.pointers.get_mut(&pointer) else {
            return;
        };
        let totals = &mut self.totals;
        totals.freed = totals.freed.saturating_add(object.latest.allocated);
        if object.latest.cpu != Some(cpu) {
            object.row.ping_pong += 1;
            if let Some(caller) = self.callers.get_mut(&object.row.call_site) {
                caller.ping_pong += 1;
            }
        }
        object.latest.cpu = None;
    }

    /// Returns the sums of all allocations.
    #[must_use]
    pub fn totals(&self) -> SlabTotals {
        self.totals
    }

    /// Returns a row per caller.
    #[must_use]
    pub fn by_caller(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        let rows = self.callers.values().copied();
        sorted(rows.collect(), |row| row.call_site, keys)
    }

    /// Returns a row per address.
    #[must_use]
    pub fn by_address(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        let rows = self.pointers.values().map(|object| object.row);
        sorted(rows.collect(), |row| row.pointer, keys)
    }

    /// Returns a row per address that has not been freed, with its latest allocation.
    #[must_use]
    pub fn live_by_address(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        sorted(self.live().collect(), |row| row.pointer, keys)
    }

    /// Returns a row per caller with the objects that have not been freed.
    #[must_use]
    pub fn live_by_caller(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        let mut callers: FxHashMap<u64, SlabRow> = FxHashMap::default();
        for row in self.live() {
            let caller = callers.entry(row.call_site).or_insert_with(|| SlabRow {
                pointer: row.pointer,
                call_site: row.call_site,
                ..SlabRow::default()
            });
            caller.hits += 1;
            caller.requested = caller.requested.saturating_add(row.requested);
            caller.allocated = caller.allocated.saturating_add(row.allocated);
            caller.pointer = caller.pointer.min(row.pointer);
        }
        sorted(callers.into_values().collect(), |row| row.call_site, keys)
    }

    /// Returns the time of the oldest object of each caller that has not been freed, by address of the caller.
    #[must_use]
    pub fn oldest_live(&self) -> FxHashMap<u64, u64> {
        let mut oldest: FxHashMap<u64, u64> = FxHashMap::default();
        for object in self.pointers.values().filter(|object| object.is_live()) {
            let time = oldest.entry(object.row.call_site).or_insert(u64::MAX);
            *time = object.latest.time.min(*time);
        }
        oldest
    }

    fn live(&self) -> impl Iterator<Item = SlabRow> {
        let live = self.pointers.values().filter(|object| object.is_live());
        live.map(|object| SlabRow {
            hits: 1,
            requested: object.latest.requested,
            allocated: object.latest.allocated,
            ping_pong: 0,
            ..object.row
        })
    }
}

impl SlabPointer {
    /// Whether it has not been freed. Failed allocations have no address.
    fn is_live(&self) -> bool {
        self.latest.cpu.is_some() && self.row.pointer != 0
    }
}

/// Sorts by `keys`, then by ascending address.
fn sorted(
    mut rows: Vec<SlabRow>,
    address: impl Fn(&SlabRow) -> u64,
    keys: &[SlabSortKey],
) -> Vec<SlabRow> {
    rows.sort_unstable_by(|left, right| {
        let mut orders = keys.iter().map(|key| key.compare(left, right));
        let order = orders
            .find(|order| order.is_ne())
            .unwrap_or(Ordering::Equal);
        order.then_with(|| address(left).cmp(&address(right)))
    });
    rows
}
