//! The example lines of `timechart` and its subcommand.

use super::{CommandLine, run};

/// `timechart` and its subcommand, with their examples.
pub(super) const TIMECHART: &[(&str, &[CommandLine])] = &[
    (
        "timechart",
        &[
            run(
                "timechart record -- ./program",
                "record what all CPUs and tasks do while a command runs",
            ),
            run("timechart", "draw perf.data into output.svg"),
            run(
                "timechart -p program -n 40 -o program.html",
                "draw up to 40 threads of a program as a page",
            ),
            run(
                "timechart --highlight 5000000",
                "highlight runs longer than 5 ms",
            ),
            run(
                "timechart -o trace.pftrace",
                "write the events for Perfetto's viewer",
            ),
        ],
    ),
    (
        "timechart record",
        &[
            run(
                "timechart record -- ./program",
                "record context switches, wakeups and idle states",
            ),
            run(
                "timechart record -g -- ./program",
                "also record callchains, which show why tasks sleep",
            ),
            run(
                "timechart record -I -- ./program",
                "record system calls for input and output",
            ),
        ],
    ),
];
