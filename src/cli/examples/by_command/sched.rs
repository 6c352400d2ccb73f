//! The examples of `sched` and its subcommands.

use super::{CommandLine, example};

/// `sched` and its subcommands, with their examples.
pub(super) const SCHED: &[(&str, &[CommandLine])] = &[
    (
        "sched",
        &[
            example(
                "sched record -- sleep 10",
                "record the scheduler's events for ten seconds",
            ),
            example("sched latency", "show how long tasks waited for a CPU"),
            example("sched timehist", "print each time that a task ran"),
            example("sched off-cpu", "show where tasks wait"),
            example("sched script", "print every event"),
        ],
    ),
    (
        "sched diff",
        &[
            example("sched diff", "compare perf.data.old and perf.data"),
            example(
                "sched diff perf.data.old perf.data",
                "two recordings, the baseline first",
            ),
            example("sched diff --json", "rows as JSON"),
        ],
    ),
    (
        "sched latency",
        &[
            example("sched latency", "one row per command name"),
            example(
                "sched latency -p -s max",
                "one row per thread, longest delay first",
            ),
            example(
                "sched latency --percentiles",
                "medians and percentiles of the waits",
            ),
            example(
                "sched latency --antagonists",
                "which tasks ran while others waited",
            ),
            example("sched latency --histogram", "histograms of the waits"),
            example(
                "sched latency --live --percentiles -- sleep 1",
                "the running system, without a recording",
            ),
        ],
    ),
    (
        "sched map",
        &[
            example("sched map", "one column per CPU"),
            example("sched map --compact", "only CPUs with switches"),
            example("sched map --cpus 0", "only switches of one CPU"),
        ],
    ),
    (
        "sched off-cpu",
        &[
            example("sched off-cpu", "sums by task and state, and stacks"),
            example(
                "sched off-cpu --wakers",
                "also show who woke the task, and who woke the waker",
            ),
            example(
                "sched off-cpu -o off-cpu.svg",
                "draw a flame graph of the time that tasks wait",
            ),
            example(
                "sched off-cpu --folded",
                "one stack per line, for 'grep' and 'flamegraph -i'",
            ),
        ],
    ),
    (
        "sched perfetto",
        &[
            example("sched perfetto", "write sched.pftrace"),
            example(
                "sched perfetto -o trace.pftrace",
                "write another file, to be opened in Perfetto's viewer",
            ),
            example("sched perfetto -j 1", "read the recording with one thread"),
        ],
    ),
    (
        "sched replay",
        &[
            example("sched replay", "repeat the recording ten times"),
            example("sched replay -r 2", "repeat it twice"),
            example(
                "sched replay -r 1 -v",
                "list all stretches of time in which records were lost",
            ),
        ],
    ),
    (
        "sched stats",
        &[
            example("sched stats -- sleep 1", "all CPUs during a command"),
            example("sched stats -C 0 -- sleep 1", "one CPU"),
            example(
                "sched stats -v -C 0 -- sleep 1",
                "one CPU, with descriptions",
            ),
        ],
    ),
    (
        "sched stats diff",
        &[
            example("sched stats diff", "compare perf.data.old and perf.data"),
            example("sched stats diff -C 0", "only CPU 0"),
            example(
                "sched stats diff perf.data.old perf.data -v",
                "two files, with descriptions",
            ),
        ],
    ),
    (
        "sched stats record",
        &[
            example("sched stats record -- sleep 1", "a command, to perf.data"),
            example("sched stats record -C 0 -- sleep 1", "one CPU"),
            example(
                "sched stats record -C 0 -o one.data -- sleep 1",
                "one CPU, to another file",
            ),
        ],
    ),
    (
        "sched stats report",
        &[
            example("sched stats report", "averages over all CPUs, and each CPU"),
            example("sched stats report -C 0", "one CPU"),
            example("sched stats report -v -C 0", "with descriptions"),
        ],
    ),
    (
        "sched timehist",
        &[
            example(
                "sched timehist -n --state",
                "also show the state of each task, and which task ran next",
            ),
            example(
                "sched timehist -MVw",
                "also show wakeups, migrations and a picture of the CPUs",
            ),
            example("sched timehist -s", "print only sums by task and CPU"),
        ],
    ),
];
