//! Where symbols come from, as options say.

use std::fs;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use rperf_symbol::SearchPaths;

use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The files that options name.
pub(super) struct Symbols {
    vmlinux: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    symfs: Option<PathBuf>,
    demangle: bool,
    demangle_kernel: bool,
}

impl Symbols {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Files that can't be read.
    pub(super) fn new(matches: &ArgMatches) -> Result<Self, CliError> {
        let file = |option| {
            let path = matches.get_one::<String>(option).map(PathBuf::from);
            path.map(|path| readable(path, option)).transpose()
        };
        Ok(Self {
            vmlinux: file("vmlinux")?,
            kallsyms: file("kallsyms")?,
            symfs: file("symfs")?,
            demangle: flag(matches, "demangle") != Some(false),
            demangle_kernel: flag(matches, "demangle-kernel") == Some(true),
        })
    }

    /// Whether another machine's files are read.
    pub(super) fn elsewhere(&self) -> bool {
        self.symfs.is_some()
    }

    /// The usual places, as far as nothing else was said. Below `--symfs` there is a cache of its own, as in perf.
    pub(super) fn search_paths(&self, usual: SearchPaths) -> SearchPaths {
        let cache = self.symfs.as_ref().map(|root| root.join(".debug"));
        SearchPaths {
            vmlinux: self.vmlinux.clone(),
            kallsyms_override: self.kallsyms.clone(),
            build_id_cache: cache.or(usual.build_id_cache),
            symfs: self.symfs.clone(),
            demangle: self.demangle,
            demangle_kernel: self.demangle_kernel,
            ..usual
        }
    }
}

fn readable(path: PathBuf, option: &str) -> Result<PathBuf, CliError> {
    let found = if option == "symfs" {
        fs::read_dir(&path).map(drop)
    } else {
        fs::File::open(&path).map(drop)
    };
    match found {
        Ok(()) => Ok(path),
        Err(error) => Err(unreadable(&path, option, &error)),
    }
}

fn unreadable(path: &Path, option: &str, error: &std::io::Error) -> CliError {
    CliError::message(255, format!("--{option} {}: {error}", path.display()))
}
