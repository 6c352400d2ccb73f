//! Errors of recordings and counts.

use std::io;
use std::path::{Path, PathBuf};

use rperf_sys::CpuList;

use crate::SchedstatError;

/// An event refused by the kernel, with details.
#[derive(Debug, thiserror::Error)]
#[error("failed to open event {event}")]
pub struct NotOpened {
    /// Name of the event.
    pub event: String,
    /// The kernel's error.
    #[source]
    pub cause: io::Error,
    /// Whether CPUs are observed instead of tasks, which determines the meaning of the error.
    pub on_cpus: bool,
    /// Whether the event excludes the kernel.
    pub user_only: bool,
    /// Whether it is a tracepoint, whose samples reveal kernel data.
    pub tracepoint: bool,
    /// Whether branch stacks were requested.
    pub branches: bool,
    /// The part of the attr without which the kernel would accept the event, if a single part is the cause.
    pub refused: Option<String>,
    /// `perf_event_paranoid`, if it could be read.
    pub paranoid: Option<i64>,
}

/// An error that prevents or ends a recording or count.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A process or thread to observe does not exist.
    #[error("no such process or thread: {0}")]
    NoSuchTask(u32),
    /// The user to observe has no processes.
    #[error("user {0} has no processes")]
    IdleUser(u32),
    /// A CPU to observe is not online.
    #[error("CPU {missing} is not online, online are {online}")]
    NoSuchCpu {
        /// The first requested CPU that is not online.
        missing: u32,
        /// The online CPUs.
        online: CpuList,
    },
    /// A recorded CPU is not in any mask of `--threads`.
    #[error("no thread reads the ring buffer of CPU {cpu}")]
    UnservedCpu {
        /// The first such CPU.
        cpu: u32,
    },
    /// No CPU in the mask of a thread is recorded.
    #[error("a thread would read only CPUs {cpus}, which are not recorded")]
    IdleThread {
        /// The mask.
        cpus: CpuList,
    },
    /// The affinity of a thread can't be set.
    #[error("this process may not run on CPUs {cpus}")]
    Bind {
        /// The CPUs.
        cpus: CpuList,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The kernel refused an event.
    #[error(transparent)]
    Open(#[from] Box<NotOpened>),
    /// An ioctl on an open event failed.
    #[error("failed to {what} event {event}")]
    Control {
        /// The operation.
        what: &'static str,
        /// Name of the event.
        event: String,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The kernel refused a filter, or a BPF program that implements a filter.
    #[error("failed to set filter \"{filter}\" on event {event}")]
    Filter {
        /// Name of the event.
        event: String,
        /// The filter passed to the kernel; for a BPF program, the name of the option, `--filter`.
        filter: String,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The formats of recorded tracepoints can't be read.
    #[error("failed to read the formats of tracepoints in {}", folder.display())]
    Tracefs {
        /// The `events` folder of tracefs.
        folder: PathBuf,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// A ring could not be mapped. If the limit of locked memory was the cause, smaller sizes were tried, too.
    #[error("failed to map a ring buffer of {pages} pages for CPU {cpu}")]
    Map {
        /// Number of data pages tried last.
        pages: usize,
        /// The CPU, -1 for a ring of a task.
        cpu: i32,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The AUX area of a hardware trace could not be mapped.
    #[error("failed to map an AUX area of {pages} pages for event {event}")]
    MapTrace {
        /// Number of pages.
        pages: usize,
        /// Name of the event.
        event: String,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// A BPF program can't be loaded or used.
    #[error(transparent)]
    Bpf(#[from] rperf_bpf::Error),
    /// A cgroup can't be opened.
    #[error("failed to open cgroup {name}")]
    Cgroup {
        /// Its name.
        name: String,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// Real-time priority is not permitted.
    #[error("failed to run at real-time priority {priority}")]
    RealTime {
        /// The priority.
        priority: i32,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The workload could not be forked or executed.
    #[error("failed to start '{program}'")]
    Workload {
        /// The program.
        program: PathBuf,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The output could not be created, completed or renamed, or could not replace the old one. The text is that of perf for
    /// the first of these cases.
    #[error("failed to open {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// Writing failed. The file of a recording ends with its last complete record.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes of complete records in the file.
        kept: u64,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The statistics of the scheduler cannot be read.
    #[error("failed to open {}", path.display())]
    NoSchedstat {
        /// `schedstat` in the proc file system.
        path: PathBuf,
        /// The kernel's error.
        #[source]
        cause: io::Error,
    },
    /// The statistics of the scheduler are not as expected. The text is only the path: the fault follows as the cause.
    #[error("{}", path.display())]
    Schedstat {
        /// `schedstat` in the proc file system.
        path: PathBuf,
        /// The fault.
        #[source]
        cause: SchedstatError,
    },
    /// The statistics of the scheduler are disabled, and cannot be enabled.
    #[error("failed to enable kernel.sched_schedstats")]
    SchedstatsOff(#[source] io::Error),
    /// A thread can't be started.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
    /// Another operation failed.
    #[error("failed to {what}")]
    System {
        /// The operation.
        what: &'static str,
        /// The cause.
        #[source]
        cause: io::Error,
    },
}

impl Error {
    /// Sets the path of a write error; the code that writes does not know the path, and leaves it empty.
    pub(crate) fn with_path(self, path: &Path) -> Self {
        match self {
            Self::Write { kept, cause, .. } => Self::Write {
                path: path.to_owned(),
                kept,
                cause,
            },
            other => other,
        }
    }

    /// Whether a write failed because the reader closed the pipe.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// Returns a function for `map_err` with the name of the operation.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
