//! What a command is given besides its own options.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;

use super::commands::probe::OwnProbes;
use super::config::Config;
use super::error::CliError;
use super::memory::MemoryHint;
use super::options::count;
use super::output::{Output, Stdout};
use super::pager::{Pager, Paging};

/// The name the program goes by: `perf` when it is started through a link of that name, else `rperf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Program(&'static str);

impl Program {
    /// Decides by the first word of the command line.
    pub(crate) fn new(argv0: Option<&OsStr>) -> Self {
        let name = argv0.and_then(|word| Path::new(word).file_name());
        Self(if name == Some(OsStr::new("perf")) {
            "perf"
        } else {
            "rperf"
        })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// What stood before the command: `--buildid-dir`, `--debugfs-dir`, `--debug`, the pager.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    /// `--buildid-dir DIR`.
    pub(crate) buildid_dir: Option<PathBuf>,
    /// `--debugfs-dir DIR`: where tracepoints and their descriptions are read instead of the mounted tracefs.
    pub(crate) debugfs_dir: Option<PathBuf>,
    /// `--debug verbose=N`: as if `-v` had been given N times.
    pub(crate) verbose: u8,
    /// `-p`, `--no-pager`.
    pub(crate) paging: Paging,
}

/// The surroundings of a command.
pub(crate) struct Context {
    /// The name for banners and usage lines.
    pub(crate) program: Program,
    /// Every word of the command line, as the header of a recording keeps it.
    pub(crate) argv: Vec<OsString>,
    /// The options before the command.
    pub(crate) globals: Globals,
    /// The configuration files.
    pub(crate) config: Config,
    /// stdout and stderr.
    pub(crate) output: Output,
    /// The pager, once one runs.
    pub(crate) pager: Pager,
    /// Probe events that end with the run.
    pub(crate) probes: OwnProbes,
    /// The hint for when memory runs out.
    pub(crate) memory: MemoryHint,
}

impl Context {
    /// An environment variable; set to nothing counts as unset.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        variable(name)
    }

    /// Stdout, locked while the writer lives; buffered.
    pub(crate) fn stdout(&self) -> Stdout<'_> {
        self.output.stdout()
    }

    /// One line on stderr, unless `-q`.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        self.output.note(line);
    }

    /// One warning on stderr, unless `-q`.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        self.output.warn(line);
    }

    /// Sends stdout through the user's pager where it is a terminal and a pager is wanted. For text output only.
    pub(crate) fn paginate(&self, command: &str) -> Result<(), CliError> {
        self.pager.start(self, command)
    }

    /// How much `-v` asks for, the command's own and `--debug verbose=N` together.
    pub(crate) fn verbosity(&self, matches: &ArgMatches) -> u8 {
        count(matches, "verbose").max(self.globals.verbose)
    }

    /// The build-id cache: `--buildid-dir`, else `buildid.dir`, else `~/.debug`. None without a home.
    pub(crate) fn buildid_dir(&self) -> Option<PathBuf> {
        let configured = || self.config.text("buildid.dir").map(PathBuf::from);
        self.globals
            .buildid_dir
            .clone()
            .or_else(configured)
            .or_else(|| self.home().map(|home| home.join(".debug")))
    }

    /// The user's home directory.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from)
    }
}

/// An environment variable; set to nothing counts as unset.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
pub(crate) fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_named_perf_decides_the_name() {
        let name = |word: &str| Program::new(Some(OsStr::new(word))).to_string();
        assert_eq!(name("/usr/local/bin/perf"), "perf");
        assert_eq!(name("perf"), "perf");
        assert_eq!(name("target/debug/rperf"), "rperf");
        assert_eq!(Program::new(None).to_string(), "rperf");
    }
}
