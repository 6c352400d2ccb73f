//! Samples this thread and reads the samples from the ring buffer.
//!
//! `cargo run --example drain_ring`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;

use rperf_ring::{RecordWalker, drain};
use rperf_sys::{Counter, ObservedTask, RingMap};
use rperf_wire::{Attr, AttrFlags, Endian, EventType, RecordKind, SampleLayout, SampleType};

/// `PERF_COUNT_SW_CPU_CLOCK`: a timer available on every machine.
const CPU_CLOCK: u64 = 0;
/// Pages of the ring buffer, a power of two.
const PAGES: usize = 16;

fn main() -> anyhow::Result<()> {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config: CPU_CLOCK,
        // With FREQ, the frequency in Hz.
        sample_period: 1000,
        sample_type: SampleType::IP | SampleType::TID | SampleType::TIME,
        flags: AttrFlags::FREQ | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
        ..Attr::default()
    };
    // This thread on any CPU, in no group. Without DISABLED, sampling starts at once.
    let counter = Counter::open(&attr, ObservedTask { pid: 0, cpu: -1 }, None)?;
    let mut ring = RingMap::new(&counter, PAGES)?;

    let numbers: Vec<u64> = (0..20_000_000).collect();
    println!("the sum is {}", numbers.iter().sum::<u64>());
    counter.disable()?;

    // The attr determines the layout of samples. A walker iterates over the records, including those that wrap around
    // the ring's end.
    let layout = SampleLayout::new(&attr);
    let mut walker = RecordWalker::default();
    // Samples by the 4 KiB page of the sampled code, not of the ring.
    let mut pages = BTreeMap::new();
    // Dropping the chunk releases its space in the ring.
    while let Some(chunk) = drain(&mut ring) {
        walker.walk(chunk.pieces(), |record| {
            if record.kind != RecordKind::SAMPLE {
                println!("{}: {} bytes", record.kind, record.body.len());
                return;
            }
            match layout.decode(record.body, Endian::NATIVE) {
                Ok(sample) => *pages.entry(sample.ip.unwrap_or(0) >> 12).or_insert(0_u64) += 1,
                Err(error) => println!("a sample that cannot be decoded: {error}"),
            }
        });
    }
    for (page, samples) in pages {
        println!("{samples:>6} samples in the page at {:#x}", page << 12);
    }
    Ok(())
}
