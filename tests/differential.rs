//! The same command line under the perf of Linux and under rperf, over recordings of both tools.
//!
//! Text is compared line by line. What differs on purpose stands in docs/compatibility.md and is normalised here, nowhere else.

mod code;
mod compare;
pub(crate) mod disassembly;
mod fixtures;
mod inlines;
mod matrix;
mod names;
mod piped;
mod recordings;
mod report;
mod report_options;
mod script;
mod script_options;
mod stat;
mod stat_kept;
mod tracepoints;
mod workloads;

use std::panic::resume_unwind;
use std::path::PathBuf;
use std::thread;

use rperf_testkit::{Outcome, Run, Scratch, real_perf};

pub(crate) use self::compare::difference;
pub(crate) use self::report::compare_texts;
pub(crate) use self::script::compare_script;
pub(crate) use self::stat::masked;
use self::workloads::Workloads;

/// The two tools, with a build-id cache of their own.
pub(crate) struct Tools {
    perf: PathBuf,
    scratch: Scratch,
}

impl Tools {
    fn find() -> Option<Self> {
        Some(Self {
            perf: real_perf()?,
            scratch: Scratch::new(),
        })
    }

    /// The program of that name, to be run in the scratch directory, which is also its home.
    fn run(&self, tool: Tool, words: &[&str]) -> Run {
        let run = match tool {
            Tool::Perf => Run::new(&self.perf),
            Tool::Rperf => Run::new(env!("CARGO_BIN_EXE_rperf")),
        };
        let home = self.scratch.path();
        run.args(words).within(home).env("HOME", home)
    }

    /// What both tools do with the same words and standard input, side by side: perf's outcome, then ours.
    fn outcomes(&self, words: &[&str], stdin: &[u8]) -> [Outcome; 2] {
        let outcome = |tool| {
            let finished = self.run(tool, words).stdin(stdin).finish();
            finished.unwrap_or_else(|error| panic!("{tool:?} {words:?} does not start: {error}"))
        };
        thread::scope(|scope| {
            let perf = scope.spawn(|| outcome(Tool::Perf));
            let rperf = outcome(Tool::Rperf);
            let perf = perf.join().unwrap_or_else(|panic| resume_unwind(panic));
            [perf, rperf]
        })
    }

    fn outcome(&self, tool: Tool, words: &[&str]) -> Outcome {
        self.run(tool, words)
            .finish()
            .unwrap_or_else(|error| panic!("{tool:?} {words:?} does not start: {error}"))
    }
}

/// Times that something is recorded before a difference counts.
const TRIES: usize = 3;

/// What differs in every recording of one kind: that of the last of [`TRIES`], or nothing as soon as one shows nothing.
///
/// No two recordings are alike, and now and then one holds what docs/compatibility.md knows of and no comparison can
/// tell from a fault: rows that perf's tree alone puts in order, a thread whose mappings perf has lost.
pub(crate) fn settled(mut attempt: impl FnMut() -> Vec<String>) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..TRIES {
        found = attempt();
        if found.is_empty() {
            break;
        }
    }
    found
}

/// Fails with what every differing command line prints.
#[track_caller]
fn assert_alike(differences: &[String]) {
    assert!(
        differences.is_empty(),
        "{} command lines print something else:\n\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Perf,
    Rperf,
}
