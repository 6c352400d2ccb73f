//! `bench numa mem -a`: the speed of local and remote memory.

use std::time::Duration;

use rperf_bench::numa::{InitialMemory, MemoryAccess, MemorySizes, NumaMem};

use super::super::args::BenchOptions;
use super::super::runner::Runner;
use super::{NumaMachine, measure};
use crate::cli::error::CliError;

/// Memory of each process in bytes.
const SIZE: usize = 1 << 30;

/// A test with one process for each of `cpus`.
struct Test {
    /// The name of the test, as in perf.
    name: &'static str,
    /// The CPU of each process.
    cpus: &'static [u32],
    /// The memory node of each process.
    nodes: &'static [u32],
    /// Whether transparent huge pages are requested; otherwise they are prevented.
    huge_pages: bool,
}

/// The tests, in the order in which they run.
const TESTS: &[Test] = &[
    test("RAM-bw-local", &[0], &[0]),
    Test {
        huge_pages: false,
        ..test("RAM-bw-local-NOTHP", &[0], &[0])
    },
    test("RAM-bw-remote", &[0], &[1]),
    test("RAM-bw-local-2x", &[0, 2], &[0, 0]),
    test("RAM-bw-remote-2x", &[0, 2], &[1, 1]),
    test("RAM-bw-cross", &[0, 8], &[1, 0]),
];

/// Returns a test with huge pages.
const fn test(name: &'static str, cpus: &'static [u32], nodes: &'static [u32]) -> Test {
    Test {
        name,
        cpus,
        nodes,
        huge_pages: true,
    }
}

/// Runs the tests. Skips those for which the machine has too few CPUs or nodes, with a message unless JSON is requested.
pub(super) fn run(
    options: BenchOptions<'_>,
    machine: &NumaMachine,
    runner: &mut Runner<'_>,
) -> Result<(), CliError> {
    let seconds = options.positive_count("nr_secs", 20)?;
    // As in perf, only the summary of each test is printed below its name, without the table.
    let quiet = true;
    for test in TESTS {
        let bench = NumaMem {
            processes: u32::try_from(test.cpus.len()).unwrap_or(1),
            threads: 1,
            sizes: MemorySizes {
                process: SIZE,
                ..MemorySizes::default()
            },
            loops: None,
            duration: Duration::from_secs(seconds.into()),
            pause: Duration::ZERO,
            // Each pass writes zeros.
            access: MemoryAccess {
                zeros: true,
                ..MemoryAccess::default()
            },
            // Zeros are also written before the measurement, so that the pages exist.
            initial: InitialMemory {
                zero: true,
                ..InitialMemory::default()
            },
            huge_pages: Some(test.huge_pages),
            cpus: test.cpus.to_vec(),
            nodes: test.nodes.to_vec(),
        };
        runner.print_unless_json(&format!("\n # Running {}, {seconds} seconds\n", test.name))?;
        match machine.check(&bench) {
            Ok(()) => measure(&bench, test.name, quiet, runner)?,
            Err(error) => runner.print_unless_json(&format!("\n{}\n", error.text().trim_end()))?,
        }
    }
    Ok(())
}
