//! The registers of one frame.

use rperf_wire::Regs;

use crate::Arch;

/// Number of tracked registers: 64-bit Arm has the most. Its last, 32, is the program counter, which is unknown unless a rule of
/// the frame information sets it: [`Arch::instruction_pointer`] is `None` for 64-bit Arm.
const COUNT: usize = 33;

/// The registers of one frame by DWARF number; some may be unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The instruction pointer of the frame.
    pub(crate) ip: u64,
    /// Bit mask of the known registers, by DWARF number.
    known: u64,
    values: [u64; COUNT],
}

impl Registers {
    /// Registers of which only the instruction pointer is known.
    pub(crate) fn new(ip: u64) -> Self {
        Self {
            ip,
            known: 0,
            values: [0; COUNT],
        }
    }

    /// The registers of a sample; `None` if its instruction pointer or its stack pointer is missing.
    #[must_use]
    pub fn of_sample(arch: Arch, dumped: &Regs<'_>) -> Option<Self> {
        let mut registers = Self::new(arch.truncate(dumped.get(arch.perf_ip())?));
        for (number, kernel_number) in (0..).zip(arch.perf_registers()) {
            if let Some(value) = dumped.get(*kernel_number) {
                registers.set(number, arch.truncate(value));
            }
        }
        registers.get(arch.stack_pointer()).map(|_| registers)
    }

    /// The stack pointer; 0 if unknown.
    #[must_use]
    pub fn stack_pointer(&self, arch: Arch) -> u64 {
        self.get(arch.stack_pointer()).unwrap_or_default()
    }

    /// Sets the instruction pointer, and its DWARF register if [`Arch::instruction_pointer`] returns one.
    pub(crate) fn set_ip(&mut self, arch: Arch, ip: u64) {
        self.ip = ip;
        if let Some(register) = arch.instruction_pointer() {
            self.set(register, ip);
        }
    }

    /// The value of the register with this DWARF number; `None` if unknown.
    #[inline]
    pub(crate) fn get(&self, number: u8) -> Option<u64> {
        let value = self.values.get(usize::from(number))?;
        (self.known >> number & 1 == 1).then_some(*value)
    }

    /// Sets a register; registers that aren't tracked are ignored.
    #[inline]
    pub(crate) fn set(&mut self, number: u8, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(number)) {
            *place = value;
            self.known |= 1 << number;
        }
    }

    /// Marks a register as unknown.
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
        // Each register contains its number in the kernel's order.
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
    fn sampled_registers_need_stack_and_instruction_pointers() {
        let values: Vec<u8> = [1_u64, 2].iter().flat_map(|v| v.to_le_bytes()).collect();
        // In the kernel's order, bit 6 is the frame pointer, 7 the stack pointer, 8 the instruction pointer.
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 7 | 1 << 8, &values)).is_some());
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 6 | 1 << 8, &values)).is_none());
        assert!(Registers::of_sample(Arch::X86_64, &dumped(1 << 6 | 1 << 7, &values)).is_none());
        // Nine registers, but only two values.
        assert!(Registers::of_sample(Arch::X86_64, &dumped(0x1ff, &values)).is_none());
    }

    #[test]
    fn untracked_registers_are_ignored() {
        let mut registers = Registers::new(0);
        for number in [33, 34, 63, 64, 255] {
            registers.set(number, 1);
            registers.forget(number);
            assert_eq!(registers.get(number), None);
        }
    }
}
