//! Numbers of features.

use std::fmt;

/// Number of a feature: its bit in the header's bitmap. Unknown numbers are kept and can be
/// printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeatureId(pub u8);

macro_rules! features {
    ($($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl FeatureId {
            $($(#[$doc])* pub const $name: Self = Self($number);)*

            /// All named features, in numerical order.
            pub const NAMED: &'static [(Self, &'static str)] = &[$((Self::$name, stringify!($name))),*];

            /// The name, if this version of rperf knows it: perf's name without `HEADER_`, or simpleperf's with `SIMPLEPERF_`
            /// instead of `FEAT_`.
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

features! {
    /// Formats of tracepoints.
    TRACING_DATA = 1;
    /// Build-ids of files.
    BUILD_ID = 2;
    /// Name of the machine.
    HOSTNAME = 3;
    /// Release of the kernel.
    OSRELEASE = 4;
    /// Version of the recorder.
    VERSION = 5;
    /// Architecture from uname(2).
    ARCH = 6;
    /// How many CPUs are available, and how many are online.
    NRCPUS = 7;
    /// Name of the CPU.
    CPUDESC = 8;
    /// Identifier of the CPU: on x86 vendor, family, model and stepping.
    CPUID = 9;
    /// Memory in kB.
    TOTAL_MEM = 10;
    /// The recorder's command line.
    CMDLINE = 11;
    /// Names, attrs and ids of the events.
    EVENT_DESC = 12;
    /// Cores, sockets and dies.
    CPU_TOPOLOGY = 13;
    /// NUMA nodes with their memory.
    NUMA_TOPOLOGY = 14;
    /// The recording has branch stacks; the section is empty.
    BRANCH_STACK = 15;
    /// Types (`perf_event_attr.type`) and names of PMUs.
    PMU_MAPPINGS = 16;
    /// Groups of events.
    GROUP_DESC = 17;
    /// Index of the AUX area traces.
    AUXTRACE = 18;
    /// The recording is from `stat record`; the section is empty.
    STAT = 19;
    /// Caches of the CPUs.
    CACHE = 20;
    /// Times of the first and the last sample.
    SAMPLE_TIME = 21;
    /// Physical memory blocks of the nodes.
    MEM_TOPOLOGY = 22;
    /// Resolution of the clock of the timestamps.
    CLOCKID = 23;
    /// The recording is a directory.
    DIR_FORMAT = 24;
    /// BPF programs.
    BPF_PROG_INFO = 25;
    /// BPF type information.
    BPF_BTF = 26;
    /// Compression of the records.
    COMPRESSED = 27;
    /// Capabilities of the `cpu` PMU.
    CPU_PMU_CAPS = 28;
    /// Relation of the timestamps' clock to the time of day.
    CLOCK_DATA = 29;
    /// PMUs of a machine with several kinds of cores.
    HYBRID_TOPOLOGY = 30;
    /// Capabilities of PMUs other than `cpu`.
    PMU_CAPS = 31;
    /// Domains of the scheduler.
    CPU_DOMAIN_INFO = 32;
    /// ELF machine of the recorded programs.
    E_MACHINE = 33;
    /// Bytes of a cache line.
    CLN_SIZE = 34;
    /// simpleperf: symbols of the files.
    SIMPLEPERF_FILE = 128;
    /// simpleperf: pairs of keys and values.
    SIMPLEPERF_META_INFO = 129;
    /// simpleperf: paths and sizes of the files in `SIMPLEPERF_DEBUG_UNWIND_FILE`.
    SIMPLEPERF_DEBUG_UNWIND = 130;
    /// simpleperf: contents of files needed for unwinding.
    SIMPLEPERF_DEBUG_UNWIND_FILE = 131;
    /// simpleperf: symbols of the files, newer form.
    SIMPLEPERF_FILE2 = 132;
    /// simpleperf: taken branches, from an ETM trace.
    SIMPLEPERF_ETM_BRANCH_LIST = 133;
    /// simpleperf: MMAP, MMAP2 and COMM records of the start of the recording.
    SIMPLEPERF_INIT_MAP = 134;
}

/// The name, or the number.
impl fmt::Display for FeatureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}", self.0),
        }
    }
}
