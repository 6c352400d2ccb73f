//! DSOs: files and pseudo-files that code is mapped from.

use std::borrow::Cow;
use std::path::Path;

use rperf_wire::name_path;

use crate::{DsoId, Machine};

/// Type of a DSO, which determines the source of its symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DsoKind {
    /// The kernel itself.
    Kernel,
    /// A kernel module.
    KernelModule,
    /// A program or library on disk.
    User,
    /// `[vdso]`, `[vdsox32]`.
    Vdso,
    /// `[vdso32]`: the vdso of 32-bit processes.
    Vdso32,
    /// Code without a file in the process with this id; `/tmp/perf-PID.map` may have its symbols.
    PerfMap(u32),
    /// Memory that has no file and is not executable, or whose process is unknown: `//anon`, `[heap]`, `[stack]`.
    Memory,
    /// A BPF program or other generated kernel code, from a KSYMBOL record. It has one symbol with
    /// the DSO's name, from address 0 for [`Dso::code_len`] bytes.
    Bpf,
}

/// A DSO.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dso {
    /// The name shown by script.
    pub name: String,
    /// The name shown by report: the last component of the path; usually a name in brackets for the kernel and its modules;
    /// `[JIT] tid PID` for [`DsoKind::PerfMap`].
    pub short_name: String,
    /// The path of the file (of the `.ko` for a module); the name if there is no file.
    pub long_name: String,
    /// Its type.
    pub kind: DsoKind,
    /// The machine it belongs to.
    pub machine: Machine,
    /// The build-id in the recording, unpadded.
    pub build_id: Option<Vec<u8>>,
    /// For the kernel: the relocation symbol (`_text` or `_stext`), and its recorded address.
    pub relocation: Option<(String, u64)>,
    /// Start address of its first mapping; 0 if there is none.
    pub map_start: u64,
    /// For [`DsoKind::Bpf`]: length of the code in bytes.
    pub code_len: u64,
    /// The first process that mapped it; 0 if unknown.
    pub pid: u32,
    /// Some other processes that mapped it, including the last: they may run longer, or see other files (in another mount
    /// namespace).
    pub other_pids: Vec<u32>,
    /// Whether [`crate::World::add_functions`] added mappings of JIT-compiled functions; [`Mapping::function`] of such a mapping
    /// says which one.
    pub has_functions: bool,
}

impl Dso {
    pub(crate) fn new(machine: Machine, kind: DsoKind, name: &str) -> Self {
        Self {
            name: name.to_owned(),
            short_name: short_name(name, kind),
            long_name: name.to_owned(),
            kind,
            machine,
            build_id: None,
            relocation: None,
            map_start: 0,
            code_len: 0,
            pid: 0,
            other_pids: Vec::new(),
            has_functions: false,
        }
    }

    /// Adds a process that maps it. Only a few are kept, since one that still runs is enough; if there is no room, the process
    /// replaces the last one.
    pub(crate) fn add_process(&mut self, pid: u32) {
        const MAX_OTHER_PIDS: usize = 7;
        if self.pid == 0 {
            self.pid = pid;
        } else if self.pid != pid && !self.other_pids.contains(&pid) {
            self.other_pids.truncate(MAX_OTHER_PIDS - 1);
            self.other_pids.push(pid);
        }
    }

    /// The path as stored in the recording.
    #[must_use]
    pub fn path(&self) -> Cow<'_, Path> {
        name_path(&self.long_name)
    }

    /// Whether a user may mean this DSO by `name`: its short name or its path.
    #[must_use]
    pub fn has_name(&self, name: &str) -> bool {
        name == self.short_name || name == self.long_name
    }

    /// Whether it is a vdso.
    #[must_use]
    pub fn is_vdso(&self) -> bool {
        matches!(self.kind, DsoKind::Vdso | DsoKind::Vdso32)
    }

    /// Whether it is kernel code.
    #[must_use]
    pub fn is_kernel(&self) -> bool {
        matches!(
            self.kind,
            DsoKind::Kernel | DsoKind::KernelModule | DsoKind::Bpf
        )
    }
}

fn short_name(name: &str, kind: DsoKind) -> String {
    if let DsoKind::PerfMap(pid) = kind {
        return format!("[JIT] tid {pid}");
    }
    basename(name).to_owned()
}

/// Returns the last component of a path, as basename(3) does: trailing slashes are ignored.
pub(crate) fn basename(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "." } else { "/" };
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// A mapping. It never changes: a later mapping of the same addresses hides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// End address, exclusive.
    pub end: u64,
    /// File offset of the start, in bytes; for a JIT-compiled function, its start address in the symbol table.
    pub pgoff: u64,
    /// The mapped DSO.
    pub dso: DsoId,
    /// `PROT_*` of mmap(2); MMAP records only distinguish code and data.
    pub prot: u32,
    /// `MAP_*` of mmap(2); 0 if not recorded.
    pub flags: u32,
    /// The file's inode number; 0 if there is none, or if the record has no field for it: MMAP, and MMAP2 with a build-id.
    pub inode: u64,
    /// Whether the DSO's symbols have the mapped addresses: [`Mapping::object_address`] then returns `ip` itself.
    pub identity: bool,
    /// For a JIT-compiled function ([`crate::World::add_functions`]): its number in the symbol table.
    pub function: Option<u32>,
}

impl Mapping {
    /// Converts an address to the address space of the DSO's symbols: a file offset; `ip` itself for kernels, modules and
    /// memory without a file; for BPF programs the offset from the start; for JIT-compiled functions
    /// ([`Mapping::function`]) the address in the symbol table.
    #[must_use]
    pub fn object_address(&self, ip: u64) -> u64 {
        if self.identity {
            ip
        } else {
            ip.wrapping_sub(self.start).wrapping_add(self.pgoff)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_and_the_last_pids_are_stored() {
        let mut dso = Dso::new(Machine::Host, DsoKind::User, "/bin/sh");
        for pid in [5, 5, 6, 7, 6].into_iter().chain(100..200) {
            dso.add_process(pid);
        }
        assert_eq!((dso.pid, dso.other_pids.len()), (5, 7));
        assert_eq!(dso.other_pids.last(), Some(&199));
    }
}
