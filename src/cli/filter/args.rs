//! The declarations; each command lists them in perf's order.

use clap::Arg;

use crate::cli::options::{switch, value};

/// All of them, for the commands that draw pictures.
pub(crate) fn all() -> [Arg; 7] {
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
        .help("only samples of programs with these names")
}

pub(crate) fn cpu() -> Arg {
    value("cpu", "cpu[,cpu...]")
        .short('C')
        .help("only samples taken on these CPUs: 0,2-3")
}

/// Its short form is taken in some commands.
pub(crate) fn dsos() -> Arg {
    value("dsos", "dso[,dso...]").help("only samples that fell on these libraries and programs")
}

pub(crate) fn pid() -> Arg {
    value("pid", "pid[,pid...]").help("only samples of these processes")
}

pub(crate) fn symbols() -> Arg {
    value("symbols", "symbol[,symbol...]")
        .short('S')
        .help("only samples that fell on these functions")
}

pub(crate) fn tid() -> Arg {
    value("tid", "tid[,tid...]").help("only samples of these threads")
}

pub(crate) fn time() -> Arg {
    value("time", "start,end").help(
        "only samples of this time in seconds, or in percent of the recording: 10%/2, 10%-20%",
    )
}

pub(crate) fn switch_on() -> Arg {
    value("switch-on", "event").help("only samples behind the first of this event")
}

pub(crate) fn switch_off() -> Arg {
    value("switch-off", "event")
        .help("no samples behind one of this event, until one of --switch-on")
}

pub(crate) fn show_switches() -> Arg {
    switch("show-on-off-events").help("count the samples that switch, too")
}
