//! Explains why the kernel did not open an event, with hints.

use rperf_session::NotOpened;
use rperf_sys::Proc;

use super::PROC;
use super::explain::{FAILURE_STATUS, NO_TARGET_STATUS, PARANOID, reason};
use super::limits::setting;
use crate::cli::error::CliError;

/// The capabilities that replace root, and the command that gives them to a program.
const CAPABILITIES: &str = "CAP_PERFMON: setcap cap_perfmon,cap_sys_ptrace,cap_syslog=ep FILE";

/// The scope of an event, which decides the permission that the event needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ObservedScope {
    /// A tracepoint.
    Tracepoint,
    /// All tasks of CPUs.
    Cpus,
    /// Some tasks, also in the kernel.
    Kernel,
    /// The user space of some tasks.
    UserSpace,
}

impl ObservedScope {
    fn of(not_opened: &NotOpened) -> Self {
        match (not_opened.on_cpus, not_opened.user_only) {
            _ if not_opened.tracepoint => Self::Tracepoint,
            (true, _) => Self::Cpus,
            (false, false) => Self::Kernel,
            (false, true) => Self::UserSpace,
        }
    }

    /// Returns the activity in the message, and the highest `perf_event_paranoid` that allows it for unprivileged users.
    fn needs(self) -> (&'static str, i64) {
        match self {
            Self::Tracepoint => ("recording tracepoint data", -1),
            Self::Cpus => ("monitoring whole CPUs", 0),
            Self::Kernel => ("monitoring the kernel", 1),
            Self::UserSpace => ("monitoring user space", 2),
        }
    }
}

/// Explains why an event could not be opened.
pub(super) fn explain(not_opened: &NotOpened) -> CliError {
    let NotOpened { event, cause, .. } = not_opened;
    if not_opened.branches && cause.raw_os_error() == Some(libc::EOPNOTSUPP) {
        return no_branches(event);
    }
    // The only part of the attr that the kernel refuses, such as a flag.
    if let Some(part) = &not_opened.refused {
        return refused_for(event, part);
    }
    match cause.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => denied(not_opened),
        Some(libc::ENOENT | libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP) => {
            failed(format!("The {event} event is not supported."))
                .hint("this machine has no counter for it; use '-e cpu-clock', which samples by a timer")
        }
        Some(libc::ESRCH) => CliError::message(NO_TARGET_STATUS, "Couldn't create thread/CPU maps: No such process"),
        Some(libc::EOVERFLOW) => failed(format!("event {event} asks for deeper callchains than the kernel allows."))
            .hint(format!("use a smaller max-stack, or raise {}", setting("perf_event_max_stack"))),
        Some(libc::EMFILE) => failed("Too many events are opened.")
            .hint("the limit of open files is at its maximum; raise it as root with 'ulimit -Hn', or name fewer tasks or CPUs with -p or -C"),
        Some(libc::ENOSYS) => failed(format!("perf_event_open(2) is not available for {event}"))
            .hint("the kernel lacks CONFIG_PERF_EVENTS, or a seccomp filter blocks the call"),
        Some(libc::EBUSY) => failed(format!("The PMU counters are busy/taken by another profiler (event {event}).")),
        // ENOSPC means that all breakpoint registers are in use.
        Some(libc::ENOSPC) => failed(format!("no breakpoint register is free for {event}"))
            .hint("the CPU has few of them (x86: 4), shared with debuggers and other programs"),
        _ => failed(format!("the kernel refused event {event}: {}", reason(cause))).hint("-vv shows the perf_event_attr"),
    }
}

/// The error for a missing permission.
fn denied(not_opened: &NotOpened) -> CliError {
    let own_pid = std::process::id();
    let has_seccomp_filter = Proc::new(PROC)
        .status(own_pid, own_pid)
        .is_ok_and(|status| status.has_seccomp_filter);
    let error = denied_by(not_opened, has_seccomp_filter);
    if has_seccomp_filter {
        return error.hint(
            "in a container, start it with --cap-add PERFMON or --security-opt seccomp=unconfined",
        );
    }
    if ObservedScope::of(not_opened) == ObservedScope::Cpus {
        return error.hint("without -a and -C you can record your own commands, in user space");
    }
    error
}

/// Returns the error that names the cause of the denial: the sysctl; if that allows the event, a seccomp filter; if there is
/// none, a security module for whole CPUs, and the owner of an observed task otherwise.
fn denied_by(not_opened: &NotOpened, has_seccomp_filter: bool) -> CliError {
    let NotOpened {
        event, paranoid, ..
    } = not_opened;
    let observed = ObservedScope::of(not_opened);
    let (activity, needed) = observed.needs();
    let state = paranoid.map_or_else(
        || "cannot be read".to_owned(),
        |level| format!("is {level}"),
    );
    let no_permission =
        |why: String| failed(format!("No permission to open event {event}: {why}."));
    if !paranoid.is_some_and(|level| level <= needed) {
        return no_permission(format!(
            "{activity} needs {PARANOID} at {needed} or less, and it {state}"
        ))
        .hint(format!(
            "run it with sudo, or give the program {CAPABILITIES}"
        ))
        .hint(format!(
            "or allow it for all users: sudo sysctl {PARANOID}={needed}"
        ));
    }
    if has_seccomp_filter {
        return no_permission(format!(
            "{PARANOID} {state} and would allow it: a seccomp filter blocks the call"
        ));
    }
    if not_opened.on_cpus {
        return no_permission(format!(
            "{PARANOID} {state} and would allow it: a security module of the kernel blocks the call"
        ))
        .hint("/sys/kernel/security/lsm and /sys/kernel/security/lockdown name the active ones")
        .hint("run it with sudo");
    }
    // Tasks of others are protected by ptrace's rules, at every level.
    no_permission("the process belongs to another user".to_owned()).hint(format!(
        "run it with sudo, or give the program {CAPABILITIES}"
    ))
}

fn no_branches(event: &str) -> CliError {
    failed(format!(
        "{event}: PMU Hardware or event type doesn't support branch stack sampling."
    ))
    .hint("for call graphs use --call-graph dwarf")
}

/// Returns the error for an attr if the kernel would accept it without `part`.
fn refused_for(event: &str, part: &str) -> CliError {
    failed(format!(
        "the kernel refuses event {event} because of its {part}."
    ))
    .hint("the kernel accepts the event without it; -vv shows the perf_event_attr")
}

/// A failure with perf's `Error:` on a line of its own.
fn failed(why: impl Into<String>) -> CliError {
    CliError::message(FAILURE_STATUS, "Error:").detail(why)
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const USER_ONLY: bool = true;
    const WITH_KERNEL: bool = false;
    const TRACEPOINT: bool = true;
    const NO_TRACEPOINT: bool = false;
    const SECCOMP_FILTER: bool = true;
    const NO_SECCOMP_FILTER: bool = false;

    /// The message for an event of another user's task, refused at this level of `perf_event_paranoid`.
    fn of_task(paranoid: i64, user_only: bool, tracepoint: bool) -> String {
        let not_opened = NotOpened {
            event: "cs".to_owned(),
            cause: io::Error::from_raw_os_error(libc::EACCES),
            on_cpus: false,
            user_only,
            tracepoint,
            branches: false,
            refused: None,
            paranoid: Some(paranoid),
        };
        denied_by(&not_opened, NO_SECCOMP_FILTER).text()
    }

    #[test]
    fn the_level_is_the_reason_only_if_it_does_not_allow_the_event() {
        let owner = "the process belongs to another user";
        for level in -1..=2 {
            assert!(
                of_task(level, USER_ONLY, NO_TRACEPOINT).contains(owner),
                "{level}"
            );
        }
        for level in -1..=1 {
            let text = of_task(level, WITH_KERNEL, NO_TRACEPOINT);
            assert!(text.contains(owner) && !text.contains("sysctl"), "{text}");
        }
        assert!(of_task(-1, WITH_KERNEL, TRACEPOINT).contains(owner));
        for (level, tracepoint, needed) in [(2, NO_TRACEPOINT, 1), (0, TRACEPOINT, -1)] {
            let text = of_task(level, WITH_KERNEL, tracepoint);
            let denial = format!("at {needed} or less, and it is {level}.");
            assert!(text.contains(&denial), "{text}");
        }
    }

    #[test]
    fn refused_calls_that_paranoid_allows_have_another_cause() {
        let not_opened = NotOpened {
            event: "cs".to_owned(),
            cause: io::Error::from_raw_os_error(libc::EPERM),
            on_cpus: true,
            user_only: false,
            tracepoint: false,
            branches: false,
            refused: None,
            paranoid: Some(0),
        };
        let text = denied_by(&not_opened, NO_SECCOMP_FILTER).text();
        assert!(text.contains("a security module"), "{text}");
        assert!(
            denied_by(&not_opened, SECCOMP_FILTER)
                .text()
                .contains("a seccomp filter blocks the call")
        );
    }
}
