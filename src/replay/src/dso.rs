//! Files (and what passes for files) that code is mapped from.

use std::borrow::Cow;
use std::path::Path;

use rperf_wire::name_path;

use crate::{DsoId, Machine};

/// What a dso is; decides where its symbols come from.
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
    /// `[vdso32]`: that of a process whose addresses have 32 bits.
    Vdso32,
    /// Code without a file, named by `/tmp/perf-PID.map` of this process.
    PerfMap(u32),
    /// Memory without a file and without code: `//anon`, `[heap]`, `[stack]`.
    Memory,
    /// A BPF program or other code that the kernel announced by a KSYMBOL record. It has one
    /// symbol, of the dso's own name, from address 0 for [`Dso::code_len`] bytes.
    Bpf,
}

/// A file that code is mapped from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dso {
    /// The name that script shows.
    pub name: String,
    /// The name that report shows: the last part of the path, `[JIT] tid PID`.
    pub short_name: String,
    /// Where the file lies, if it has one: for a module, the path of its `.ko`.
    pub long_name: String,
    /// What it is.
    pub kind: DsoKind,
    /// The machine it belongs to.
    pub machine: Machine,
    /// The build-id that the recording states for it, in full length.
    pub build_id: Option<Vec<u8>>,
    /// For the kernel: the symbol that tells how far it was moved (`_text`, `_stext`), and its
    /// address at the recording.
    pub relocation: Option<(String, u64)>,
    /// Start of the first mapping of it; 0 where there is none.
    pub map_start: u64,
    /// For [`DsoKind::Bpf`]: length of the code in bytes.
    pub code_len: u64,
    /// The first process that mapped it; 0 where none is known.
    pub pid: u32,
    /// Some of the others, the last one among them: they may live longer, or see other files.
    pub other_pids: Vec<u32>,
    /// Whether [`crate::World::add_functions`] told what is in it: its mappings say which function they are.
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

    /// Process `pid` maps it, too. Few are kept: one that lives will do.
    pub(crate) fn mapped_by(&mut self, pid: u32) {
        const KEPT: usize = 7;
        if self.pid == 0 {
            self.pid = pid;
        } else if self.pid != pid && !self.other_pids.contains(&pid) {
            self.other_pids.truncate(KEPT - 1);
            self.other_pids.push(pid);
        }
    }

    /// Where the file lies, with the bytes that the recording has.
    #[must_use]
    pub fn path(&self) -> Cow<'_, Path> {
        name_path(&self.long_name)
    }

    /// Whether somebody may call it `name`: as reports do, or by its path.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        name == self.short_name || name == self.long_name
    }

    /// Whether it is the code that the kernel lends to processes.
    #[must_use]
    pub fn is_vdso(&self) -> bool {
        matches!(self.kind, DsoKind::Vdso | DsoKind::Vdso32)
    }

    /// Whether it is code of a kernel.
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

/// basename(3): trailing slashes don't count.
pub(crate) fn basename(path: &str) -> &str {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { "." } else { "/" };
    }
    trimmed.rsplit('/').next().unwrap_or(trimmed)
}

/// A stretch of an address space. It never changes: a later mapping over the same addresses hides it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file of the first address, in bytes.
    pub pgoff: u64,
    /// The file.
    pub dso: DsoId,
    /// `PROT_*` of mmap(2).
    pub prot: u32,
    /// `MAP_*` of mmap(2).
    pub flags: u32,
    /// Whether symbols of the file are in addresses of the process, not in offsets.
    pub identity: bool,
    /// Of memory in which code was made at run time: the number of the one function that this is.
    pub function: Option<u32>,
}

impl Mapping {
    /// The address in the terms of the file's symbols: an offset in the file, or `ip` itself for
    /// kernels, modules, and memory without a file.
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
    fn the_first_and_the_last_of_many_processes_are_kept() {
        let mut dso = Dso::new(Machine::Host, DsoKind::User, "/bin/sh");
        for pid in [5, 5, 6, 7, 6].into_iter().chain(100..200) {
            dso.mapped_by(pid);
        }
        assert_eq!((dso.pid, dso.other_pids.len()), (5, 7));
        assert_eq!(dso.other_pids.last(), Some(&199));
    }
}
