//! The program or library that `-x` names.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ArgMatches;
use rperf_probe::{Error, KERNEL_GROUP, Object, Sources, Symbols, group_of};
use rperf_symbol::{
    BuildId, DebugInfo, FileBytes, Files as _, Located, ObjectKind, ObjectRequest, SearchPaths,
    Servers, SymbolTable, build_id_of_elf,
};

use super::args::target;
use super::running::Running;
use crate::cli::context::Context;
use crate::cli::debuginfod;
use crate::cli::error::CliError;
use crate::cli::files::DiskFiles;
use crate::cli::options::flag;

/// Where libraries are that are named without a path.
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

/// What is probed, as the user named it.
#[derive(Debug, Clone)]
pub(super) enum Subject {
    /// A program or library.
    Program(PathBuf),
    Kernel,
    /// A module of the kernel, by its name or its file.
    Module(String),
}

/// What is at hand of it.
pub(super) enum Opened {
    Program(Box<Binary>),
    Kernel(Box<Running>),
}

impl Opened {
    pub(super) fn open(
        subject: &Subject,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let kernel = |module| {
            Running::open(module, matches, context).map(|kernel| Self::Kernel(Box::new(kernel)))
        };
        match subject {
            Subject::Program(path) => {
                let binary = Binary::open(path, matches, context)?;
                Ok(Self::Program(Box::new(binary)))
            }
            Subject::Kernel => kernel(None),
            Subject::Module(module) => kernel(Some(module)),
        }
    }

    /// The group of its events, where nobody chose one.
    pub(super) fn group(&self) -> String {
        match self {
            Self::Program(binary) => group_of(binary.path()),
            Self::Kernel(_) => KERNEL_GROUP.to_owned(),
        }
    }
}

/// Where files with symbols and debug information are, by the options.
pub(super) fn search_paths(
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
pub(super) struct Binary {
    /// What the kernel is told.
    path: PathBuf,
    bytes: FileBytes,
    located: Located,
    /// Read when it is asked for: nearly everything is in the debug information, too.
    table: OnceCell<SymbolTable>,
    paths: SearchPaths,
    /// Opened when it is asked for: sections may have to be unpacked.
    info: OnceCell<Option<DebugInfo>>,
    is_kernel: bool,
}

impl Binary {
    /// Opens the file that the user named.
    pub(super) fn open(
        target: &Path,
        matches: &ArgMatches,
        context: &Context,
    ) -> Result<Self, CliError> {
        let path = resolve(target, matches, context)?;
        Self::at(path, &search_paths(matches, context)?)
    }

    /// The same of the kernel's image, or of a module's file.
    pub(super) fn at_kernel(path: PathBuf, paths: &SearchPaths) -> Result<Self, CliError> {
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

    pub(super) fn has_debug_info(&self) -> bool {
        self.info().is_some()
    }

    /// The file at this path, for those who know that already.
    pub(super) fn at(path: PathBuf, paths: &SearchPaths) -> Result<Self, CliError> {
        let bytes = DiskFiles
            .read(&path)
            .map_err(|error| CliError::message(129, format!("{}: {error}", path.display())))?;
        let located = Located::find(
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

    /// Its build-id, if the linker gave it one.
    pub(super) fn build_id(&self) -> Option<BuildId> {
        build_id_of_elf(&self.bytes)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn info(&self) -> Option<&DebugInfo> {
        let open = |source| DebugInfo::open(&DiskFiles, &self.paths, &source);
        let info = self
            .info
            .get_or_init(|| self.located.debug().and_then(open));
        info.as_ref()
    }

    /// The file for the search of places.
    pub(super) fn object(&self) -> Result<Object<'_>, Error> {
        self.object_with(self.info())
    }

    /// The file for what its symbols alone tell.
    pub(super) fn symbols(&self) -> Result<Object<'_>, Error> {
        self.object_with(None)
    }

    fn object_with<'b>(&'b self, info: Option<&'b DebugInfo>) -> Result<Object<'b>, Error> {
        Object::parse(Sources {
            files: &DiskFiles,
            path: &self.path,
            bytes: &self.bytes,
            symbols: self,
            info,
            is_kernel: self.is_kernel,
        })
    }
}

impl Symbols for Binary {
    fn table(&self) -> &SymbolTable {
        self.table.get_or_init(|| self.located.read().table)
    }

    fn may_have(&self, part: &str) -> bool {
        self.located.may_have(part)
    }
}

/// The last that `-x` or `-m` names, a program by its path, which may be gone; the kernel where they name nothing.
pub(super) fn named(matches: &ArgMatches, context: &Context) -> Result<Subject, CliError> {
    match target(matches) {
        Subject::Program(path) => {
            let found = resolve(&path, matches, context);
            // Events outlive their programs.
            let is_gone = path.components().count() > 1 && fs::symlink_metadata(&path).is_err();
            match std::path::absolute(&path) {
                Ok(path) if found.is_err() && is_gone => Ok(Subject::Program(path)),
                _ => found.map(Subject::Program),
            }
        }
        other => Ok(other),
    }
}

/// The absolute path of a file, links followed; of a name alone what is in the folder, on the path of programs or among the libraries.
fn resolve(target: &Path, matches: &ArgMatches, context: &Context) -> Result<PathBuf, CliError> {
    if let Some(pid) = matches.get_one::<u64>("target-ns") {
        let inside = target.strip_prefix("/").unwrap_or(target);
        let path = PathBuf::from(format!("/proc/{pid}/root")).join(inside);
        return match path.is_file() {
            true => Ok(path),
            false => Err(absent(target, "No such file or directory")),
        };
    }
    located(target, context)
}

/// Whether [`resolve`] finds such a file.
pub(super) fn is_file(target: &Path, context: &Context) -> bool {
    located(target, context).is_ok()
}

fn located(target: &Path, context: &Context) -> Result<PathBuf, CliError> {
    let here = fs::canonicalize(target);
    if let Ok(path) = here {
        return match path.is_file() {
            // A link may be what the kernel can read.
            true if !is_readable_word(&path) => match std::path::absolute(target) {
                Ok(given) if is_readable_word(&given) => Ok(given),
                _ => Ok(path),
            },
            true => Ok(path),
            false => Err(absent(target, "not a regular file")),
        };
    }
    let is_name = target.components().count() == 1 && !target.starts_with("/");
    let path = context.var("PATH").unwrap_or_default();
    let programs = std::env::split_paths(&path);
    let mut folders = programs.chain(LIBRARIES.iter().map(PathBuf::from));
    let found = folders.find_map(|folder| fs::canonicalize(folder.join(target)).ok());
    found
        .filter(|path| is_name && path.is_file())
        .ok_or_else(|| absent(target, "No such file or directory"))
}

/// Whether the kernel reads this path as one word: blanks end words in the lists of events, and `#` begins a comment
/// (kernel/trace/trace.c, `trace_parse_run_command`).
pub(super) fn is_readable_word(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'#' | 0x0b);
    !bytes.iter().any(ends)
}

fn absent(target: &Path, why: &str) -> CliError {
    CliError::usage(format!(
        "Failed to get the absolute path of {}: {why}",
        target.display()
    ))
}
