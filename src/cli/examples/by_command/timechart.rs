//! The example lines of `timechart` and its subcommand.

use super::{CommandLine, example};

/// `timechart` and its subcommand, with their examples.
pub(super) const TIMECHART: &[(&str, &[CommandLine])] = &[
    (
        "timechart",
        &[
            example(
                "timechart record -- ./program",
                "record what all CPUs and tasks do while a command runs",
            ),
            example("timechart", "draw perf.data into output.svg"),
            example(
                "timechart -p program -n 40 -o program.html",
                "draw at least 40 threads of a program, or all if there are fewer, as an HTML page",
            ),
            example(
                "timechart --highlight 5000000",
                "highlight runs longer than 5 ms",
            ),
            example(
                "timechart -o trace.pftrace",
                "write the events for Perfetto's viewer",
            ),
        ],
    ),
    (
        "timechart record",
        &[
            example(
                "timechart record -- ./program",
                "record context switches, wakeups and idle states",
            ),
            example(
                "timechart record -g -- ./program",
                "also record callchains, which show why tasks sleep",
            ),
            example(
                "timechart record -I -- ./program",
                "record system calls for input and output",
            ),
        ],
    ),
];
