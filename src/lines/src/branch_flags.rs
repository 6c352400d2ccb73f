//! The kind of branch of a sample that was decoded from a hardware trace.

use rperf_insn::BranchKind;
use rperf_replay::Sample;
use rperf_resolve::AddressContext;
use rperf_wire::CpuMode;

use crate::LineBuilder;

/// Flags of a branch, as Linux perf numbers them for scripts (`perf_sample.flags`); 0 if the kind of the branch is unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BranchFlags(pub u32);

impl BranchFlags {
    const BRANCH: u32 = 1;
    const CALL: u32 = 1 << 1;
    const RETURN: u32 = 1 << 2;
    const CONDITIONAL: u32 = 1 << 3;
    const SYSCALL: u32 = 1 << 4;
    const ASYNC: u32 = 1 << 5;
    const INTERRUPT: u32 = 1 << 6;
    const TRACE_BEGIN: u32 = 1 << 8;
    const TRACE_END: u32 = 1 << 9;
    const VM_ENTRY: u32 = 1 << 11;
    /// A hardware interrupt: no instruction causes the branch.
    const HARDWARE_INTERRUPT: Self =
        Self(Self::BRANCH | Self::CALL | Self::ASYNC | Self::INTERRUPT);

    /// The short names of combinations of flags.
    const NAMES: &'static [(u32, &'static str)] = &[
        (Self::BRANCH, "jmp"),
        (Self::BRANCH | Self::CALL, "call"),
        (Self::BRANCH | Self::RETURN, "return"),
        (Self::BRANCH | Self::CONDITIONAL, "jcc"),
        (Self::BRANCH | Self::CALL | Self::SYSCALL, "syscall"),
        (Self::BRANCH | Self::RETURN | Self::SYSCALL, "sysret"),
        (Self::BRANCH | Self::CALL | Self::INTERRUPT, "int"),
        (Self::BRANCH | Self::RETURN | Self::INTERRUPT, "iret"),
        (Self::HARDWARE_INTERRUPT.0, "hw int"),
        (Self::BRANCH | Self::TRACE_BEGIN, "tr strt"),
        (Self::BRANCH | Self::TRACE_END, "tr end"),
        (Self::BRANCH | Self::CALL | Self::VM_ENTRY, "vmentry"),
    ];

    /// The flags of a branch by an instruction of this kind; 0 if it is no branch instruction.
    fn of_instruction(kind: Option<BranchKind>) -> Self {
        let Some(kind) = kind else {
            return Self(0);
        };
        Self(
            Self::BRANCH
                | match kind {
                    BranchKind::Jump => 0,
                    BranchKind::Conditional => Self::CONDITIONAL,
                    BranchKind::Call => Self::CALL,
                    BranchKind::Return => Self::RETURN,
                    BranchKind::SystemCall => Self::CALL | Self::SYSCALL,
                    BranchKind::SystemReturn => Self::RETURN | Self::SYSCALL,
                    BranchKind::Interrupt => Self::CALL | Self::INTERRUPT,
                    BranchKind::InterruptReturn => Self::RETURN | Self::INTERRUPT,
                    BranchKind::VmEntry => Self::CALL | Self::VM_ENTRY,
                },
        )
    }

    /// A letter for each set flag, from the lowest one on.
    #[must_use]
    pub fn letters(self) -> String {
        let letters = "bcrosyiABExghDt".chars().enumerate();
        let set = letters.filter(|(bit, _)| self.0 >> bit & 1 != 0);
        set.map(|(_, letter)| letter).collect()
    }

    /// The short name; empty for combinations without one.
    #[must_use]
    pub fn name(self) -> &'static str {
        let named = Self::NAMES.iter().find(|(flags, _)| *flags == self.0);
        named.map_or("", |(_, name)| *name)
    }
}

impl LineBuilder<'_, '_> {
    /// The flags of the branch of a sample that was decoded from a hardware trace. The branch is from the sample's instruction
    /// pointer to its data address.
    #[must_use]
    pub fn branch_flags(&self, sample: &Sample<'_>) -> BranchFlags {
        let from = sample.wire.ip.unwrap_or_default();
        let target = sample.wire.addr.unwrap_or_default();
        // An address of 0 is outside of the trace.
        match (from, target) {
            (0, 0) => return BranchFlags(0),
            (0, _) => return BranchFlags(BranchFlags::BRANCH | BranchFlags::TRACE_BEGIN),
            (_, 0) => return BranchFlags(BranchFlags::BRANCH | BranchFlags::TRACE_END),
            _ => {}
        }
        let at = AddressContext::of(sample);
        // `User` is only the first try: `locate_data` also finds an address in the kernel's half of the address space.
        let frame = self.resolver().locate_data(at, CpuMode::User, from);
        let Some(insn) = self.insn(&frame, sample.order) else {
            return BranchFlags(0);
        };
        let kind = insn.branch_kind();
        // As in perf, every branch from user space to the kernel is a hardware interrupt, unless it is a system call.
        match (CpuMode::of_address(from), CpuMode::of_address(target)) {
            (CpuMode::User, CpuMode::Kernel) if kind != Some(BranchKind::SystemCall) => {
                BranchFlags::HARDWARE_INTERRUPT
            }
            _ => BranchFlags::of_instruction(kind),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_of_instructions_have_names() {
        for (kind, flags, name) in [
            (BranchKind::Jump, 1, "jmp"),
            (BranchKind::Conditional, 9, "jcc"),
            (BranchKind::Call, 3, "call"),
            (BranchKind::Return, 5, "return"),
            (BranchKind::SystemCall, 19, "syscall"),
            (BranchKind::SystemReturn, 21, "sysret"),
            (BranchKind::Interrupt, 67, "int"),
            (BranchKind::InterruptReturn, 69, "iret"),
            (BranchKind::VmEntry, 2051, "vmentry"),
        ] {
            let actual = BranchFlags::of_instruction(Some(kind));
            assert_eq!((actual.0, actual.name()), (flags, name));
        }
        assert_eq!(BranchFlags::of_instruction(None).name(), "");
        assert_eq!(BranchFlags::HARDWARE_INTERRUPT.letters(), "bcyi");
    }
}
