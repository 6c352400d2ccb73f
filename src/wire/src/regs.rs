//! Register dumps of a sample.

use crate::U64s;

/// Width of the registers in a dump (`PERF_SAMPLE_REGS_ABI_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegsAbi {
    /// No registers (a kernel thread has no user registers).
    None,
    /// 32-bit task.
    Bits32,
    /// 64-bit task.
    Bits64,
    /// A number that this version does not know.
    Other(u64),
}

impl RegsAbi {
    /// From the number in a record.
    #[must_use]
    pub fn from_raw(raw: u64) -> Self {
        match raw {
            0 => Self::None,
            1 => Self::Bits32,
            2 => Self::Bits64,
            other => Self::Other(other),
        }
    }

    /// The number in a record.
    #[must_use]
    pub fn raw(self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bits32 => 1,
            Self::Bits64 => 2,
            Self::Other(raw) => raw,
        }
    }
}

/// Registers of a sample: one value for every bit of `mask`, lowest bit first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regs<'a> {
    /// Width of the task's registers.
    pub abi: RegsAbi,
    /// Which registers there are, as numbered in the architecture's `perf_regs.h`.
    pub mask: u64,
    /// Their values; none where `abi` is [`RegsAbi::None`].
    pub values: U64s<'a>,
}

impl Regs<'_> {
    /// The register with this number, if it was dumped.
    #[must_use]
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(number)?;
        if self.mask & bit == 0 {
            return None;
        }
        let index = (self.mask & (bit - 1)).count_ones();
        self.values.get(usize::try_from(index).ok()?)
    }
}
