//! The options of `histogram`.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::cli::filter::args as filter_args;
use crate::cli::input;
use crate::cli::options::{number, switch, value};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Counts how many values of an event are in each range: the values of a tracepoint's field, or the periods of samples (period, the \
default). With --from and --to it counts latencies: the time from a sample of the first event to the next sample of the \
second event with the same key. The limits between ranges are 0 and the powers of 4 (--power, --max), or the numbers of --edges; \
a value that equals a limit is in the range above it. The first range has no lower bound, the last one no upper bound.

The values come from a recording (-i), unless the command line requests a temporary one: of a command after --, of processes \
(-p) or of the whole system (-a; the default if only a number of seconds is given). The temporary recording ends after the given \
number of seconds, with the command, or at Ctrl-C.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    let word = |id: &'static str, name: &'static str| Arg::new(id).value_name(name);
    Command::new("histogram")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(input::force())
        .args(output())
        .args(ranges_and_latencies())
        .args(recording())
        .args(filter_args::common())
        .args(symbol_args::all())
        // The event, the field whose values are counted, and the number of seconds to record; for latencies only the last.
        .arg(word("words", "word").num_args(0..))
        .arg(
            Arg::new("workload")
                .num_args(0..)
                .last(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString)),
        )
}

/// The options for the format and the destination of the output.
fn output() -> Vec<Arg> {
    vec![
        value("output", "file")
            .short('o')
            .help("output file, - for the standard output (default: -; with --svg: histogram.svg)"),
        switch("quiet")
            .short('q')
            .help("print neither notes nor warnings"),
        switch("json").help("print ranges and summary as JSON"),
        switch("svg").help("draw the histogram as an SVG file"),
        value("title", "text").help("with --svg: title"),
    ]
}

/// The options that select the ranges, and for latencies what is measured.
fn ranges_and_latencies() -> Vec<Arg> {
    vec![
        value("edges", "n[,n...]")
            .short('b')
            .help("the limits between ranges, separated by commas or blanks: '10 100 1000'"),
        value("power", "base")
            .value_parser(number)
            .help("ranges begin at powers of this number (default: 4)"),
        value("max", "n")
            .value_parser(number)
            .help("no range begins above this number; the last one is open (default: no limit)"),
        value("from", "event").help("count latencies: start event"),
        value("to", "event").help("count latencies: end event"),
        value("key", "field[,field...]")
            .help("fields that are equal in a start event and its end event (default: the thread)"),
        value("unit", "ns|us|ms").help("unit of latencies (default: us)"),
    ]
}

/// The options that request a recording before counting.
fn recording() -> Vec<Arg> {
    vec![
        value("attach", "pid[,pid...]")
            .short('p')
            .help("record these processes"),
        switch("all-cpus")
            .short('a')
            .help("record the whole system"),
    ]
}
