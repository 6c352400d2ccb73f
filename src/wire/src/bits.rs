//! Bit sets of the kernel interface. Unnamed bits are kept and printed as one number, so that files
//! of newer kernels lose nothing.

use std::fmt;
use std::ops::{BitAnd, BitOr, BitOrAssign};

macro_rules! bit_set {
    ($(#[$doc:meta])* $name:ident { $($(#[$bit_doc:meta])* $bit:ident = $shift:literal => $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
        pub struct $name(pub u64);

        impl $name {
            $($(#[$bit_doc])* pub const $bit: Self = Self(1 << $shift);)*

            /// All named bits, in bit order.
            pub const NAMED: &'static [(Self, &'static str)] = &[$((Self::$bit, $text)),*];

            /// Whether all bits of `other` are set.
            #[inline]
            #[must_use]
            pub const fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }

            /// Returns this set with the bits of `other` set if `on`, otherwise cleared.
            #[must_use]
            pub const fn with(self, other: Self, on: bool) -> Self {
                if on { Self(self.0 | other.0) } else { Self(self.0 & !other.0) }
            }

            /// Whether no bit is set.
            #[must_use]
            pub const fn is_empty(self) -> bool {
                self.0 == 0
            }

            /// The unnamed bits.
            #[must_use]
            pub fn unnamed(self) -> u64 {
                Self::NAMED.iter().fold(self.0, |rest, (bit, _)| rest & !bit.0)
            }
        }

        impl BitOr for $name {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                Self(self.0 | other.0)
            }
        }

        impl BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }

        impl BitAnd for $name {
            type Output = Self;
            fn bitand(self, other: Self) -> Self {
                Self(self.0 & other.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }

        /// Names in bit order, joined with `|`; unnamed bits in hexadecimal.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut first = true;
                for (bit, text) in Self::NAMED {
                    if self.contains(*bit) {
                        write!(f, "{}{text}", if first { "" } else { "|" })?;
                        first = false;
                    }
                }
                if self.unnamed() != 0 {
                    write!(f, "{}{:#x}", if first { "" } else { "|" }, self.unnamed())?;
                }
                Ok(())
            }
        }
    };
}

bit_set! {
    /// `perf_event_attr::sample_type`: the fields of a sample.
    SampleType {
        /// Instruction pointer.
        IP = 0 => "IP",
        /// Process and thread id.
        TID = 1 => "TID",
        /// Timestamp.
        TIME = 2 => "TIME",
        /// Data address.
        ADDR = 3 => "ADDR",
        /// Counter values.
        READ = 4 => "READ",
        /// Callchain.
        CALLCHAIN = 5 => "CALLCHAIN",
        /// Event id, after IP, TID, TIME and ADDR.
        ID = 6 => "ID",
        /// CPU number.
        CPU = 7 => "CPU",
        /// Period of this sample.
        PERIOD = 8 => "PERIOD",
        /// Stream id.
        STREAM_ID = 9 => "STREAM_ID",
        /// Raw data, such as tracepoint fields.
        RAW = 10 => "RAW",
        /// Branch stack.
        BRANCH_STACK = 11 => "BRANCH_STACK",
        /// User registers.
        REGS_USER = 12 => "REGS_USER",
        /// Copy of the user stack.
        STACK_USER = 13 => "STACK_USER",
        /// Weight (latency).
        WEIGHT = 14 => "WEIGHT",
        /// Data source of a memory access.
        DATA_SRC = 15 => "DATA_SRC",
        /// Event id as the first field of a sample and the last one of a sample id trailer, for files with
        /// several sample layouts.
        IDENTIFIER = 16 => "IDENTIFIER",
        /// Transaction flags.
        TRANSACTION = 17 => "TRANSACTION",
        /// Registers at the interrupt.
        REGS_INTR = 18 => "REGS_INTR",
        /// Physical address.
        PHYS_ADDR = 19 => "PHYS_ADDR",
        /// AUX data.
        AUX = 20 => "AUX",
        /// Cgroup id.
        CGROUP = 21 => "CGROUP",
        /// Page size of the data address.
        DATA_PAGE_SIZE = 22 => "DATA_PAGE_SIZE",
        /// Page size of the instruction pointer.
        CODE_PAGE_SIZE = 23 => "CODE_PAGE_SIZE",
        /// Weight in three parts.
        WEIGHT_STRUCT = 24 => "WEIGHT_STRUCT",
    }
}

impl SampleType {
    /// Every field, also unnamed ones.
    pub const ALL: Self = Self(u64::MAX);

    /// Whether some bits of `other` are set.
    #[must_use]
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

bit_set! {
    /// `perf_event_attr::read_format`: what a read of a counter returns.
    ReadFormat {
        /// Nanoseconds that the event was enabled.
        TOTAL_TIME_ENABLED = 0 => "TOTAL_TIME_ENABLED",
        /// Nanoseconds that the event was on a counter.
        TOTAL_TIME_RUNNING = 1 => "TOTAL_TIME_RUNNING",
        /// Event id.
        ID = 2 => "ID",
        /// The values of all members of the group.
        GROUP = 3 => "GROUP",
        /// Number of lost samples.
        LOST = 4 => "LOST",
    }
}

bit_set! {
    /// `perf_event_attr::branch_sample_type`: the branches in the branch stack, and the details of each.
    BranchSampleType {
        /// Branches in user mode.
        USER = 0 => "USER",
        /// Branches in the kernel.
        KERNEL = 1 => "KERNEL",
        /// Branches in the hypervisor.
        HV = 2 => "HV",
        /// Any branch.
        ANY = 3 => "ANY",
        /// Any call.
        ANY_CALL = 4 => "ANY_CALL",
        /// Any return.
        ANY_RETURN = 5 => "ANY_RETURN",
        /// Indirect calls.
        IND_CALL = 6 => "IND_CALL",
        /// Transaction aborts.
        ABORT_TX = 7 => "ABORT_TX",
        /// Branches in a transaction.
        IN_TX = 8 => "IN_TX",
        /// Branches outside a transaction.
        NO_TX = 9 => "NO_TX",
        /// Conditional branches.
        COND = 10 => "COND",
        /// Call stack mode.
        CALL_STACK = 11 => "CALL_STACK",
        /// Indirect jumps.
        IND_JUMP = 12 => "IND_JUMP",
        /// Direct calls.
        CALL = 13 => "CALL",
        /// Do not save the flags of branches.
        NO_FLAGS = 14 => "NO_FLAGS",
        /// Do not save the cycles between branches.
        NO_CYCLES = 15 => "NO_CYCLES",
        /// Save the branch type.
        TYPE_SAVE = 16 => "TYPE_SAVE",
        /// Save the hardware index of the newest entry.
        HW_INDEX = 17 => "HW_INDEX",
        /// Save the privilege level.
        PRIV_SAVE = 18 => "PRIV_SAVE",
        /// Save counter values.
        COUNTERS = 19 => "COUNTERS",
    }
}

bit_set! {
    /// The one-bit fields of `perf_event_attr`, in the order of the kernel's structure. The two
    /// bits of `precise_ip` are [`AttrFlags::PRECISE_LOW`] and [`AttrFlags::PRECISE_HIGH`].
    AttrFlags {
        /// The event starts disabled.
        DISABLED = 0 => "disabled",
        /// Child tasks inherit the event.
        INHERIT = 1 => "inherit",
        /// The event must always be on the PMU.
        PINNED = 2 => "pinned",
        /// The event's group must be the only one on the PMU.
        EXCLUSIVE = 3 => "exclusive",
        /// Do not count in user mode.
        EXCLUDE_USER = 4 => "exclude_user",
        /// Do not count in the kernel.
        EXCLUDE_KERNEL = 5 => "exclude_kernel",
        /// Do not count in the hypervisor.
        EXCLUDE_HV = 6 => "exclude_hv",
        /// Do not count when idle.
        EXCLUDE_IDLE = 7 => "exclude_idle",
        /// Emit MMAP records for executable mappings.
        MMAP = 8 => "mmap",
        /// Emit COMM records.
        COMM = 9 => "comm",
        /// `sample_period` is a frequency.
        FREQ = 10 => "freq",
        /// Each task that inherits the event has a separate count, which a READ record reports at the task's exit.
        INHERIT_STAT = 11 => "inherit_stat",
        /// The next exec enables the event.
        ENABLE_ON_EXEC = 12 => "enable_on_exec",
        /// Emit FORK and EXIT records.
        TASK = 13 => "task",
        /// `wakeup` is a watermark in bytes.
        WATERMARK = 14 => "watermark",
        /// Low bit of `precise_ip`.
        PRECISE_LOW = 15 => "precise_ip",
        /// High bit of `precise_ip`.
        PRECISE_HIGH = 16 => "precise_ip",
        /// Emit MMAP records for data mappings too.
        MMAP_DATA = 17 => "mmap_data",
        /// Records of the kernel other than samples have a sample id trailer.
        SAMPLE_ID_ALL = 18 => "sample_id_all",
        /// Do not count in the host.
        EXCLUDE_HOST = 19 => "exclude_host",
        /// Do not count in guests.
        EXCLUDE_GUEST = 20 => "exclude_guest",
        /// No kernel part in callchains.
        EXCLUDE_CALLCHAIN_KERNEL = 21 => "exclude_callchain_kernel",
        /// No user part in callchains.
        EXCLUDE_CALLCHAIN_USER = 22 => "exclude_callchain_user",
        /// Emit MMAP2 instead of MMAP.
        MMAP2 = 23 => "mmap2",
        /// COMM records that come from exec are marked.
        COMM_EXEC = 24 => "comm_exec",
        /// Timestamps come from `clockid`.
        USE_CLOCKID = 25 => "use_clockid",
        /// Emit SWITCH records.
        CONTEXT_SWITCH = 26 => "context_switch",
        /// The ring is written backwards.
        WRITE_BACKWARD = 27 => "write_backward",
        /// Emit NAMESPACES records.
        NAMESPACES = 28 => "namespaces",
        /// Emit KSYMBOL records.
        KSYMBOL = 29 => "ksymbol",
        /// Emit BPF_EVENT records.
        BPF_EVENT = 30 => "bpf_event",
        /// Output goes to the AUX area.
        AUX_OUTPUT = 31 => "aux_output",
        /// Emit CGROUP records.
        CGROUP = 32 => "cgroup",
        /// Emit TEXT_POKE records.
        TEXT_POKE = 33 => "text_poke",
        /// MMAP2 carries the build-id, if known, instead of device and inode.
        BUILD_ID = 34 => "build_id",
        /// Only threads of the same process inherit the event.
        INHERIT_THREAD = 35 => "inherit_thread",
        /// The next exec removes the event from the task.
        REMOVE_ON_EXEC = 36 => "remove_on_exec",
        /// A sample sends SIGTRAP.
        SIGTRAP = 37 => "sigtrap",
        /// User callchains may be deferred.
        DEFER_CALLCHAIN = 38 => "defer_callchain",
        /// Emit CALLCHAIN_DEFERRED records.
        DEFER_OUTPUT = 39 => "defer_output",
    }
}
