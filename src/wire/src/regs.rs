//! Register dumps of a sample.

use crate::{Cursor, DecodeError, Encoder, U64s};

/// Width of the registers in a dump (`PERF_SAMPLE_REGS_ABI_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegsAbi {
    /// No registers (a kernel thread has no user registers).
    None,
    /// 32-bit task.
    Bits32,
    /// 64-bit task.
    Bits64,
    /// An unknown number.
    Other(u64),
}

impl RegsAbi {
    /// Converts the number in a record.
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

/// Registers of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Regs<'a> {
    /// Width of the registers.
    pub abi: RegsAbi,
    /// The registers that the event selects, one bit each, as numbered in the architecture's `perf_regs.h`.
    pub mask: u64,
    /// The values of the selected registers, lowest number first; empty in a sample whose `abi` is [`RegsAbi::None`].
    pub values: U64s<'a>,
}

impl<'a> Regs<'a> {
    /// Decodes the ABI and the registers of `mask`.
    pub(crate) fn decode(
        at: &mut Cursor<'a>,
        mask: u64,
        field: &'static str,
    ) -> Result<Self, DecodeError> {
        let abi = RegsAbi::from_raw(at.u64(field)?);
        let count = if abi == RegsAbi::None {
            0
        } else {
            u64::from(mask.count_ones())
        };
        Ok(Self {
            abi,
            mask,
            values: at.u64s(count, field)?,
        })
    }

    /// Appends the ABI and the registers; without `regs`, only [`RegsAbi::None`].
    pub(crate) fn encode(regs: Option<Self>, to: &mut Encoder<'_>) {
        to.u64(regs.map_or(0, |regs| regs.abi.raw()));
        regs.iter()
            .flat_map(|regs| regs.values.iter())
            .for_each(|value| to.u64(value));
    }

    /// The value of the register with this number; `None` if the dump lacks it.
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
