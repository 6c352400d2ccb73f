//! The example lines of `kwork` and its subcommands.

use super::{CommandLine, example};

/// `kwork` and its subcommands, with their examples.
pub(super) const KWORK: &[(&str, &[CommandLine])] = &[
    (
        "kwork",
        &[
            example(
                "kwork record -- sleep 10",
                "record interrupts, softirqs and work items for ten seconds",
            ),
            example("kwork report", "show how long each kind of work ran"),
            example(
                "kwork latency",
                "show how long work was pending before it ran",
            ),
            example("kwork timehist", "print each run of a handler or work item"),
        ],
    ),
    (
        "kwork latency",
        &[
            example("kwork latency", "longest average delay first"),
            example(
                "kwork latency -k softirq -s max",
                "softirqs, longest delay first",
            ),
            example("kwork latency --json", "the distribution of delays"),
        ],
    ),
    (
        "kwork report",
        &[
            example(
                "kwork report -S",
                "also show the sums of all rows, and their share of one CPU",
            ),
            example("kwork report -k irq -C 0", "interrupts of one CPU"),
            example("kwork report -n RCU -s count", "one softirq on each CPU"),
        ],
    ),
    (
        "kwork timehist",
        &[
            example("kwork timehist", "print each run with its delay"),
            example("kwork timehist -k irq,softirq", "without work items"),
            example("kwork timehist -n TIMER", "runs of one softirq"),
        ],
    ),
    (
        "kwork top",
        &[
            example("kwork top", "tasks with the highest share first"),
            example("kwork top -C 0", "what one CPU did"),
            example("kwork top -s tid", "in order of thread ids"),
        ],
    ),
];
