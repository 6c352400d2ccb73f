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
    /// The requested node; negative for any, `None` if the event has no such field.
    pub(super) node: Option<i32>,
}

/// Sums of the allocations of one address or one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlabRow {
    /// The address of the memory; in rows of callers that of the first allocation, or with
    /// [`SlabStatistics::live_by_caller`] the lowest.
    pub pointer: u64,
    /// The return address of the call to the allocator; in rows of addresses that of the latest allocation.
    pub call_site: u64,
    /// Allocations.
    pub hits: u64,
    /// Bytes requested.
    pub requested: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Frees on another CPU than that of the allocation. As in perf, a second free of an object (the allocation in between was
    /// not recorded) counts here on any CPU. 0 in rows of live objects.
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
    /// Bytes of freed objects whose allocation was recorded. As in perf, an object that is freed again (the allocation in between
    /// was not recorded) counts again.
    pub freed: u64,
    /// Allocations that requested another node than that of the CPU.
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
    /// Percentage of the allocated bytes that were not requested.
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

/// [`AddressState::cpu`] of freed objects. Allocations without a CPU have `u32::MAX`.
const FREED: u32 = u32::MAX - 1;

/// The latest object at an address, in few bytes, as recordings have millions of addresses.
#[derive(Debug, Clone, Copy)]
struct AddressState {
    /// The index of the caller in [`SlabStatistics::callers`].
    caller: u32,
    /// The index in [`SizePairs::pairs`] of the object's requested and allocated bytes.
    sizes: u32,
    /// The CPU of the allocation, or [`FREED`].
    cpu: u32,
}

/// The different pairs of requested and allocated bytes.
#[derive(Debug, Default)]
struct SizePairs {
    /// For each pair, its index in `pairs`.
    indexes: FxHashMap<[u64; 2], u32>,
    pairs: Vec<[u64; 2]>,
}

impl SizePairs {
    /// Returns the index of a pair, which is added if it is new.
    fn index_of(&mut self, sizes: [u64; 2]) -> u32 {
        let pairs = &mut self.pairs;
        *self.indexes.entry(sizes).or_insert_with(|| {
            pairs.push(sizes);
            u32::try_from(pairs.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn get(&self, index: u32) -> [u64; 2] {
        self.pairs.get(index as usize).copied().unwrap_or_default()
    }
}

/// Counts allocations and frees.
///
/// Objects allocated before the recording are not counted when they are freed. Memory grows with the number of addresses and
/// callers, not with the number of events: by some 70 bytes for each address, and 120 more with
/// [`SlabStatistics::with_addresses`].
#[derive(Debug, Default)]
pub struct SlabStatistics {
    addresses: FxHashMap<u64, AddressState>,
    sizes: SizePairs,
    /// The index in `callers`, by call site.
    by_call_site: FxHashMap<u64, u32>,
    callers: Vec<SlabRow>,
    /// Rows by address, if requested.
    rows: Option<FxHashMap<u64, SlabRow>>,
    totals: SlabTotals,
    /// The node of each CPU, if known.
    nodes: Vec<Option<u32>>,
}

impl SlabStatistics {
    /// Returns statistics that also sum up each address, for [`SlabStatistics::by_address`].
    #[must_use]
    pub fn with_addresses(self) -> Self {
        Self {
            rows: Some(FxHashMap::default()),
            ..self
        }
    }

    /// Sets the node of each CPU, by CPU number.
    pub fn set_nodes(&mut self, nodes: Vec<Option<u32>>) {
        self.nodes = nodes;
    }

    pub(super) fn allocate(&mut self, cpu: u32, allocation: SlabAllocation) {
        let SlabAllocation {
            pointer, call_site, ..
        } = allocation;
        let new = SlabRow {
            pointer,
            call_site,
            ..SlabRow::default()
        };
        if let Some(rows) = &mut self.rows {
            let row = rows.entry(pointer).or_insert(new);
            row.call_site = call_site;
            row.add(&allocation);
        }
        let callers = &mut self.callers;
        let caller = *self.by_call_site.entry(call_site).or_insert_with(|| {
            callers.push(new);
            u32::try_from(callers.len() - 1).unwrap_or(u32::MAX)
        });
        if let Some(caller) = self.callers.get_mut(caller as usize) {
            caller.add(&allocation);
        }
        let sizes = [allocation.requested, allocation.allocated];
        let state = AddressState {
            caller,
            sizes: self.sizes.index_of(sizes),
            cpu,
        };
        self.addresses.insert(pointer, state);
        self.add_to_totals(cpu, &allocation);
    }

    fn add_to_totals(&mut self, cpu: u32, allocation: &SlabAllocation) {
        let totals = &mut self.totals;
        totals.allocations += 1;
        totals.requested = totals.requested.saturating_add(allocation.requested);
        totals.allocated = totals.allocated.saturating_add(allocation.allocated);
        let requested = allocation.node.and_then(|node| u32::try_from(node).ok());
        let cpu_node = self.nodes.get(cpu as usize).copied().flatten();
        let is_other = requested
            .zip(cpu_node)
            .is_some_and(|(requested, cpu_node)| requested != cpu_node);
        totals.other_node += u64::from(is_other);
    }

    pub(super) fn free(&mut self, cpu: u32, pointer: u64) {
        let Some(state) = self.addresses.get_mut(&pointer) else {
            return;
        };
        let [_, allocated] = self.sizes.get(state.sizes);
        let totals = &mut self.totals;
        totals.freed = totals.freed.saturating_add(allocated);
        if state.cpu != cpu {
            let rows = self.rows.as_mut();
            if let Some(row) = rows.and_then(|rows| rows.get_mut(&pointer)) {
                row.ping_pong += 1;
            }
            if let Some(caller) = self.callers.get_mut(state.caller as usize) {
                caller.ping_pong += 1;
            }
        }
        state.cpu = FREED;
    }

    /// Returns the sums of all allocations.
    #[must_use]
    pub fn totals(&self) -> SlabTotals {
        self.totals
    }

    /// Returns a row per caller.
    #[must_use]
    pub fn by_caller(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        sorted_callers(self.callers.clone(), keys)
    }

    /// Returns a row per address; none without [`SlabStatistics::with_addresses`].
    #[must_use]
    pub fn by_address(&self, keys: &[SlabSortKey]) -> Vec<SlabRow> {
        let rows = self.rows.iter().flat_map(|rows| rows.values().copied());
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
        sorted_callers(callers.into_values().collect(), keys)
    }

    /// Returns the objects that were not freed. Skips failed allocations: their address is 0.
    fn live(&self) -> impl Iterator<Item = SlabRow> {
        let live = self.addresses.iter();
        let live = live.filter(|(pointer, state)| **pointer != 0 && state.cpu != FREED);
        live.map(|(pointer, state)| {
            let [requested, allocated] = self.sizes.get(state.sizes);
            let caller = self.callers.get(state.caller as usize);
            SlabRow {
                pointer: *pointer,
                call_site: caller.map_or(0, |caller| caller.call_site),
                hits: 1,
                requested,
                allocated,
                ping_pong: 0,
            }
        })
    }
}

/// Sorts rows of callers. [`SlabSortKey::Pointer`] is ignored, as in perf: a caller allocates memory at many addresses.
fn sorted_callers(rows: Vec<SlabRow>, keys: &[SlabSortKey]) -> Vec<SlabRow> {
    let keys = keys.iter().copied();
    let keys: Vec<SlabSortKey> = keys.filter(|key| *key != SlabSortKey::Pointer).collect();
    sorted(rows, |row| row.call_site, &keys)
}

/// Sorts by `keys`, then by ascending `address`: that of the memory, or that of the caller.
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
