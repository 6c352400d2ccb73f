//! The registers available to probes, by the kernel's names (arch/*/kernel/ptrace.c,
//! `regs_query_register_offset`).

use gimli::Register;
use object::Architecture;

/// By DWARF register number.
const X86: [&str; 8] = ["%ax", "%cx", "%dx", "%bx", "%sp", "%bp", "%si", "%di"];
/// By DWARF register number.
const X86_64: [&str; 8] = ["%ax", "%dx", "%cx", "%bx", "%si", "%di", "%bp", "%sp"];
/// x86 registers that the kernel knows, but in which DWARF has no variables.
const X86_UNNUMBERED: [&str; 9] = [
    "%ip", "%cs", "%ss", "%flags", "%ds", "%es", "%fs", "%gs", "%orig_ax",
];
/// The registers of the first parameters in the calling convention.
const X86_64_PARAMETERS: [&str; 6] = ["%di", "%si", "%dx", "%cx", "%r8", "%r9"];
const ARM64_PARAMETERS: [&str; 8] = ["%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"];

/// Returns the kernel's name of the register with this DWARF number; `None` if probes cannot read it.
pub(crate) fn name(architecture: Architecture, register: Register) -> Option<String> {
    let number = usize::from(register.0);
    let by_number = |names: &[&str]| names.get(number).map(|name| (*name).to_owned());
    match architecture {
        Architecture::I386 => by_number(&X86),
        Architecture::X86_64 | Architecture::X86_64_X32 => match number {
            8..=15 => Some(format!("%r{number}")),
            _ => by_number(&X86_64),
        },
        Architecture::Aarch64 => match number {
            0..=29 => Some(format!("%x{number}")),
            30 => Some("%lr".to_owned()),
            31 => Some("%sp".to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// Returns why a value in a register unknown to the kernel cannot be recorded.
pub(crate) fn unreadable(architecture: Architecture, register: Register) -> String {
    let vector = match (architecture, register.0) {
        (Architecture::X86_64, number @ 17..=32) => Some(format!("%xmm{}", number - 17)),
        (Architecture::I386, number @ 21..=28) => Some(format!("%xmm{}", number - 21)),
        (Architecture::Aarch64, number @ 64..=95) => Some(format!("%v{}", number - 64)),
        _ => None,
    };
    match vector {
        Some(name) => {
            format!("it is in {name}: probes cannot read floating-point and vector registers")
        }
        None => format!(
            "it is in DWARF register {}, which probes cannot read",
            register.0
        ),
    }
}

/// Returns the register of parameter `number`, from 1, at a function's entry; `None` if it is on the stack or unknown.
pub(crate) fn parameter(architecture: Architecture, number: usize) -> Option<&'static str> {
    let names: &[&str] = match architecture {
        Architecture::X86_64 => &X86_64_PARAMETERS,
        Architecture::Aarch64 => &ARM64_PARAMETERS,
        _ => &[],
    };
    names.get(number.checked_sub(1)?).copied()
}

/// Returns the location of stack parameters at a function's entry: the offset of the first one from the stack pointer
/// in bytes, and the number of parameters in registers.
pub(crate) fn stack_parameters(architecture: Architecture) -> Option<(i64, usize)> {
    match architecture {
        Architecture::X86_64 => Some((8, X86_64_PARAMETERS.len())),
        Architecture::Aarch64 => Some((0, ARM64_PARAMETERS.len())),
        _ => None,
    }
}

/// Whether the kernel knows a register of this name. All names are accepted for architectures
/// without a list here.
pub(crate) fn is_known(architecture: Architecture, word: &str) -> bool {
    let is_listed = |names: &[&str]| names.contains(&word) || X86_UNNUMBERED.contains(&word);
    let numbered = |prefix: &str, range: std::ops::RangeInclusive<u32>| {
        let digits = word.strip_prefix(prefix);
        digits
            .and_then(|digits| digits.parse().ok())
            .is_some_and(|number| range.contains(&number))
    };
    match architecture {
        Architecture::I386 => is_listed(&X86),
        Architecture::X86_64 | Architecture::X86_64_X32 => {
            is_listed(&X86_64) || numbered("%r", 8..=15)
        }
        Architecture::Aarch64 => {
            numbered("%x", 0..=30) || ["%lr", "%sp", "%pc", "%pstate"].contains(&word)
        }
        _ => true,
    }
}

/// Returns the kernel's name of a register written in assembly syntax: `%rax`, `%eax`, `%al`, `%r8d`,
/// `%rip`; `None` if the kernel knows no such register.
pub(crate) fn kernel_name(architecture: Architecture, word: &str) -> Option<String> {
    let bare = word.strip_prefix('%')?;
    // rax, eax: ax; r8d, dil: r8, di; al: a, which with an x is ax. Candidates that are no registers are dropped.
    let candidates = [
        bare.strip_prefix(['r', 'e']),
        bare.strip_suffix(['d', 'w', 'b', 'l']),
        Some(bare),
    ];
    let names = candidates.into_iter().flatten();
    names
        .flat_map(|name| [format!("%{name}"), format!("%{name}x")])
        .find(|name| is_known(architecture, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names() {
        let of = |number| name(Architecture::X86_64, Register(number));
        assert_eq!(of(5).as_deref(), Some("%di"));
        assert_eq!(of(10).as_deref(), Some("%r10"));
        assert_eq!(of(17), None);
        assert!(unreadable(Architecture::X86_64, Register(17)).starts_with("it is in %xmm0:"));
        assert!(unreadable(Architecture::X86_64, Register(60)).contains("DWARF register 60"));
        let arm = name(Architecture::Aarch64, Register(30));
        assert_eq!(arm.as_deref(), Some("%lr"));
    }

    #[test]
    fn names_in_assembly_syntax_are_converted() {
        let machine = Architecture::X86_64;
        for (word, name) in [
            ("%rax", "%ax"),
            ("%edi", "%di"),
            ("%r8d", "%r8"),
            ("%rip", "%ip"),
            ("%al", "%ax"),
            ("%dil", "%di"),
        ] {
            assert!(!is_known(machine, word));
            assert_eq!(kernel_name(machine, word).as_deref(), Some(name));
        }
        assert!(is_known(machine, "%r15") && !is_known(machine, "%r16"));
        assert_eq!(kernel_name(machine, "%xmm0"), None);
    }
}
