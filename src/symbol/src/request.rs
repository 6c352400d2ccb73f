//! What is asked for, and where to look.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::build_id::BuildId;
use crate::files::{FileBytes, Files, Servers, Wanted};

/// What an object is, which decides where its symbols come from and how they are addressed.
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
    /// Code made at run time and listed in `/tmp/perf-PID.map`: run-time addresses.
    PerfMap,
    /// Anything without symbols of its own: `[heap]`, `//anon`, bpf programs without a listing.
    Other,
}

/// One object of a recording whose symbols are wanted.
#[derive(Debug, Clone, Copy)]
pub struct ObjectRequest<'a> {
    /// The name in its MMAP record: a path, `[vdso]`, `[kernel.kallsyms]_text`. For [`ObjectKind::PerfMap`]
    /// the path of the map file itself.
    pub path: &'a Path,
    /// The build-id recorded for it: files with another one are refused.
    pub build_id: Option<&'a BuildId>,
    /// For [`ObjectKind::KernelModule`]: the build-id of the kernel it was loaded into, which says whose kallsyms names it.
    pub kernel_build_id: Option<&'a BuildId>,
    /// What it is.
    pub kind: ObjectKind,
    /// The bytes, where the caller has them already (the vdso, out of this process's memory).
    pub image: Option<&'a FileBytes>,
    /// The kernel's symbol that gives away relocation (`_text`, `_stext`), with its address as recorded:
    /// the suffix of the kernel MMAP record's name and its pgoff.
    pub relocation: Option<(&'a str, u64)>,
    /// Where the object was mapped: needed for [`ObjectKind::KernelModule`], whose file knows no addresses.
    pub map_start: u64,
    /// A process that mapped it: while it lives, `/proc/PID/root` shows the files that it sees.
    pub pid: Option<u32>,
    /// Others that did: they are asked if it is gone.
    pub other_pids: &'a [u32],
    /// For [`ObjectKind::PerfMap`]: the `jit-PID.dump` of the process, if it mapped one.
    pub jit_dump: Option<&'a Path>,
    /// Whether functions of the dump are known by number, not by address: see [`crate::jit_dump::JitDump::functions`].
    pub by_number: bool,
}

impl<'a> ObjectRequest<'a> {
    /// A request for `path`, with nothing else known.
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

    /// With the build-id recorded.
    pub fn with_build_id(self, build_id: Option<&'a BuildId>) -> Self {
        Self { build_id, ..self }
    }
}

/// Where symbols are looked for. The caller fills it from options, configuration and environment.
#[derive(Debug, Clone)]
pub struct SearchPaths {
    /// The build-id cache (`~/.debug`, `--buildid-dir`); `None` switches it off (`-N`).
    pub build_id_cache: Option<PathBuf>,
    /// Roots of installed debug files.
    pub debug_dirs: Vec<PathBuf>,
    /// The running kernel's symbols.
    pub kallsyms: PathBuf,
    /// `--kallsyms FILE`: used whatever the build-id says.
    pub kallsyms_override: Option<PathBuf>,
    /// The running kernel's notes, which hold its build-id.
    pub kernel_notes: PathBuf,
    /// `-k FILE`: the kernel image.
    pub vmlinux: Option<PathBuf>,
    /// Images tried when no [`Self::vmlinux`] is given; empty with `--ignore-vmlinux`.
    pub vmlinux_candidates: Vec<PathBuf>,
    /// `--symfs DIR`: put before the paths of objects.
    pub symfs: Option<PathBuf>,
    /// Who is asked for what is in none of these places.
    pub servers: Option<Arc<dyn Servers>>,
    /// Whether C++, Rust and OCaml names are shown in source form (`--no-demangle` clears it).
    pub demangle: bool,
    /// Whether the names of kernel and modules are, too (`--demangle-kernel`).
    pub demangle_kernel: bool,
}

impl SearchPaths {
    /// The usual places, the build-id cache being `cache` (`~/.debug`).
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
            servers: None,
            demangle: true,
            demangle_kernel: false,
        }
    }

    /// Adds the usual names of a kernel image of version `release` (`uname -r`, or the recording's).
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

    /// What a server has, with the path of the copy here.
    pub(crate) fn fetch(
        &self,
        files: &dyn Files,
        wanted: &Wanted<'_>,
    ) -> Option<(PathBuf, FileBytes)> {
        let path = self.servers.as_ref()?.fetch(wanted)?;
        let bytes = files.read(&path).ok()?;
        Some((path, bytes))
    }

    /// `path` below `--symfs`.
    pub(crate) fn under_symfs(&self, path: &Path) -> PathBuf {
        match &self.symfs {
            None => path.to_owned(),
            Some(root) => join_below(root, path),
        }
    }
}

/// `path` as process `pid` sees it.
pub(crate) fn seen_by(pid: u32, path: &Path) -> PathBuf {
    join_below(Path::new(&format!("/proc/{pid}/root")), path)
}

/// `root` and `path` one after the other, even where `path` is absolute.
pub(crate) fn join_below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.strip_prefix("/").unwrap_or(path))
}
