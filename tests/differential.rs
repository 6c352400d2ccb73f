//! The same command lines run by Linux perf and by rperf, on recordings of both tools, fixtures and generated files.
//!
//! Text is compared line by line. Intended differences are described in docs/compatibility.md.

mod branch_flags;
mod code;
mod compare;
mod diff;
mod diff_streams;
pub(crate) mod disassembly;
mod fixtures;
mod inlines;
mod kmem;
mod kwork;
mod lock;
mod matrix;
mod native_scripts;
mod pipe_report;
mod recordings;
mod report;
mod report_options;
mod sched;
mod script;
mod script_database;
mod script_options;
mod stat;
mod stat_record;
mod symbol_sources;
mod timechart;
mod trace_scripts;
mod tracepoints;
mod workloads;

pub(crate) use self::compare::difference;
pub(crate) use self::report::compare_texts;
pub(crate) use self::script::compare_script;
pub(crate) use self::stat::masked;
use self::workloads::Workloads;
pub(crate) use crate::tools::{Tool, Tools};

/// The number of attempts after which a difference counts.
const TRIES: usize = 3;

/// Calls `attempt` up to [`TRIES`] times. Returns no differences as soon as an attempt finds none, otherwise those of
/// the last attempt.
///
/// No two recordings are alike. Occasionally one contains something described in docs/compatibility.md that a
/// comparison cannot tell from a bug, such as equal rows that perf sorts differently, or a thread for which perf has no mappings.
pub(crate) fn settled(mut attempt: impl FnMut() -> Vec<String>) -> Vec<String> {
    let mut differences = Vec::new();
    for _ in 0..TRIES {
        differences = attempt();
        if differences.is_empty() {
            break;
        }
    }
    differences
}

/// Asserts that there are no differences; otherwise panics with all of them.
#[track_caller]
fn assert_alike(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{} differences between perf and rperf:\n\n{}",
        differences.len(),
        differences.join("\n")
    );
}
