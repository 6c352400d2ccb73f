//! Errors of programs and their maps.

use std::io;

use rperf_sys::BpfLoadError;

use crate::BuildError;

/// An error of loading or running a program, or of a map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel lacks bpf(2).
    #[error("this kernel has no BPF")]
    NoBpf,
    /// Missing permission.
    #[error("no permission to load BPF programs (needs root, or CAP_BPF and CAP_PERFMON)")]
    NotPermitted,
    /// The register layout of the processor is unknown here.
    #[error("BPF programs for system calls are not available on this architecture")]
    Architecture,
    /// This process is in a PID namespace, so its PIDs differ from those that BPF programs see.
    #[error("process ids in this PID namespace differ from those that BPF programs see")]
    PidNamespace,
    /// Child tasks are to be included, but the offset of `task_struct::pid` is unknown.
    #[error("the kernel has no type information (BTF) to follow children")]
    NoBtf,
    /// The verifier rejected a program.
    #[error("the kernel rejected the BPF program {program}: {error}\n{log}")]
    Rejected {
        /// The name of the program.
        program: &'static str,
        /// The error of bpf(2).
        error: io::Error,
        /// The verifier's log.
        log: String,
    },
    /// A map could not be created, read or written.
    #[error("BPF map {map}: {error}")]
    Map {
        /// The name of the map.
        map: &'static str,
        /// The error of bpf(2).
        error: io::Error,
    },
    /// A program could not be attached.
    #[error("BPF program at the tracepoint {tracepoint}: {error}")]
    Attach {
        /// The name of the tracepoint.
        tracepoint: &'static str,
        /// The error of bpf(2).
        error: io::Error,
    },
    /// Too many events, or events on too many CPUs.
    #[error("too many events to count with BPF programs")]
    TooManyEvents,
    /// The kernel cannot run a program on a CPU to complete its sums.
    #[error("the kernel cannot complete sums of BPF programs (needs Linux 5.10): {0}")]
    Flush(#[source] io::Error),
    /// A program to be counted is not loaded.
    #[error("no BPF program has the id {id}")]
    NoProgram {
        /// The id.
        id: u32,
    },
    /// A program to be counted has no type information, which attaching other programs to it requires.
    #[error("BPF program {id} has no type information (BTF), and cannot be counted")]
    NoProgramTypes {
        /// The id.
        id: u32,
    },
    /// A program to be counted could not be opened.
    #[error("BPF program {id}: {error}")]
    Program {
        /// The id.
        id: u32,
        /// The error of bpf(2).
        error: io::Error,
    },
    /// The kernel cannot run programs at the begin and end of other programs.
    #[error(
        "this kernel permits no programs at the begin and the end of BPF program {id} (fentry, fexit)"
    )]
    NoTracing {
        /// The id of the program to be counted.
        id: u32,
    },
    /// The hierarchy of cgroups is not of version 2, or only a part of the hierarchy is visible.
    #[error("BPF programs count cgroups of version 2, below the root of their hierarchy")]
    NoHierarchy,
    /// A program could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file of procfs or sysfs could not be read.
    #[error("{file}: {error}")]
    KernelFile {
        /// Its path.
        file: &'static str,
        /// The error of open(2) or read(2).
        error: io::Error,
    },
}

impl Error {
    /// Creates the error of a program that was not loaded.
    pub(crate) fn load(program: &'static str, failure: BpfLoadError) -> Self {
        let log = failure.log;
        Self::classify(failure.error, |error| Self::Rejected {
            program,
            error,
            log,
        })
    }

    /// Classifies an error of bpf(2): a missing system call or missing permission, otherwise `other`.
    pub(crate) fn classify(error: io::Error, other: impl FnOnce(io::Error) -> Self) -> Self {
        match error.kind() {
            io::ErrorKind::Unsupported => Self::NoBpf,
            io::ErrorKind::PermissionDenied if error.raw_os_error() == Some(1) => {
                Self::NotPermitted
            }
            _ => other(error),
        }
    }
}
