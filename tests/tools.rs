//! Linux perf and rperf, run with the same arguments in one scratch directory, which is also their home.

use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use crate::kernel::is_root;

/// Both tools and their working directory.
pub(crate) struct Tools {
    perf: PathBuf,
    scratch: Scratch,
}

/// Linux perf or rperf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Perf,
    Rperf,
}

pub(crate) const BOTH: [Tool; 2] = [Tool::Perf, Tool::Rperf];

impl Tools {
    /// Finds both tools; `None` without perf.
    pub(crate) fn find() -> Option<Self> {
        Some(Self {
            perf: real_perf()?,
            scratch: Scratch::new(),
        })
    }

    /// Finds both tools; without perf, prints that `test` is skipped and returns `None`.
    pub(crate) fn find_for(test: &str) -> Option<Self> {
        let tools = Self::find();
        if tools.is_none() {
            skip(test, "there is no perf");
        }
        tools
    }

    /// The directory that both run in, which is also their home.
    pub(crate) fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// The tool's program.
    pub(crate) fn program(&self, tool: Tool) -> &Path {
        match tool {
            Tool::Perf => &self.perf,
            Tool::Rperf => Path::new(env!("CARGO_BIN_EXE_rperf")),
        }
    }

    /// Prepares a run of the tool with these arguments.
    pub(crate) fn run(&self, tool: Tool, words: &[&str]) -> Run {
        let run = Run::new(self.program(tool)).args(words);
        run.within(self.path()).env("HOME", self.path())
    }

    /// Runs both at the same time, with the same arguments and standard input; returns the outcomes of perf and of rperf, in this
    /// order.
    pub(crate) fn outcomes(&self, words: &[&str], stdin: &[u8]) -> [Outcome; 2] {
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

    /// Runs one tool without standard input.
    #[track_caller]
    pub(crate) fn outcome(&self, tool: Tool, words: &[&str]) -> Outcome {
        let finished = self.run(tool, words).finish();
        finished.unwrap_or_else(|error| panic!("{tool:?} {words:?} does not start: {error}"))
    }

    /// Records with `tool` into a file of that tool, and returns the file's name. If rperf fails and this user is not root,
    /// prints that the recording is skipped and returns `None`.
    ///
    /// # Panics
    ///
    /// If perf fails, or rperf as root.
    #[track_caller]
    pub(crate) fn record(&self, tool: Tool, name: &str, words: &[&str]) -> Option<String> {
        let file = format!("{tool:?}-{name}.data");
        let line = [&["record", "-q", "-o", &file], words].concat();
        let outcome = self.outcome(tool, &line);
        if outcome.status == 0 {
            return Some(file);
        }
        assert!(tool == Tool::Rperf && !is_root(), "{line:?}: {outcome:?}");
        skip(&file, &outcome.stderr);
        None
    }

    /// Asserts that both exit with status 0 and print the same text, except for the tool's own name after a quote and what
    /// [`without_zero_config`] removes; returns perf's text.
    #[track_caller]
    pub(crate) fn assert_same(&self, words: &[&str]) -> String {
        let perf = self.outcome(Tool::Perf, words);
        let rperf = self.outcome(Tool::Rperf, words);
        let rperf_text = without_zero_config(&rperf.stdout).replace("'rperf ", "'perf ");
        if let Some(difference) = rperf_testkit::golden::difference(&perf.stdout, &rperf_text) {
            panic!("{words:?}: {difference}\nstderr of rperf: {}", rperf.stderr);
        }
        assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}");
        perf.stdout
    }
}

/// rperf's text without the `config: 0` of `evlist -v`, which perf 6.1 does not print.
pub(crate) fn without_zero_config(text: &str) -> String {
    text.replace(", config: 0,", ",")
        .replace(", config: 0\n", "\n")
}
