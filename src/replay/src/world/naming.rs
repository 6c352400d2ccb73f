//! Interpretation of file names in MMAP records.

use rperf_wire::PROT_EXEC;

use crate::DsoKind;

const MAP_HUGETLB: u32 = 0x40000;
const VDSO_NAMES: [&str; 2] = ["[vdso]", "[vdsox32]"];
const VDSO32: &str = "[vdso32]";
/// End of the 32-bit address space.
const END_OF_32_BITS: u64 = 1 << 32;

/// The DSO of a recorded file name.
#[derive(Debug, PartialEq, Eq)]
pub struct DsoName {
    /// Name of the DSO; the path for a file.
    pub name: String,
    /// Type of the DSO.
    pub kind: DsoKind,
    /// Whether symbols have addresses in memory, not file offsets (see [`crate::Mapping::identity`]).
    pub identity: bool,
}

/// The file name of a mapping of a process, with the fields of the record that determine its meaning.
#[derive(Debug, Clone, Copy)]
pub struct RecordedName<'a> {
    /// The file name in the record.
    pub filename: &'a str,
    /// End address, exclusive.
    pub end: u64,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// `MAP_*` of mmap(2).
    pub flags: u32,
    /// The process.
    pub pid: u32,
}

impl RecordedName<'_> {
    /// Interprets the file name like perf: executable memory without a file belongs to `/tmp/perf-PID.map`.
    #[must_use]
    pub fn interpret(&self) -> DsoName {
        let fileless = is_anonymous(self.filename)
            || self.flags & MAP_HUGETLB != 0
            || is_special_memory(self.filename);
        // Process 0, the idle tasks, has no perf map. Callers that know no process pass 0.
        let (name, kind) = if fileless && self.prot & PROT_EXEC != 0 && self.pid != 0 {
            (perf_map_name(self.pid), DsoKind::PerfMap(self.pid))
        } else if fileless {
            (self.filename.to_owned(), DsoKind::Memory)
        } else if self.is_vdso32() {
            (VDSO32.to_owned(), DsoKind::Vdso32)
        } else if VDSO_NAMES.contains(&self.filename) {
            (self.filename.to_owned(), DsoKind::Vdso)
        } else {
            (self.filename.to_owned(), DsoKind::User)
        };
        DsoName {
            name,
            kind,
            identity: fileless,
        }
    }

    /// Whether this is the vdso of 32-bit programs. The kernel names it `[vdso]`, like that of 64-bit programs, so the address
    /// decides; `[vdso32]` is perf's name for it.
    fn is_vdso32(&self) -> bool {
        let is_low = self.end <= END_OF_32_BITS;
        self.filename == VDSO32 || is_low && self.filename == "[vdso]"
    }
}

/// The name of the DSO of code without a file in the process `pid`: the path of its perf map.
#[must_use]
pub fn perf_map_name(pid: u32) -> String {
    format!("/tmp/perf-{pid}.map")
}

fn is_anonymous(filename: &str) -> bool {
    filename == "//anon"
        || filename.starts_with("/dev/zero")
        || filename.starts_with("/anon_hugepage")
}

fn is_special_memory(filename: &str) -> bool {
    filename.starts_with("[stack") || filename.starts_with("/SYSV") || filename == "[heap]"
}

/// The bracketed name of a kernel module, from the path of its file, or as it is if it already has brackets; `None` if it is not
/// a module.
pub(crate) fn module_name(path: &str) -> Option<String> {
    // Beginnings of names: a symbol may follow the kernel's name, and a process id is part of some guest kernels' names.
    const NOT_MODULES: [&str; 6] = [
        "[kernel.kallsyms]",
        "[guest.kernel.kallsyms",
        "[vdso]",
        "[vdso32]",
        "[vdsox32]",
        "[vsyscall]",
    ];
    let file = path.rsplit('/').next().unwrap_or(path);
    if file.starts_with('[') {
        let is_module = !NOT_MODULES.iter().any(|other| file.starts_with(other));
        return is_module.then(|| file.to_owned());
    }
    let uncompressed = ["gz", "xz"]
        .iter()
        .find_map(|extension| file.strip_suffix(extension)?.strip_suffix('.'))
        .unwrap_or(file);
    let (stem, extension) = uncompressed.rsplit_once('.')?;
    // As in perf, the extension only has to begin with `ko`.
    let is_module = !stem.is_empty() && extension.starts_with("ko");
    is_module.then(|| format!("[{}]", stem.replace('-', "_")))
}

/// The DSO name of a file with kernel code for which [`module_name`] returns `None`. As in perf, `-` is replaced only in names
/// with an extension.
pub(crate) fn kernel_file_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    if file.contains('.') {
        file.replace('-', "_")
    } else {
        file.to_owned()
    }
}

/// The DSO for the file name of a mapping in kernel space: the kernel, or a module, named by its path; `None` for other names.
#[must_use]
pub fn kernel_object(filename: &str) -> Option<DsoName> {
    let (name, kind) = match kernel_name(filename) {
        Some(kernel) => (kernel.dso, DsoKind::Kernel),
        None if is_module_file(filename) => (filename, DsoKind::KernelModule),
        None => return None,
    };
    Some(DsoName {
        name: name.to_owned(),
        kind,
        identity: true,
    })
}

/// Whether a mapping in kernel space with this file name is a module. Callers first rule out the kernel itself
/// ([`kernel_name`]).
pub(crate) fn is_module_file(filename: &str) -> bool {
    filename.starts_with(['/', '['])
}

/// The parsed name in the kernel's MMAP record: `[kernel.kallsyms]_text`.
pub(crate) struct KernelName<'a> {
    /// Name of the DSO.
    pub(crate) dso: &'a str,
    /// The symbol whose address is in `pgoff`.
    pub(crate) symbol: &'a str,
}

/// Parses the name in the kernel's MMAP record; `None` for other names, including those of modules.
pub(crate) fn kernel_name(filename: &str) -> Option<KernelName<'_>> {
    let rest = filename.strip_prefix('[')?;
    let known = rest.starts_with("kernel.kallsyms") || rest.starts_with("guest.kernel.kallsyms");
    if !known {
        return None;
    }
    let end = filename.find(']').map_or(filename.len(), |at| at + 1);
    let (dso, symbol) = filename.split_at_checked(end)?;
    Some(KernelName { dso, symbol })
}
