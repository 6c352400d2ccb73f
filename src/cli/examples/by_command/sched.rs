//! The examples of `sched` and its subcommands.

use super::{CommandLine, run};

/// Commands with their examples.
pub(super) const SCHED: &[(&str, &[CommandLine])] = &[
    (
        "sched",
        &[
            run(
                "sched record -- sleep 10",
                "record the scheduler's events for ten seconds",
            ),
            run("sched latency", "show how long tasks waited for a CPU"),
            run("sched timehist", "print each time that a task ran"),
            run("sched off-cpu", "show where tasks wait"),
            run("sched script", "print every event"),
        ],
    ),
    (
        "sched diff",
        &[
            run("sched diff", "perf.data.old and perf.data"),
            run(
                "sched diff perf.data.old perf.data",
                "two recordings, the baseline first",
            ),
            run("sched diff --json", "rows as JSON"),
        ],
    ),
    (
        "sched latency",
        &[
            run("sched latency", "one row per command name"),
            run(
                "sched latency -p -s max",
                "one row per thread, longest delay first",
            ),
            run(
                "sched latency --percentiles",
                "medians and percentiles of the waits",
            ),
            run(
                "sched latency --antagonists",
                "which tasks ran while others waited",
            ),
            run("sched latency --histogram", "histograms of the waits"),
            run(
                "sched latency --live --percentiles -- sleep 1",
                "the running system, without a recording",
            ),
        ],
    ),
    (
        "sched map",
        &[
            run("sched map", "one column per CPU"),
            run("sched map --compact", "only CPUs with switches"),
            run("sched map --cpus 0", "only switches of one CPU"),
        ],
    ),
    (
        "sched off-cpu",
        &[
            run("sched off-cpu", "sums by task and state, and stacks"),
            run(
                "sched off-cpu --wakers",
                "also show who woke the task, and who woke the waker",
            ),
            run(
                "sched off-cpu -o off-cpu.svg",
                "draw a flame graph of the time that tasks wait",
            ),
            run(
                "sched off-cpu --folded",
                "one stack per line, for 'grep' and 'flamegraph -i'",
            ),
        ],
    ),
    (
        "sched perfetto",
        &[
            run("sched perfetto", "write sched.pftrace"),
            run(
                "sched perfetto -o trace.pftrace",
                "write another file, to be opened in Perfetto's viewer",
            ),
            run("sched perfetto -j 1", "read on one thread"),
        ],
    ),
    (
        "sched replay",
        &[
            run("sched replay", "repeat the recording ten times"),
            run("sched replay -r 2", "repeat it twice"),
            run(
                "sched replay -r 1 -v",
                "list all stretches of time in which records were lost",
            ),
        ],
    ),
    (
        "sched stats",
        &[
            run("sched stats -- sleep 1", "all CPUs during a command"),
            run("sched stats -C 0 -- sleep 1", "one CPU"),
            run(
                "sched stats -v -C 0 -- sleep 1",
                "one CPU, with descriptions",
            ),
        ],
    ),
    (
        "sched stats diff",
        &[
            run("sched stats diff", "perf.data.old and perf.data"),
            run("sched stats diff -C 0", "only CPU 0"),
            run(
                "sched stats diff perf.data.old perf.data -v",
                "two files, with descriptions",
            ),
        ],
    ),
    (
        "sched stats record",
        &[
            run("sched stats record -- sleep 1", "a command, to perf.data"),
            run("sched stats record -C 0 -- sleep 1", "one CPU"),
            run(
                "sched stats record -C 0 -o one.data -- sleep 1",
                "one CPU, to another file",
            ),
        ],
    ),
    (
        "sched stats report",
        &[
            run("sched stats report", "averages over all CPUs, and each CPU"),
            run("sched stats report -C 0", "one CPU"),
            run("sched stats report -v -C 0", "with descriptions"),
        ],
    ),
    (
        "sched timehist",
        &[
            run(
                "sched timehist -n --state",
                "also show the state of each task and the next one",
            ),
            run(
                "sched timehist -MVw",
                "also show wakeups, migrations and a picture of the CPUs",
            ),
            run("sched timehist -s", "print only sums by task and CPU"),
        ],
    ),
];
