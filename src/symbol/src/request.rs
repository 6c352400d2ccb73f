//! Requests for symbols, and search paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build_id::BuildId;
use crate::files::{FileBytes, FileRequest, Files, Servers};

/// Type of an object, which determines the source of its symbols and the kind of their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ObjectKind {
    /// `[kernel.kallsyms]`: run-time addresses.
    Kernel,
    /// A kernel module, `[ext4]`: run-time addresses.
    KernelModule,
    /// An executable or a shared library: file offsets.
    User,
    /// `[vdso]`: offsets in its image.
    Vdso,
    /// JIT-compiled code listed in `/tmp/perf-PID.map`: run-time addresses.
    PerfMap,
    /// Anything without symbols: `[heap]`, `//anon`, BPF programs that are not in kallsyms.
    Other,
}

/// An object of a recording whose symbols are requested.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRequest<'a> {
    /// The name in its MMAP record: a path, `[vdso]`, `[kernel.kallsyms]_text`. For
    /// [`ObjectKind::PerfMap`] the path of the map file.
    pub path: &'a Path,
    /// The recorded build-id: files with another one, or without one, are refused.
    pub build_id: Option<&'a BuildId>,
    /// For [`ObjectKind::KernelModule`]: the build-id of the kernel, which selects the kallsyms.
    pub kernel_build_id: Option<&'a BuildId>,
    /// Its type.
    pub kind: ObjectKind,
    /// The content, if the caller has it already, for example the vdso from the caller's memory.
    pub image: Option<&'a FileBytes>,
    /// The kernel's relocation symbol (`_text`, `_stext`) and its recorded address. In the kernel's MMAP record, the symbol is
    /// the suffix of the name, and the address is the pgoff.
    pub relocation: Option<(&'a str, u64)>,
    /// Start of the mapping: required for [`ObjectKind::KernelModule`], whose file has no
    /// addresses.
    pub map_start: u64,
    /// A process that mapped the object: while it runs, `/proc/PID/root` has its files.
    pub pid: Option<u32>,
    /// Other processes that mapped the object, used if `pid` has exited or has another file at the path.
    pub other_pids: &'a [u32],
    /// For [`ObjectKind::PerfMap`]: the `jit-PID.dump` of the process, if it mapped one.
    pub jit_dump: Option<&'a Path>,
    /// Whether functions of the dump are identified by number instead of address: see
    /// [`crate::jit_dump::JitFunction::number`].
    pub by_number: bool,
}

impl<'a> ObjectRequest<'a> {
    /// Creates a request for `path` without further information.
    pub fn new(path: &'a Path, kind: ObjectKind) -> Self {
        Self {
            path,
            build_id: None,
            kernel_build_id: None,
            kind,
            image: None,
            relocation: None,
            map_start: 0,
            pid: None,
            other_pids: &[],
            jit_dump: None,
            by_number: false,
        }
    }

    /// Sets the recorded build-id.
    pub fn with_build_id(self, build_id: Option<&'a BuildId>) -> Self {
        Self { build_id, ..self }
    }
}

/// Where symbols are searched for, and whether their names are demangled. The caller sets the paths according to options,
/// configuration and environment.
#[derive(Debug, Clone)]
pub struct SearchPaths {
    /// The build-id cache (`~/.debug`, `--buildid-dir`); `None` disables it (`-N`).
    pub build_id_cache: Option<PathBuf>,
    /// Roots of installed debug files.
    pub debug_dirs: Vec<PathBuf>,
    /// The running kernel's symbols.
    pub kallsyms: PathBuf,
    /// `--kallsyms FILE`: used regardless of the build-id.
    pub kallsyms_override: Option<PathBuf>,
    /// The running kernel's notes, which contain its build-id.
    pub kernel_notes: PathBuf,
    /// `-k FILE`: the kernel image.
    pub vmlinux: Option<PathBuf>,
    /// Kernel images tried if no [`Self::vmlinux`] is given; empty with `--ignore-vmlinux`.
    pub vmlinux_candidates: Vec<PathBuf>,
    /// `--symfs DIR`: prefix of the paths of objects, debug directories and kernel images.
    pub symfs: Option<PathBuf>,
    /// Whether the recorded processes are still running: files are then read in their mount namespaces, even without a build-id
    /// to verify them.
    pub of_running_processes: bool,
    /// Servers for files that are not found in any of the above places.
    pub servers: Option<Arc<dyn Servers>>,
    /// Whether C++, Rust and OCaml names are demangled (`--no-demangle` disables it).
    pub demangle: bool,
    /// Whether the names in files of kernel and modules are demangled (`--demangle-kernel`). Names in kallsyms never are.
    pub demangle_kernel: bool,
}

impl SearchPaths {
    /// The default paths, with the build-id cache `cache` (`~/.debug`), but without candidates for the kernel image.
    pub fn new(cache: Option<PathBuf>) -> Self {
        Self {
            build_id_cache: cache,
            debug_dirs: vec![PathBuf::from("/usr/lib/debug")],
            kallsyms: PathBuf::from("/proc/kallsyms"),
            kallsyms_override: None,
            kernel_notes: PathBuf::from("/sys/kernel/notes"),
            vmlinux: None,
            vmlinux_candidates: Vec::new(),
            symfs: None,
            of_running_processes: false,
            servers: None,
            demangle: true,
            demangle_kernel: false,
        }
    }

    /// Sets the candidates for the kernel image to the usual paths of version `release` (`uname -r`, or the recording's).
    pub fn with_kernel_release(mut self, release: &str) -> Self {
        self.vmlinux_candidates = vec![
            PathBuf::from("vmlinux"),
            PathBuf::from("/boot/vmlinux"),
            PathBuf::from(format!("/boot/vmlinux-{release}")),
            PathBuf::from(format!("/usr/lib/debug/boot/vmlinux-{release}")),
            PathBuf::from(format!("/lib/modules/{release}/build/vmlinux")),
            PathBuf::from(format!("/usr/lib/debug/lib/modules/{release}/vmlinux")),
            PathBuf::from(format!("/usr/lib/debug/boot/vmlinux-{release}.debug")),
        ];
        self
    }

    /// Fetches a file from a server; returns the path of the local copy and its content. `None` if it can't be fetched or read.
    pub(crate) fn fetch(
        &self,
        files: &dyn Files,
        request: &FileRequest<'_>,
    ) -> Option<(PathBuf, FileBytes)> {
        let path = self.servers.as_ref()?.fetch(request)?;
        let bytes = files.read(&path).ok()?;
        Some((path, bytes))
    }

    /// Returns `path` below the directory of `--symfs`, or `path` itself if none is given.
    #[must_use]
    pub fn under_symfs(&self, path: &Path) -> PathBuf {
        match &self.symfs {
            None => path.to_owned(),
            Some(root) => join_below(root, path),
        }
    }
}

/// Returns `/proc/PID/root/PATH`, the file at `path` in the mount namespace of process `pid`.
pub(crate) fn seen_by(pid: u32, path: &Path) -> PathBuf {
    join_below(Path::new(&format!("/proc/{pid}/root")), path)
}

/// Appends `path`, even if absolute, to `root`.
pub(crate) fn join_below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
