//! Folds the samples of a recording into one line per stack, `comm;caller;callee COUNT`, the input of flame graphs, with one
//! worker per CPU: a minimal complete use of `Fold` and `Resolver`.
//!
//! `cargo run --release --example folded_stacks -- perf.data`
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use rperf_perfdata::PerfData;
use rperf_replay::{Fold, Replay, Sample, World};
use rperf_resolve::{AddressContext, Resolver};
use rperf_symbol::{FileBytes, Files, SearchPaths};

/// `PERF_MAX_STACK_DEPTH`, the default limit of perf.
const MAX_STACK: usize = 127;

/// Reads files from disk; rperf itself maps them.
struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> std::io::Result<FileBytes> {
        std::fs::read(path).map(FileBytes::from)
    }
}

/// The stacks in one part of the recording, innermost frame last, with their counts.
struct Stacks<'r> {
    resolver: &'r Resolver<'r>,
    counts: BTreeMap<String, u64>,
}

impl Fold for Stacks<'_> {
    /// Counts the stack of a sample. `world` has the processes, threads and mappings of the recording.
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        // Samples without a callchain are not counted.
        let Some(chain) = sample.wire.callchain else {
            return;
        };
        // `order` is the position of the sample in time: mappings and names of threads change during a recording.
        let at = AddressContext {
            machine: sample.machine(),
            pid: sample.pid,
            order: sample.order,
        };
        let mut frames = Vec::new();
        self.resolver.callchain(at, chain, MAX_STACK, &mut frames);
        let mut line = world
            .comm(world.comm_at(sample.tid, sample.order))
            .to_owned();
        for frame in frames.iter().rev() {
            line.push(';');
            line.push_str(
                frame
                    .symbol
                    .map_or("[unknown]", |symbol| self.resolver.symbol_name(symbol)),
            );
        }
        *self.counts.entry(line).or_default() += 1;
    }

    /// Adds the counts of a later part of the recording.
    fn merge(&mut self, later: Self) {
        for (line, count) in later.counts {
            *self.counts.entry(line).or_default() += count;
        }
    }
}

fn main() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).unwrap_or("perf.data".into());
    let bytes = rperf_sys::map_file(Path::new(&path))?;
    let data = PerfData::parse(&bytes)?;
    let replay = Replay::open(&data)?;
    let build_id_cache = None;
    let resolver = Resolver::new(replay.world(), &Disk, SearchPaths::new(build_id_cache));
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let stacks = replay.fold(threads, || Stacks {
        resolver: &resolver,
        counts: BTreeMap::new(),
    });
    for (line, count) in stacks.counts {
        println!("{line} {count}");
    }
    Ok(())
}
