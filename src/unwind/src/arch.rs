//! Architecture properties: numbers and names of registers, address size.

use gimli::Vendor;
use rperf_wire::RegsAbi;

/// An architecture whose user stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// 64-bit x86.
    X86_64,
    /// 32-bit x86.
    X86,
    /// 64-bit Arm.
    Aarch64,
    /// 32-bit Arm.
    Arm,
}

/// The kernel's numbers (`asm/perf_regs.h`) of the registers of x86-64, indexed by DWARF number. The last register, DWARF's
/// return address, is the instruction pointer.
const X86_64: &[u32] = &[
    0,
    3,
    2,
    1,
    4,
    5,
    6,
    7,
    16,
    17,
    18,
    19,
    20,
    21,
    22,
    23,
    PERF_X86_IP,
];
/// The same for 32-bit x86.
const X86: &[u32] = &[0, 2, 3, 1, 7, 6, 4, 5, PERF_X86_IP];
/// The same for 64-bit Arm, but the last is the stack pointer; the return address is in register 30, the link register.
const AARCH64: &[u32] = &[
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31,
];
/// The same for 32-bit Arm; the last is the program counter.
const ARM: &[u32] = &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
/// The kernel's number of the instruction pointer, on 32-bit and 64-bit x86.
const PERF_X86_IP: u32 = 8;
/// The kernel's number of the program counter on 64-bit Arm.
const PERF_ARM64_PC: u32 = 32;
/// The kernel's number of the program counter on 32-bit Arm.
const PERF_ARM_PC: u32 = 15;

impl Arch {
    /// The architecture of a task with registers of this ABI on a machine of this name (`uname -m`); `None` if it is not
    /// supported.
    #[must_use]
    pub fn of_task(machine: &str, abi: RegsAbi) -> Option<Self> {
        let is_x86 = matches!(
            machine,
            "x86_64" | "x86" | "i386" | "i486" | "i586" | "i686"
        );
        let is_arm = machine.starts_with("arm") || machine.starts_with("aarch64");
        match abi {
            RegsAbi::Bits64 if is_x86 => Some(Self::X86_64),
            RegsAbi::Bits32 if is_x86 => Some(Self::X86),
            RegsAbi::Bits64 if is_arm => Some(Self::Aarch64),
            RegsAbi::Bits32 if is_arm => Some(Self::Arm),
            _ => None,
        }
    }

    /// The architecture of an object file; `None` if it is not supported.
    pub(crate) fn of_object(architecture: object::Architecture) -> Option<Self> {
        match architecture {
            object::Architecture::X86_64 => Some(Self::X86_64),
            object::Architecture::I386 => Some(Self::X86),
            object::Architecture::Aarch64 => Some(Self::Aarch64),
            object::Architecture::Arm => Some(Self::Arm),
            _ => None,
        }
    }

    /// Kernel numbers of the registers, indexed by DWARF number.
    pub(crate) fn perf_registers(self) -> &'static [u32] {
        match self {
            Self::X86_64 => X86_64,
            Self::X86 => X86,
            Self::Aarch64 => AARCH64,
            Self::Arm => ARM,
        }
    }

    /// Kernel number of the instruction pointer.
    pub(crate) fn perf_ip(self) -> u32 {
        match self {
            Self::X86_64 | Self::X86 => PERF_X86_IP,
            Self::Aarch64 => PERF_ARM64_PC,
            Self::Arm => PERF_ARM_PC,
        }
    }

    /// DWARF number of the stack pointer.
    pub(crate) fn stack_pointer(self) -> u8 {
        match self {
            Self::X86_64 => 7,
            Self::X86 => 4,
            Self::Aarch64 => 31,
            Self::Arm => 13,
        }
    }

    /// DWARF number of the frame pointer; `None` for 32-bit Arm, where compilers use different ones.
    pub(crate) fn frame_pointer(self) -> Option<u8> {
        (self != Self::Arm).then(|| self.outermost_marker())
    }

    /// DWARF number of the register that is 0 in the outermost frame: it is cleared when a thread starts. On architectures where
    /// all compilers use the same frame pointer, it is this frame pointer.
    pub(crate) fn outermost_marker(self) -> u8 {
        match self {
            Self::X86_64 => 6,
            Self::X86 => 5,
            Self::Aarch64 => 29,
            Self::Arm => 11,
        }
    }

    /// DWARF number of the link register, if the architecture has one.
    pub(crate) fn link_register(self) -> Option<u8> {
        match self {
            Self::X86_64 | Self::X86 => None,
            Self::Aarch64 => Some(30),
            Self::Arm => Some(14),
        }
    }

    /// DWARF number of the instruction pointer; `None` for 64-bit Arm, whose frame information does not use it.
    pub(crate) fn instruction_pointer(self) -> Option<u8> {
        match self {
            Self::X86_64 => Some(16),
            Self::X86 => Some(8),
            Self::Aarch64 => None,
            Self::Arm => Some(15),
        }
    }

    /// DWARF number of the return address column.
    pub(crate) fn return_address_register(self) -> u8 {
        match self {
            Self::X86_64 => 16,
            Self::X86 => 8,
            Self::Aarch64 => 30,
            Self::Arm => 14,
        }
    }

    /// Size of an address in bytes.
    pub(crate) fn address_size(self) -> u8 {
        match self {
            Self::X86_64 | Self::Aarch64 => 8,
            Self::X86 | Self::Arm => 4,
        }
    }

    /// Truncates `value` to the size of a register.
    pub(crate) fn truncate(self, value: u64) -> u64 {
        match self.address_size() {
            4 => value & u64::from(u32::MAX),
            _ => value,
        }
    }

    /// The code address of a saved return address: without the pointer authentication code of
    /// Armv8.3 in its high bits, and without the Thumb bit.
    pub(crate) fn code_address(self, value: u64) -> u64 {
        match self {
            Self::X86_64 | Self::X86 => value,
            // User addresses in Linux have 48 bits unless a process requests more.
            Self::Aarch64 => value & ((1 << 48) - 1),
            Self::Arm => value & !1,
        }
    }

    /// The vendor extensions of the frame information.
    pub(crate) fn vendor(self) -> Vendor {
        match self {
            Self::Aarch64 => Vendor::AArch64,
            _ => Vendor::Default,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arch_follows_from_machine_and_register_width() {
        for (machine, abi, expected) in [
            ("x86_64", RegsAbi::Bits64, Some(Arch::X86_64)),
            ("x86_64", RegsAbi::Bits32, Some(Arch::X86)),
            ("i686", RegsAbi::Bits32, Some(Arch::X86)),
            ("aarch64", RegsAbi::Bits64, Some(Arch::Aarch64)),
            ("aarch64", RegsAbi::Bits32, Some(Arch::Arm)),
            ("armv7l", RegsAbi::Bits32, Some(Arch::Arm)),
            ("x86_64", RegsAbi::None, None),
            ("riscv64", RegsAbi::Bits64, None),
            ("x86_64", RegsAbi::Other(7), None),
        ] {
            assert_eq!(Arch::of_task(machine, abi), expected, "{machine} {abi:?}");
        }
    }

    #[test]
    fn special_registers_are_in_the_register_table() {
        for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64, Arch::Arm] {
            let special = [
                Some(arch.stack_pointer()),
                arch.frame_pointer(),
                arch.link_register(),
                arch.instruction_pointer(),
            ];
            for register in special.into_iter().flatten() {
                assert!(
                    arch.perf_registers().len() > usize::from(register),
                    "{arch:?}"
                );
            }
        }
    }

    #[test]
    fn code_addresses_have_no_authentication_code_or_thumb_bit() {
        assert_eq!(
            Arch::Aarch64.code_address(0x0035_ffff_8123_4568),
            0xffff_8123_4568
        );
        assert_eq!(Arch::Arm.code_address(0x8001), 0x8000);
        assert_eq!(Arch::X86_64.code_address(0x8001), 0x8001);
    }
}
