//! What a recording adds to every event or takes from it: call graphs, further fields, one side of the machine.

use rperf_wire::{Attr, AttrFlags, SampleType};

use crate::EventSpec;

/// User registers that a stack can be unwound from (`uapi/asm/perf_regs.h`): on x86 all general ones, the instruction
/// pointer, flags, `cs` and `ss`; elsewhere all there are. `None` where dumps are not known.
pub const USER_REGISTERS: Option<u64> = if cfg!(target_arch = "x86_64") {
    Some(0x00ff_0fff)
} else if cfg!(target_arch = "aarch64") {
    Some((1 << 33) - 1)
} else if cfg!(target_arch = "riscv64") {
    Some((1 << 32) - 1)
} else {
    None
};

/// What the load of a memory access is told in: three parts in one word, which only x86 fills.
const WEIGHT: SampleType = if cfg!(target_arch = "x86_64") {
    SampleType::WEIGHT_STRUCT
} else {
    SampleType::WEIGHT
};

/// How callchains are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallGraph {
    /// Not at all.
    #[default]
    None,
    /// The kernel follows frame pointers (`-g`).
    FramePointers,
    /// The kernel's part by the kernel; for user space registers and a copy of the stack's top, to be unwound when the
    /// file is read.
    Dwarf {
        /// Bytes of each copy.
        stack_size: StackSize,
    },
}

/// Bytes of a stack copy: a multiple of 8 in 8..=65528, so that a record can hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSize(u32);

impl StackSize {
    /// The largest copy.
    pub const MAX: Self = Self(65528);

    /// `bytes` rounded up to a multiple of 8; `None` for nothing, or more than a record can hold.
    #[must_use]
    pub fn new(bytes: u64) -> Option<Self> {
        let rounded = u32::try_from(bytes.checked_next_multiple_of(8)?).ok()?;
        (1..=Self::MAX.0)
            .contains(&rounded)
            .then_some(Self(rounded))
    }

    /// The number of bytes.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.0
    }
}

impl Default for StackSize {
    fn default() -> Self {
        Self(8192)
    }
}

/// Where alone events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// In user space (`--all-user`).
    User,
    /// In the kernel (`--all-kernel`).
    Kernel,
}

impl Side {
    /// `event` on this side alone, whatever its own modifiers say; its name stays.
    #[must_use]
    pub fn of(self, mut event: EventSpec) -> EventSpec {
        self.narrow(&mut event.attr);
        event
    }

    pub(crate) fn narrow(self, attr: &mut Attr) {
        attr.flags = attr
            .flags
            .with(AttrFlags::EXCLUDE_KERNEL, self == Self::User)
            .with(AttrFlags::EXCLUDE_USER, self == Self::Kernel);
    }
}

/// Settings of `record` that change all attrs alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Details {
    /// Callchains leave the kernel's frames out (`--user-callchains`).
    pub user_callchains: bool,
    /// Callchains leave user frames out (`--kernel-callchains`).
    pub kernel_callchains: bool,
    /// Where alone all events are counted, those of the side-band too. [`Side::of`] narrows the others.
    pub side: Option<Side>,
    /// Children of the observed tasks are left out (`-i`).
    pub no_inherit: bool,
    /// Nothing is sampled, the side-band alone is recorded (`-n`).
    pub no_samples: bool,
    /// Data addresses with where they were found, and the mappings of data (`-d`).
    pub data: bool,
    /// Physical data addresses (`--phys-data`).
    pub phys_data: bool,
    /// Page sizes of data addresses (`--data-page-size`).
    pub data_page_size: bool,
    /// Page sizes of the instruction pointer (`--code-page-size`).
    pub code_page_size: bool,
    /// Weights of memory accesses (`-W`).
    pub weight: bool,
    /// The CPU of each sample (`--sample-cpu`).
    pub cpu: bool,
    /// The identifier even where samples of all events look alike (`--sample-identifier`).
    pub identifier: bool,
    /// The period of each sample even where it is fixed (`-P`).
    pub period: bool,
}

impl Details {
    /// What all of it means for one attr whose other fields are settled.
    pub(crate) fn apply(&self, call_graph: CallGraph, tracking: bool, attr: &mut Attr) {
        self.callchains(call_graph, attr);
        let stacks = matches!(call_graph, CallGraph::Dwarf { .. });
        let data = self.data || stacks;
        for (fields, on) in [
            (SampleType::ADDR | SampleType::DATA_SRC, data),
            (SampleType::PHYS_ADDR, self.phys_data),
            (SampleType::DATA_PAGE_SIZE, self.data_page_size),
            (SampleType::CODE_PAGE_SIZE, self.code_page_size),
            (WEIGHT, self.weight),
            (SampleType::CPU, self.cpu),
            (SampleType::PERIOD, self.period),
        ] {
            if on {
                attr.sample_type |= fields;
            }
        }
        if data && tracking {
            attr.flags |= AttrFlags::MMAP_DATA;
        }
        if self.no_inherit {
            attr.flags = attr.flags.with(AttrFlags::INHERIT, false);
        }
        if self.no_samples {
            attr.sample_period = 0;
        }
    }

    fn callchains(&self, call_graph: CallGraph, attr: &mut Attr) {
        if call_graph == CallGraph::None {
            return;
        }
        attr.sample_type |= SampleType::CALLCHAIN;
        if self.user_callchains {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_KERNEL;
        }
        if self.kernel_callchains {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
        }
        if let CallGraph::Dwarf { stack_size } = call_graph {
            attr.sample_type |= SampleType::REGS_USER | SampleType::STACK_USER;
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
            attr.sample_regs_user = USER_REGISTERS.unwrap_or_default();
            attr.sample_stack_user = stack_size.bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_stack_copies_fit_into_a_record() {
        let size = |bytes| StackSize::new(bytes).map(StackSize::bytes);
        assert_eq!(
            [1, 8, 100, 8192, 65521, 65528].map(size),
            [8, 8, 104, 8192, 65528, 65528].map(Some)
        );
        assert_eq!([0, 65529, 65536, u64::MAX].map(size), [None; 4]);
        assert_eq!(StackSize::new(8192), Some(StackSize::default()));
    }
}
