//! Samples by region of physical memory.

use std::num::NonZero;

use rperf_analysis::trace_scripts::{PhysicalCounts, PhysicalMemory};
use rperf_replay::EventIndex;
use rperf_resolve::{Resolver, SampleCriteria};
use rperf_symbol::{MemoryFiles, SearchPaths};
use rperf_wire::{Endian, Misc, SampleRecord, SampleType};

use crate::file::{FileBuilder, attr};
use crate::recording::with_replay;

#[test]
fn samples_without_an_address_are_skipped() {
    let common = SampleType::IDENTIFIER | SampleType::TIME;
    let (cycles, loads) = (attr(common), attr(common | SampleType::PHYS_ADDR));
    let mut file = FileBuilder::new(Endian::Little, &[(cycles, vec![1]), (loads, vec![2])]);
    for (event, address) in [(0, None), (1, Some(0x2345)), (0, None), (1, Some(0))] {
        let sample = SampleRecord {
            id: Some(event as u64 + 1),
            time: Some(10),
            phys_addr: address,
            ..SampleRecord::default()
        };
        file.sample(event, Misc(0), &sample);
    }
    let memory = PhysicalMemory::parse("0-fff : Reserved\n1000-9fff : System RAM\n");
    with_replay(&file.finish(), |_, replay| {
        let files = MemoryFiles::default();
        let no_cache = None;
        let resolver = Resolver::new(replay.world(), &files, SearchPaths::new(no_cache));
        let filter = SampleCriteria::default();
        let jobs = NonZero::<usize>::MIN;
        let counts = replay.fold(jobs, || PhysicalCounts::new(&memory, &filter, &resolver));
        assert_eq!((counts.total(), counts.unknown), (2, 0));
        assert_eq!(counts.first_event(), Some(EventIndex(1)));
        let rows = counts.rows();
        let rows: Vec<_> = rows
            .iter()
            .map(|row| (&*row.region.label, row.count))
            .collect();
        assert_eq!(rows, [("Reserved", 1), ("System RAM", 1)]);
    });
}
