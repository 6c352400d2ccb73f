//! Why the kernel did not open an event, and the ways out.

use rperf_session::NotOpened;
use rperf_sys::Proc;

use super::PROC;
use super::explain::{FAILED, NO_TARGET, PARANOID, reason};
use crate::cli::error::CliError;

/// What lets a program do without root.
const CAPABILITIES: &str = "CAP_PERFMON: setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep FILE";

/// What an event would have seen; decides what permission it needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Observed {
    /// The inside of the kernel, whoever it works for.
    Tracepoint,
    /// Everything on whole CPUs.
    Cpus,
    /// The kernel, on behalf of some tasks.
    Kernel,
    /// The user space of some tasks, which then are another user's.
    Others,
}

impl Observed {
    fn of(refused: &NotOpened) -> Self {
        match (refused.on_cpus, refused.user_only) {
            _ if refused.tracepoint => Self::Tracepoint,
            (true, _) => Self::Cpus,
            (false, false) => Self::Kernel,
            (false, true) => Self::Others,
        }
    }

    /// What it is called, and the highest `perf_event_paranoid` that lets everyone have it.
    fn needs(self) -> (&'static str, i64) {
        match self {
            Self::Tracepoint => ("recording what tracepoints tell", -1),
            Self::Cpus => ("observing whole CPUs", 0),
            Self::Kernel => ("observing the kernel", 1),
            Self::Others => ("observing user space", 2),
        }
    }
}

/// Puts into words why an event could not be opened.
pub(super) fn explain(refused: &NotOpened) -> CliError {
    let NotOpened { event, cause, .. } = refused;
    if refused.branches && cause.raw_os_error() == Some(libc::EOPNOTSUPP) {
        return no_branches(event);
    }
    if let Some(part) = &refused.refused {
        return refused_for(event, part);
    }
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => denied(refused),
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP) => {
            failed(format!("The {event} event is not supported."))
                .hint("this machine shows no counter for it; '-e cpu-clock' samples by a timer")
        }
        Some(libc::ESRCH) => CliError::message(NO_TARGET, "Couldn't create thread/CPU maps: No such process"),
        Some(libc::EMFILE) => failed("Too many events are opened.")
            .hint("the limit of open files was raised as far as it goes; 'ulimit -Hn' as root raises it, fewer -p or -C need less"),
        Some(libc::ENOSYS) => failed(format!("the kernel has no perf_event_open(2) for {event}"))
            .hint("CONFIG_PERF_EVENTS is off, or a seccomp filter hides the call"),
        Some(libc::EBUSY) => failed(format!("The PMU counters are busy/taken by another profiler (event {event}).")),
        // Nothing else runs out of room.
        Some(libc::ENOSPC) => failed(format!("no address can be watched beside the others: {event}"))
            .hint("the processor watches few at once (4 on x86), those of other programs included"),
        _ => failed(format!("the kernel refused event {event}: {}", reason(cause))).hint("-vv shows the attr that was tried"),
    }
}

/// Not allowed: by the owner, by the sysctl, or, where that would allow it, by a seccomp filter.
fn denied(refused: &NotOpened) -> CliError {
    let NotOpened {
        event, paranoid, ..
    } = refused;
    let observed = Observed::of(refused);
    let own = std::process::id();
    let filtered = Proc::new(PROC)
        .status(own, own)
        .is_ok_and(|status| status.is_filtered);
    let (what, needed) = observed.needs();
    let is = paranoid.map_or_else(
        || "cannot be read".to_owned(),
        |level| format!("is {level}"),
    );
    let failed = |why: String| failed(format!("No permission to open event {event}: {why}."));
    let allowed = paranoid.is_some_and(|level| level <= needed);
    let error = if allowed && filtered {
        failed(format!(
            "{PARANOID} {is} and would allow it, a seccomp filter does not"
        ))
    } else if allowed && observed == Observed::Others {
        failed("the process belongs to another user".to_owned()).hint("run it with sudo")
    } else {
        failed(format!(
            "{what} needs {PARANOID} at {needed} or less, and it {is}"
        ))
        .hint(format!(
            "run it with sudo, or give the program {CAPABILITIES}"
        ))
        .hint(format!(
            "or allow it to everyone: sudo sysctl {PARANOID}={needed}"
        ))
    };
    if filtered {
        return error.hint("in a container --cap-add PERFMON or --security-opt seccomp=unconfined lets the call through");
    }
    if observed == Observed::Cpus {
        return error
            .hint("without -a and -C a command of your own can be recorded, in user space");
    }
    error
}

fn no_branches(event: &str) -> CliError {
    failed(format!(
        "{event}: PMU Hardware or event type doesn't support branch stack sampling."
    ))
    .hint("for call graphs use --call-graph dwarf")
}

/// One part of the attr is to blame: everything else of it would be taken.
fn refused_for(event: &str, part: &str) -> CliError {
    failed(format!(
        "the kernel refuses event {event} because of its {part}."
    ))
    .hint("without that it would be taken; -vv shows the attr that was tried")
}

/// perf puts its `Error:` on a line of its own.
fn failed(why: impl Into<String>) -> CliError {
    CliError::message(FAILED, "Error:").detail(why)
}
