//! Instruction set architectures.

/// An instruction set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Isa {
    /// 32-bit x86.
    X86,
    /// 64-bit x86.
    X86_64,
    /// 64-bit Arm.
    Arm64,
}

/// Index of the byte order in `e_ident`.
const EI_DATA: usize = 5;
/// Big-endian.
const ELFDATA2MSB: u8 = 2;
/// Offset of `e_machine`.
const E_MACHINE: usize = 18;
/// `EM_386` of linux/elf-em.h.
const EM_386: u16 = 3;
/// `EM_X86_64`.
const EM_X86_64: u16 = 62;
/// `EM_AARCH64`.
const EM_AARCH64: u16 = 183;

impl Isa {
    /// The instruction set of an ELF file, by `e_ident` and `e_machine` (elf(5)); `None` for other
    /// files and machines.
    #[must_use]
    pub fn of_elf(file: &[u8]) -> Option<Self> {
        let header = file.first_chunk::<20>()?;
        if !header.starts_with(b"\x7fELF") {
            return None;
        }
        let machine = [header[E_MACHINE], header[E_MACHINE + 1]];
        let machine = match header[EI_DATA] {
            ELFDATA2MSB => u16::from_be_bytes(machine),
            _ => u16::from_le_bytes(machine),
        };
        match machine {
            EM_386 => Some(Self::X86),
            EM_X86_64 => Some(Self::X86_64),
            EM_AARCH64 => Some(Self::Arm64),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_determines_the_isa() {
        let mut file = b"\x7fELF\x02\x01\x01".to_vec();
        file.resize(64, 0);
        for (machine, isa) in [
            (3, Some(Isa::X86)),
            (62, Some(Isa::X86_64)),
            (183, Some(Isa::Arm64)),
            // `EM_PPC64`.
            (21, None),
        ] {
            file[18] = machine;
            assert_eq!(Isa::of_elf(&file), isa);
        }
        // x86-64 in big-endian byte order, which does not exist, to test that `EI_DATA` is used.
        (file[5], file[18], file[19]) = (2, 0, 62);
        assert_eq!(Isa::of_elf(&file), Some(Isa::X86_64));
        assert_eq!(Isa::of_elf(&file[..19]), None);
        file[0] = 0;
        assert_eq!(Isa::of_elf(&file), None);
    }
}
