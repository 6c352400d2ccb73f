//! Consistent replacements of names, inode numbers and addresses: an original always has the same one. Two pages of
//! addresses may share a replacement.

use std::collections::hash_map::{HashMap, RandomState};
use std::hash::BuildHasher as _;

use rperf_wire::CpuMode;

use crate::addresses::PAGE;

/// First address of the replacements of kernel addresses.
const KERNEL_AREA: u64 = 0xffff_8880_0000_0000;
/// First address of the replacements of addresses in programs.
const USER_AREA: u64 = 0x1000_0000_0000;
/// Number of pages of each of the two areas.
const AREA_PAGES: u64 = 1 << 26;
/// Replacements of 32-bit addresses are in the pages from 1 up to this one, the last below 2 GiB.
const LAST_SHORT_PAGE: u64 = 0x7_ffff;

/// The kind of a name, which is part of its replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameKind {
    Task,
    /// The name of a mapping in a program, usually its file.
    Object,
    /// The name of a mapping in the kernel.
    Module,
    Symbol,
    Cgroup,
    /// A string in the raw data of a tracepoint that is not the name of a task.
    Text,
}

/// The replacements so far. The same name of the same kind always has the same replacement; the replacements of each kind are
/// numbered from 1.
#[derive(Debug)]
pub(super) struct Replacements {
    /// The number of each name.
    names: HashMap<(NameKind, Vec<u8>), usize>,
    /// The number of different names of each kind.
    counts: HashMap<NameKind, usize>,
    /// The replacement of each inode, by the device's major and minor number and the inode number.
    inodes: HashMap<(u32, u32, u64), u64>,
    /// The key of the hashes of pages. It differs in each run, so that the original addresses cannot be computed.
    key: RandomState,
}

impl Replacements {
    pub(super) fn new() -> Self {
        Self {
            names: HashMap::new(),
            counts: HashMap::new(),
            inodes: HashMap::new(),
            key: RandomState::new(),
        }
    }

    /// The replacement of a name; an empty name stays empty.
    pub(super) fn of(&mut self, kind: NameKind, name: &[u8]) -> String {
        if name.is_empty() {
            return String::new();
        }
        let count = self.counts.entry(kind).or_default();
        let number = *self.names.entry((kind, name.to_vec())).or_insert_with(|| {
            *count += 1;
            *count
        });
        match kind {
            NameKind::Task => format!("task-{number}"),
            NameKind::Object => format!("/redacted/object-{number}"),
            NameKind::Module => format!("[module_{number}]"),
            NameKind::Symbol => format!("symbol_{number}"),
            NameKind::Cgroup => format!("/cgroup-{number}"),
            NameKind::Text => format!("text-{number}"),
        }
    }

    /// The replacement of the name of a mapping.
    pub(super) fn of_mapping(&mut self, name: &[u8], is_kernel: bool) -> String {
        /// Names that are the same on every machine.
        const COMMON: [&[u8]; 14] = [
            b"[kernel.kallsyms]",
            b"[kernel.kallsyms]_text",
            b"[kernel.kallsyms]_stext",
            b"[guest.kernel.kallsyms]",
            b"[vdso]",
            b"[vdso32]",
            b"[vdsox32]",
            b"[vsyscall]",
            b"[heap]",
            b"[stack]",
            b"[uprobes]",
            b"//anon",
            b"/dev/zero",
            b"/anon_hugepage",
        ];
        if COMMON.contains(&name) {
            return String::from_utf8_lossy(name).into_owned();
        }
        // The name ends with a symbol other than `_text` and `_stext`: names with those are in `COMMON`.
        if name.starts_with(b"[kernel.kallsyms]") {
            return "[kernel.kallsyms]".to_owned();
        }
        match is_kernel {
            true => self.of(NameKind::Module, name),
            // Anonymous memory with a name, and special mappings.
            false if name.starts_with(b"[") => "//anon".to_owned(),
            false => self.of(NameKind::Object, name),
        }
    }

    /// The inode number that replaces a file's device and inode; 0 stays 0.
    pub(super) fn of_inode(&mut self, major: u32, minor: u32, inode: u64) -> u64 {
        if inode == 0 {
            return 0;
        }
        let next = self.inodes.len() as u64 + 1;
        *self.inodes.entry((major, minor, inode)).or_insert(next)
    }

    /// The replacement of an address in raw data. It has the same offset in its page, and is in the kernel if the address is.
    pub(super) fn of_address(&self, address: u64) -> u64 {
        let page = self.key.hash_one(address / PAGE) % AREA_PAGES;
        let offset = page * PAGE + address % PAGE;
        match CpuMode::of_address(address) {
            CpuMode::Kernel => KERNEL_AREA + offset,
            _ => USER_AREA + offset,
        }
    }

    /// Like [`Self::of_address`], for an address of 32 bits, which may be of the kernel or of a program: that is not kept. The
    /// replacement is below 2 GiB even if the address is not.
    pub(super) fn of_short_address(&self, address: u32) -> u32 {
        let address = u64::from(address);
        let page = 1 + self.key.hash_one(address / PAGE) % LAST_SHORT_PAGE;
        u32::try_from(page * PAGE + address % PAGE).unwrap_or_default()
    }
}
