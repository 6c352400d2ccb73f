//! The example lines of `kmem` and its subcommands.

use super::{CommandLine, run};

/// `kmem` and its subcommands, with their examples.
pub(super) const KMEM: &[(&str, &[CommandLine])] = &[
    (
        "kmem",
        &[
            run(
                "kmem record --slab --page -- ls",
                "record allocations of the kernel while ls runs",
            ),
            run("kmem stat --caller -l 10", "callers that allocate objects"),
            run("kmem stat --page --caller", "callers that allocate pages"),
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
            run("kmem stat --caller --json", "rows for programs"),
        ],
    ),
];
