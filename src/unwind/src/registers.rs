//! The registers of one frame.

use rperf_wire::Regs;

use crate::Arch;

/// Registers that are followed: those of 64-bit Arm are the most.
const COUNT: usize = 33;

/// The registers of one frame, by their numbers in DWARF; some may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// Where the frame executes, or would go on.
    pub(crate) ip: u64,
    known: u64,
    values: [u64; COUNT],
}

impl Registers {
    /// Only the instruction pointer is known.
    pub(crate) fn new(ip: u64) -> Self {
        Self {
            ip,
            known: 0,
            values: [0; COUNT],
        }
    }

    /// The registers of a sample; `None` without an instruction pointer and a stack pointer.
    #[must_use]
    pub fn of_sample(arch: Arch, dumped: &Regs<'_>) -> Option<Self> {
        let mut registers = Self::new(arch.truncate(dumped.get(arch.perf_ip())?));
        for (number, perf) in (0..).zip(arch.registers()) {
            if let Some(value) = dumped.get(*perf) {
                registers.set(number, arch.truncate(value));
            }
        }
        registers.get(arch.stack_pointer()).map(|_| registers)
    }

    /// The stack pointer; 0 where it is lost.
    #[must_use]
    pub fn stack_pointer(&self, arch: Arch) -> u64 {
        self.get(arch.stack_pointer()).unwrap_or_default()
    }

    /// The register with this DWARF number.
    #[inline]
    pub(crate) fn get(&self, number: u8) -> Option<u64> {
        let value = self.values.get(usize::from(number))?;
        (self.known >> number & 1 == 1).then_some(*value)
    }

    /// Registers that are not followed are passed over.
    #[inline]
    pub(crate) fn set(&mut self, number: u8, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(number)) {
            *place = value;
            self.known |= 1 << number;
        }
    }

    /// The register's value is lost.
    #[inline]
    pub(crate) fn forget(&mut self, number: u8) {
        if usize::from(number) < COUNT {
            self.known &= !(1 << number);
        }
    }
}

#[cfg(test)]
mod tests {
    use rperf_wire::{Endian, RegsAbi, U64s};

    use super::*;

    fn dumped(mask: u64, values: &[u8]) -> Regs<'_> {
        Regs {
            abi: RegsAbi::Bits64,
            mask,
            values: U64s::new(values, Endian::Little),
        }
    }

    #[test]
    fn a_dump_is_reordered_for_dwarf() {
        // Each register holds its own number in the kernel's order.
        let mask = 0xff_0fff_u64;
        let bits = (0..24_u64).filter(|bit| mask >> bit & 1 == 1);
        let values: Vec<u8> = bits.flat_map(u64::to_le_bytes).collect();
        let registers = Registers::of_sample(Arch::X86_64, &dumped(mask, &values)).unwrap();
        assert_eq!(registers.ip, 8);
        let of = |number| registers.get(number).unwrap();
        assert_eq!([of(1), of(3), of(6), of(7), of(15)], [3, 1, 6, 7, 23]);
        assert_eq!(registers.get(17), None);
        assert_eq!(registers.get(255), None);
    }

    #[test]
    fn without_stack_pointer_there_is_nothing_to_unwind() {
        let values: Vec<u8> = [1_u64, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 7 | 1 << 8, &values)).is_some());
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 6 | 1 << 8, &values)).is_none());
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 6 | 1 << 7, &values)).is_none());
        assert!(Registers::of_sample(Arch::X86_64, &dumped(0x1ff, &values)).is_none());
    }

    #[test]
    fn registers_beyond_the_last_are_passed_over() {
        let mut registers = Registers::new(0);
        for number in [33, 34, 63, 64, 255] {
            registers.set(number, 1);
            registers.forget(number);
            assert_eq!(registers.get(number), None);
        }
    }
}
