//! The probed object: the program or library of `-x`, the module of `-m`, or the kernel.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_probe::{Error, KERNEL_GROUP, ObjectInputs, ProbeObject, Symbols, group_of};
use rperf_symbol::{
    BuildId, DebugInfo, FileBytes, Files as _, ObjectFiles, ObjectKind, ObjectRequest, SearchPaths,
    Servers, SymbolTable, build_id_of_elf,
};

use super::args::target;
use super::running_kernel::RunningKernel;
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::CliError;
use crate::cli::options::flag;
use rperf_input::DiskFiles;

/// The directories that are searched, after those of `PATH`, for a name without a slash.
const LIBRARIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// The probed object, as given by the user.
#[derive(Debug, Clone)]
pub(crate) enum ProbedObject {
    /// A program or library.
    Program(PathBuf),
    Kernel,
    /// A kernel module, by name or file.
    Module(String),
}

pub(crate) enum OpenedObject {
    Program(Box<ProbedBinary>),
    /// The kernel or one of its modules.
    Kernel(Box<RunningKernel>),
}

impl OpenedObject {
    pub(crate) fn open(
        object: &ProbedObject,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let kernel = |module| {
            RunningKernel::open(module, matches, context)
                .map(|kernel| Self::Kernel(Box::new(kernel)))
        };
        match object {
            ProbedObject::Program(path) => {
                let binary = ProbedBinary::open(path, matches, context)?;
                Ok(Self::Program(Box::new(binary)))
            }
            ProbedObject::Kernel => kernel(None),
            ProbedObject::Module(module) => kernel(Some(module)),
        }
    }

    /// Returns the default group of the object's events.
    pub(crate) fn group(&self) -> String {
        match self {
            Self::Program(binary) => group_of(binary.path()),
            Self::Kernel(_) => KERNEL_GROUP.to_owned(),
        }
    }
}

/// Returns where to search for files with symbols and debug information, according to the options.
pub(crate) fn search_paths(
    matches: &ArgMatches,
    context: &Context,
) -> Result<SearchPaths, CliError> {
    let mut paths = SearchPaths::new(context.buildid_dir());
    paths.demangle = flag(matches, "demangle") != Some(false);
    paths.demangle_kernel = flag(matches, "demangle-kernel") == Some(true);
    paths.symfs = matches.get_one::<String>("symfs").map(PathBuf::from);
    let servers = debuginfod::client(matches, "rperf.debuginfod", context)?;
    paths.servers = servers.map(|client| Arc::new(client) as Arc<dyn Servers>);
    Ok(paths)
}

/// A file with code, its symbols and debug information.
pub(crate) struct ProbedBinary {
    /// The path that definitions of events contain.
    path: PathBuf,
    bytes: FileBytes,
    /// The files from which its symbols and debug information are read.
    located: ObjectFiles,
    /// Read on demand: rarely needed, because debug information has nearly all symbols.
    table: OnceCell<SymbolTable>,
    paths: SearchPaths,
    /// Opened on demand: sections may have to be decompressed.
    info: OnceCell<Option<DebugInfo>>,
    /// Whether this is the kernel's image or a module's file.
    is_kernel: bool,
}

impl ProbedBinary {
    /// Opens the file given by the user.
    pub(crate) fn open(
        target: &Path,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let path = resolve(target, matches, context)?;
        Self::at(path, &search_paths(matches, context)?)
    }

    /// Opens the kernel's image, or a module's file.
    pub(crate) fn kernel_at(path: PathBuf, paths: &SearchPaths) -> Result<Self, CliError> {
        // `at` opens it as a program's file, for which `demangle` applies, not `demangle_kernel`.
        let paths = SearchPaths {
            demangle: paths.demangle_kernel,
            ..paths.clone()
        };
        let binary = Self::at(path, &paths)?;
        Ok(Self {
            is_kernel: true,
            ..binary
        })
    }

    pub(crate) fn has_debug_info(&self) -> bool {
        self.info().is_some()
    }

    /// Opens the file at an already resolved path.
    pub(crate) fn at(path: PathBuf, paths: &SearchPaths) -> Result<Self, CliError> {
        let bytes = DiskFiles
            .read(&path)
            .map_err(|error| CliError::message(129, format!("{}: {error}", path.display())))?;
        // `User` even if the file is the kernel's image: probes need the file's addresses, not those of the running kernel.
        let located = ObjectFiles::find(
            &DiskFiles,
            paths,
            &ObjectRequest::new(&path, ObjectKind::User),
        );
        Ok(Self {
            path,
            bytes,
            located,
            table: OnceCell::new(),
            paths: paths.clone(),
            info: OnceCell::new(),
            is_kernel: false,
        })
    }

    /// Returns the build-id of the file, if any.
    pub(crate) fn build_id(&self) -> Option<BuildId> {
        build_id_of_elf(&self.bytes)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn info(&self) -> Option<&DebugInfo> {
        let open = |source| DebugInfo::open(&DiskFiles, &self.paths, &source);
        let info = self
            .info
            .get_or_init(|| self.located.debug().and_then(open));
        info.as_ref()
    }

    /// Returns the object with symbols and debug information.
    pub(crate) fn object(&self) -> Result<ProbeObject<'_>, Error> {
        self.object_with(self.info())
    }

    /// Returns the object with symbols only.
    pub(crate) fn symbols(&self) -> Result<ProbeObject<'_>, Error> {
        self.object_with(None)
    }

    fn object_with<'b>(&'b self, info: Option<&'b DebugInfo>) -> Result<ProbeObject<'b>, Error> {
        ProbeObject::parse(ObjectInputs {
            files: &DiskFiles,
            path: &self.path,
            bytes: &self.bytes,
            symbols: self,
            info,
            is_kernel: self.is_kernel,
        })
    }
}

impl Symbols for ProbedBinary {
    fn table(&self) -> &SymbolTable {
        self.table.get_or_init(|| self.located.read().table)
    }

    fn may_have_name_with(&self, part: &str) -> bool {
        self.located.may_have_name_with(part)
    }
}

/// Returns the last target of `-x` or `-m`, by default the kernel. The path of a program is absolute. If `-x` gives a
/// path with a slash, no file needs to exist there: it may have been removed after its events were created.
pub(crate) fn resolved_target(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ProbedObject, CliError> {
    match target(matches) {
        ProbedObject::Program(path) => {
            let resolved = resolve(&path, matches, context);
            let has_slash = path.components().count() > 1;
            let is_gone = has_slash && fs::symlink_metadata(&path).is_err();
            match std::path::absolute(&path) {
                Ok(path) if resolved.is_err() && is_gone => Ok(ProbedObject::Program(path)),
                _ => resolved.map(ProbedObject::Program),
            }
        }
        other => Ok(other),
    }
}

/// Returns the absolute path of a file. With `--target-ns`, this is a path below `/proc/PID/root`. Otherwise the working
/// directory, `PATH` and the library directories are searched for a name without a slash, and links are resolved.
///
/// There is one exception, because a path in a probe definition must be a single word (see [`is_single_word`]): if the resolved
/// path is not a single word, but the path as given exists and is one, links are not resolved.
fn resolve(target: &Path, matches: &ArgMatches, context: &Context) -> Result<PathBuf, CliError> {
    if let Some(pid) = matches.get_one::<u64>("target-ns") {
        let inside = target.strip_prefix("/").unwrap_or(target);
        let path = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
        return match path.is_file() {
            true => Ok(path),
            false => Err(path_error(target, "No such file or directory")),
        };
    }
    locate(target, context)
}

/// Whether [`resolve`] finds this file without `--target-ns`.
pub(crate) fn is_file(target: &Path, context: &Context) -> bool {
    locate(target, context).is_ok()
}

fn locate(target: &Path, context: &Context) -> Result<PathBuf, CliError> {
    if let Ok(path) = fs::canonicalize(target) {
        return match path.is_file() {
            true if !is_single_word(&path) => match std::path::absolute(target) {
                Ok(given) if is_single_word(&given) => Ok(given),
                _ => Ok(path),
            },
            true => Ok(path),
            false => Err(path_error(target, "not a regular file")),
        };
    }
    let is_name = target.components().count() == 1 && !target.starts_with("/");
    let not_found = || path_error(target, "No such file or directory");
    if !is_name {
        return Err(not_found());
    }
    let search_path = context.var("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&search_path);
    let folders = programs.chain(LIBRARIES.iter().map(PathBuf::from));
    let mut found = folders.filter_map(|folder| fs::canonicalize(folder.join(target)).ok());
    found.find(|path| path.is_file()).ok_or_else(not_found)
}

/// Whether the kernel parses this path as one word: blanks separate words in the lists of events, and `#` starts a comment
/// (kernel/trace/trace.c, `trace_parse_run_command`). The kernel reads bytes as Latin-1 (lib/ctype.c), in which 0xa0 is a
/// no-break space and thus a blank; in UTF-8, it is the second byte of `à`.
pub(crate) fn is_single_word(path: &Path) -> bool {
    // Not in `is_ascii_whitespace`.
    const VERTICAL_TAB: u8 = 0x0b;
    const NO_BREAK_SPACE: u8 = 0xa0;
    let bytes = path.as_os_str().as_encoded_bytes();
    let ends_word = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(*byte, b'#' | VERTICAL_TAB | NO_BREAK_SPACE)
    };
    !bytes.iter().any(ends_word)
}

fn path_error(target: &Path, why: &str) -> CliError {
    CliError::usage(format!(
        "Failed to get the absolute path of {}: {why}",
        target.display()
    ))
}
