//! The options of `top`.

use clap::{Arg, Command};

use crate::cli::debuginfod;
use crate::cli::filter::args as filter_args;
use crate::cli::live::{probes, workload};
use crate::cli::options::{
    counter, list, number, number_list, short_switch, switch, unsupported, value,
};
use crate::cli::shared::annotation::code;
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Shows a live histogram of the whole system, or of the given processes, threads, users or CPUs. Older samples decay: each \
refresh multiplies them by 7/8.

A terminal is refreshed every two seconds. ? shows the keys of the browser; with --stdio, any unassigned key shows the \
list of keys. If the output is a file or a pipe, or with --roll, one block of lines is printed per interval: a line with \
the time, the rows, an empty line.";

const CALL_GRAPH: &str = "\
How callchains are sampled: fp follows frame pointers, dwarf[,BYTES] unwinds stack copies. -g selects fp, or the setting call-graph.record-mode.";

const KEYS_HELP: &str = "\
sort keys: comm, pid, tid, dso, symbol, cpu, srcline and the other keys of report (default: dso,symbol)";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("top")
        .long_about(ABOUT)
        .args(target_options())
        .args(event_options())
        .args(other_short_options())
        .args(remaining_options_a_to_i())
        .args(remaining_options_i_to_z())
        .args(rperf_options())
        .arg(workload::words())
}

fn target_options() -> Vec<Arg> {
    vec![
        switch("all-cpus")
            .short('a')
            .help("sample the whole system, all CPUs (the default)"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("sample only these CPUs (list: 0,2,4-6)"),
        list("cgroup", "name")
            .short('G')
            .help("monitor only this cgroup; in a list, one name per event in order"),
        switch("no-inherit")
            .short('i')
            .help("do not sample child processes and threads"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("sample these processes, all threads (list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("sample these threads (list: 1,2,3)"),
        value("uid", "user")
            .short('u')
            .help("sample all processes of this user (name or uid)"),
    ]
}

fn event_options() -> Vec<Arg> {
    vec![
        unsupported("branch-any", "use 'record -b' and 'report'").short('b'),
        value("count", "n")
            .short('c')
            .value_parser(number)
            .help("sampling period: one sample every n events"),
        value("delay", "seconds")
            .short('d')
            .help("refresh interval in seconds (default: 2)"),
        list("event", "event")
            .short('e')
            .help("events to sample, separated by commas (see 'list')"),
        probes::option(),
        value("freq", "n|max")
            .short('F')
            .help("sampling frequency in Hz (default: 4000), or max"),
        short_switch("g")
            .short('g')
            .help("sample and show call graphs"),
        unsupported("branch-filter", "use 'record -j' and 'report'").short('j'),
        value("mmap-pages", "pages")
            .short('m')
            .help("size of each ring buffer: pages (a power of two) or bytes (512K, 8M)"),
        value("realtime", "priority")
            .short('r')
            .value_parser(number)
            .help("run rperf with this real-time priority (SCHED_FIFO, 1 to 99)"),
    ]
}

/// Returns most of the options with a letter that concern neither targets nor events, and `--debuginfod`.
fn other_short_options() -> Vec<Arg> {
    vec![
        debuginfod::option(),
        unsupported("dump-symtab", "'report -v' shows the sources of symbols").short('D'),
        value("entries", "n")
            .short('E')
            .value_parser(number)
            .help("show at most n rows (default: as many as fit)"),
        value("count-filter", "n")
            .short('f')
            .value_parser(number)
            .help("hide rows with fewer than n samples"),
        switch("hide_kernel_symbols")
            .short('K')
            .help("hide kernel symbols"),
        symbol_args::vmlinux(),
        code::style(),
        switch("show-nr-samples")
            .short('n')
            .help("show the number of samples of each row"),
        value("sort", "key[,key...]").short('s').help(KEYS_HELP),
        switch("hide_user_symbols")
            .short('U')
            .help("hide user symbols"),
        counter("verbose")
            .short('v')
            .help("be verbose; -vv: show perf_event_attr and every perf_event_open call"),
        value("column-widths", "width[,width...]")
            .short('w')
            .help("column widths, in order (0: as wide as needed)"),
        switch("zero")
            .short('z')
            .help("discard samples at each refresh instead of decaying them"),
    ]
}

/// Returns the remaining options up to `--ignore-callees`, in alphabetical order.
fn remaining_options_a_to_i() -> Vec<Arg> {
    vec![
        switch("all-cgroups").help("record the cgroup of each sample, for the sort key cgroup"),
        code::asm_raw(),
        value("call-graph", "mode[,n]")
            .help("sample callchains by this method: fp (frame pointers), dwarf (stack copies)")
            .long_help(CALL_GRAPH),
        switch("children").help("accumulate callees into callers (default: on with callchains)"),
        comms_option(),
        symbol_args::demangle(),
        symbol_args::demangle_kernel(),
        filter_args::dsos(),
        value("fields", "field[,field...]")
            .help("columns: overhead, overhead_children, sample, period, and the keys of --sort"),
        switch("force").help("accepted, no effect: top reads no recording"),
        switch("group").help("show all events side by side"),
        value("group-sort-idx", "number")
            .value_parser(number)
            .help("sort by the nth event of the group, from 0"),
        switch("hierarchy")
            .short('H')
            .help("show sort keys as levels of a tree"),
        value("ignore-callees", "regex").help(
            "attribute callees of functions that match this regular expression to these functions",
        ),
    ]
}

/// Returns the remaining options from `--ignore-vmlinux` on, in alphabetical order.
fn remaining_options_i_to_z() -> Vec<Arg> {
    vec![
        symbol_args::ignore_vmlinux(),
        symbol_args::kallsyms(),
        value("max-stack", "frames")
            .value_parser(number)
            .help("use at most this many frames of a callchain, from the sampled function (default: 127)"),
        switch("namespaces").help("record namespaces of tasks, for the sort key cgroup_id"),
        switch("no-bpf-event").help("do not monitor loading and unloading of BPF programs"),
        value("num-thread-synthesize", "n")
            .value_parser(number)
            .help("number of threads that read /proc for running processes (default: one per CPU)"),
        code::objdump(),
        unsupported("overwrite", "ring buffers are not overwritten"),
        value("percent-limit", "percent")
            .help("hide rows and call graph branches below this percentage"),
        value("percentage", "relative|absolute")
            .help("percentages of filtered samples: relative to them, or absolute (of all samples, the default)"),
        code::prefix(),
        code::prefix_strip(),
        value("proc-map-timeout", "ms")
            .value_parser(number)
            .help("time limit for reading /proc/PID/maps of a process (default: 500)"),
        unsupported("raw-trace", "top has no columns of tracepoint fields: use 'record' and 'report --raw-trace'"),
        unsupported("show-on-off-events", "use 'record' and 'report --show-on-off-events'"),
        switch("show-total-period").help("show the sum of periods of each row"),
        code::source(),
        switch("stdio").help("print text: full-screen on a terminal, otherwise one block per interval"),
        unsupported("stitch-lbr", "use --call-graph dwarf for deep stacks"),
        unsupported("switch-off", "use 'record' and 'report --switch-off'"),
        unsupported("switch-on", "use 'record' and 'report --switch-on'"),
        value("sym-annotate", "symbol")
            .help("annotate this function, refreshed at each interval"),
        symbols_option(),
        symbol_args::symfs(),
        switch("tui").help("use the terminal browser (the default on a terminal)"),
    ]
}

/// Returns the options that `perf top` 6.1 does not have.
fn rperf_options() -> Vec<Arg> {
    vec![
        // Newer releases of perf have it.
        unsupported(
            "branch-history",
            "use 'record -b' and 'report --branch-history'",
        ),
        list("filter", "filter").help("filter for the tracepoints of the preceding -e"),
        switch("exclude-perf")
            .help("exclude rperf itself from the tracepoints of the preceding -e"),
        switch("all-kernel").help("sample only the kernel, for all events"),
        switch("all-user").help("sample only user space, for all events"),
        switch("roll")
            .help("print one block per interval (the default if the output is not a terminal)"),
        switch("json").help("print one JSON object per interval and event"),
        value("intervals", "n")
            .value_parser(number)
            .help("stop after n intervals"),
    ]
}

fn comms_option() -> Arg {
    value("comms", "comm[,comm...]").help("only samples of tasks with these command names")
}

fn symbols_option() -> Arg {
    value("symbols", "symbol[,symbol...]").help("only samples in these functions")
}
