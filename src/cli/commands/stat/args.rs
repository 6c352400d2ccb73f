//! The options of `stat`.

use clap::{Arg, Command};

use crate::cli::live::{control, probes, workload};
use crate::cli::options::{
    attached, counter, list, number, number_list, switch, unsupported, value,
};

const ABOUT: &str = "\
Counts events of a command, processes, threads, CPUs or the whole system, and prints the counts with derived metrics: \
CPUs utilized, instructions per cycle, rates.

The first word that is not an option begins the workload: the command to run, with its own options; `--` may precede it. \
Counting ends when the workload ends. With -a, -p, -t, -u or -C the workload only sets the duration, so `sleep 10` is a \
timer. Without workload and target, the whole system is counted until Ctrl-C.

The table is written to the standard error unless -o or --log-fd is given. <not supported> is an event without a counter \
on this machine; <not counted> is one that never ran. If there are more events than counters, events are multiplexed: \
counts are scaled estimates, and the percentage at the end of a line is the share of the time that the event was \
counted.

The exit status is that of the workload, or 128 plus the number of the signal that ended it.

'stat record' also writes all counts to a file, which 'stat report' can show with another aggregation.";

const EVENT: &str = "\
Events to count, separated by commas; may be given several times. As for 'record -e': hardware (cycles), software \
(page-faults), cache (L1-dcache-load-misses), tracepoint (sched:*), PMU (cpu/event=0x3c,umask=1/), raw (r01c2) and \
breakpoint (mem:ADDRESS:w) events. Events in braces form a group and are counted together: '{cycles,instructions}'. \
'list' shows the events of this machine.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    options(Command::new("stat").long_about(ABOUT))
}

/// Adds the options for counting to a command.
pub(super) fn options(command: Command) -> Command {
    command
        .args(events_and_tasks())
        .args(cpus_and_output())
        .args(runs_and_aggregation())
        .args(metrics_and_others())
        .arg(workload::words())
}

fn events_and_tasks() -> Vec<Arg> {
    vec![
        unsupported("transaction", "use -e with the tx events").short('T'),
        list("event", "event")
            .short('e')
            .help("events to count, separated by commas (see 'list')")
            .long_help(EVENT),
        list("filter", "filter").help("filter for the tracepoints of the preceding -e"),
        value("hist", "field[:n,n...]").help(
            "count tracepoints by ranges of a field, in the kernel: ranges begin at powers of 4, or at each n (bytes_req:64,512,4096)",
        ),
        probes::option(),
        switch("no-inherit")
            .short('i')
            .help("do not count child processes and threads"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("count these processes, all threads (list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("count these threads (list: 1,2,3)"),
        value("uid", "user")
            .short('u')
            .help("count the processes of this user (name or uid)"),
        switch("all-cpus")
            .short('a')
            .help("count the whole system (all CPUs)"),
        switch("group")
            .short('g')
            .help("put all events into one group"),
        switch("scale").help(
            "scale the counts of multiplexed events (default: on); --no-scale shows raw counts",
        ),
        counter("verbose")
            .short('v')
            .help("be verbose: show raw counts; -vv: also perf_event_attr and every perf_event_open call"),
        value("repeat", "n")
            .short('r')
            .value_parser(number)
            .help("run the command n times and show means with standard errors (0: until Ctrl-C)"),
        switch("table").help("with -r: show the time of each run"),
        switch("null")
            .short('n')
            .help("count no events, only measure time"),
        counter("detailed")
            .short('d')
            .help("more default events: caches (-d), TLBs (-dd), prefetches (-ddd)"),
        switch("sync")
            .short('S')
            .help("call sync(2) before each run"),
    ]
}

fn cpus_and_output() -> Vec<Arg> {
    vec![
        switch("big-num")
            .short('B')
            .help("separate thousands as in the locale (default: on)"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("count only these CPUs (list: 0,2,4-6)"),
        switch("no-aggr")
            .short('A')
            .help("do not aggregate: show each CPU"),
        switch("no-merge").help("do not add up the counts of an event on several PMUs"),
        value("field-separator", "separator")
            .short('x')
            .help("print fields with this separator (CSV)"),
        switch("json-output")
            .short('j')
            .help("print one JSON object per row"),
        list("cgroup", "name")
            .short('G')
            .help("monitor only this cgroup; in a list, one name per event in order"),
        value("for-each-cgroup", "name")
            .help("count all events for each of these cgroups (list: a,b)"),
        value("output", "file")
            .short('o')
            .help("write the counts to this file"),
        switch("append").help("with -o: append to the file"),
        value("log-fd", "n")
            .value_parser(number)
            .help("write the counts to this file descriptor"),
    ]
}

fn runs_and_aggregation() -> Vec<Arg> {
    vec![
        value("pre", "command").help("shell command to run before each run"),
        value("post", "command").help("shell command to run after each run"),
        value("interval-print", "n")
            .short('I')
            .value_parser(number)
            .help("print counts every n milliseconds"),
        value("interval-count", "n")
            .value_parser(number)
            .help("with -I: stop after n intervals"),
        switch("interval-clear").help("with -I: clear the screen before each interval"),
        value("timeout", "n")
            .value_parser(number)
            .help("stop counting, and the workload, after n milliseconds"),
        switch("per-socket").help("aggregate counts per socket"),
        switch("per-die").help("aggregate counts per die"),
        switch("per-cluster").help("aggregate counts per cluster of cores"),
        attached("per-cache", "level").help(
            "aggregate counts per shared cache: l1, l2, l3, l4 or l5 (default: the last level)",
        ),
        switch("per-core").help("aggregate counts per core"),
        switch("per-thread").help("aggregate counts per thread"),
        switch("per-node").help("aggregate counts per NUMA node"),
    ]
}

/// Returns the options of `stat report` that select how stored counts are shown: aggregation, format and output. `--per-cluster`
/// is not among them, since recordings do not store the clusters of CPUs.
pub(super) fn display_options() -> Vec<Arg> {
    const IDS: [&str; 14] = [
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
    let all = cpus_and_output()
        .into_iter()
        .chain(runs_and_aggregation())
        .chain(metrics_and_others());
    all.filter(|arg| IDS.contains(&arg.get_id().as_str()))
        .collect()
}

fn metrics_and_others() -> Vec<Arg> {
    vec![
        value("delay", "n")
            .short('D')
            .allow_hyphen_values(true)
            .help("start counting n milliseconds after the start of the command, or leave events disabled (-1)"),
        switch("metric-only")
            .help("print only metrics, in columns"),
        switch("metric-no-group").help("do not group the events of a metric"),
        switch("metric-no-threshold")
            .help("do not show thresholds of metrics (rperf never shows them)"),
        switch("metric-no-merge").help("do not share events between metrics"),
        switch("topdown")
            .help("top-down analysis of the pipeline: the metrics TopdownL1"),
        value("td-level", "n")
            .value_parser(number)
            .help("with --topdown: level of detail, from 1"),
        unsupported("smi-cost", "count msr/smi/ and msr/aperf/"),
        list("metrics", "metric")
            .short('M')
            .help("metrics or metric groups to compute, separated by commas (see 'list metric')"),
        switch("summary").help("with -I: also print the total counts at the end"),
        switch("no-csv-summary").help("with -x and --summary: omit the first column 'summary'"),
        switch("quiet").help("print only errors"),
        value("pmu-filter", "pmu")
            .help("count events without a PMU name only on this PMU"),
        unsupported("cputype", "name the PMU: -e cpu_core/cycles/"),
        unsupported("percore-show-thread", "use --per-core, or the term percore"),
        switch("all-kernel").help("count only the kernel, for all events"),
        switch("all-user").help("count only user space, for all events"),
        control::option(),
        unsupported("iostat", "count the events of the uncore PMUs"),
        // Empty: there is no replacement to name.
        unsupported("hybrid-merge", ""),
        value("bpf-prog", "id")
            .short('b')
            .value_parser(number_list)
            .help("count while these BPF programs run (list of ids)"),
        switch("bpf-counters").help(
            "open each event once per CPU, and add up counts of tasks or cgroups by BPF programs",
        ),
    ]
}
