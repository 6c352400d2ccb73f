//! Where symbols come from, as options say.

pub(crate) mod args;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_perfdata::Features;
use rperf_replay::World;
use rperf_resolve::Resolver;
use rperf_safefs::Folder;
use rperf_symbol::{Files as _, SearchPaths, Servers};

use super::context::Context;
use super::debuginfod;
use super::error::CliError;
use super::files::DiskFiles;
use super::input;
use super::options::flag;
use super::symbols::{own_vdso, search_paths};

/// The files and servers that options name.
pub(crate) struct Symbols {
    vmlinux: Option<PathBuf>,
    /// No kernel image is read, but for one that is named.
    ignore_vmlinux: bool,
    kallsyms: Option<PathBuf>,
    symfs: Option<PathBuf>,
    /// `--debuginfod`.
    servers: Option<Arc<dyn Servers>>,
    demangle: bool,
    demangle_kernel: bool,
    mark_cut: bool,
}

impl Symbols {
    /// Reads the options.
    ///
    /// # Errors
    ///
    /// Files that can't be read, servers that can't be asked.
    pub(crate) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        if flag(matches, "modules") == Some(false) {
            return Err(CliError::usage(
                "--no-modules: symbols of modules that samples fell on are always read",
            ));
        }
        let file = |option| {
            let path = matches.get_one::<String>(option).map(PathBuf::from);
            path.map(|path| readable(path, option)).transpose()
        };
        let servers = debuginfod::client(matches, "rperf.debuginfod", context)?;
        Ok(Self {
            servers: servers.map(|client| Arc::new(client) as Arc<dyn Servers>),
            vmlinux: file("vmlinux")?,
            ignore_vmlinux: flag(matches, "ignore-vmlinux") == Some(true),
            kallsyms: file("kallsyms")?.or_else(|| beside_records(matches)),
            symfs: file("symfs")?,
            demangle: flag(matches, "demangle") != Some(false),
            demangle_kernel: flag(matches, "demangle-kernel") == Some(true),
            mark_cut: flag(matches, "mark-cut") == Some(true),
        })
    }

    /// What names the addresses of a recording with these features.
    pub(crate) fn resolver<'w>(
        &self,
        context: &Context,
        world: &'w World,
        features: &Features<'_>,
    ) -> Resolver<'w> {
        let paths = self.search_paths(search_paths(context, features));
        // Another machine's files are read without this one's kernel.
        let vdso = match self.symfs {
            Some(_) => None,
            None => own_vdso(),
        };
        Resolver::new(world, &DiskFiles, paths)
            .with_vdso(vdso)
            .marking_cut_stacks(self.mark_cut)
    }

    /// Where files of the system that runs are.
    pub(crate) fn live_paths(&self, context: &Context) -> SearchPaths {
        self.search_paths(SearchPaths::new(context.buildid_dir()))
    }

    /// The usual places, as far as nothing else was said. Below `--symfs` there is a cache of its own, as in perf.
    fn search_paths(&self, usual: SearchPaths) -> SearchPaths {
        let cache = self.symfs.as_ref().map(|root| root.join(".debug"));
        let guesses = Some(usual.vmlinux_candidates).filter(|_| !self.ignore_vmlinux);
        SearchPaths {
            vmlinux_candidates: guesses.unwrap_or_default(),
            vmlinux: self.vmlinux.clone(),
            kallsyms_override: self.kallsyms.clone(),
            build_id_cache: cache.or(usual.build_id_cache),
            symfs: self.symfs.clone(),
            servers: self.servers.clone(),
            demangle: self.demangle,
            demangle_kernel: self.demangle_kernel,
            ..usual
        }
    }
}

/// The kernel's listing in the directory that is read, beside a copy of its code (`record --kcore`).
fn beside_records(matches: &ArgMatches) -> Option<PathBuf> {
    let input = matches.try_get_one::<String>("input").ok()?;
    let directory = input.map_or(input::DEFAULT, String::as_str);
    let listing = Path::new(directory).join("kcore_dir/kallsyms");
    listing.is_file().then_some(listing)
}

fn readable(path: PathBuf, option: &str) -> Result<PathBuf, CliError> {
    let found = match option {
        "symfs" => Folder::open(&path).map(drop),
        _ => DiskFiles.open(&path).map(drop),
    };
    match found {
        Ok(()) => Ok(path),
        Err(error) => Err(unreadable(&path, option, &error)),
    }
}

fn unreadable(path: &Path, option: &str, error: &std::io::Error) -> CliError {
    CliError::message(255, format!("--{option} {}: {error}", path.display()))
}
