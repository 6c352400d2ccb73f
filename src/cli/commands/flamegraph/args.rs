//! The options of `flamegraph`.

use std::ffi::OsString;

use clap::{Arg, Command};

use crate::cli::filter::args as filter_args;
use crate::cli::input;
use crate::cli::options::{counter, number, switch, value};
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Draws the callchains of a recording as a flame graph: a self-contained SVG file for a web browser. The width of a frame \
is its share of the samples (or of another --weight). A click zooms, / searches; both are kept in the URL, so that a link shows the same view. If \
a command, processes (-p) or the whole system (-a) are given, flamegraph records first, into the file of --keep or -i, or a temporary one.

--folded writes folded stacks instead, one stack per line followed by its weight, for grep and other tools; -i reads \
such files, too. With --diff, frames that grew relative to another recording are red, those that shrank blue.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("flamegraph")
        .long_about(ABOUT)
        .args(files())
        .args(appearance())
        .args(selection())
        .args(symbol_args::all())
        .args(recording())
        .arg(
            Arg::new("workload")
                .num_args(0..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(clap::value_parser!(OsString)),
        )
}

fn files() -> Vec<Arg> {
    vec![
        value("input", "file")
            .short('i')
            .help("recording or folded stacks to read (default: perf.data)"),
        value("output", "file")
            .short('o')
            .help("output file, - for the standard output (default: flamegraph.svg; with --folded: -)"),
        input::force(),
        counter("verbose")
            .short('v')
            .help("report problems with symbol tables and debug information"),
        switch("quiet").short('q').help("print neither notes nor warnings"),
        switch("folded").help("write folded stacks, one per line, instead of an SVG"),
        value("format", "svg|html|json").help("output format: svg (default), html, or json: a tree of frames with the members n (name), l (kind of code), v (own weight), c (callees)"),
        switch("marks").help("with --folded: append _[k] to kernel, _[i] to inlined, _[j] to JIT frames"),
        value("diff", "file").help("color frames by the difference from this recording or these folded stacks (before)"),
        switch("normalize").help("with --diff: scale both recordings to the same total"),
        value("widths", "before|after").help("with --diff: recording that the widths are taken from (default: after)"),
    ]
}

fn appearance() -> Vec<Arg> {
    vec![
        value("title", "text").help("title"),
        value("subtitle", "text").help("subtitle"),
        value("width", "pixels")
            .value_parser(number)
            .help("fixed width (default: that of the window)"),
        value("min-width", "pixels").help("hide frames narrower than this (default: 0.1)"),
        switch("inverted").help("draw an icicle graph: root at the top"),
        switch("reverse").help("merge stacks from the sampled function towards its callers"),
        value("colors", "palette").help(
            "color palette: hot, kind (kernel, inlined, JIT), java, js, perl, mem, io, red, orange, yellow, green, aqua, blue, blue-green, purple",
        ),
        value("root", "comm|pid|tid|process|none")
            .help("root frame of each stack: comm (default), pid: comm-pid, tid: comm-pid/tid, process: 'comm (pid)', or none"),
        value("weight", "samples|period|field")
            .help("weight of a stack: samples (default), period (default for offcpu-time), or a field of the tracepoint, such as bytes_req"),
        value("max-depth", "frames")
            .value_parser(number)
            .help("hide frames deeper than this"),
        // `--no-idle` turns it off.
        switch("idle").help("draw the idle task (default: on)"),
    ]
}

fn selection() -> Vec<Arg> {
    let mut options =
        vec![value("event", "name").short('e').help(
            "event to draw (default: offcpu-time, otherwise the one with most samples); when recording: event to record",
        )];
    options.extend(filter_args::common());
    options.push(value("max-stack", "frames").value_parser(number).help(
        "use at most this many frames of a callchain, from the sampled function (default: all)",
    ));
    options
}

fn recording() -> Vec<Arg> {
    vec![
        value("freq", "Hz")
            .short('F')
            .help("when recording: sampling frequency in Hz"),
        value("attach", "pid[,pid...]")
            .short('p')
            .help("record these processes, until the command ends or ^C"),
        switch("all-cpus")
            .short('a')
            .help("record the whole system, until the command ends or ^C"),
        value("call-graph", "fp|dwarf[,bytes]").help(
            "when recording: how callchains are recorded (default: fp; dwarf with --unwind live)",
        ),
        value("unwind", "when").help("when recording: when to unwind stack copies, later or live"),
        switch("off-cpu").help("when recording: record off-CPU time, and draw that"),
        value("keep", "file").help("when recording: keep the recording in this file"),
    ]
}
