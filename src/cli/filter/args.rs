//! The options of the sample filters.

use clap::Arg;

use crate::cli::options::{switch, value};

/// Returns the filters of `annotate`, `flamegraph`, `heatmap` and `histogram`, with `-d` for `--dsos`.
pub(crate) fn common() -> [Arg; 7] {
    [
        comms(),
        pid(),
        tid(),
        cpu(),
        dsos().short('d'),
        symbols(),
        time(),
    ]
}

pub(crate) fn comms() -> Arg {
    value("comms", "comm[,comm...]")
        .short('c')
        .help("only samples of tasks with these command names")
}

pub(crate) fn cpu() -> Arg {
    value("cpu", "cpu[,cpu...]")
        .short('C')
        .help("only samples of these CPUs: 0,2-3")
}

/// Returns `--dsos` without a short form; some commands add one.
pub(crate) fn dsos() -> Arg {
    value("dsos", "dso[,dso...]")
        .help("only samples in these objects (programs, libraries, modules)")
}

pub(crate) fn pid() -> Arg {
    value("pid", "pid[,pid...]").help("only samples of these processes")
}

pub(crate) fn symbols() -> Arg {
    value("symbols", "symbol[,symbol...]")
        .short('S')
        .help("only samples in these functions")
}

pub(crate) fn tid() -> Arg {
    value("tid", "tid[,tid...]").help("only samples of these threads")
}

pub(crate) fn time() -> Arg {
    value("time", "start,end").help(
        "only samples of this time range: seconds, or percent of the recording: 10%/2, 10%-20%",
    )
}

// In the names of the next three functions, a switch is an event that turns the use of samples on or off. The imported `switch`
// makes a boolean option.

pub(crate) fn switch_on() -> Arg {
    value("switch-on", "event").help("skip samples before the first sample of this event")
}

pub(crate) fn switch_off() -> Arg {
    value("switch-off", "event")
        .help("skip samples after each sample of this event, until the next --switch-on event")
}

pub(crate) fn show_switches() -> Arg {
    switch("show-on-off-events").help("include the samples of --switch-on and --switch-off")
}
