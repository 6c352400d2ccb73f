//! The same words under the perf of Linux and under rperf, in a folder and a home of their own.

use std::path::{Path, PathBuf};

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

/// Both tools and where they run.
pub(super) struct Beside {
    perf: PathBuf,
    scratch: Scratch,
}

/// One of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tool {
    Perf,
    Rperf,
}

pub(super) const BOTH: [Tool; 2] = [Tool::Perf, Tool::Rperf];

impl Beside {
    /// Says that `test` is skipped where there is no perf.
    pub(super) fn find(test: &str) -> Option<Self> {
        let Some(perf) = real_perf() else {
            skip(test, "there is no perf");
            return None;
        };
        let scratch = Scratch::new();
        Some(Self { perf, scratch })
    }

    /// The folder that both run in, which is also their home.
    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// A program of the two, with these words.
    pub(super) fn run(&self, tool: Tool, words: &[&str]) -> Run {
        let run = match tool {
            Tool::Perf => Run::new(&self.perf),
            Tool::Rperf => Run::new(env!("CARGO_BIN_EXE_rperf")),
        };
        run.args(words).within(self.path()).env("HOME", self.path())
    }

    /// What it leaves.
    #[track_caller]
    pub(super) fn outcome(&self, tool: Tool, words: &[&str]) -> Outcome {
        let finished = self.run(tool, words).finish();
        finished.unwrap_or_else(|error| panic!("{tool:?} {words:?} does not start: {error}"))
    }

    /// A recording by `tool` under a name of its own, or `None`, said, where it can't.
    #[track_caller]
    pub(super) fn record(&self, tool: Tool, name: &str, words: &[&str]) -> Option<String> {
        let file = format!("{tool:?}-{name}.data");
        let line = [&["record", "-q", "-o", &file], words].concat();
        let outcome = self.outcome(tool, &line);
        if outcome.status == 0 {
            return Some(file);
        }
        assert_eq!(tool, Tool::Rperf, "{line:?}: {outcome:?}");
        skip(&file, &outcome.stderr);
        None
    }

    /// Demands the same text and status 0 of both. Where a text names the tool, it may differ in that.
    #[track_caller]
    pub(super) fn assert_same(&self, words: &[&str]) -> String {
        let perf = self.outcome(Tool::Perf, words);
        let rperf = self.outcome(Tool::Rperf, words);
        let named = rperf.stdout.replace("'rperf ", "'perf ");
        if let Some(difference) = rperf_testkit::golden::difference(&perf.stdout, &named) {
            panic!("{words:?}: {difference}\nstderr of rperf: {}", rperf.stderr);
        }
        assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}");
        perf.stdout
    }
}
