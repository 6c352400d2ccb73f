//! The example lines of `kwork` and its subcommands.

use super::{CommandLine, run};

/// `kwork` and its subcommands, with their examples.
pub(super) const KWORK: &[(&str, &[CommandLine])] = &[
    (
        "kwork",
        &[
            run(
                "kwork record -- sleep 10",
                "record interrupts, softirqs and work items for ten seconds",
            ),
            run("kwork report", "show how long each of them ran"),
            run("kwork latency", "show how long they were pending"),
            run("kwork timehist", "print each run"),
        ],
    ),
    (
        "kwork latency",
        &[
            run("kwork latency", "longest average delay first"),
            run(
                "kwork latency -k softirq -s max",
                "softirqs, longest delay first",
            ),
            run("kwork latency --json", "the distribution of delays"),
        ],
    ),
    (
        "kwork report",
        &[
            run("kwork report -S", "also show sums and the share of one CPU"),
            run("kwork report -k irq -C 0", "interrupts of one CPU"),
            run("kwork report -n RCU -s count", "one softirq on each CPU"),
        ],
    ),
    (
        "kwork timehist",
        &[
            run("kwork timehist", "print each run with its delay"),
            run("kwork timehist -k irq,softirq", "without work items"),
            run("kwork timehist -n TIMER", "runs of one softirq"),
        ],
    ),
    (
        "kwork top",
        &[
            run("kwork top", "tasks with the highest share first"),
            run("kwork top -C 0", "what one CPU did"),
            run("kwork top -s tid", "in order of thread ids"),
        ],
    ),
];
