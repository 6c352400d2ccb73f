//! The example lines of `lock` and its subcommands.

use super::{CommandLine, example};

/// `lock` and its subcommands, with their examples.
pub(super) const LOCK: &[(&str, &[CommandLine])] = &[
    (
        "lock",
        &[
            example(
                "lock record -a -- sleep 10",
                "record waits of the whole system",
            ),
            example(
                "lock record --user -- ./program",
                "also record waits for the program's own locks",
            ),
            example(
                "lock record --user --holders -- ./program",
                "also record what the holders of locks do",
            ),
            example(
                "lock record --owners -a -- sleep 10",
                "also record the owners and kinds of the kernel's locks",
            ),
            example("lock contention -E 10", "who waited longest"),
            example(
                "lock contention -l -E 10",
                "which locks were waited for longest",
            ),
        ],
    ),
    (
        "lock contention",
        &[
            example(
                "lock contention -ab -E 10 -- sleep 10",
                "the running system, summed in the kernel",
            ),
            example(
                "lock contention -abo -Y mutex -- sleep 10",
                "who had the mutexes",
            ),
            example(
                "lock contention -b --user -o -- sleep 10",
                "also who had the locks of programs",
            ),
            example(
                "lock contention -l --histogram",
                "how long the waits for each lock were",
            ),
            example(
                "lock contention --holders",
                "what holders did while others waited",
            ),
            example(
                "lock contention --svg waits.svg",
                "the waits of callers as a flame graph",
            ),
        ],
    ),
    (
        "lock deadlock",
        &[
            example("lock deadlock -p 1234", "why a process hangs"),
            example(
                "lock deadlock -p 1234 -v",
                "with the stacks of all threads that wait",
            ),
            example(
                "lock deadlock -i perf.data",
                "deadlocks and chains of waits of a recording",
            ),
            example(
                "lock deadlock -p 1234 --json",
                "waits and deadlocks as JSON",
            ),
        ],
    ),
    (
        "lock info",
        &[
            example("lock info", "threads that waited, and locks"),
            example("lock info -m", "addresses and names of locks"),
            example("lock info -t --json", "threads as JSON"),
        ],
    ),
    (
        "lock report",
        &[
            example("lock report -k wait_max", "longest wait first"),
            example("lock report -t -E 10", "threads with most waits"),
            example("lock report -o", "threads that had the futexes"),
            example("lock report -c", "a row for all locks of one name"),
            example("lock report --json", "rows as JSON"),
        ],
    ),
];
