//! What to record, and what is told while it runs.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rperf_events::{CallGraph, DEFAULT_FREQUENCY, Details, EventSpec, Sampling};
use rperf_safefs::{Folder, Naming};
use rperf_sys::{CpuList, Observed, Program, Tracefs};
use rperf_wire::Attr;

use crate::{Listing, Rewriting, Sampled};

/// Whom to observe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The workload and its children.
    Workload,
    /// All threads of these processes, and the children they will have.
    Processes(Vec<u32>),
    /// All threads of this user's processes, and the children they will have.
    User(u32),
    /// All threads of all processes, each by itself.
    Everyone,
    /// These threads, without children.
    Threads(Vec<u32>),
    /// Everything on these CPUs, or on all that are online.
    Cpus(Option<CpuList>),
}

impl Target {
    /// The same without its members, as attrs depend on it.
    #[must_use]
    pub fn kind(&self) -> rperf_events::Target {
        match self {
            Self::Workload => rperf_events::Target::Workload,
            Self::Processes(_) | Self::User(_) | Self::Everyone => rperf_events::Target::Processes,
            Self::Threads(_) => rperf_events::Target::Threads,
            Self::Cpus(_) => rperf_events::Target::Cpus,
        }
    }
}

/// Events are started or stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// When, from the start of the recording on.
    pub after: Duration,
    /// Whether they are started.
    pub on: bool,
}

/// When one file ends and the next begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// When SIGUSR2 comes.
    Signal,
    /// When a file has this many bytes.
    Size(u64),
    /// After this time.
    Time(Duration),
}

/// A recording in several files (`--switch-output`), each of which can be read alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rotation {
    /// When the next begins.
    pub turn: Turn,
    /// How many of the last files are kept; `None` for all.
    pub keep: Option<usize>,
}

/// How many threads empty the rings, each ring into a file of its own (`--threads`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Threads {
    /// One for each CPU.
    Cpu,
    /// One for each core.
    Core,
    /// One for each package.
    Package,
    /// One for each NUMA node.
    Node,
    /// One for each pair: the CPUs whose rings it empties, and those that it runs on.
    Masks(Vec<(CpuList, CpuList)>),
}

/// Where the one thread runs that empties all rings (`--affinity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Affinity {
    /// Where the system lets it.
    #[default]
    Anywhere,
    /// On the NUMA node of the ring that it empties.
    Node,
    /// On the CPU of the ring that it empties.
    Cpu,
}

/// What is told of what was there before the recording (`--synth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Synthesized {
    /// Processes and threads with their names.
    pub tasks: bool,
    /// Their mappings too.
    pub mappings: bool,
    /// Cgroups, where they are recorded ([`Details::cgroups`]).
    pub cgroups: bool,
}

/// How hardware traces are kept: bytes in a form of the hardware's own, which it writes into AUX areas beside the rings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traces {
    /// Pages of each area, a power of two; `None` for the usual: 4 MiB, or 128 KiB for who is not `privileged`.
    pub pages: Option<usize>,
    /// Whether the user may lock as much memory as there is.
    pub privileged: bool,
    /// Where areas are written over and copied when that is asked for; else they are drained.
    pub snapshots: Option<Snapshots>,
}

/// The ends of traces that are kept (`--snapshot`): at SIGUSR2, and when that is ordered.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Snapshots {
    /// Bytes of each at most; `None` for the area's size.
    pub size: Option<usize>,
    /// Whether there is one at the recording's end, too.
    pub at_end: bool,
}

/// A recording to be made.
#[derive(Debug, Clone)]
pub struct Request {
    /// Whom to observe.
    pub target: Target,
    /// The command to run; with another target than [`Target::Workload`] it only sets how long.
    pub workload: Option<Program>,
    /// What to sample, at least one event.
    pub events: Vec<EventSpec>,
    /// How often.
    pub sampling: Sampling,
    /// How callchains are recorded.
    pub call_graph: CallGraph,
    /// Whether samples of every event carry raw data (`-R`); those of tracepoints do anyway.
    pub raw_samples: bool,
    /// What else all events get; [`Details::side`] is applied to `events` already.
    pub details: Details,
    /// Who changes records before they are written, if any are to be changed. Not for rings that are written over.
    pub rewriting: Option<Arc<dyn Rewriting>>,
    /// Deepest callchain in frames; 0 leaves it to the system (`perf_event_max_stack`).
    pub max_stack: u16,
    /// Data pages of each ring, a power of two; `None` for what `perf_event_mlock_kb` allows.
    pub ring_pages: Option<usize>,
    /// How the hardware trace among `events` is kept, if there is one; there is one at most.
    pub traces: Option<Traces>,
    /// The file to write, or the name of the stream.
    pub output: PathBuf,
    /// Whether the user gave that name.
    pub naming: Naming,
    /// Where pipe mode is written, in place of a file.
    pub stream: Option<Arc<File>>,
    /// Whether the rings' data are compressed (`-z`).
    pub compress: bool,
    /// Whether the names of files get the time (`--timestamp-filename`), as those of a rotation always do.
    pub stamped: bool,
    /// Whether and when the output goes on in another file.
    pub rotation: Option<Rotation>,
    /// Events that are not recorded, but go on in the next file when they happen (`--switch-output-event`).
    pub turn_at: Vec<EventSpec>,
    /// Whose code is laid beside the records in a directory (`--kcore`).
    pub kernel_code: Option<Arc<dyn KernelCode>>,
    /// The threads that empty the rings, where the output is a directory; else the calling one does.
    pub threads: Option<Threads>,
    /// Where the calling thread empties them.
    pub affinity: Affinity,
    /// Bytes that a ring must hold to be emptied while recording (`--mmap-flush`).
    pub flush_from: u64,
    /// The cgroups that events are restricted to, in the order of `events`; fewer where the others are not.
    pub cgroups: Vec<Option<String>>,
    /// Priority of draining in real time (`-r`); otherwise it is as urgent as ordinary threads can be.
    pub real_time: Option<i32>,
    /// When events are started and stopped, in order (`-D`): they wait for the first of these. `None`
    /// starts them at once.
    pub switches: Option<Vec<Switch>>,
    /// Bytes of output after which the recording ends.
    pub max_size: Option<u64>,
    /// What is told of what was there before.
    pub synthesized: Synthesized,
    /// How long the mappings of one process may take to be read (`--proc-map-timeout`).
    pub maps_within: Duration,
    /// How many threads read what is told (`--num-thread-synthesize`); `None` for one on each processor. There are fewer
    /// where few processes run.
    pub told_by: Option<usize>,
    /// Whether that is told at the end of each file (`--tail-synthesize`).
    pub tail_synthesize: bool,
    /// Whether the header lists build-ids.
    pub build_ids: bool,
    /// The command line for the header.
    pub command_line: Vec<String>,
    /// The version for the header.
    pub version: String,
    /// The build-id cache that gets kallsyms and the vdso; `None` leaves it alone.
    pub cache: Option<PathBuf>,
    /// Where proc is mounted: `/proc`.
    pub proc: PathBuf,
    /// Where sysfs is mounted: `/sys`.
    pub sysfs: PathBuf,
    /// Where tracefs is mounted, for the descriptions of tracepoints.
    pub tracefs: Tracefs,
}

/// Where the kernel's file systems are mounted.
#[derive(Debug, Clone)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sysfs: PathBuf,
    /// tracefs.
    pub tracefs: Tracefs,
}

impl Request {
    /// The ends of traces that are to be kept.
    pub(crate) fn snapshots(&self) -> Option<&Snapshots> {
        self.traces.as_ref()?.snapshots.as_ref()
    }

    /// Samples of `events` by [`DEFAULT_FREQUENCY`], of all that `target` runs, told of with their names and mappings; no
    /// file.
    #[must_use]
    pub fn observing(target: Target, events: Vec<EventSpec>, roots: Roots) -> Self {
        Self {
            target,
            workload: None,
            events,
            sampling: Sampling::Default(DEFAULT_FREQUENCY),
            call_graph: CallGraph::default(),
            raw_samples: false,
            details: Details::default(),
            rewriting: None,
            max_stack: 0,
            ring_pages: None,
            traces: None,
            output: PathBuf::new(),
            naming: Naming::Default,
            stream: None,
            compress: false,
            stamped: false,
            rotation: None,
            turn_at: Vec::new(),
            kernel_code: None,
            threads: None,
            affinity: Affinity::default(),
            flush_from: 1,
            cgroups: Vec::new(),
            real_time: None,
            switches: None,
            max_size: None,
            synthesized: Synthesized {
                tasks: true,
                mappings: true,
                cgroups: true,
            },
            maps_within: Duration::from_millis(500),
            told_by: None,
            tail_synthesize: false,
            build_ids: false,
            command_line: Vec::new(),
            version: String::new(),
            cache: None,
            proc: roots.proc,
            sysfs: roots.sysfs,
            tracefs: roots.tracefs,
        }
    }
}

/// Told while a recording is set up and runs.
pub trait Watch {
    /// One thing that happened.
    fn tell(&mut self, happened: Happened<'_>);
}

/// What may be worth a line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Happened<'a> {
    /// There is no PMU for the event; the CPU clock takes its place.
    ClockInstead {
        /// Name of the event asked for.
        event: &'a str,
        /// Name of the one that is recorded.
        instead: &'a str,
    },
    /// The user may not profile the kernel: the event sees user space only.
    UserOnly {
        /// Name of the event as it is recorded.
        event: &'a str,
        /// `perf_event_paranoid`, if it could be read.
        paranoid: Option<i64>,
    },
    /// The event was asked with a precision that the kernel does not have.
    LessPrecise {
        /// The `precise_ip` that is tried next.
        level: u8,
    },
    /// The kernel is too old for a part of the attr, which is left out.
    LeftOut {
        /// The attr's field.
        field: &'a str,
    },
    /// The kernel cannot put off the user's part of callchains: it is taken at each sample.
    NotDeferred,
    /// Locked memory is short: the rings became smaller.
    SmallerRings {
        /// Data pages that were asked for.
        asked: usize,
        /// Data pages that were had.
        had: usize,
    },
    /// An attr is about to be opened.
    Opening {
        /// The attr.
        attr: &'a Attr,
    },
    /// One call of perf_event_open(2).
    Opened {
        /// Thread, or descriptor of a cgroup, and CPU.
        observed: Observed,
        /// The call's flags.
        flags: u64,
        /// Descriptor of the group's leader.
        group: Option<i32>,
        /// The descriptor's number or the error.
        outcome: Result<i32, &'a io::Error>,
    },
    /// The events of a delayed recording were started or stopped.
    Switched {
        /// Whether they run now.
        on: bool,
    },
    /// One event was started or stopped, by order.
    EventSwitched {
        /// Its name.
        event: &'a str,
        /// Whether it runs now.
        on: bool,
    },
    /// An order is for an event that there isn't.
    NoSuchEvent {
        /// Its name in the order.
        event: &'a str,
    },
    /// An event, or a group, that was ordered to be listed.
    Listed {
        /// Its name; of a group with those of its members.
        name: &'a str,
        /// Its attr.
        attr: &'a Attr,
        /// What is to be told of it.
        listing: Listing,
    },
    /// An order that nobody knows; it is not acknowledged.
    NotUnderstood {
        /// Its words.
        order: &'a str,
    },
    /// The output has the size at which the recording was to end.
    SizeReached {
        /// Bytes so far.
        bytes: u64,
    },
    /// The output grows fast.
    Growing {
        /// Bytes in a minute, if it goes on so.
        bytes: u64,
        /// Samples in a second; 0 where threads of their own write them.
        samples: u64,
        /// How often the first event is sampled.
        rate: Sampled,
        /// Whether its samples hold copies of stacks.
        copies: bool,
    },
    /// The recording is over, and its workload has not ended though it was told to.
    WorkloadStays {
        /// Its process.
        pid: u32,
    },
    /// A file of several, or with the time in its name, is complete.
    Dumped {
        /// Its name.
        path: &'a Path,
    },
    /// The machine or the kernel has no counter for the event.
    NotSupported {
        /// Name of the event.
        event: &'a str,
        /// Whether it was to be counted together with others, which may be what does not work.
        grouped: bool,
        /// The part of its attr without which the kernel would take it, where a single one is to blame.
        refused: Option<&'a str>,
    },
    /// A group does not fit on the counters; its events are counted one by one (`:W`).
    GroupBroken {
        /// Name of its leader.
        leader: &'a str,
    },
    /// All rings are mapped.
    Mapped {
        /// Bytes of each, control page included.
        bytes: usize,
    },
    /// All areas for traces are mapped.
    TraceMapped {
        /// Bytes of each.
        bytes: usize,
    },
    /// Kernel addresses are hidden from the user (`kptr_restrict`): kernel samples stay without names.
    KernelAddressesHidden,
}

/// The kernel that runs; recording itself knows no ELF.
pub trait KernelCode: Debug + Send + Sync {
    /// Copies its code, and what names that, into an empty folder: `kcore`, `kallsyms`, `modules`.
    ///
    /// # Errors
    /// What reading and writing report.
    fn copy_to(&self, folder: &Folder) -> io::Result<()>;
}

/// Reads build-ids out of ELF images and notes; recording itself knows no ELF.
pub trait BuildIds: Sync {
    /// The build-id of an ELF file on disk.
    fn of_file(&self, path: &Path) -> Option<Vec<u8>>;
    /// The build-id of an ELF image in memory.
    fn of_image(&self, bytes: &[u8]) -> Option<Vec<u8>>;
    /// The build-id in a run of ELF notes, as `/sys/kernel/notes` has them.
    fn of_notes(&self, notes: &[u8]) -> Option<Vec<u8>>;
}
