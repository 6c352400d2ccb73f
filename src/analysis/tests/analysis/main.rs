//! Analyses of whole recordings in memory.

#[path = "../../../replay/tests/replay/file.rs"]
mod file;
#[expect(
    dead_code,
    reason = "the included program has a `main` that opens a file"
)]
#[path = "../../../../examples/longest_wait.rs"]
mod longest_wait;
mod machines;
mod order;
mod physical_memory;
mod recording;
mod sched_antagonists;
mod sched_latency;
mod sched_off_cpu;
mod sched_replay;
mod sched_times;
mod thread_counts;
mod timechart;
mod tree;
mod waits;
