//! Options of `record` that apply to all events: call graphs, sample fields, privilege levels.

use rperf_wire::{Attr, AttrFlags, BranchSampleType, ReadFormat, SampleType};

use crate::EventSpec;

/// User registers recorded for unwinding (`uapi/asm/perf_regs.h`): on x86 the general ones, the
/// instruction pointer, flags, `cs` and `ss`; on other architectures all. `None` if the registers
/// of the architecture are unknown.
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

/// The sample field for the weight of memory accesses; on x86 three parts in one word.
const WEIGHT: SampleType = if cfg!(target_arch = "x86_64") {
    SampleType::WEIGHT_STRUCT
} else {
    SampleType::WEIGHT
};

/// The branch filter for call stacks in user space: without flags and cycles, with the hardware index.
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
    /// Callchains are not recorded.
    #[default]
    None,
    /// The kernel follows frame pointers (`-g`).
    FramePointers,
    /// The kernel follows frame pointers, but records the user part only on return to user space,
    /// once for all samples until then (`fp,defer`; Linux 6.19).
    Deferred,
    /// The kernel part comes from the kernel; for the user part, registers and a copy of the stack's
    /// top are recorded, to be unwound later.
    Dwarf {
        /// Size of each copy.
        stack_size: StackSize,
        /// Whether data addresses are recorded, too: perf records them if the mode is given as an option, but not if `-g` takes
        /// it from the configuration.
        with_data: bool,
    },
    /// The kernel part comes from the kernel, the user part from the processor's call stack branch
    /// records.
    BranchRecords,
}

/// Size of a stack copy in bytes: a multiple of 8 in 8..=65528. The kernel rejects larger sizes, as record sizes have 16 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackSize(u32);

impl StackSize {
    /// The maximum size.
    pub const MAX: Self = Self(65528);

    /// Rounds `bytes` up to a multiple of 8; `None` for 0, or if the result exceeds [`StackSize::MAX`].
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

/// The only privilege level at which events are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivilegeLevel {
    /// In user space (`--all-user`).
    User,
    /// In the kernel (`--all-kernel`).
    Kernel,
}

impl PrivilegeLevel {
    /// Restricts `event` to this level, regardless of its modifiers; the name is unchanged.
    #[must_use]
    pub fn restrict_event(self, mut event: EventSpec) -> EventSpec {
        self.restrict(&mut event.attr);
        event
    }

    pub(crate) fn restrict(self, attr: &mut Attr) {
        attr.flags = attr
            .flags
            .with(AttrFlags::EXCLUDE_KERNEL, self == Self::User)
            .with(AttrFlags::EXCLUDE_USER, self == Self::Kernel);
    }
}

/// Settings of `record` that apply to all attrs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecordDetails {
    /// Which tasks are counted, where and when.
    pub scope: TaskScope,
    /// Optional fields of samples.
    pub samples: SampleFields,
    /// Records besides samples.
    pub side_band: SideBand,
    /// How counters are read.
    pub reads: CounterReads,
    /// Record side-band events only, without samples (`-n`).
    pub no_samples: bool,
    /// Overwrite the oldest samples in the rings (`--overwrite`).
    pub overwrite: bool,
    /// Wake up the reader for every sample (`--no-buffering`).
    pub no_buffering: bool,
    /// Clock of timestamps (`-k`, a `CLOCK_*` number); `None` for the kernel's default.
    pub clockid: Option<i32>,
}

/// Which tasks are counted, where and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TaskScope {
    /// The level to which events are restricted. The caller restricts the given events with [`PrivilegeLevel::restrict_event`];
    /// here it only restricts an added side-band event, except with a hardware trace, whose side-band event is always `dummy:u`.
    pub level: Option<PrivilegeLevel>,
    /// Don't inherit events to child tasks (`-i`).
    pub no_inherit: bool,
    /// One counter per thread on all CPUs, without children (`--per-thread`).
    pub per_thread: bool,
    /// Start disabled, except for side-band events (`-D`).
    pub delayed: bool,
}

/// Sample fields in addition to those required by events and call graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SampleFields {
    /// Omit kernel frames from callchains (`--user-callchains`).
    pub user_callchains: bool,
    /// Omit user frames from callchains (`--kernel-callchains`).
    pub kernel_callchains: bool,
    /// Data addresses and data sources of memory accesses, and data mappings (`-d`).
    pub data: bool,
    /// Physical data addresses (`--phys-data`).
    pub phys_data: bool,
    /// Page sizes of data addresses (`--data-page-size`).
    pub data_page_size: bool,
    /// Page sizes of code addresses (`--code-page-size`).
    pub code_page_size: bool,
    /// Weights of memory accesses (`-W`).
    pub weight: bool,
    /// The CPU (`--sample-cpu`).
    pub cpu: bool,
    /// Sample identifier even if all events have the same sample layout (`--sample-identifier`).
    pub identifier: bool,
    /// Period: always (`-P`), or never (`--no-period`).
    pub period: Option<bool>,
    /// Timestamp: always (`-T`), or never (`--no-timestamp`).
    pub time: Option<bool>,
    /// Transaction flags (`--transaction`).
    pub transaction: bool,
    /// Mask of user registers (`--user-regs`), 0 for none.
    pub user_regs: u64,
    /// Mask of registers at the interrupt (`--intr-regs`), 0 for none.
    pub intr_regs: u64,
    /// Branches (`-b`, `-j`), empty for none.
    pub branches: BranchSampleType,
}

/// Records besides samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SideBand {
    /// Context switches (`--switch-events`).
    pub switches: bool,
    /// The namespaces of tasks (`--namespaces`).
    pub namespaces: bool,
    /// Cgroups, and the cgroup of each sample (`--all-cgroups`).
    pub cgroups: bool,
    /// The build-ids of files in records of mappings (`--buildid-mmap`).
    pub build_ids: bool,
    /// Omit BPF programs (`--no-bpf-event`).
    pub no_bpf: bool,
}

/// What reads of counters return besides the count, and whether counts are recorded when a task exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterReads {
    /// Record the counts of each task when it exits (`-s`).
    pub per_task: bool,
    /// Read the times enabled and running with counts (`--running-time`).
    pub running_time: bool,
}

impl RecordDetails {
    /// Applies these settings to an attr whose other fields are set. `tracking` means that the event generates the side-band
    /// records.
    pub(crate) fn apply(&self, call_graph: CallGraph, tracking: bool, attr: &mut Attr) {
        let with_data = matches!(
            call_graph,
            CallGraph::Dwarf {
                with_data: true,
                ..
            }
        );
        let data = self.samples.data || with_data;
        for (fields, on) in [
            (SampleType::ADDR | SampleType::DATA_SRC, data),
            (SampleType::PHYS_ADDR, self.samples.phys_data),
            (SampleType::DATA_PAGE_SIZE, self.samples.data_page_size),
            (SampleType::CODE_PAGE_SIZE, self.samples.code_page_size),
            (WEIGHT, self.samples.weight),
            (SampleType::CPU, self.samples.cpu),
            (SampleType::PERIOD, self.samples.period == Some(true)),
            (SampleType::TRANSACTION, self.samples.transaction),
            (SampleType::CGROUP, self.side_band.cgroups),
            (SampleType::BRANCH_STACK, !self.samples.branches.is_empty()),
        ] {
            if on {
                attr.sample_type |= fields;
            }
        }
        attr.branch_sample_type = self.samples.branches;
        self.add_callchains(call_graph, attr);
        // `attr` already has TIME. With `--per-thread` perf omits it: the records of a single thread's counter are in order.
        let time = self.samples.time.unwrap_or(!self.scope.per_thread);
        for (field, without) in [
            (SampleType::TIME, !time),
            (SampleType::PERIOD, self.samples.period == Some(false)),
        ] {
            if without {
                attr.sample_type = attr.sample_type.with(field, false);
            }
        }
        if self.reads.per_task || self.reads.running_time {
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
            (
                AttrFlags::CONTEXT_SWITCH,
                self.side_band.switches && tracking,
            ),
            (AttrFlags::NAMESPACES, self.side_band.namespaces && tracking),
            (AttrFlags::CGROUP, self.side_band.cgroups && tracking),
            (AttrFlags::BUILD_ID, self.side_band.build_ids && tracking),
            (AttrFlags::INHERIT_STAT, self.reads.per_task),
            (AttrFlags::USE_CLOCKID, self.clockid.is_some()),
        ] {
            attr.flags = attr.flags.with(flag, on);
        }
        for (flag, off) in [
            (
                AttrFlags::INHERIT,
                self.scope.no_inherit || self.scope.per_thread,
            ),
            (AttrFlags::BPF_EVENT, self.side_band.no_bpf),
        ] {
            attr.flags = attr.flags.with(flag, !off && attr.flags.contains(flag));
        }
    }

    /// Adds registers other than those for unwinding of [`CallGraph::Dwarf`]; not called for dummy events, which never sample. On
    /// arm64 the caller of a leaf function is not found by frame pointers but in the link register.
    pub(crate) fn add_registers(&self, call_graph: CallGraph, attr: &mut Attr) {
        let mut user_regs = self.samples.user_regs;
        if cfg!(target_arch = "aarch64")
            && matches!(call_graph, CallGraph::FramePointers | CallGraph::Deferred)
        {
            user_regs |= LINK_REGISTER;
        }
        if user_regs != 0 {
            attr.sample_type |= SampleType::REGS_USER;
            attr.sample_regs_user |= user_regs;
        }
        if self.samples.intr_regs != 0 {
            attr.sample_type |= SampleType::REGS_INTR;
            attr.sample_regs_intr = self.samples.intr_regs;
        }
    }

    fn add_callchains(&self, call_graph: CallGraph, attr: &mut Attr) {
        if call_graph == CallGraph::None {
            return;
        }
        attr.sample_type |= SampleType::CALLCHAIN;
        if call_graph == CallGraph::Deferred {
            attr.flags |= AttrFlags::DEFER_CALLCHAIN;
        }
        if self.samples.user_callchains {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_KERNEL;
        }
        if self.samples.kernel_callchains {
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
        }
        if let CallGraph::Dwarf { stack_size, .. } = call_graph {
            attr.sample_type |= SampleType::REGS_USER | SampleType::STACK_USER;
            attr.flags |= AttrFlags::EXCLUDE_CALLCHAIN_USER;
            attr.sample_regs_user = USER_REGISTERS.unwrap_or_default();
            attr.sample_stack_user = stack_size.bytes();
        }
        // Call stack mode records user space only, and uses the same hardware as other branch stacks: it is not added to an event
        // that excludes user space, or has a branch filter.
        let has_branches = !attr.branch_sample_type.is_empty();
        if call_graph == CallGraph::BranchRecords
            && !has_branches
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
    fn sizes_of_stack_copies_are_rounded_up_and_limited() {
        let size = |bytes| StackSize::new(bytes).map(StackSize::bytes);
        assert_eq!(
            [1, 8, 100, 8192, 65521, 65528].map(size),
            [8, 8, 104, 8192, 65528, 65528].map(Some)
        );
        assert_eq!([0, 65529, 65536, u64::MAX].map(size), [None; 4]);
        assert_eq!(StackSize::new(8192), Some(StackSize::default()));
    }
}
