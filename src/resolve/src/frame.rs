//! Resolved addresses as plain data, created by the [`Resolver`](crate::Resolver).

use rperf_replay::{DsoId, Machine, MappingId, Order, Sample};
use rperf_symbol::SymbolIndex;
use rperf_wire::CpuMode;

/// Machine, process and time of an address: all inputs of a lookup besides mode and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressContext {
    /// The host, or a guest.
    pub machine: Machine,
    /// Process id: threads share the mappings of their process.
    pub pid: u32,
    /// The position in the order of the records.
    pub order: Order,
}

impl AddressContext {
    /// Machine, process and time of a sample.
    #[must_use]
    pub fn of(sample: &Sample<'_>) -> Self {
        Self {
            machine: sample.machine(),
            pid: sample.pid,
            order: sample.order,
        }
    }
}

/// A symbol of one object. Symbols with equal names in two objects are different.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId {
    /// The object.
    pub dso: DsoId,
    /// The symbol's index in the object's table, which is sorted by address. In a JIT dump whose functions have mappings of their
    /// own (`Dso::has_functions`), it is the function's number in the dump. Inlined functions, which are not in the table, have
    /// higher indexes.
    pub index: SymbolIndex,
}

/// Privilege level and machine of code, with the letters shown in reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The kernel: `k`.
    Kernel,
    /// User space: `.`.
    User,
    /// A guest's kernel: `g`.
    GuestKernel,
    /// A guest's user space: `u`.
    GuestUser,
    /// A hypervisor, or unknown: `H`.
    Hypervisor,
}

impl Level {
    /// The letter in brackets before a symbol in reports.
    #[must_use]
    pub const fn letter(self) -> char {
        match self {
            Self::Kernel => 'k',
            Self::User => '.',
            Self::GuestKernel => 'g',
            Self::GuestUser => 'u',
            Self::Hypervisor => 'H',
        }
    }
}

impl From<CpuMode> for Level {
    fn from(mode: CpuMode) -> Self {
        match mode {
            CpuMode::Kernel => Self::Kernel,
            CpuMode::User => Self::User,
            CpuMode::GuestKernel => Self::GuestKernel,
            CpuMode::GuestUser => Self::GuestUser,
            CpuMode::Hypervisor | CpuMode::Unknown => Self::Hypervisor,
        }
    }
}

/// A resolved address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The sampled address.
    pub ip: u64,
    /// The address in the address space of the object's symbols:
    /// - for user objects, a file offset;
    /// - for the kernel, for code from a perf map, and without a mapping, `ip`;
    /// - for kernel modules, `ip`; without a symbol, the offset from the module's start, which is shown instead of a name;
    /// - for BPF programs, the offset from the start;
    /// - for JIT-compiled functions with mappings of their own, the address in their symbol table.
    pub address: u64,
    /// The mapping; `None` is shown as `[unknown]`.
    pub mapping: Option<MappingId>,
    /// The mapped object.
    pub dso: Option<DsoId>,
    /// The symbol that covers the address.
    pub symbol: Option<SymbolId>,
    /// Kernel or user space, of the host or of a guest.
    pub level: Level,
}

impl Frame {
    /// A frame with only an address.
    #[must_use]
    pub const fn unknown(ip: u64, level: Level) -> Self {
        Self {
            ip,
            address: ip,
            mapping: None,
            dso: None,
            symbol: None,
            level,
        }
    }
}
