//! The benchmarks by collection. Names and summaries are perf's where perf has the benchmark.

use clap::{ArgMatches, Command};

use super::runner::Runner;
use super::{breakpoint, epoll, futex, internals, mem, numa, sched, syscall, uprobe};
use crate::cli::error::CliError;

/// The word that selects all collections, or all benchmarks of a collection.
pub(super) const ALL: &str = "all";
/// The summary of [`ALL`] in the list of collections.
pub(super) const ALL_SUMMARY: &str = "All benchmarks";

/// Benchmarks of one part of the system.
pub(super) struct Collection {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) benchmarks: &'static [Benchmark],
    /// The summary of the entry `all`, which runs every benchmark of the collection.
    pub(super) all_summary: &'static str,
}

/// One benchmark.
pub(super) struct Benchmark {
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    /// Declares the options of the benchmark.
    pub(super) build: fn() -> Command,
    /// Runs the benchmark and prints its results.
    pub(super) run: fn(&ArgMatches, &mut Runner<'_>) -> Result<(), CliError>,
}

/// Every collection, in the order in which `bench` lists and runs them.
pub(super) const COLLECTIONS: &[Collection] = &[
    Collection {
        name: "sched",
        summary: "Scheduler and IPC benchmarks",
        benchmarks: sched::BENCHMARKS,
        all_summary: "Run all scheduler benchmarks",
    },
    Collection {
        name: "syscall",
        summary: "System call benchmarks",
        benchmarks: syscall::BENCHMARKS,
        all_summary: "Run all syscall benchmarks",
    },
    Collection {
        name: "mem",
        summary: "Memory access benchmarks",
        benchmarks: mem::BENCHMARKS,
        all_summary: "Run all memory access benchmarks",
    },
    Collection {
        name: "numa",
        summary: "NUMA scheduling and MM benchmarks",
        benchmarks: numa::BENCHMARKS,
        all_summary: "Run all NUMA benchmarks",
    },
    Collection {
        name: "futex",
        summary: "Futex stressing benchmarks",
        benchmarks: futex::BENCHMARKS,
        all_summary: "Run all futex benchmarks",
    },
    Collection {
        name: "epoll",
        summary: "Epoll stressing benchmarks",
        benchmarks: epoll::BENCHMARKS,
        all_summary: "Run all epoll benchmarks",
    },
    Collection {
        name: "internals",
        summary: "Perf-internals benchmarks",
        benchmarks: internals::BENCHMARKS,
        all_summary: "Run all internals benchmarks",
    },
    Collection {
        name: "breakpoint",
        summary: "Breakpoint benchmarks",
        benchmarks: breakpoint::BENCHMARKS,
        all_summary: "Run all breakpoint benchmarks",
    },
    Collection {
        name: "uprobe",
        summary: "uprobe benchmarks",
        benchmarks: uprobe::BENCHMARKS,
        all_summary: "Run all uprobe benchmarks",
    },
];
