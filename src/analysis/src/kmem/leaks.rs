//! Memory that was allocated and not freed, by stack, with its age and growth.

use rperf_tracepoint::typed::TypedEvent;
use rustc_hash::FxHashMap;

use super::RequestCount;
use super::events::allocated_page;
use super::intervals::{IntervalSums, Intervals};
use super::pages::PageSize;
use crate::sched::LostStretches;
use crate::{EventContext, LogHistogram, Loss, Observer};

/// Address of an object without bytes (`ZERO_SIZE_PTR` of linux/slab.h): kfree has an event for it, as for NULL; kmalloc has none
/// for it.
pub(super) const ZERO_SIZE_PTR: u64 = 16;

/// An allocator of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Allocator {
    /// The slab allocator, which allocates objects.
    Slab,
    /// The page allocator.
    Page,
}

/// Data computed from an event for [`LiveMemory`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeakDetail {
    /// Addresses of the kernel frames of an allocation, innermost first: the first is the caller of the allocator.
    /// Empty if unknown, and for frees.
    pub stack: Vec<u64>,
}

/// The allocations that one stack made from one allocator.
#[derive(Debug, Clone, PartialEq)]
pub struct StackMemory {
    /// The allocator.
    pub allocator: Allocator,
    /// Addresses, innermost first: the first is the caller. Empty if unknown.
    pub stack: Vec<u64>,
    /// All allocations.
    pub allocated: RequestCount,
    /// The allocations that were not freed.
    pub live: RequestCount,
    /// Ages of the live allocations at [`LeakReport::end`], in nanoseconds.
    pub ages: LogHistogram,
    /// Bytes that were not freed at the end of each interval of [`LeakReport::ends`].
    pub curve: Vec<u64>,
    /// Process id and number of live allocations, highest number first. The id is `u32::MAX` if not recorded.
    pub processes: Vec<(u32, u64)>,
}

impl StackMemory {
    /// Returns the share of allocations that were not freed, 0 to 1; 0 without allocations.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn live_share(&self) -> f64 {
        match self.allocated.requests {
            0 => 0.0,
            requests => self.live.requests as f64 / requests as f64,
        }
    }

    /// Returns the number of intervals in which the live bytes increased.
    #[must_use]
    pub fn rising_intervals(&self) -> usize {
        let before = std::iter::once(&0).chain(&self.curve);
        let pairs = before.zip(&self.curve);
        pairs.filter(|(before, after)| after > before).count()
    }

    /// Whether the stack is suspected to leak: it has more than one live allocation, at least half of its allocations
    /// are live, and its live bytes increased in at least half of the intervals and over the last quarter of them.
    #[must_use]
    pub fn is_suspect(&self) -> bool {
        let count = self.curve.len();
        let index = count.saturating_sub(count.div_ceil(4) + 1);
        let earlier = self.curve.get(index).copied().unwrap_or_default();
        let has_late_growth = self.curve.last().is_some_and(|end| *end > earlier);
        self.live.requests > 1
            && self.live_share() >= 0.5
            && 2 * self.rising_intervals() >= count
            && has_late_growth
    }
}

/// The memory that was not freed.
#[derive(Debug, Clone, PartialEq)]
pub struct LeakReport {
    /// The time of the first allocation, in nanoseconds of the recording's clock; 0 if there is none.
    pub begin: u64,
    /// The time of the last allocation or free, in nanoseconds of the same clock. Unmatched frees do not count.
    pub end: u64,
    /// The end of each interval, exclusive, in nanoseconds of the same clock. The last interval contains `end`.
    pub ends: Vec<u64>,
    /// Bytes of the slab allocator that were not freed at the end of each interval.
    pub slab_bytes: Vec<u64>,
    /// Bytes of pages that were not freed at the end of each interval.
    pub page_bytes: Vec<u64>,
    /// Stacks with memory that was not freed: most bytes first.
    pub stacks: Vec<StackMemory>,
    /// Frees of addresses without a live allocation, such as of memory that was allocated before the recording.
    pub unmatched_frees: u64,
}

impl LeakReport {
    /// Returns the growth of a stack in live bytes per second: the slope of the line through its curve (least squares).
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the slope of a line")]
    pub fn growth(&self, stack: &StackMemory) -> f64 {
        let seconds = self
            .ends
            .iter()
            .map(|end| end.min(&self.end).saturating_sub(self.begin) as f64 / 1e9);
        let points = seconds.zip(stack.curve.iter().map(|bytes| *bytes as f64));
        // The first point is `begin`, with 0 live bytes.
        let points: Vec<(f64, f64)> = std::iter::once((0.0, 0.0)).chain(points).collect();
        let count = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (mean_time, mean_bytes) = (mean(|point| point.0), mean(|point| point.1));
        let covariance = |point: &(f64, f64)| (point.0 - mean_time) * (point.1 - mean_bytes);
        let variance = |point: &(f64, f64)| (point.0 - mean_time).powi(2);
        let variance: f64 = points.iter().map(variance).sum();
        match variance > 0.0 {
            true => points.iter().map(covariance).sum::<f64>() / variance,
            false => 0.0,
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct LiveAllocation {
    bytes: u64,
    time: u64,
    /// Index in [`LiveMemory::stacks`].
    stack: u32,
    pid: u32,
}

/// The allocations of one allocator and stack so far.
#[derive(Debug)]
struct StackState {
    allocator: Allocator,
    allocated: RequestCount,
    /// Bytes allocated less bytes freed in each interval.
    changes: IntervalSums,
}

/// Follows allocations until they are freed. Its own memory grows with the number of live allocations and stacks: by some 90
/// bytes for each live allocation, and 1 KB for each stack.
#[derive(Debug, Default)]
pub struct LiveMemory {
    page_size: PageSize,
    /// Live objects by address.
    objects: FxHashMap<u64, LiveAllocation>,
    /// Live blocks of pages, by the result of [`allocated_page`].
    pages: FxHashMap<u64, LiveAllocation>,
    /// The index in `stacks` of each allocator and stack.
    by_stack: FxHashMap<(Allocator, Vec<u64>), u32>,
    stacks: Vec<StackState>,
    intervals: Intervals,
    unmatched_frees: u64,
    /// Where records were lost.
    pub losses: LostStretches,
}

/// An allocation, as its event describes it.
struct NewMemory {
    allocator: Allocator,
    /// The address of the object; for pages, the result of [`allocated_page`].
    address: u64,
    bytes: u64,
}

/// `is_new` of [`LiveMemory::change`], for a new allocation.
const ALLOCATED: bool = true;
/// `is_new` of [`LiveMemory::change`], for an allocation that is no longer live.
const FREED: bool = false;

impl LiveMemory {
    /// Sets the page size of the recording kernel in bytes, if it is known.
    pub fn set_page_size(&mut self, size: Option<u32>) {
        self.page_size = PageSize::recorded_or_default(size);
    }

    fn allocate(&mut self, at: &EventContext, memory: &NewMemory, detail: LeakDetail) {
        let NewMemory {
            allocator,
            address,
            bytes,
        } = *memory;
        let stacks = &mut self.stacks;
        let index = *self
            .by_stack
            .entry((allocator, detail.stack))
            .or_insert_with(|| {
                stacks.push(StackState {
                    allocator,
                    allocated: RequestCount::default(),
                    changes: IntervalSums::default(),
                });
                u32::try_from(stacks.len() - 1).unwrap_or(u32::MAX)
            });
        let allocation = LiveAllocation {
            stack: index,
            bytes,
            time: at.time(),
            pid: at.task.pid,
        };
        // If there is an older allocation at this address, its free was not recorded.
        if let Some(older) = self.live(allocator).insert(address, allocation) {
            self.change(at.time(), older, FREED);
        }
        if let Some(stack) = self.stacks.get_mut(index as usize) {
            stack.allocated.add(bytes);
        }
        self.change(at.time(), allocation, ALLOCATED);
    }

    fn live(&mut self, allocator: Allocator) -> &mut FxHashMap<u64, LiveAllocation> {
        match allocator {
            Allocator::Slab => &mut self.objects,
            Allocator::Page => &mut self.pages,
        }
    }

    fn free(&mut self, at: &EventContext, allocator: Allocator, address: u64) {
        match self.live(allocator).remove(&address) {
            Some(allocation) => self.change(at.time(), allocation, FREED),
            None => self.unmatched_frees += 1,
        }
    }

    /// Adds the bytes of an allocation to the live bytes of its stack if `is_new`; otherwise subtracts them.
    fn change(&mut self, time: u64, allocation: LiveAllocation, is_new: bool) {
        // A time beyond the last interval doubles the width of the intervals: in each stack, pairs of intervals are merged.
        let changes = self.stacks.iter_mut().map(|stack| &mut stack.changes);
        let interval = self.intervals.add_time(time, changes);
        if let Some(stack) = self.stacks.get_mut(allocation.stack as usize) {
            match is_new {
                true => stack.changes.increase(interval, allocation.bytes),
                false => stack.changes.decrease(interval, allocation.bytes),
            }
        }
    }

    /// Returns the memory that was not freed.
    #[must_use]
    pub fn report(&self) -> LeakReport {
        let (begin, end) = (self.intervals.begin(), self.intervals.highest());
        let ends = self.intervals.ends();
        let sum = |allocator| {
            let mut sum = IntervalSums::default();
            let all = self.stacks.iter();
            for stack in all.filter(|stack| stack.allocator == allocator) {
                sum.add(&stack.changes);
            }
            sum.cumulative(ends.len())
        };
        let mut stacks = self.live_stacks(end, ends.len());
        for memory in &mut stacks {
            let order = |(pid, count): &(u32, u64)| (std::cmp::Reverse(*count), *pid);
            memory.processes.sort_unstable_by_key(order);
        }
        stacks.sort_unstable_by(|left, right| {
            let bytes = right.live.bytes.cmp(&left.live.bytes);
            let allocator = bytes.then_with(|| left.allocator.cmp(&right.allocator));
            allocator.then_with(|| left.stack.cmp(&right.stack))
        });
        LeakReport {
            begin,
            end,
            slab_bytes: sum(Allocator::Slab),
            page_bytes: sum(Allocator::Page),
            ends,
            stacks,
            unmatched_frees: self.unmatched_frees,
        }
    }

    /// Returns the stacks with live allocations, in no particular order.
    fn live_stacks(&self, end: u64, interval_count: usize) -> Vec<StackMemory> {
        let all = self.stacks.iter().map(|state| StackMemory {
            allocator: state.allocator,
            stack: Vec::new(),
            allocated: state.allocated,
            live: RequestCount::default(),
            ages: LogHistogram::new(),
            curve: state.changes.cumulative(interval_count),
            processes: Vec::new(),
        });
        let mut all: Vec<StackMemory> = all.collect();
        let mut processes: FxHashMap<(u32, u32), u64> = FxHashMap::default();
        for allocation in self.objects.values().chain(self.pages.values()) {
            if let Some(memory) = all.get_mut(allocation.stack as usize) {
                memory.live.add(allocation.bytes);
                memory.ages.add(end.saturating_sub(allocation.time));
            }
            let process = (allocation.stack, allocation.pid);
            *processes.entry(process).or_default() += 1;
        }
        for ((stack, pid), count) in processes {
            if let Some(memory) = all.get_mut(stack as usize) {
                memory.processes.push((pid, count));
            }
        }
        for ((_, stack), index) in &self.by_stack {
            if let Some(memory) = all.get_mut(*index as usize) {
                memory.stack.clone_from(stack);
            }
        }
        all.retain(|memory| memory.live.requests > 0);
        all
    }
}

impl Observer<LeakDetail> for LiveMemory {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, detail: LeakDetail) {
        // False if the record is damaged (its CPU number is too high).
        if !self.losses.usable_event(at) {
            return;
        }
        let slab = |address, bytes| NewMemory {
            allocator: Allocator::Slab,
            address,
            bytes,
        };
        match event {
            // Failed allocations have no address.
            TypedEvent::Kmalloc(event) if event.ptr() != 0 => {
                self.allocate(at, &slab(event.ptr(), event.bytes_alloc()), detail);
            }
            TypedEvent::KmemCacheAlloc(event) if event.ptr() != 0 => {
                self.allocate(at, &slab(event.ptr(), event.bytes_alloc()), detail);
            }
            TypedEvent::Kfree(event) if event.ptr() > ZERO_SIZE_PTR => {
                self.free(at, Allocator::Slab, event.ptr());
            }
            TypedEvent::KmemCacheFree(event) => self.free(at, Allocator::Slab, event.ptr()),
            TypedEvent::MmPageAlloc(event) => {
                if let Some(address) = allocated_page(event.pfn(), event.page()) {
                    let memory = NewMemory {
                        allocator: Allocator::Page,
                        address,
                        bytes: self.page_size.bytes_of_order(event.order()),
                    };
                    self.allocate(at, &memory, detail);
                }
            }
            TypedEvent::MmPageFree(event) => {
                // As [`allocated_page`], but a free cannot fail.
                let page = event.pfn().or(event.page()).unwrap_or_default();
                self.free(at, Allocator::Page, page);
            }
            _ => {}
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }
}
