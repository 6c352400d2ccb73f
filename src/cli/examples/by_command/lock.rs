//! The example lines of `lock` and its subcommands.

use super::{CommandLine, run};

/// `lock` and its subcommands, with their examples.
pub(super) const LOCK: &[(&str, &[CommandLine])] = &[
    (
        "lock",
        &[
            run(
                "lock record -a -- sleep 10",
                "record waits of the whole system",
            ),
            run(
                "lock record --user -- ./program",
                "also record waits for the program's own locks",
            ),
            run(
                "lock record --user --holders -- ./program",
                "also record what the holders of locks do",
            ),
            run("lock contention -E 10", "who waited longest"),
            run(
                "lock contention -l -E 10",
                "which locks were waited for longest",
            ),
        ],
    ),
    (
        "lock contention",
        &[
            run(
                "lock contention -ab -E 10 -- sleep 10",
                "the running system, summed in the kernel",
            ),
            run(
                "lock contention -abo -Y mutex -- sleep 10",
                "who had the mutexes",
            ),
            run(
                "lock contention -b --user -o -- sleep 10",
                "also who had the locks of programs",
            ),
            run(
                "lock contention --holders",
                "what holders did while others waited",
            ),
            run(
                "lock contention --svg waits.svg",
                "the waits of callers as a flame graph",
            ),
            run(
                "lock contention -l -Y futex",
                "locks of programs, by address",
            ),
        ],
    ),
    (
        "lock deadlock",
        &[
            run("lock deadlock -p 1234", "why a process hangs"),
            run(
                "lock deadlock -p 1234 -v",
                "with the stacks of all threads that wait",
            ),
            run(
                "lock deadlock -i perf.data",
                "deadlocks and chains of waits of a recording",
            ),
            run(
                "lock deadlock -p 1234 --json",
                "waits and deadlocks as JSON",
            ),
        ],
    ),
    (
        "lock info",
        &[
            run("lock info", "threads that waited, and locks"),
            run("lock info -m", "addresses and names of locks"),
            run("lock info -t --json", "threads as JSON"),
        ],
    ),
    (
        "lock report",
        &[
            run("lock report -k wait_max", "longest wait first"),
            run("lock report -t -E 10", "threads with most waits"),
            run("lock report -o", "threads that had the futexes"),
            run("lock report -c", "a row for all locks of one name"),
            run("lock report --json", "rows as JSON"),
        ],
    ),
];
