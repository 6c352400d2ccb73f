//! Symbol sources selected by options.

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
use super::input;
use super::kernel_listing::SystemFiles;
use super::options::{flag, given_value};
use super::symbols::{own_vdso, search_paths};
use rperf_input::DiskFiles;

/// The values of the symbol options, and the files of this machine.
#[derive(Clone)]
pub(crate) struct SymbolSources {
    vmlinux: Option<PathBuf>,
    /// Whether kernel images are ignored, except one given explicitly.
    ignore_vmlinux: bool,
    kallsyms: Option<PathBuf>,
    symfs: Option<PathBuf>,
    /// The servers of `--debuginfod`, or of the setting `rperf.debuginfod`.
    servers: Option<Arc<dyn Servers>>,
    demangle: bool,
    demangle_kernel: bool,
    /// Whether truncated stacks end in a marker with the cause.
    mark_truncated: bool,
    files: SystemFiles,
}

impl SymbolSources {
    /// Parses the options.
    ///
    /// # Errors
    ///
    /// Files that can't be read, `--no-modules`, and errors of [`debuginfod::client`].
    pub(crate) fn new(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        if flag(matches, "modules") == Some(false) {
            return Err(CliError::usage(
                "--no-modules is not supported: symbols of modules are always read",
            ));
        }
        let file = |option| {
            // `None` also if the command does not have the option: commands that show only functions of user space have no
            // `--vmlinux` and `--kallsyms`.
            let path = given_value::<String>(matches, option).map(PathBuf::from);
            path.map(|path| readable(path, option)).transpose()
        };
        let servers = debuginfod::client(matches, "rperf.debuginfod", context)?;
        Ok(Self {
            servers: servers.map(|client| Arc::new(client) as Arc<dyn Servers>),
            vmlinux: file("vmlinux")?,
            ignore_vmlinux: flag(matches, "ignore-vmlinux") == Some(true),
            kallsyms: file("kallsyms")?,
            symfs: file("symfs")?,
            demangle: flag(matches, "demangle") != Some(false),
            demangle_kernel: flag(matches, "demangle-kernel") == Some(true),
            mark_truncated: flag(matches, "mark-truncated") == Some(true),
            files: SystemFiles::new(context.buildid_dir()),
        })
    }

    /// Parses the options for a command that reads the recording of `--input`, which may be a directory with a copy of kallsyms.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub(crate) fn for_recording(matches: &ArgMatches, context: &Context) -> Result<Self, CliError> {
        let given = matches.get_one::<String>("input");
        let path = given.map_or(input::DEFAULT, String::as_str);
        Ok(Self::new(matches, context)?.with_recording(Path::new(path)))
    }

    /// Returns the sources for the recording at this path. Without `--kallsyms`, the copy of kallsyms in a recording directory is
    /// used.
    pub(crate) fn with_recording(&self, path: &Path) -> Self {
        let kallsyms = self.kallsyms.clone();
        Self {
            kallsyms: kallsyms.or_else(|| recorded_kallsyms(path)),
            ..self.clone()
        }
    }

    /// Returns the resolver of a recording with these features.
    pub(crate) fn resolver<'w>(
        &'w self,
        context: &Context,
        world: &'w World,
        features: &Features<'_>,
    ) -> Resolver<'w> {
        // The inner call is to the function, which returns the default paths; the method applies the options to them.
        let paths = self.search_paths(search_paths(context, features));
        // With `--symfs` the files are of another machine, which has another vdso.
        let vdso = match self.symfs {
            Some(_) => None,
            None => own_vdso(),
        };
        Resolver::new(world, &self.files, paths)
            .with_vdso(vdso)
            .marking_truncated_stacks(self.mark_truncated)
    }

    /// Returns the resolver of the running system.
    pub(crate) fn live_resolver<'w>(&'w self, context: &Context, world: &'w World) -> Resolver<'w> {
        let paths = SearchPaths {
            of_running_processes: true,
            ..self.live_paths(context)
        };
        Resolver::new(world, &self.files, paths).with_vdso(own_vdso())
    }

    /// Returns the search paths for the running system, without [`SearchPaths::of_running_processes`].
    pub(crate) fn live_paths(&self, context: &Context) -> SearchPaths {
        self.search_paths(SearchPaths::new(context.buildid_dir()))
    }

    /// Applies the options to the default paths. Below `--symfs` there is a separate cache, as in perf.
    fn search_paths(&self, defaults: SearchPaths) -> SearchPaths {
        let cache = self.symfs.as_ref().map(|root| root.join(".debug"));
        let candidates = Some(defaults.vmlinux_candidates).filter(|_| !self.ignore_vmlinux);
        SearchPaths {
            vmlinux_candidates: candidates.unwrap_or_default(),
            vmlinux: self.vmlinux.clone(),
            kallsyms_override: self.kallsyms.clone(),
            build_id_cache: cache.or(defaults.build_id_cache),
            symfs: self.symfs.clone(),
            servers: self.servers.clone(),
            demangle: self.demangle,
            demangle_kernel: self.demangle_kernel,
            ..defaults
        }
    }
}

/// Returns the path of the copy of kallsyms in a recording directory (`record --kcore`), if there is one.
fn recorded_kallsyms(directory: &Path) -> Option<PathBuf> {
    let listing = directory.join("kcore_dir/kallsyms");
    listing.is_file().then_some(listing)
}

/// Returns `path` if it can be opened: as a directory for `symfs`, otherwise as a file.
fn readable(path: PathBuf, option: &str) -> Result<PathBuf, CliError> {
    let opened = match option {
        "symfs" => Folder::open(&path).map(drop),
        _ => DiskFiles.open(&path).map(drop),
    };
    match opened {
        Ok(()) => Ok(path),
        Err(error) => Err(unreadable(&path, option, &error)),
    }
}

fn unreadable(path: &Path, option: &str, error: &std::io::Error) -> CliError {
    CliError::message(255, format!("--{option} {}: {error}", path.display()))
}
