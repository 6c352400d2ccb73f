//! The options of a recording, and the notices while it runs.

use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rperf_bpf::{OffCpuPrograms, SampleFilterProgram};
use rperf_events::{CallGraph, DEFAULT_FREQUENCY, EventSpec, RecordDetails, Sampling};
use rperf_perfdata::BuildRewriter;
use rperf_safefs::{Folder, PathOrigin};
use rperf_sys::{CpuList, ObservedTask, Program, Tracefs};
use rperf_wire::Attr;

use crate::{ListedDetail, SampledRate};

/// The target of a recording or count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The workload and, with inheritance, its children.
    Workload,
    /// All threads of these processes and, with inheritance, their future children.
    Processes(Vec<u32>),
    /// All threads of this user's processes and, with inheritance, their future children.
    User(u32),
    /// All threads of all processes, each with its own counters; [`Target::Cpus`] has counters per CPU instead.
    Everyone,
    /// These threads, without children.
    Threads(Vec<u32>),
    /// Everything on these CPUs; with `None`, on all online CPUs.
    Cpus(Option<CpuList>),
}

impl Target {
    /// Returns the kind of target, on which attrs depend.
    #[must_use]
    pub fn kind(&self) -> rperf_events::SamplingTarget {
        match self {
            Self::Workload => rperf_events::SamplingTarget::Workload,
            Self::Processes(_) | Self::User(_) | Self::Everyone => {
                rperf_events::SamplingTarget::Processes
            }
            Self::Threads(_) => rperf_events::SamplingTarget::Threads,
            Self::Cpus(_) => rperf_events::SamplingTarget::Cpus,
        }
    }
}

/// Enables or disables events at a set time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedSwitch {
    /// The time since the start of the recording.
    pub after: Duration,
    /// Whether events are enabled.
    pub on: bool,
}

/// The condition for starting the next file. Independently of it, SIGUSR2, the control command `snapshot` and trigger events
/// (`--switch-output-event`) start the next file, too; with [`SnapshotOptions`], SIGUSR2 and the command take a snapshot instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotationTrigger {
    /// No other condition.
    Signal,
    /// When a file reaches this size in bytes.
    Size(u64),
    /// After this time.
    Time(Duration),
}

/// Output rotation (`--switch-output`): several files, each of which is a complete recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RotationOptions {
    /// The condition for starting the next file.
    pub trigger: RotationTrigger,
    /// The number of recent files to keep, including the one that is written; `None` for all.
    pub max_files: Option<usize>,
}

/// The threads that drain the ring buffers, each ring buffer into a separate file (`--threads`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DrainThreads {
    /// One per CPU.
    Cpu,
    /// One per core.
    Core,
    /// One per package.
    Package,
    /// One per NUMA node.
    Node,
    /// One per pair: the CPUs whose ring buffers it drains, and its CPU affinity.
    Masks(Vec<(CpuList, CpuList)>),
}

/// The CPU affinity of the single draining thread (`--affinity`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DrainAffinity {
    /// No affinity.
    #[default]
    Anywhere,
    /// The NUMA node of the ring buffer being drained.
    Node,
    /// The CPU of the ring buffer being drained.
    Cpu,
}

/// The records of the initial state to synthesize (`--synth`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SynthesizedRecords {
    /// Processes and threads with their names.
    pub tasks: bool,
    /// Mappings of the processes; only together with `tasks`.
    pub mappings: bool,
    /// Cgroups, if recorded ([`SideBand::cgroups`](rperf_events::SideBand::cgroups)).
    pub cgroups: bool,
}

/// Options of hardware traces, which the hardware writes in its own format to AUX areas next to the ring buffers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceOptions {
    /// The number of pages of each AUX area, rounded up to a power of two. If not given, an area has the size of a snapshot
    /// ([`SnapshotOptions::size`]). If that is not given either, it has 4 MiB if `privileged`, otherwise 128 KiB.
    pub pages: Option<usize>,
    /// Whether the user may lock unlimited memory.
    pub privileged: bool,
    /// AUX areas are in overwrite mode, and snapshots of them are taken on request; if `None`, they are drained.
    pub snapshots: Option<SnapshotOptions>,
}

/// Snapshots of traces (`--snapshot`), which are taken on SIGUSR2 and the control command `snapshot`; without rotation also on
/// trigger events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SnapshotOptions {
    /// The maximum size of a snapshot in bytes; `None` for the size of the area.
    pub size: Option<usize>,
    /// Whether a snapshot is also taken at the end of the recording.
    pub at_end: bool,
}

/// The options of a recording.
#[derive(Debug, Clone)]
pub struct RecordRequest {
    /// The target, and the settings of events.
    pub observe: ObserveOptions,
    /// The ring buffers.
    pub rings: RingOptions,
    /// Records of already running tasks.
    pub synthesis: SynthesisOptions,
    /// The output.
    pub output: OutputOptions,
    /// The mount points of kernel file systems.
    pub roots: KernelRoots,
}

/// The target of a recording, and the settings of events.
#[derive(Debug, Clone)]
pub struct ObserveOptions {
    /// The target.
    pub target: Target,
    /// The command to run; with targets other than [`Target::Workload`] it only determines the duration.
    pub workload: Option<Program>,
    /// The events to sample, at least one.
    pub events: Vec<EventSpec>,
    /// The cgroups that events are restricted to, in the order of `events`; fewer if the last ones are not restricted.
    pub cgroups: Vec<Option<String>>,
    /// The sampling rate.
    pub sampling: Sampling,
    /// How callchains are recorded.
    pub call_graph: CallGraph,
    /// The maximum number of frames of a callchain; 0 for the system's limit (`perf_event_max_stack`).
    pub max_stack: u16,
    /// Whether samples of all events have raw data (`-R`); samples of tracepoints always do.
    pub raw_samples: bool,
    /// Other settings of all events. The restriction to user space or the kernel
    /// ([`TaskScope::level`](rperf_events::TaskScope::level)) only concerns an added side-band event, because the caller has
    /// already applied it to `events`.
    pub details: RecordDetails,
    /// Options of the hardware trace among `events`, of which there is at most one.
    pub traces: Option<TraceOptions>,
    /// The times at which events are enabled and disabled, in order (`-D`). Events start disabled; with `None`, they start
    /// enabled.
    pub switches: Option<Vec<TimedSwitch>>,
    /// The time after which the recording ends (`--duration`).
    pub duration: Option<Duration>,
    /// The BPF programs that decide which samples of events are written, in the order of `events`; fewer if the last
    /// ones have none.
    pub sample_filters: Vec<Option<Arc<SampleFilterProgram>>>,
    /// The BPF programs that sum up waits of tasks, and write to the event
    /// [`off_cpu_bpf_output`](rperf_events::off_cpu_bpf_output) among `events`.
    pub off_cpu: Option<Arc<OffCpuPrograms>>,
    /// Sets of programs in the kernel: each set writes the samples of one of the events. Ignored if samples are observed live
    /// instead of being recorded.
    pub programs: Vec<Arc<dyn OutputPrograms>>,
}

/// The ring buffers, and how they are drained.
#[derive(Debug, Clone)]
pub struct RingOptions {
    /// Data pages of each ring buffer, a power of two; `None` for the number that `perf_event_mlock_kb` allows, or half of it
    /// with hardware traces of an unprivileged user.
    pub pages: Option<usize>,
    /// The minimum number of bytes in a ring buffer to drain it while recording (`--mmap-flush`). Ring buffers that are a quarter
    /// full are always drained.
    pub min_flush_bytes: u64,
    /// The draining threads, whose output is a directory; with `None`, the calling thread drains.
    pub threads: Option<DrainThreads>,
    /// The CPU affinity of the calling thread while draining.
    pub affinity: DrainAffinity,
    /// The real-time priority of draining (`-r`); with `None`, recordings raise the ordinary priority (nice -20), if
    /// permitted.
    pub real_time: Option<i32>,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            pages: None,
            min_flush_bytes: 1,
            threads: None,
            affinity: DrainAffinity::default(),
            real_time: None,
        }
    }
}

/// How records of already running tasks are synthesized.
#[derive(Debug, Clone)]
pub struct SynthesisOptions {
    /// The kinds of records.
    pub kinds: SynthesizedRecords,
    /// The time limit for reading the mappings of one process (`--proc-map-timeout`).
    pub maps_timeout: Duration,
    /// The number of threads that read procfs (`--num-thread-synthesize`); `None` for one per CPU that this process may use.
    /// Fewer are used if few processes run.
    pub threads: Option<usize>,
    /// Whether these and the other records of the initial state are written at the end of each file (`--tail-synthesize`).
    pub at_end: bool,
}

impl Default for SynthesisOptions {
    fn default() -> Self {
        Self {
            kinds: SynthesizedRecords {
                tasks: true,
                mappings: true,
                cgroups: true,
            },
            maps_timeout: Duration::from_millis(500),
            threads: None,
            at_end: false,
        }
    }
}

/// The output.
#[derive(Debug, Clone, Default)]
pub struct OutputOptions {
    /// The output file or directory, or the name of the stream in messages.
    pub path: PathBuf,
    /// Whether the user gave the path, or it is a default.
    pub naming: PathOrigin,
    /// The pipe for pipe mode, instead of a file.
    pub stream: Option<Arc<File>>,
    /// Transforms records before they are written; not those of overwrite ring buffers.
    pub rewriter: Option<Arc<dyn BuildRewriter>>,
    /// Whether records of ring buffers are compressed (`-z`); those of overwrite ring buffers are not.
    pub compress: bool,
    /// Whether the time is appended to the output's name (`--timestamp-filename`); with a rotation it always is.
    pub timestamped: bool,
    /// The rules for switching the output to another file (`--switch-output`).
    pub rotation: Option<RotationOptions>,
    /// Events that are not recorded, but switch the output to the next file (`--switch-output-event`).
    pub switch_events: Vec<EventSpec>,
    /// The output size in bytes at which the recording ends.
    pub max_size: Option<u64>,
    /// Copies the kernel's code into the output directory (`--kcore`).
    pub kernel_code: Option<Arc<dyn KernelCodeReader>>,
    /// Whether the header lists the build-ids of the kernel, its modules and all mapped files. Otherwise no files are cached
    /// either.
    pub build_ids: bool,
    /// Whether all loaded modules and mapped files are cached, not only those with samples (`--buildid-all`).
    pub cache_all: bool,
    /// The command line for the header.
    pub command_line: Vec<String>,
    /// The version for the header.
    pub version: String,
    /// The build-id cache, to which files with samples (or all, with `cache_all`), kallsyms and the vdso are added; `None` to
    /// leave it unchanged.
    pub cache: Option<PathBuf>,
}

/// The mount points of kernel file systems.
#[derive(Debug, Clone)]
pub struct KernelRoots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sysfs: PathBuf,
    /// tracefs.
    pub tracefs: Tracefs,
}

impl RecordRequest {
    /// Returns the snapshot options of traces.
    pub(crate) fn snapshots(&self) -> Option<&SnapshotOptions> {
        self.observe.traces.as_ref()?.snapshots.as_ref()
    }

    /// Returns a request without a file: samples according to `observe`, with the names and mappings of running tasks.
    #[must_use]
    pub fn observing(observe: ObserveOptions, roots: KernelRoots) -> Self {
        Self {
            observe,
            rings: RingOptions::default(),
            synthesis: SynthesisOptions::default(),
            output: OutputOptions::default(),
            roots,
        }
    }
}

impl ObserveOptions {
    /// Returns the options to sample `events` of `target` at [`DEFAULT_FREQUENCY`].
    #[must_use]
    pub fn new(target: Target, events: Vec<EventSpec>) -> Self {
        Self {
            target,
            workload: None,
            events,
            cgroups: Vec::new(),
            sampling: Sampling::Default(DEFAULT_FREQUENCY),
            call_graph: CallGraph::default(),
            max_stack: 0,
            raw_samples: false,
            details: RecordDetails::default(),
            traces: None,
            switches: None,
            duration: None,
            sample_filters: Vec::new(),
            off_cpu: None,
            programs: Vec::new(),
        }
    }
}

/// Receives notices while a recording or count is set up and runs.
pub trait SessionObserver {
    /// Handles a notice.
    fn on_event(&mut self, notice: SessionNotice<'_>);
}

/// A notice.
#[derive(Debug)]
#[non_exhaustive]
pub enum SessionNotice<'a> {
    /// The event has no PMU; the CPU clock replaces it.
    ClockInstead {
        /// The name of the requested event.
        event: &'a str,
        /// The name of the recorded event.
        instead: &'a str,
    },
    /// The user may not profile the kernel: the event is restricted to user space.
    UserOnly {
        /// The name of the recorded event.
        event: &'a str,
        /// `perf_event_paranoid`, if it could be read.
        paranoid: Option<i64>,
        /// Whether the event never fires in user space, so that it counts nothing.
        is_silent: bool,
    },
    /// The requested precision is not supported.
    LessPrecise {
        /// The `precise_ip` that is tried next.
        level: u8,
    },
    /// The kernel does not support a field of the attr, which is removed.
    LeftOut {
        /// The attr's field.
        field: &'a str,
    },
    /// The kernel does not support deferred user callchains: they are recorded with each sample.
    NotDeferred,
    /// Locked memory is insufficient: the ring buffers are smaller than requested.
    SmallerRings {
        /// The requested number of data pages.
        requested: usize,
        /// The actual number of data pages.
        actual: usize,
    },
    /// An attr is about to be opened.
    Opening {
        /// The attr.
        attr: &'a Attr,
    },
    /// perf_event_open(2) was called.
    Opened {
        /// The thread and the CPU; if the event is restricted to a cgroup, `pid` is the cgroup's descriptor.
        observed: ObservedTask,
        /// The call's flags.
        flags: u64,
        /// The descriptor of the group leader.
        group: Option<i32>,
        /// The descriptor, or the error.
        outcome: Result<i32, &'a io::Error>,
    },
    /// The events were enabled or disabled, at a set time (`-D`) or by a control command, or they start disabled. The side-band
    /// event of a recording is not disabled.
    Switched {
        /// Whether they are enabled now.
        on: bool,
    },
    /// One event was enabled or disabled by a control command.
    EventSwitched {
        /// Its name.
        event: &'a str,
        /// Whether it is enabled now.
        on: bool,
    },
    /// A control command named an unknown event.
    NoSuchEvent {
        /// The name in the command.
        event: &'a str,
    },
    /// An event or group to be listed by a control command.
    Listed {
        /// Its name; for a group with the names of its members.
        name: &'a str,
        /// Its attr.
        attr: &'a Attr,
        /// The details to list.
        listing: ListedDetail,
    },
    /// A control command is unknown; it is not acknowledged.
    UnknownCommand {
        /// The command.
        command: &'a str,
    },
    /// The output has reached the size at which the recording ends.
    SizeReached {
        /// The actual size in bytes; may exceed the limit.
        bytes: u64,
    },
    /// The output grows fast.
    GrowingFast {
        /// The growth in bytes per minute.
        bytes: u64,
        /// Samples per second; 0 if other threads drain the ring buffers (`--threads`).
        samples: u64,
        /// The name of the first event.
        event: &'a str,
        /// Its sampling rate.
        rate: SampledRate,
        /// Whether it is the only event; a separate side-band event counts as another one.
        is_only: bool,
        /// Whether its samples contain stack copies.
        copies: bool,
    },
    /// The recording has ended, and the workload has not exited although it was signalled.
    WorkloadStays {
        /// Its pid.
        pid: u32,
    },
    /// A file of a rotation, or with the time in its name, is complete.
    Dumped {
        /// Its name.
        path: &'a Path,
    },
    /// The event is not supported by the machine or the kernel.
    NotSupported {
        /// The name of the event.
        event: &'a str,
        /// Whether it was opened in a group, which may be the cause.
        grouped: bool,
        /// The part of its attr without which the kernel would accept the event, if a single part is the cause.
        refused: Option<&'a str>,
    },
    /// A weak group (`:W`) does not fit on the hardware counters; its events are opened separately.
    GroupBroken {
        /// The name of its leader.
        leader: &'a str,
    },
    /// Some tasks are not counted: BPF programs had no room for them.
    TasksNotCounted {
        /// Their number.
        lost: u64,
    },
    /// All ring buffers are mapped.
    Mapped {
        /// The size of each ring buffer in bytes, including the control page; in overwrite mode, the size of each overwrite ring
        /// buffer, and the others may be larger.
        bytes: usize,
    },
    /// All AUX areas are mapped.
    TraceMapped {
        /// The size of each area in bytes.
        bytes: usize,
    },
    /// Kernel addresses are hidden from the user (`kptr_restrict`) or cannot be read: kernel samples will have no symbols.
    KernelAddressesHidden,
}

/// Access to the running kernel's code; this crate does not parse ELF.
pub trait KernelCodeReader: Debug + Send + Sync {
    /// Copies the kernel's code and symbols into an empty folder: `kcore`, `kallsyms`, `modules`.
    ///
    /// # Errors
    /// Errors of reading and writing.
    fn copy_to(&self, folder: &Folder) -> io::Result<()>;
}

/// Programs in the kernel that write samples of an event; this crate does not load any.
pub trait OutputPrograms: Debug + Send + Sync {
    /// Returns the name of the event.
    fn event(&self) -> &str;

    /// Directs the programs to the counters of the event, and starts to observe the target. `counters` has the CPU and the
    /// descriptor of each counter; `workload` is the process that will execute the command. Called once, before the command is
    /// executed.
    ///
    /// # Errors
    /// Errors of the kernel.
    fn connect(&self, counters: &[(i32, BorrowedFd<'_>)], workload: Option<u32>) -> io::Result<()>;
}

/// Reads build-ids from ELF files, images and notes; this crate does not parse ELF.
pub trait BuildIds: Sync {
    /// Returns the build-id of an ELF file on disk.
    fn of_file(&self, path: &Path) -> Option<Vec<u8>>;
    /// Returns the build-id of an ELF image in memory.
    fn of_image(&self, bytes: &[u8]) -> Option<Vec<u8>>;
    /// Returns the build-id in a sequence of ELF notes, as in `/sys/kernel/notes`.
    fn of_notes(&self, notes: &[u8]) -> Option<Vec<u8>>;
}
