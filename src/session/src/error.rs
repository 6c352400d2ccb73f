//! What stops a recording.

use std::io;
use std::path::{Path, PathBuf};

use rperf_sys::CpuList;

/// An event that the kernel refused, with what explains it.
#[derive(Debug, thiserror::Error)]
#[error("failed to open event {event}")]
pub struct NotOpened {
    /// Name of the event.
    pub event: String,
    /// The kernel's answer.
    #[source]
    pub cause: io::Error,
    /// Whether whole CPUs are observed; decides what the answer means.
    pub on_cpus: bool,
    /// Whether the event leaves the kernel out.
    pub user_only: bool,
    /// Whether it is a tracepoint, whose samples tell about the kernel's inside.
    pub tracepoint: bool,
    /// Whether samples were to hold branches.
    pub branches: bool,
    /// The part of the attr without which the kernel would take it, where a single one is to blame.
    pub refused: Option<String>,
    /// `perf_event_paranoid`, if it could be read.
    pub paranoid: Option<i64>,
}

/// Why a recording can't begin or go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// None of the processes or threads to observe exists.
    #[error("no such process or thread: {0}")]
    NoSuchTask(u32),
    /// The user to observe has no processes.
    #[error("user {0} has no processes")]
    IdleUser(u32),
    /// CPUs that are not online.
    #[error("CPU {missing} is not online, online are {online}")]
    NoSuchCpu {
        /// First CPU of the list that is not online.
        missing: u32,
        /// Those that are.
        online: CpuList,
    },
    /// A CPU that is recorded is in none of the masks of threads.
    #[error("no thread empties the ring of CPU {cpu}")]
    UnservedCpu {
        /// The first of them.
        cpu: u32,
    },
    /// None of the CPUs of a thread's mask is recorded.
    #[error("a thread for CPUs {cpus} would have nothing to do")]
    IdleThread {
        /// The mask.
        cpus: CpuList,
    },
    /// A thread may not run on the CPUs it is to run on.
    #[error("no thread may run on CPUs {cpus}")]
    Bind {
        /// The CPUs.
        cpus: CpuList,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The kernel refused an event.
    #[error(transparent)]
    Open(#[from] Box<NotOpened>),
    /// A request to an open event failed.
    #[error("failed to {what} event {event}")]
    Control {
        /// What was to be done.
        what: &'static str,
        /// Name of the event.
        event: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The kernel refused a filter.
    #[error("failed to set filter \"{filter}\" on event {event}")]
    Filter {
        /// Name of the event.
        event: String,
        /// The filter as the kernel got it.
        filter: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The tracepoints to record can't be described.
    #[error("failed to read the descriptions of tracepoints in {}", folder.display())]
    Tracefs {
        /// The folder of tracefs.
        folder: PathBuf,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The rings could not be mapped, not even the smallest.
    #[error("failed to map a ring of {pages} pages for CPU {cpu}")]
    Map {
        /// Data pages tried last.
        pages: usize,
        /// The CPU, -1 for a ring of a task.
        cpu: i32,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The area for a hardware trace could not be mapped.
    #[error("failed to map an AUX area of {pages} pages for event {event}")]
    MapTrace {
        /// Its pages.
        pages: usize,
        /// Name of the event.
        event: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// A cgroup cannot be opened, or there are none.
    #[error("no access to cgroup {name}")]
    Cgroup {
        /// Its name.
        name: String,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// Draining in real time is not allowed.
    #[error("failed to run at real-time priority {priority}")]
    RealTime {
        /// The priority.
        priority: i32,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The workload could not be forked or started.
    #[error("failed to start '{program}'")]
    Workload {
        /// Its first word.
        program: PathBuf,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// The output could not be created, or put in the place of the old one.
    #[error("failed to open {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
    /// Writing failed; what was written is closed at its last whole record.
    #[error("failed to write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Bytes of records that are whole in the file.
        kept: u64,
        /// What happened.
        #[source]
        cause: io::Error,
    },
    /// A thread that has work of its own cannot be started.
    #[error("failed to start a thread")]
    Thread(#[source] io::Error),
    /// Something that should always work on Linux did not.
    #[error("failed to {what}")]
    System {
        /// What was to be done.
        what: &'static str,
        /// The kernel's answer.
        #[source]
        cause: io::Error,
    },
}

impl Error {
    /// Fills in the path that the writing side does not know.
    pub(crate) fn at(self, path: &Path) -> Self {
        match self {
            Self::Write { kept, cause, .. } => Self::Write {
                path: path.to_owned(),
                kept,
                cause,
            },
            other => other,
        }
    }

    /// Whether a write failed because nobody reads the pipe any more.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Write { cause, .. } if cause.kind() == io::ErrorKind::BrokenPipe)
    }

    /// For `map_err`: names what was to be done.
    pub(crate) fn system(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |cause| Self::System { what, cause }
    }
}
