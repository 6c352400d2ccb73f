//! The registers available to probes, by the kernel's names (arch/*/kernel/ptrace.c,
//! `regs_query_register_offset`).

use gimli::Register;
use object::Architecture;

/// The general-purpose registers of 32-bit x86 by DWARF register number.
const X86: [&str; 8] = ["%ax", "%cx", "%dx", "%bx", "%sp", "%bp", "%si", "%di"];
/// The general-purpose registers of x86_64 by DWARF register number, without `%r8` to `%r15`, whose numbers are 8 to 15.
const X86_64: [&str; 8] = ["%ax", "%dx", "%cx", "%bx", "%si", "%di", "%bp", "%sp"];
/// x86 registers that the kernel knows, but that never hold a variable.
const X86_SPECIAL: [&str; 5] = ["%ip", "%cs", "%ss", "%flags", "%orig_ax"];
/// Segment registers that only 32-bit x86 kernels know.
const X86_SEGMENTS: [&str; 4] = ["%ds", "%es", "%fs", "%gs"];
/// The registers of the first integer and pointer parameters in the calling convention, in parameter order.
const X86_64_PARAMETERS: [&str; 6] = ["%di", "%si", "%dx", "%cx", "%r8", "%r9"];
/// Like [`X86_64_PARAMETERS`], for arm64.
const ARM64_PARAMETERS: [&str; 8] = ["%x0", "%x1", "%x2", "%x3", "%x4", "%x5", "%x6", "%x7"];

/// Returns the kernel's name of the register with this DWARF number; `None` if probes cannot read it or the architecture's
/// numbers are not known here.
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
pub(crate) fn why_unreadable(architecture: Architecture, register: Register) -> String {
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

/// Returns the register of parameter `number`, counted from 1, at a function's entry; `None` if the parameter is on the stack
/// or the architecture's calling convention is not known here.
pub(crate) fn parameter(architecture: Architecture, number: usize) -> Option<&'static str> {
    let names: &[&str] = match architecture {
        Architecture::X86_64 => &X86_64_PARAMETERS,
        Architecture::Aarch64 => &ARM64_PARAMETERS,
        _ => &[],
    };
    names.get(number.checked_sub(1)?).copied()
}

/// Returns where the first stack parameter is at a function's entry, as an offset from the stack pointer in bytes, and the number
/// of parameters before it, which are in registers. `None` if the architecture's calling convention is not known here.
pub(crate) fn stack_parameters(architecture: Architecture) -> Option<(i64, usize)> {
    match architecture {
        Architecture::X86_64 => Some((8, X86_64_PARAMETERS.len())),
        Architecture::Aarch64 => Some((0, ARM64_PARAMETERS.len())),
        _ => None,
    }
}

/// Whether the kernel knows a register of this name, which begins with `%`. All names are accepted for architectures
/// without a list here.
pub(crate) fn is_known(architecture: Architecture, name: &str) -> bool {
    let is_listed = |names: &[&str]| names.contains(&name) || X86_SPECIAL.contains(&name);
    let numbered = |prefix: &str, range: std::ops::RangeInclusive<u32>| {
        name.strip_prefix(prefix).is_some_and(|digits| {
            let number = digits.parse::<u32>();
            // Not `%r+8` or `%r08`.
            number.is_ok_and(|number| range.contains(&number) && number.to_string() == digits)
        })
    };
    match architecture {
        Architecture::I386 => is_listed(&X86) || X86_SEGMENTS.contains(&name),
        Architecture::X86_64 | Architecture::X86_64_X32 => {
            is_listed(&X86_64) || numbered("%r", 8..=15)
        }
        Architecture::Aarch64 => {
            numbered("%x", 0..=30) || ["%lr", "%sp", "%pc", "%pstate"].contains(&name)
        }
        _ => true,
    }
}

/// Returns the kernel's name of a register written in assembly syntax: `%rax`, `%eax`, `%al`, `%r8d`,
/// `%rip`; `None` if the kernel knows no such register.
pub(crate) fn kernel_name(architecture: Architecture, name: &str) -> Option<String> {
    let bare = name.strip_prefix('%')?;
    // Without the size prefix, rax and eax become ax; without the size suffix, r8d and dil become r8 and di. Each of
    // these names, and the unchanged one, is tried as it is, and then with an x appended: al becomes a, then ax. The first
    // name that the kernel knows is returned.
    let candidates = [
        bare.strip_prefix(['r', 'e']),
        bare.strip_suffix(['d', 'w', 'b', 'l']),
        Some(bare),
    ];
    let candidates = candidates.into_iter().flatten();
    candidates
        .flat_map(|bare| [format!("%{bare}"), format!("%{bare}x")])
        .find(|name| is_known(architecture, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dwarf_numbers_have_names_or_are_unreadable() {
        let of = |number| name(Architecture::X86_64, Register(number));
        assert_eq!(of(5).as_deref(), Some("%di"));
        assert_eq!(of(10).as_deref(), Some("%r10"));
        assert_eq!(of(17), None);
        assert!(why_unreadable(Architecture::X86_64, Register(17)).starts_with("it is in %xmm0:"));
        assert!(why_unreadable(Architecture::X86_64, Register(60)).contains("DWARF register 60"));
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
        assert!(!is_known(machine, "%r+8") && !is_known(machine, "%r08"));
        assert!(is_known(Architecture::I386, "%ds") && !is_known(machine, "%ds"));
        assert_eq!(kernel_name(machine, "%xmm0"), None);
    }
}
