//! The tests, in the order of their numbers.

use super::environment::{TestResult, TestRun};
use super::{machine, round_trips, symbols};

/// A test.
pub(super) struct TestCase {
    /// The name that is shown; a part of it selects the test.
    pub(super) name: &'static str,
    /// The function that runs the test.
    pub(super) run: fn(&mut TestRun<'_>) -> TestResult,
}

const fn case(name: &'static str, run: fn(&mut TestRun<'_>) -> TestResult) -> TestCase {
    TestCase { name, run }
}

/// Every test. Numbers count from 1.
pub(super) const TESTS: &[TestCase] = &[
    case("Kernel and processor", machine::kernel),
    case("Settings and limits", machine::settings),
    case("Memory for ring buffers", machine::ring_memory),
    case("Events of own processes, user space", machine::own_user),
    case("Events of own processes, kernel", machine::own_kernel),
    case("Events of other users' processes", machine::other_processes),
    case("Events of the whole system", machine::system_wide),
    case("Hardware events (PMU)", machine::hardware),
    case("Branch records (LBR)", machine::branches),
    case("Breakpoints", machine::breakpoints),
    case("Tracepoints (tracefs)", machine::tracepoints),
    case("Probes in the kernel (kprobes)", machine::kprobes),
    case("Probes in programs (uprobes)", machine::uprobes),
    case("BPF", machine::bpf),
    case("Types of the kernel (BTF)", machine::btf),
    case("Symbols of the kernel", symbols::of_kernel),
    case("Symbols of this program", symbols::of_program),
    case("Utility programs", machine::utilities),
    case("Record and report", round_trips::report),
    case("Record threads, script", round_trips::script),
    case("Record with compression", round_trips::compressed),
    case("Record the whole system", round_trips::whole_system),
    case("Record a tracepoint", round_trips::tracepoint),
    case("Record a probe on this program", round_trips::probe),
    case("Record time off the CPU", round_trips::off_cpu),
    case("Count (stat)", round_trips::stat),
    case("Callchains by frame pointers", round_trips::frame_pointers),
    case("Callchains by DWARF", round_trips::dwarf),
    case(
        "Callchains by DWARF while recording",
        round_trips::live_unwinding,
    ),
    case("Source lines and inlined functions", round_trips::lines),
    case("Code generated at run time", round_trips::generated_code),
    case("Annotated instructions", round_trips::annotation),
    case("Flame graph", round_trips::flame_graph),
];
