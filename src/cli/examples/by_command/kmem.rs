//! The example lines of `kmem` and its subcommands.

use super::{CommandLine, run};

/// `kmem` and its subcommands, with their examples.
pub(super) const KMEM: &[(&str, &[CommandLine])] = &[
    (
        "kmem",
        &[
            run("kmem record -g -- sleep 10", "record objects with stacks"),
            run(
                "kmem record --slab --page -- ls",
                "record allocations of the kernel while ls runs",
            ),
            run("kmem stat --caller -l 10", "callers that allocate objects"),
            run("kmem stat --page --caller", "callers that allocate pages"),
        ],
    ),
    (
        "kmem diff",
        &[
            run("kmem diff", "perf.data.old and perf.data"),
            run(
                "kmem diff perf.data.old perf.data -s growth",
                "what grows faster",
            ),
            run("kmem diff --by cache --json", "caches as JSON"),
        ],
    ),
    (
        "kmem fragmentation",
        &[
            run(
                "kmem fragmentation --page",
                "pages, and who pins pageblocks",
            ),
            run(
                "kmem fragmentation --slab -l 10",
                "caches that waste most bytes",
            ),
            run("kmem fragmentation --json", "all tables as JSON"),
        ],
    ),
    (
        "kmem leaks",
        &[
            run("kmem leaks --suspects", "stacks that may leak"),
            run("kmem leaks -s bytes -l 5", "most memory that was not freed"),
            run("kmem leaks --svg curve.svg", "a picture of the curve"),
            run("kmem leaks --json", "curve and stacks as JSON"),
        ],
    ),
    (
        "kmem stat",
        &[
            run(
                "kmem stat --caller -s bytes -l 10",
                "callers that allocate most",
            ),
            run(
                "kmem stat --caller --live -s bytes",
                "what has not been freed",
            ),
            run("kmem stat --page --alloc -l 10", "page frames"),
            run(
                "kmem stat --histogram",
                "sizes, life times, rates over time",
            ),
            run("kmem stat --caller --json", "rows as JSON"),
        ],
    ),
    (
        "kmem usage",
        &[
            run("kmem usage -l 10", "stacks that allocate most"),
            run("kmem usage --by cgroup,cache -s live", "what cgroups keep"),
            run("kmem usage --by container --json", "containers as JSON"),
        ],
    ),
];
