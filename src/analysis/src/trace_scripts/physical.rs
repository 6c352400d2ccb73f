//! Samples by the region of physical memory that their data are in.

use std::cmp::Reverse;

use rperf_replay::{EventIndex, Fold, Order, Sample, World};
use rperf_resolve::{Resolver, SampleCriteria};
use rperf_wire::SampleType;

/// A region of physical memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryRegion {
    /// The number of blanks before it in `/proc/iomem`: more than those of the region that contains it.
    pub indent: usize,
    /// Its first address.
    pub begin: u64,
    /// Its last address.
    pub end: u64,
    /// Its use, such as `System RAM`.
    pub label: String,
    /// The index of the region that contains it.
    parent: Option<usize>,
}

/// The regions of `/proc/iomem`.
#[derive(Debug, Default)]
pub struct PhysicalMemory {
    /// Sorted by first address; each region precedes the regions in it.
    regions: Vec<MemoryRegion>,
}

impl PhysicalMemory {
    /// Parses the text of `/proc/iomem` (kernel/resource.c). Skips lines that are not regions, and regions that begin before the
    /// previous one.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut regions: Vec<MemoryRegion> = Vec::new();
        for line in text.lines() {
            let unindented = line.trim_start();
            let indent = line.len() - unindented.len();
            let Some((begin, end, label)) = parse_region(unindented) else {
                continue;
            };
            // The kernel lists regions by address, and `find` relies on this order.
            if regions.last().is_some_and(|last| begin < last.begin) {
                continue;
            }
            let parent = regions.iter().rposition(|region| region.indent < indent);
            regions.push(MemoryRegion {
                indent,
                begin,
                end,
                label,
                parent,
            });
        }
        Self { regions }
    }

    /// Whether no region has an address: the kernel shows zeros without `CAP_SYS_ADMIN`.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        self.regions.iter().all(|region| region.end == 0)
    }

    /// The index of the innermost region with this address.
    fn find(&self, address: u64) -> Option<usize> {
        let after = self
            .regions
            .partition_point(|region| region.begin <= address);
        let mut index = after.checked_sub(1)?;
        loop {
            let region = self.regions.get(index)?;
            if address <= region.end {
                return Some(index);
            }
            index = region.parent?;
        }
    }
}

/// Parses `BEGIN-END : LABEL` with hexadecimal addresses.
fn parse_region(text: &str) -> Option<(u64, u64, String)> {
    let (range, label) = text.split_once(':')?;
    let (begin, end) = range.split_once('-')?;
    let number = |text: &str| u64::from_str_radix(text.trim(), 16).ok();
    Some((number(begin)?, number(end)?, label.trim().to_owned()))
}

/// A region with its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryRow<'m> {
    /// The region.
    pub region: &'m MemoryRegion,
    /// Samples of the region, including those of the regions in it.
    pub count: u64,
}

/// Counts samples by region. Samples without a physical address are skipped.
pub struct PhysicalCounts<'m, 'r, 'w> {
    memory: &'m PhysicalMemory,
    filter: &'r SampleCriteria,
    resolver: &'r Resolver<'w>,
    /// Samples by index of the innermost region.
    counts: Vec<u64>,
    /// Samples whose address is in no region.
    pub unknown: u64,
    /// The position by time and the event of the earliest counted sample; not of the first that is added, since samples are
    /// added in file order.
    first: Option<(Order, EventIndex)>,
}

impl<'m, 'r, 'w> PhysicalCounts<'m, 'r, 'w> {
    /// Creates empty counts of the samples that `filter` accepts.
    #[must_use]
    pub fn new(
        memory: &'m PhysicalMemory,
        filter: &'r SampleCriteria,
        resolver: &'r Resolver<'w>,
    ) -> Self {
        Self {
            memory,
            filter,
            resolver,
            counts: vec![0; memory.regions.len()],
            unknown: 0,
            first: None,
        }
    }

    /// The event of the earliest counted sample.
    #[must_use]
    pub fn first_event(&self) -> Option<EventIndex> {
        self.first.map(|(_, event)| event)
    }

    /// Samples in all regions.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The regions that have samples, each followed by the regions in it; siblings with most samples first.
    #[must_use]
    pub fn rows(&self) -> Vec<MemoryRow<'m>> {
        let regions = &self.memory.regions;
        let mut totals = self.counts.clone();
        // In reverse, the regions in a region come before it, so its total is complete when it is added to that of the parent.
        for (index, region) in regions.iter().enumerate().rev() {
            let total = totals.get(index).copied().unwrap_or_default();
            if let Some(parent_total) = region.parent.and_then(|parent| totals.get_mut(parent)) {
                *parent_total += total;
            }
        }
        let mut rows = Vec::new();
        let no_parent = None;
        // A stack: the last one is next.
        let mut pending = inner(regions, no_parent, &totals);
        while let Some((index, count)) = pending.pop() {
            if let Some(region) = regions.get(index) {
                rows.push(MemoryRow { region, count });
            }
            pending.extend(inner(regions, Some(index), &totals));
        }
        rows
    }
}

/// Returns the indices and totals of the regions that have samples and are directly in `parent`; if it is `None`, in no region.
/// The one with most samples is last.
fn inner(regions: &[MemoryRegion], parent: Option<usize>, totals: &[u64]) -> Vec<(usize, u64)> {
    let counted = regions.iter().zip(totals).enumerate();
    let inside = counted.filter(|(_, (region, count))| region.parent == parent && **count > 0);
    let mut rows: Vec<(usize, u64)> = inside.map(|(index, (_, count))| (index, *count)).collect();
    rows.sort_by_key(|(index, count)| (*count, Reverse(*index)));
    rows
}

impl Fold for PhysicalCounts<'_, '_, '_> {
    fn fields(&self) -> SampleType {
        match self.filter.accepts_all() {
            true => SampleType::PHYS_ADDR,
            false => SampleType::ALL,
        }
    }

    fn sample(&mut self, _world: &World, sample: &Sample<'_>) {
        if !self.filter.accepts(sample, self.resolver) {
            return;
        }
        // Another event of the recording may not record the field.
        let Some(address) = sample.wire.phys_addr else {
            return;
        };
        let this = (sample.order, sample.event);
        self.first = Some(self.first.map_or(this, |first| first.min(this)));
        let index = self.memory.find(address);
        match index.and_then(|index| self.counts.get_mut(index)) {
            Some(count) => *count += 1,
            None => self.unknown += 1,
        }
    }

    fn merge(&mut self, later: Self) {
        for (count, other) in self.counts.iter_mut().zip(later.counts) {
            *count += other;
        }
        self.unknown += later.unknown;
        self.first = [self.first, later.first].into_iter().flatten().min();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00000000-00000fff : Reserved\n00001000-0009fbff : System RAM\n\
        00100000-1fffffff : System RAM\n  01000000-01ffffff : Kernel code\n  02000000-02ffffff : Kernel data\n\
        100000000-1ffffffff : System RAM\n";

    #[test]
    fn addresses_belong_to_the_innermost_region() {
        let memory = PhysicalMemory::parse(TEXT);
        let region_at = |address| {
            let index = memory.find(address)?;
            Some((memory.regions[index].begin, &*memory.regions[index].label))
        };
        assert_eq!(region_at(0), Some((0, "Reserved")));
        assert_eq!(region_at(0x0100_0000), Some((0x0100_0000, "Kernel code")));
        assert_eq!(region_at(0x02ff_ffff), Some((0x0200_0000, "Kernel data")));
        assert_eq!(region_at(0x0300_0000), Some((0x0010_0000, "System RAM")));
        assert_eq!(region_at(0x2000_0000), None);
        assert_eq!(region_at(u64::MAX), None);
    }

    #[test]
    fn addresses_are_hidden_if_all_are_zero() {
        assert!(!PhysicalMemory::parse(TEXT).is_hidden());
        assert!(PhysicalMemory::parse("00000000-00000000 : System RAM\n").is_hidden());
    }

    #[test]
    fn regions_out_of_order_are_skipped() {
        let memory = PhysicalMemory::parse("1000-1fff : a\n  0-fff : b\n    1800-18ff : c\n");
        let labels: Vec<&str> = memory.regions.iter().map(|region| &*region.label).collect();
        assert_eq!(labels, ["a", "c"]);
        assert_eq!(memory.find(0x1900), Some(0));
        assert_eq!(memory.find(0x2000), None);
    }
}
