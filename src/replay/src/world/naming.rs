//! What the file name of an MMAP record stands for.

use super::PROT_EXEC;
use crate::DsoKind;

const MAP_HUGETLB: u32 = 0x40000;
const VDSO_NAMES: [&str; 2] = ["[vdso]", "[vdsox32]"];
const VDSO32: &str = "[vdso32]";
/// The end of what addresses of 32 bits reach.
const END_OF_32_BITS: u64 = 1 << 32;

/// A file name with what it means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// Name of the dso.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: DsoKind,
    /// Whether addresses stay as they are.
    pub(crate) identity: bool,
}

/// A mapping of a process, as its record tells it.
#[derive(Debug, Clone, Copy)]
pub struct UserMapping<'a> {
    /// The name in the record.
    pub filename: &'a str,
    /// The first address behind it.
    pub end: u64,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// `MAP_*` of mmap(2).
    pub flags: u32,
    /// The process.
    pub pid: u32,
}

impl UserMapping<'_> {
    /// The file that its code is named from: that of the record, but for what run-time compilers made.
    #[must_use]
    pub fn dso_name(&self) -> String {
        self.name().name
    }

    /// Names it as perf does: executable memory without a file belongs to `/tmp/perf-PID.map`.
    pub(crate) fn name(&self) -> Named {
        let fileless = is_anonymous(self.filename)
            || self.flags & MAP_HUGETLB != 0
            || is_special_memory(self.filename);
        let (name, kind) = if fileless && self.prot & PROT_EXEC != 0 && self.pid != 0 {
            let name = format!("/tmp/perf-{}.map", self.pid);
            (name, DsoKind::PerfMap(self.pid))
        } else if fileless {
            (self.filename.to_owned(), DsoKind::Memory)
        } else if self.is_vdso32() {
            (VDSO32.to_owned(), DsoKind::Vdso32)
        } else if VDSO_NAMES.contains(&self.filename) {
            (self.filename.to_owned(), DsoKind::Vdso)
        } else {
            (self.filename.to_owned(), DsoKind::User)
        };
        Named {
            name,
            kind,
            identity: fileless,
        }
    }

    /// The kernel has a vdso for each width of addresses, and calls them all the same.
    fn is_vdso32(&self) -> bool {
        let is_low = self.end <= END_OF_32_BITS;
        self.filename == VDSO32 || is_low && self.filename == "[vdso]"
    }
}

fn is_anonymous(filename: &str) -> bool {
    filename == "//anon"
        || filename.starts_with("/dev/zero")
        || filename.starts_with("/anon_hugepage")
}

fn is_special_memory(filename: &str) -> bool {
    filename.starts_with("[stack") || filename.starts_with("/SYSV") || filename == "[heap]"
}

/// The bracketed name of a kernel module, from the path of its file or its own name; `None` if it
/// is no module.
pub(crate) fn module_name(path: &str) -> Option<String> {
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
        let module = !NOT_MODULES.iter().any(|other| file.starts_with(other));
        return module.then(|| file.to_owned());
    }
    let plain = ["gz", "xz"]
        .iter()
        .find_map(|extension| file.strip_suffix(extension)?.strip_suffix('.'))
        .unwrap_or(file);
    let (stem, extension) = plain.rsplit_once('.')?;
    let is_module = !stem.is_empty() && extension.starts_with("ko");
    is_module.then(|| format!("[{}]", stem.replace('-', "_")))
}

/// The name of any other file that the kernel maps code from.
pub(crate) fn kernel_file_name(path: &str) -> String {
    let file = path.rsplit('/').next().unwrap_or(path);
    if file.contains('.') {
        file.replace('-', "_")
    } else {
        file.to_owned()
    }
}

/// The name in a kernel's own MMAP record, taken apart: `[kernel.kallsyms]_text`.
pub(crate) struct KernelName<'a> {
    /// Name of the dso.
    pub(crate) dso: &'a str,
    /// The symbol whose address is in `pgoff`.
    pub(crate) symbol: &'a str,
}

/// Recognises the kernel itself (and not its modules) in an MMAP record.
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
