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
    /// The layout of registers, or the number of a system call, is unknown on this architecture.
    #[error("BPF programs that read registers are not available on this architecture")]
    Architecture,
    /// This process is not in the initial PID namespace, so its PIDs differ from those that BPF programs see.
    #[error("process ids in this PID namespace differ from those that BPF programs see")]
    PidNamespace,
    /// The offset of a member that programs read is unknown, or too large for an instruction.
    #[error("the kernel has no type information (BTF) for a structure that BPF programs read")]
    NoBtf,
    /// The kernel did not load a program, usually because the verifier rejected it.
    #[error("the kernel rejected the BPF program {program}: {error}\n{log}")]
    Rejected {
        /// The name of the program.
        program: &'static str,
        /// The error of bpf(2).
        error: io::Error,
        /// The verifier's log; empty if the kernel returned none.
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
    /// The kernel cannot run a program on a given CPU (`BPF_F_TEST_RUN_ON_CPU`). The program would add the counts since the
    /// CPU's last context switch to the sums.
    #[error("the kernel cannot complete sums of BPF programs (needs Linux 5.10): {0}")]
    Flush(#[source] io::Error),
    /// A program of `stat --bpf-prog`, during whose runs events are counted, is not loaded.
    #[error("no BPF program has the id {id}")]
    NoProgram {
        /// The id.
        id: u32,
    },
    /// A program of `stat --bpf-prog` has no type information, which attaching other programs to it requires.
    #[error("BPF program {id} has no type information (BTF), and cannot be counted")]
    NoProgramTypes {
        /// The id.
        id: u32,
    },
    /// A program of `stat --bpf-prog` could not be opened.
    #[error("BPF program {id}: {error}")]
    Program {
        /// The id.
        id: u32,
        /// The error of bpf(2).
        error: io::Error,
    },
    /// The kernel cannot run programs at the start and end of a program of `stat --bpf-prog`.
    #[error(
        "this kernel permits no programs at the start and the end of BPF program {id} (fentry, fexit)"
    )]
    NoTracing {
        /// The id of the program of `stat --bpf-prog`.
        id: u32,
    },
    /// The hierarchy of cgroups is not of version 2, or only a part of the hierarchy is visible.
    #[error(
        "BPF programs count only cgroups of version 2, and only if the root of the hierarchy is mounted"
    )]
    NoHierarchy,
    /// A program could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// A file of procfs or sysfs could not be read.
    #[error("{file}: {error}")]
    KernelFile {
        /// Its path.
        file: &'static str,
        /// The error of open(2), read(2) or readlink(2).
        error: io::Error,
    },
}

impl Error {
    /// Creates the error of a program that was not loaded, or not attached to another program: [`Error::Rejected`], unless
    /// [`Error::classify`] has a better one.
    pub(crate) fn load(program: &'static str, failure: BpfLoadError) -> Self {
        let log = failure.log;
        Self::classify(failure.error, |error| Self::Rejected {
            program,
            error,
            log,
        })
    }

    /// Classifies an error of bpf(2): [`Error::NoBpf`] for `ENOSYS`, [`Error::NotPermitted`] for `EPERM`, otherwise `other`.
    pub(crate) fn classify(error: io::Error, other: impl FnOnce(io::Error) -> Self) -> Self {
        match error.raw_os_error() {
            Some(libc::ENOSYS) => Self::NoBpf,
            Some(libc::EPERM) => Self::NotPermitted,
            _ => other(error),
        }
    }
}
