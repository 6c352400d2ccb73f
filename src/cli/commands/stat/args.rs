//! The options of `stat`, in perf's order; those still to come are refused by name.

use clap::{Arg, Command};

use crate::cli::live::{control, probes, workload};
use crate::cli::options::{attached, counter, list, not_yet, number, number_list, switch, value};

const ABOUT: &str = "\
Counts events while a program runs, in processes, on processors or in the whole system, and prints a table of counts with \
what follows from them: processors used, instructions for each cycle, rates.

The first word that is no option begins the workload: everything from there on belongs to it, with or without `--` before \
it. Counting ends when the workload ends; with -a, -p, -t or -C the workload only sets how long, so that `sleep 10` is a \
timer. Without workload and target the whole system is counted until Ctrl-C.

The table goes to the standard error, or where -o or --log-fd say. An event that the machine has no counter for is \
<not supported>; one that never ran is <not counted>. Where there are fewer counters than events these take turns: the \
counts are estimates then, and the percentage at the end of a line is the part of the time that was counted.

The exit status is that of the workload, 128 and the signal's number where a signal ended it.

'stat record' does the same and keeps all counts in a file, which 'stat report' shows by other parts of the machine, too.";

const EVENT: &str = "\
The events to count, separated by commas; may be given several times. The words are those of 'record -e': hardware \
(cycles), software (page-faults), caches (L1-dcache-load-misses), tracepoints (sched:*), terms of PMUs \
(cpu/event=0x3c,umask=1/), raw codes (r01c2), breakpoints (mem:ADDRESS:w). Events in braces are counted together: \
'{cycles,instructions}'. 'list' shows what there is.";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    options(Command::new("stat").long_about(ABOUT))
}

/// A command with all that counting can be asked for.
pub(super) fn options(command: Command) -> Command {
    command
        .args(what())
        .args(output())
        .args(aggregation())
        .args(course())
        .arg(workload::words())
}

/// Events and targets.
fn what() -> Vec<Arg> {
    vec![
        not_yet("transaction", "count tx events with -e").short('T'),
        list("event", "event")
            .short('e')
            .help("events to count, separated by commas")
            .long_help(EVENT),
        list("filter", "filter")
            .help("count the tracepoints of the last -e only where this holds"),
        probes::option(),
        switch("no-inherit")
            .short('i')
            .help("leave out the children of what is counted"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("count in all threads of these processes (a list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("count in these threads (a list: 1,2,3)"),
        value("uid", "user")
            .short('u')
            .help("count in the processes of this user"),
        switch("all-cpus")
            .short('a')
            .help("count in the whole system, on all CPUs"),
        switch("group")
            .short('g')
            .help("count all events as one group, as '{a,b}' does for some"),
        switch("scale").help(
            "estimate the counts of events that took turns (the default); --no-scale shows what was counted",
        ),
        counter("verbose")
            .short('v')
            .help("say more: each count as it was read, the attributes of each event, each call"),
        value("repeat", "n")
            .short('r')
            .value_parser(number)
            .help("run the command n times and show means with their deviation (0: for ever)"),
        switch("table").help("with -r: show how long each run took"),
        switch("null").short('n').help("count nothing, take the time alone"),
        counter("detailed")
            .short('d')
            .help("count more: caches (-d), TLBs (-dd), prefetches (-ddd)"),
        switch("sync")
            .short('S')
            .help("write everything to the disks before each run"),
    ]
}

/// Where the table goes, and how it looks.
fn output() -> Vec<Arg> {
    vec![
        switch("big-num")
            .short('B')
            .help("separate thousands as the locale does (the default); --no-big-num does not"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("count on these CPUs (a list: 0,2,4-6)"),
        switch("no-aggr").short('A').help("show each CPU by itself"),
        switch("no-merge").help("show PMUs of one kind each by itself"),
        value("field-separator", "separator")
            .short('x')
            .help("print rows of fields, with this between them"),
        switch("json-output")
            .short('j')
            .help("print an object of JSON for each row"),
        list("cgroup", "name")
            .short('G')
            .help("count in this cgroup alone; a list gives one for each event"),
        value("for-each-cgroup", "name")
            .help("count all events in each of these cgroups (a list: a,b)"),
        value("output", "file")
            .short('o')
            .help("write the table to this file"),
        switch("append").help("with -o: write behind what the file holds"),
        value("log-fd", "n")
            .value_parser(number)
            .help("write the table to this open file descriptor"),
    ]
}

/// What rows are of.
fn aggregation() -> Vec<Arg> {
    vec![
        value("pre", "command").help("run this (by the shell) before each run"),
        value("post", "command").help("run this (by the shell) after each run"),
        value("interval-print", "n")
            .short('I')
            .value_parser(number)
            .help("print what was counted every n milliseconds"),
        value("interval-count", "n")
            .value_parser(number)
            .help("with -I: so many times"),
        switch("interval-clear").help("with -I: clear the screen before each"),
        value("timeout", "n")
            .value_parser(number)
            .help("stop after n milliseconds, the workload too"),
        switch("per-socket").help("show each socket by itself"),
        switch("per-die").help("show each die by itself"),
        switch("per-cluster").help("show each cluster of cores by itself"),
        attached("per-cache", "level").help(
            "show the CPUs that share a cache by themselves: l1, l2, l3 (default: the last level)",
        ),
        switch("per-core").help("show each core by itself"),
        switch("per-thread").help("show each thread by itself"),
        switch("per-node").help("show each NUMA node by itself"),
    ]
}

/// The options by which kept counts are shown otherwise than they were, and where and how that is written.
pub(super) fn shown() -> Vec<Arg> {
    const SHOWN: [&str; 14] = [
        "big-num",
        "no-aggr",
        "field-separator",
        "json-output",
        "output",
        "append",
        "log-fd",
        "per-socket",
        "per-die",
        "per-cache",
        "per-core",
        "per-thread",
        "per-node",
        "quiet",
    ];
    let all = output().into_iter().chain(aggregation()).chain(course());
    all.filter(|arg| SHOWN.contains(&arg.get_id().as_str()))
        .collect()
}

/// When counting begins, and what is for later.
fn course() -> Vec<Arg> {
    vec![
        value("delay", "n")
            .short('D')
            .allow_hyphen_values(true)
            .help("begin n milliseconds after the start, or not at all (-1)"),
        switch("metric-only")
            .help("show what follows from the counts alone, a line for each part of the machine"),
        switch("metric-no-group").help("count the events of metrics one by one"),
        switch("metric-no-threshold")
            .help("take no thresholds of metrics into account (none ever are)"),
        switch("metric-no-merge").help("count the events of each metric anew"),
        switch("topdown")
            .help("compute where the slots of the pipeline went: the metrics TopdownL1"),
        value("td-level", "n")
            .value_parser(number)
            .help("with --topdown: the level of detail, from 1 on"),
        not_yet("smi-cost", ""),
        list("metrics", "metric")
            .short('M')
            .help("compute these metrics, or all of a group, from their events ('list metric')"),
        switch("summary").help("with -I: the table of everything at the end, too"),
        switch("no-csv-summary").help("with -x and --summary: no word 'summary' before its rows"),
        switch("quiet").help("print nothing but errors"),
        value("pmu-filter", "pmu")
            .help("of several PMUs alike count on this one only (uncore_imc_0)"),
        not_yet("cputype", ""),
        not_yet("percore-show-thread", ""),
        switch("all-kernel").help("count in the kernel alone"),
        switch("all-user").help("count in user space alone"),
        control::option(),
        not_yet("iostat", ""),
        not_yet("hybrid-merge", ""),
        not_yet("bpf-prog", "").short('b'),
        not_yet("bpf-counters", ""),
    ]
}
