//! What a recording adds to every event or takes from it: call graphs, further fields, one side of the machine.

use rperf_wire::{Attr, AttrFlags, BranchSampleType, ReadFormat, SampleType};

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

/// `PERF_REG_ARM64_LR` as a mask.
const LINK_REGISTER: u64 = 1 << 30;

/// What the load of a memory access is told in: three parts in one word, which only x86 fills.
const WEIGHT: SampleType = if cfg!(target_arch = "x86_64") {
    SampleType::WEIGHT_STRUCT
} else {
    SampleType::WEIGHT
};

/// Calls of user space that have not returned, and no more of each than its addresses.
const CALLS: BranchSampleType = BranchSampleType(
    BranchSampleType::USER.0
        | BranchSampleType::CALL_STACK.0
        | BranchSampleType::NO_FLAGS.0
        | BranchSampleType::NO_CYCLES.0
        | BranchSampleType::HW_INDEX.0,
);

/// How callchains are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CallGraph {
    /// Not at all.
    #[default]
    None,
    /// The kernel follows frame pointers (`-g`).
    FramePointers,
    /// The same, but user space only when the task returns there, once for all samples until then (`fp,defer`; the
    /// kernel, from Linux 6.19 on).
    Deferred,
    /// The kernel's part by the kernel; for user space registers and a copy of the stack's top, to be unwound when the
    /// file is read.
    Dwarf {
        /// Bytes of each copy.
        stack_size: StackSize,
    },
    /// The kernel's part by the kernel; for user space the processor's record of calls, where it keeps one.
    BranchRecords,
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
    /// The period of each sample: even where it is fixed (`-P`), or nowhere (`--no-period`).
    pub period: Option<bool>,
    /// The time of each sample: even where nothing else needs it (`-T`), or nowhere (`--no-timestamp`).
    pub time: Option<bool>,
    /// Flags of transactions (`--transaction`).
    pub transaction: bool,
    /// Counts of each task when it ends, not summed up with those of its parent (`-s`).
    pub stat: bool,
    /// Reads tell how long the event was enabled and on a counter (`--running-time`).
    pub running_time: bool,
    /// One counter for each thread on all CPUs, children left out (`--per-thread`).
    pub per_thread: bool,
    /// Everything but the side-band starts later (`-D`).
    pub delayed: bool,
    /// Rings keep the last samples, written over the first (`--overwrite`).
    pub overwrite: bool,
    /// Every record wakes the reader (`--no-buffering`).
    pub no_buffering: bool,
    /// No records of BPF programs (`--no-bpf-event`).
    pub no_bpf_event: bool,
    /// Records of context switches (`--switch-events`).
    pub switch_events: bool,
    /// Records of the namespaces of tasks (`--namespaces`).
    pub namespaces: bool,
    /// Records of cgroups, and the cgroup of each sample (`--all-cgroups`).
    pub cgroups: bool,
    /// Mappings tell the build-ids of their files (`--buildid-mmap`).
    pub build_ids: bool,
    /// Mask of user registers that samples hold (`--user-regs`), 0 for none.
    pub user_regs: u64,
    /// Mask of registers at the interrupt that samples hold (`--intr-regs`), 0 for none.
    pub intr_regs: u64,
    /// Branches that samples hold (`-b`, `-j`), empty for none.
    pub branches: BranchSampleType,
    /// Clock of all times (`-k`, a `CLOCK_*` number); `None` for the kernel's own.
    pub clockid: Option<i32>,
}

impl Details {
    /// What all of it means for one attr whose other fields are settled.
    pub(crate) fn apply(&self, call_graph: CallGraph, tracking: bool, attr: &mut Attr) {
        let stacks = matches!(call_graph, CallGraph::Dwarf { .. });
        let data = self.data || stacks;
        for (fields, on) in [
            (SampleType::ADDR | SampleType::DATA_SRC, data),
            (SampleType::PHYS_ADDR, self.phys_data),
            (SampleType::DATA_PAGE_SIZE, self.data_page_size),
            (SampleType::CODE_PAGE_SIZE, self.code_page_size),
            (WEIGHT, self.weight),
            (SampleType::CPU, self.cpu),
            (SampleType::PERIOD, self.period == Some(true)),
            (SampleType::TRANSACTION, self.transaction),
            (SampleType::CGROUP, self.cgroups),
            (SampleType::BRANCH_STACK, !self.branches.is_empty()),
        ] {
            if on {
                attr.sample_type |= fields;
            }
        }
        attr.branch_sample_type = self.branches;
        self.callchains(call_graph, attr);
        // One counter of one thread has its records in order: perf saves the time there.
        let time = self.time.unwrap_or(!self.per_thread);
        for (field, without) in [
            (SampleType::TIME, !time),
            (SampleType::PERIOD, self.period == Some(false)),
        ] {
            if without {
                attr.sample_type = attr.sample_type.with(field, false);
            }
        }
        if self.stat || self.running_time {
            attr.read_format |= ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING;
        }
        self.set_flags(data, tracking, attr);
        if let Some(clockid) = self.clockid {
            attr.clockid = clockid;
        }
        if self.no_buffering {
            attr.wakeup = 1;
        }
        if self.no_samples {
            attr.sample_period = 0;
        }
    }

    fn set_flags(&self, data: bool, tracking: bool, attr: &mut Attr) {
        for (flag, on) in [
            (AttrFlags::MMAP_DATA, data && tracking),
            (AttrFlags::CONTEXT_SWITCH, self.switch_events && tracking),
            (AttrFlags::NAMESPACES, self.namespaces && tracking),
            (AttrFlags::CGROUP, self.cgroups && tracking),
            (AttrFlags::BUILD_ID, self.build_ids && tracking),
            (AttrFlags::INHERIT_STAT, self.stat),
            (AttrFlags::USE_CLOCKID, self.clockid.is_some()),
        ] {
            attr.flags = attr.flags.with(flag, on);
        }
        for (flag, off) in [
            (AttrFlags::INHERIT, self.no_inherit || self.per_thread),
            (AttrFlags::BPF_EVENT, self.no_bpf_event),
        ] {
            attr.flags = attr.flags.with(flag, !off && attr.flags.contains(flag));
        }
    }

    /// Registers besides those that stacks are unwound from; the side-band has none. On arm64 frame pointers don't lead
    /// to the caller of a leaf function: the link register does.
    pub(crate) fn registers(&self, call_graph: CallGraph, attr: &mut Attr) {
        let mut user_regs = self.user_regs;
        if cfg!(target_arch = "aarch64")
            && matches!(call_graph, CallGraph::FramePointers | CallGraph::Deferred)
        {
            user_regs |= LINK_REGISTER;
        }
        if user_regs != 0 {
            attr.sample_type |= SampleType::REGS_USER;
            attr.sample_regs_user |= user_regs;
        }
        if self.intr_regs != 0 {
            attr.sample_type |= SampleType::REGS_INTR;
            attr.sample_regs_intr = self.intr_regs;
        }
    }

    fn callchains(&self, call_graph: CallGraph, attr: &mut Attr) {
        if call_graph == CallGraph::None {
            return;
        }
        attr.sample_type |= SampleType::CALLCHAIN;
        if call_graph == CallGraph::Deferred {
            attr.flags |= AttrFlags::DEFER_CALLCHAIN;
        }
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
        // Of the kernel there is no such record, and branches of other kinds leave no room for one.
        let is_free = attr.branch_sample_type.is_empty();
        if call_graph == CallGraph::BranchRecords
            && is_free
            && !attr.flags.contains(AttrFlags::EXCLUDE_USER)
        {
            attr.sample_type |= SampleType::BRANCH_STACK;
            attr.branch_sample_type = CALLS;
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
