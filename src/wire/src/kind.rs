//! Record types of the kernel (below 64), of perf itself (from 64) and of simpleperf (from 32768).

use std::fmt;

/// `perf_event_header::type`. Unknown numbers are kept and can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RecordKind(pub u32);

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl RecordKind {
            $($(#[$doc])* pub const $name: Self = Self($number);)*

            /// The name without `PERF_RECORD_`, in types of simpleperf with `SIMPLEPERF_` instead of `SIMPLE_PERF_RECORD_`;
            /// `None` if the type is unknown.
            #[must_use]
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// A mapping appeared.
    MMAP = 1;
    /// Records were lost because the ring was full.
    LOST = 2;
    /// A thread's name changed.
    COMM = 3;
    /// A thread ended.
    EXIT = 4;
    /// The kernel throttled the event.
    THROTTLE = 5;
    /// The throttle ended.
    UNTHROTTLE = 6;
    /// A thread started.
    FORK = 7;
    /// The value of an inherited counter, when its task ended.
    READ = 8;
    /// A sample.
    SAMPLE = 9;
    /// A mapping appeared, with the identity of the file.
    MMAP2 = 10;
    /// New data in the AUX area.
    AUX = 11;
    /// An instruction trace started.
    ITRACE_START = 12;
    /// Samples were lost.
    LOST_SAMPLES = 13;
    /// Context switch of the observed task.
    SWITCH = 14;
    /// Context switch, system-wide.
    SWITCH_CPU_WIDE = 15;
    /// Namespaces of a task.
    NAMESPACES = 16;
    /// A kernel symbol was registered or unregistered.
    KSYMBOL = 17;
    /// A BPF program was loaded or unloaded.
    BPF_EVENT = 18;
    /// A cgroup was created.
    CGROUP = 19;
    /// Kernel text was modified.
    TEXT_POKE = 20;
    /// Hardware id of AUX output.
    AUX_OUTPUT_HW_ID = 21;
    /// User part of earlier callchains.
    CALLCHAIN_DEFERRED = 22;
    /// An attr with ids, in pipe mode.
    HEADER_ATTR = 64;
    /// Event type names of old files.
    HEADER_EVENT_TYPE = 65;
    /// Tracing data, in pipe mode.
    HEADER_TRACING_DATA = 66;
    /// A build-id, in pipe mode or in the build-id section.
    HEADER_BUILD_ID = 67;
    /// End of a pass over the rings of all CPUs.
    FINISHED_ROUND = 68;
    /// Ring, CPU and thread of each event id.
    ID_INDEX = 69;
    /// Kind of AUX trace.
    AUXTRACE_INFO = 70;
    /// AUX trace data.
    AUXTRACE = 71;
    /// AUX decoding error.
    AUXTRACE_ERROR = 72;
    /// The observed threads.
    THREAD_MAP = 73;
    /// The observed CPUs.
    CPU_MAP = 74;
    /// Settings of stat.
    STAT_CONFIG = 75;
    /// A counter's value, written by perf stat.
    STAT = 76;
    /// End of an interval of stat.
    STAT_ROUND = 77;
    /// An event's unit, scale, name or CPUs.
    EVENT_UPDATE = 78;
    /// Parameters to convert hardware time (TSC) to perf's.
    TIME_CONV = 79;
    /// A feature section, in pipe mode.
    HEADER_FEATURE = 80;
    /// Compressed records.
    COMPRESSED = 81;
    /// End of the synthesized records at the start.
    FINISHED_INIT = 82;
    /// Compressed records, padded to a multiple of eight bytes.
    COMPRESSED2 = 83;
    /// BPF metadata.
    BPF_METADATA = 84;
    /// Scheduler statistics of a CPU.
    SCHEDSTAT_CPU = 85;
    /// Scheduler statistics of a CPU's domain.
    SCHEDSTAT_DOMAIN = 86;
    /// simpleperf: kernel symbols in the format of kallsyms.
    SIMPLEPERF_KERNEL_SYMBOL = 32769;
    /// simpleperf: a file and its number.
    SIMPLEPERF_DSO = 32770;
    /// simpleperf: a symbol of a file.
    SIMPLEPERF_SYMBOL = 32771;
    /// simpleperf: part of a record longer than 65535 bytes.
    SIMPLEPERF_SPLIT = 32772;
    /// simpleperf: end of a record that was split into the preceding parts.
    SIMPLEPERF_SPLIT_END = 32773;
    /// simpleperf: ids and their events.
    SIMPLEPERF_EVENT_ID = 32774;
    /// simpleperf: a callchain that was unwound or joined afterwards.
    SIMPLEPERF_CALLCHAIN = 32775;
    /// simpleperf: how unwinding of a stack ended.
    SIMPLEPERF_UNWINDING_RESULT = 32776;
    /// simpleperf: tracing data inside the record.
    SIMPLEPERF_TRACING_DATA = 32777;
    /// simpleperf: a debug message.
    SIMPLEPERF_DEBUG = 32778;
}

impl RecordKind {
    /// First number of perf's own record types (`PERF_RECORD_USER_TYPE_START`).
    pub const USER_TYPE_START: u32 = 64;

    /// First number of simpleperf's own record types (`SIMPLE_PERF_RECORD_TYPE_START`).
    pub const SIMPLEPERF_START: u32 = 32768;

    /// Whether it is a type of Android's simpleperf.
    #[inline]
    #[must_use]
    pub fn is_simpleperf(self) -> bool {
        self.0 >= Self::SIMPLEPERF_START
    }

    /// Whether it is a type of perf or simpleperf, not of the kernel. Records of such a type have no sample id trailer.
    #[must_use]
    pub fn is_user(self) -> bool {
        self.0 >= Self::USER_TYPE_START
    }
}

impl fmt::Display for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "PERF_RECORD_{name}"),
            None => write!(f, "record type {}", self.0),
        }
    }
}

impl fmt::Debug for RecordKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
