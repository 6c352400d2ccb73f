//! The example lines of `kmem` and its subcommands.

use super::{CommandLine, example};

/// `kmem` and its subcommands, with their examples.
pub(super) const KMEM: &[(&str, &[CommandLine])] = &[
    (
        "kmem",
        &[
            example("kmem record -g -- sleep 10", "record objects with stacks"),
            example(
                "kmem record --slab --page -- ls",
                "record allocations of the kernel while ls runs",
            ),
            example("kmem stat --caller -l 10", "callers that allocate objects"),
            example("kmem stat --page --caller", "callers that allocate pages"),
        ],
    ),
    (
        "kmem diff",
        &[
            example("kmem diff", "compare perf.data.old and perf.data"),
            example(
                "kmem diff perf.data.old perf.data -s growth",
                "what grows faster",
            ),
            example("kmem diff --by cache --json", "caches as JSON"),
        ],
    ),
    (
        "kmem fragmentation",
        &[
            example(
                "kmem fragmentation --page",
                "pages, and who pins pageblocks",
            ),
            example(
                "kmem fragmentation --slab -l 10",
                "caches that waste most bytes",
            ),
            example("kmem fragmentation --json", "all tables as JSON"),
        ],
    ),
    (
        "kmem leaks",
        &[
            example("kmem leaks --suspects", "stacks that may leak"),
            example("kmem leaks -s bytes -l 5", "most memory that was not freed"),
            example(
                "kmem leaks --svg curve.svg",
                "draw the bytes not freed over time",
            ),
            example(
                "kmem leaks --json",
                "bytes not freed over time, and stacks, as JSON",
            ),
        ],
    ),
    (
        "kmem stat",
        &[
            example(
                "kmem stat --caller -s bytes -l 10",
                "callers that allocate most",
            ),
            example(
                "kmem stat --caller --live -s bytes",
                "what has not been freed",
            ),
            example("kmem stat --page --alloc -l 10", "page frames"),
            example(
                "kmem stat --histogram",
                "sizes, life times, rates over time",
            ),
            example("kmem stat --caller --json", "rows as JSON"),
        ],
    ),
    (
        "kmem usage",
        &[
            example("kmem usage -l 10", "stacks that allocate most"),
            example(
                "kmem usage --by cgroup,cache -s live",
                "bytes that cgroups have not freed",
            ),
            example("kmem usage --by container --json", "containers as JSON"),
        ],
    ),
];
