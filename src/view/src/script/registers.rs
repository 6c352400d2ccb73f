//! Registers of a sample, by name.

use rperf_wire::Regs;

use crate::digits;

/// The architecture; it determines the meaning of register numbers (`asm/perf_regs.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Architecture {
    /// x86, 32 and 64 bits.
    #[default]
    X86,
    /// 32-bit ARM.
    Arm,
    /// 64-bit ARM.
    Arm64,
    /// An architecture without register names here.
    Other,
}

const X86: [&str; 24] = [
    "AX", "BX", "CX", "DX", "SI", "DI", "BP", "SP", "IP", "FLAGS", "CS", "SS", "DS", "ES", "FS",
    "GS", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15",
];
/// The number of the first vector register; each has two numbers, one per 64 bits.
const XMM: u32 = 32;
/// `r11` is the frame pointer, `r12` the intra-procedure-call scratch register.
const ARM: [&str; 16] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "fp", "ip", "sp", "lr", "pc",
];
/// The registers after `x0` to `x29`.
const ARM64: [&str; 3] = ["lr", "sp", "pc"];
/// The number of `vg`, the length of SVE's vectors in units of 64 bits.
const ARM64_VG: u32 = 46;

impl Architecture {
    /// Returns the architecture of a machine name of uname(2).
    #[must_use]
    pub fn from_machine(machine: &str) -> Self {
        match machine {
            "x86_64" | "x86" | "i386" | "i486" | "i586" | "i686" => Self::X86,
            "aarch64" | "arm64" => Self::Arm64,
            _ if machine.starts_with("arm") => Self::Arm,
            _ => Self::Other,
        }
    }

    /// Returns the name of the register with this number; `unknown` if it has none here.
    #[must_use]
    pub fn register(self, number: u32) -> String {
        let listed = |names: &[&str], number: u32| {
            let name = names.get(number as usize);
            name.map(|name| (*name).to_owned())
        };
        let name = match self {
            Self::X86 if number >= XMM => Some(format!("XMM{}", (number - XMM) / 2)),
            Self::X86 => listed(&X86, number),
            Self::Arm => listed(&ARM, number),
            Self::Arm64 if number < 30 => Some(format!("x{number}")),
            Self::Arm64 if number == ARM64_VG => Some("vg".to_owned()),
            Self::Arm64 => listed(&ARM64, number - 30),
            Self::Other => None,
        };
        name.unwrap_or_else(|| "unknown".to_owned())
    }
}

/// Appends ` ABI:2    AX:0x… `; nothing if no register was recorded.
pub(super) fn write(registers: &Regs<'_>, architecture: Architecture, out: &mut Vec<u8>) {
    if registers.values.is_empty() {
        return;
    }
    out.extend_from_slice(b" ABI:");
    // Width 0: the numbers are not padded.
    digits::decimal(out, registers.abi.raw(), 0);
    out.push(b' ');
    let mask = registers.mask;
    let numbers = (0..u64::BITS).filter(|number| mask >> number & 1 == 1);
    for (number, value) in numbers.zip(registers.values.iter()) {
        digits::right(out, architecture.register(number).as_bytes(), 5);
        out.extend_from_slice(b":0x");
        digits::hexadecimal(out, value, 0);
        out.push(b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_names_of_their_machine() {
        for (machine, number, name) in [
            ("x86_64", 0, "AX"),
            ("x86_64", 9, "FLAGS"),
            ("i686", 23, "R15"),
            ("x86_64", 24, "unknown"),
            ("x86_64", 35, "XMM1"),
            ("x86_64", 63, "XMM15"),
            ("aarch64", 29, "x29"),
            ("aarch64", 30, "lr"),
            ("aarch64", 32, "pc"),
            ("aarch64", 33, "unknown"),
            ("aarch64", 46, "vg"),
            ("armv7l", 11, "fp"),
            ("riscv64", 0, "unknown"),
        ] {
            let register = Architecture::from_machine(machine).register(number);
            assert_eq!(register, name, "{machine} {number}");
        }
    }
}
