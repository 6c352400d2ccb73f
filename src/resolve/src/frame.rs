//! What is known of one address: plain data, made by the [`Resolver`](crate::Resolver).

use rperf_replay::{DsoId, Machine, MappingId, Order, Sample};
use rperf_symbol::SymbolIndex;
use rperf_wire::CpuMode;

/// Whose memory an address belongs to, and when: everything a lookup needs besides mode and address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// The host, or a guest.
    pub machine: Machine,
    /// Process id: threads share the mappings of their process.
    pub pid: u32,
    /// The moment.
    pub order: Order,
}

impl Place {
    /// Where and when a sample was taken.
    #[must_use]
    pub fn of(sample: &Sample<'_>) -> Self {
        Self {
            machine: sample.machine(),
            pid: sample.pid,
            order: sample.order,
        }
    }
}

/// A symbol of one object. Symbols of equal name in two objects are two symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SymbolId {
    /// The object.
    pub dso: DsoId,
    /// Its place in the object's table, by rising address.
    pub index: SymbolIndex,
}

/// What ran, in the letters that reports show.
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
    /// A hypervisor, or not known: `H`.
    Hypervisor,
}

impl Level {
    /// The letter in brackets that reports put before a symbol.
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

/// One address with all that is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// The address as it was sampled.
    pub ip: u64,
    /// The address in terms of the object, in which its symbols are given: an offset in the file for user objects,
    /// the address itself for the kernel and for code from a perf map. Equal to `ip` where no mapping is known.
    pub address: u64,
    /// What was mapped there; `None` is shown as `[unknown]`.
    pub mapping: Option<MappingId>,
    /// The object behind the mapping.
    pub dso: Option<DsoId>,
    /// The symbol that covers the address.
    pub symbol: Option<SymbolId>,
    /// Kernel or user space, of the host or of a guest.
    pub level: Level,
}

impl Frame {
    /// A frame of which only the address is known.
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
