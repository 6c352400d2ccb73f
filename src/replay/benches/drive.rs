//! Benchmark of replay's two passes, over FILE or over four million synthetic samples with callchains: `cargo bench -p
//! rperf-replay --bench drive [-- FILE]`. Pass 1, `open`, reads processes and mappings; pass 2, `fold` or, sorted by time,
//! `ordered`, processes the samples.
#![expect(clippy::print_stdout, reason = "a bench prints what it measures")]

mod recordings;

use std::num::NonZeroUsize;
use std::time::Instant;

use rperf_perfdata::PerfData;
use rperf_replay::{Fold, FoldControl, Render, Replay, Sample, World};
use rperf_wire::{Endian, SampleType, U64s};

use self::recordings::Recording;

#[derive(Default)]
struct Sum {
    samples: u64,
    /// Sum of all addresses of all callchains, modulo 2^64.
    addresses: u64,
}

impl Fold for Sum {
    fn sample(&mut self, _: &World, sample: &Sample<'_>) {
        self.samples += 1;
        let chain = sample.wire.callchain.iter().flat_map(U64s::iter);
        self.addresses = chain.fold(self.addresses, u64::wrapping_add);
    }

    fn merge(&mut self, later: Self) {
        self.samples += later.samples;
        self.addresses = self.addresses.wrapping_add(later.addresses);
    }
}

/// Looks up the mapping of every frame and the thread name of every sample in the World (processes and mappings by time). Counts
/// the frames that have a mapping.
struct Locate;

impl Render for Locate {
    type Out = u64;
    type Scratch = ();

    fn render(&self, world: &World, sample: &Sample<'_>, _: &mut (), out: &mut u64) {
        let (machine, mode, order) = (sample.machine(), sample.cpu_mode(), sample.order);
        let chain = sample.wire.callchain.iter().flat_map(U64s::iter);
        let found = chain.filter_map(|ip| world.lookup(machine, mode, sample.pid, order, ip));
        *out += found.count() as u64;
        // Any use of the name keeps the lookup from being optimized away; the count is thus somewhat too high.
        *out += u64::from(world.comm_at(sample.tid, order).0 & 1);
    }
}

/// Number of samples of each ring in a round. A round is the records up to a FINISHED_ROUND.
const RING_SAMPLES: u64 = 2000;
/// Number of samples in a round of two rings.
const ROUND_SAMPLES: u64 = 2 * RING_SAMPLES;

/// Creates a recording of two rings: each round has the samples of one ring, then those of the other at the same times.
fn synthetic(samples: u64) -> Vec<u8> {
    let fields = [
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::CPU,
        SampleType::PERIOD,
        SampleType::CALLCHAIN,
    ];
    let reserved_bytes = 0;
    let mut recording = Recording::new(&fields, reserved_bytes);
    for number in 0..samples {
        let (round, index) = (number / ROUND_SAMPLES, number % ROUND_SAMPLES);
        let (cpu, index_in_ring) = (index / RING_SAMPLES, index % RING_SAMPLES);
        let chain: Vec<u8> = (0..10_u64)
            .flat_map(|frame| (0x1000 + frame * 64 + number % 7).to_ne_bytes())
            .collect();
        recording.sample(&rperf_wire::SampleRecord {
            ip: Some(0x1000),
            pid_tid: Some((7, 7)),
            time: Some(1 + (round * RING_SAMPLES + index_in_ring) * 10 + cpu),
            cpu: u32::try_from(cpu).ok(),
            period: Some(1),
            callchain: Some(U64s::new(&chain, Endian::NATIVE)),
            ..rperf_wire::SampleRecord::default()
        });
        if index == ROUND_SAMPLES - 1 {
            recording.round();
        }
    }
    recording.file()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Cargo itself passes `--bench`.
    let path = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let file = match path {
        Some(path) => std::fs::read(path)?,
        None => synthetic(4_000_000),
    };
    let data = PerfData::parse(&file)?;
    let start = Instant::now();
    let replay = Replay::open(&data)?;
    let open = start.elapsed();
    let samples: u64 = replay.sample_counts().iter().sum();
    let bytes = data.data().len();
    println!("{samples} samples, {} MB", bytes >> 20);
    println!("open          {open:>10.1?}");
    for threads in [1, 2].into_iter().filter_map(NonZeroUsize::new) {
        let start = Instant::now();
        let sum = replay.fold(threads, Sum::default);
        println!(
            "fold    x{threads}    {:>10.1?}  ({} samples, sum {:x})",
            start.elapsed(),
            sum.samples,
            sum.addresses
        );
        let start = Instant::now();
        let mut found = 0;
        // Called with the output for each block of consecutive samples.
        let mut take = |block_found: &mut u64| {
            found += *block_found;
            FoldControl::Continue
        };
        replay.ordered(threads, &Locate, &mut take)?;
        println!(
            "ordered x{threads}    {:>10.1?}  ({found} found)",
            start.elapsed()
        );
    }
    Ok(())
}
