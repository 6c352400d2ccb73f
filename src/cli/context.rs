//! The environment of a command besides its own options.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_input::Spool;

use super::config::Config;
use super::error::CliError;
use super::memory::MemoryHint;
use super::options::count;
use super::output::{OutputStreams, Stdout};
use super::pager::{Pager, Paging};
use super::shared::probing::OwnProbes;

/// The program's name: `perf` if started under that name, such as through a link, otherwise `rperf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProgramName(&'static str);

impl ProgramName {
    /// Derives the name from the first word of the command line.
    pub(crate) fn new(argv0: Option<&OsStr>) -> Self {
        let name = argv0.and_then(|word| Path::new(word).file_name());
        Self(if name == Some(OsStr::new("perf")) {
            "perf"
        } else {
            "rperf"
        })
    }
}

impl fmt::Display for ProgramName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The options before the command, such as `--buildid-dir` and `--no-pager`.
#[derive(Debug, Default)]
pub(crate) struct Globals {
    /// `--buildid-dir DIR`.
    pub(crate) buildid_dir: Option<PathBuf>,
    /// `--debugfs-dir DIR`: where tracepoints and their formats are read instead of the mounted tracefs.
    pub(crate) debugfs_dir: Option<PathBuf>,
    /// `--debug verbose=N`: the minimum verbosity.
    pub(crate) verbose: u8,
    /// `--debug perf-event-open`: prints each attr and each perf_event_open call, as with `-vv`.
    pub(crate) shows_perf_event_open: bool,
    /// `--exec-path=DIR`: where external commands (`perf-NAME`) are looked for.
    pub(crate) exec_path: Option<PathBuf>,
    /// `-p` (`--paginate`) and `--no-pager`.
    pub(crate) paging: Paging,
}

/// The environment of a command.
pub(crate) struct Context {
    /// The program name in messages and usage lines.
    pub(crate) program: ProgramName,
    /// The complete command line, stored in the header of a recording (`CMDLINE`).
    pub(crate) argv: Vec<OsString>,
    /// The options before the command.
    pub(crate) globals: Globals,
    /// The configuration files.
    pub(crate) config: Config,
    /// stdout and stderr.
    pub(crate) output: OutputStreams,
    /// The pager, once started.
    pub(crate) pager: Pager,
    /// Probe events that are deleted at the end of the run.
    pub(crate) probes: OwnProbes,
    /// The hint printed when memory runs out.
    pub(crate) memory: MemoryHint,
}

impl Context {
    /// Returns an environment variable; an empty one counts as unset.
    pub(crate) fn var(&self, name: &str) -> Option<OsString> {
        variable(name)
    }

    /// Returns an empty spool (bytes in memory or, if they are many, in a file). Its file is in `TMPDIR`, otherwise in `/tmp`.
    pub(crate) fn spool(&self) -> Spool {
        Spool::new(self.var("TMPDIR").map_or("/tmp".into(), PathBuf::from))
    }

    /// Returns a buffered writer to stdout; several may exist at a time.
    pub(crate) fn stdout(&self) -> Stdout<'_> {
        self.output.stdout()
    }

    /// Prints a line on stderr, unless `-q`.
    pub(crate) fn note(&self, line: impl fmt::Display) {
        self.output.note(line);
    }

    /// Prints a warning on stderr, unless `-q`.
    pub(crate) fn warn(&self, line: impl fmt::Display) {
        self.output.warn(line);
    }

    /// Sends stdout through the user's pager if stdout is a terminal and a pager is enabled for `command`. For text output only.
    pub(crate) fn paginate(&self, command: &str) -> Result<(), CliError> {
        self.pager.start(self, command)
    }

    /// Returns the verbosity: the number of `-v` options of the command or N of `--debug verbose=N`, whichever is greater.
    pub(crate) fn verbosity(&self, matches: &ArgMatches) -> u8 {
        count(matches, "verbose").max(self.globals.verbose)
    }

    /// Returns the build-id cache: `--buildid-dir`, otherwise `buildid.dir`, otherwise `~/.debug`. `None` if
    /// neither the option nor the setting is given, and `HOME` is unset.
    pub(crate) fn buildid_dir(&self) -> Option<PathBuf> {
        let configured = || self.config.text("buildid.dir").map(PathBuf::from);
        self.globals
            .buildid_dir
            .clone()
            .or_else(configured)
            .or_else(|| self.home().map(|home| home.join(".debug")))
    }

    /// Returns the user's home directory; `None` if `HOME` is unset.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.var("HOME").map(PathBuf::from)
    }
}

/// Returns an environment variable; an empty one counts as unset.
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
    fn a_link_named_perf_sets_the_program_name() {
        let name = |word: &str| ProgramName::new(Some(OsStr::new(word))).to_string();
        assert_eq!(name("/usr/local/bin/perf"), "perf");
        assert_eq!(name("perf"), "perf");
        assert_eq!(name("target/debug/rperf"), "rperf");
        assert_eq!(ProgramName::new(None).to_string(), "rperf");
    }
}
