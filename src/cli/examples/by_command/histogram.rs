//! Examples of `histogram`.

use super::{CommandLine, example};

/// The command with its examples.
pub(super) const HISTOGRAM: &[(&str, &[CommandLine])] = &[(
    "histogram",
    &[
        example(
            "histogram --from sched:sched_switch --to sched:sched_switch",
            "show the times between context switches of each thread, in microseconds",
        ),
        example(
            "histogram sched:sched_switch next_prio -b '0 100 120 121'",
            "show the priorities of threads that get a CPU: real-time, higher, normal, lower",
        ),
        example(
            "histogram syscalls:sys_exit_read ret 1",
            "record all CPUs for a second, and show how many bytes reads return, and errors",
        ),
        example(
            "histogram syscalls:sys_exit_read ret --svg -- ls /usr",
            "record a command, and draw histogram.svg",
        ),
    ],
)];
