//! The options of `top`, those of a purpose in perf's order; those still to come are refused by name.

use clap::{Arg, Command};

use crate::cli::commands::annotate::code;
use crate::cli::debuginfod;
use crate::cli::filter::args as choose;
use crate::cli::live::{probes, workload};
use crate::cli::options::{
    counter, list, not_yet, number, number_list, short_switch, switch, value,
};
use crate::cli::symbol_options::args as names;

const ABOUT: &str = "\
Shows which code runs right now: the whole system, or the processes, threads, users or CPUs that are named. Older samples \
fade: each refresh leaves seven eighths of them.

A terminal is refreshed every two seconds; ? shows the keys of the browser, and with --stdio any key that has no meaning those \
that have one. Into a file or a pipe (or with --roll) goes a block of lines for each interval, with the time in front and an empty line behind.";

const CALL_GRAPH: &str = "\
How call graphs are taken: fp follows frame pointers, dwarf[,BYTES] unwinds copies of stacks. -g alone means fp, or what \
the setting call-graph.record-mode says.";

const KEYS_HELP: &str = "\
what makes a line: comm, pid, tid, dso, symbol, cpu, srcline and the other keys of report (default: dso,symbol)";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("top")
        .long_about(ABOUT)
        .args(observed())
        .args(sampled())
        .args(bounds())
        .args(shown())
        .args(details())
        .args(own())
        .arg(workload::words())
}

/// Whom to observe.
fn observed() -> Vec<Arg> {
    vec![
        switch("all-cpus")
            .short('a')
            .help("observe the whole system, all CPUs (the default)"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("observe what runs on these CPUs (a list: 0,2,4-6)"),
        list("cgroup", "name").short('G').help(
            "see the tasks of this cgroup alone; a list has one name for each event, in order",
        ),
        switch("no-inherit")
            .short('i')
            .help("leave out the children of what is observed"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("observe all threads of these processes (a list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("observe these threads (a list: 1,2,3)"),
        value("uid", "user")
            .short('u')
            .help("observe all processes of this user, by name or number"),
    ]
}

/// What of it is sampled, how often, and how it gets here.
fn sampled() -> Vec<Arg> {
    vec![
        not_yet("branch-any", "'record -b' and 'report' show branches").short('b'),
        value("count", "n")
            .short('c')
            .value_parser(number)
            .help("one sample every n events"),
        value("delay", "seconds")
            .short('d')
            .help("seconds from one refresh to the next (default: 2)"),
        list("event", "event")
            .short('e')
            .help("events to sample, separated by commas, as 'record -e' takes them"),
        probes::option(),
        value("freq", "n|max")
            .short('F')
            .help("samples per second and CPU (default: 4000), or max"),
        short_switch("g")
            .short('g')
            .help("take and show call graphs"),
        not_yet("branch-filter", "'record -j' and 'report' show branches").short('j'),
        value("mmap-pages", "pages")
            .short('m')
            .help("size of each ring buffer: pages, a power of two, or 512K, 8M"),
        value("realtime", "priority")
            .short('r')
            .value_parser(number)
            .help("run at this real-time priority (SCHED_FIFO, 1 to 99)"),
    ]
}

/// What of that is shown, and how much.
fn bounds() -> Vec<Arg> {
    vec![
        debuginfod::option(),
        not_yet("dump-symtab", "'report -v' says where symbols are from").short('D'),
        value("entries", "n")
            .short('E')
            .value_parser(number)
            .help("show that many lines (default: as many as the terminal holds)"),
        value("count-filter", "n")
            .short('f')
            .value_parser(number)
            .help("only lines with at least n samples"),
        switch("hide_kernel_symbols")
            .short('K')
            .help("leave out what runs in the kernel"),
        names::vmlinux(),
        code::style(),
    ]
}

/// What is shown.
fn shown() -> Vec<Arg> {
    vec![
        switch("show-nr-samples")
            .short('n')
            .help("show the number of samples of each line"),
        value("sort", "key[,key...]").short('s').help(KEYS_HELP),
        switch("hide_user_symbols")
            .short('U')
            .help("leave out what runs in user space"),
        counter("verbose")
            .short('v')
            .help("say more: the attributes of each event, each call that opens one"),
        value("column-widths", "width[,width...]")
            .short('w')
            .help("widths of the first columns; 0 leaves one as wide as it needs"),
        switch("zero")
            .short('z')
            .help("forget the samples of the last interval at each refresh"),
        switch("all-cgroups").help("take the cgroup of each sample, for the key cgroup"),
        code::asm_raw(),
        value("call-graph", "mode[,n]")
            .help("how to take call graphs: fp, by frame pointers, or dwarf, by copies of stacks")
            .long_help(CALL_GRAPH),
        switch("children")
            .help("count callees into their callers (the default where there are call graphs)"),
        choose_comms(),
        names::demangle(),
        names::demangle_kernel(),
        choose::dsos(),
        value("fields", "field[,field...]")
            .help("the columns to show: overhead, overhead_children, sample, period, and the keys of --sort"),
        switch("force").help("taken for perf's sake: files are read whoever owns them"),
        switch("group").help("show all events beside each other"),
        value("group-sort-idx", "number")
            .value_parser(number)
            .help("order lines by the event of that number in the group, from 0"),
        switch("hierarchy")
            .help("print each sort key on a level of its own, with what it is made of below"),
        value("ignore-callees", "regex")
            .help("count functions that this fits for all that they call"),
    ]
}

/// Filters and code.
fn details() -> Vec<Arg> {
    vec![
        names::ignore_vmlinux(),
        names::kallsyms(),
        value("max-stack", "frames")
            .value_parser(number)
            .help("frames of a call chain that count, from the innermost (default: 127)"),
        switch("namespaces").help("follow the namespaces of tasks, for the key cgroup_id"),
        switch("no-bpf-event").help("leave out what BPF programs come and go"),
        value("num-thread-synthesize", "n")
            .value_parser(number)
            .help("threads that read what ran before (default: one on each processor, fewer for few processes)"),
        not_yet("objdump", "code is read and printed without it"),
        not_yet("overwrite", "rings are emptied as they fill"),
        value("percent-limit", "percent")
            .help("leave out lines below this share, and branches of call graphs"),
        value("percentage", "relative|absolute")
            .help("what shares are of where samples are chosen: of those, or of all (the default)"),
        code::prefix(),
        code::prefix_strip(),
        value("proc-map-timeout", "ms")
            .value_parser(number)
            .help("read the mappings of each process that runs before for no longer than this (default: 500)"),
        not_yet("raw-trace", "'record' and 'report --raw-trace' show what tracepoints tell"),
        not_yet("show-on-off-events", ""),
        switch("show-total-period").help("show the number of events of each line"),
        code::source(),
        switch("stdio").help("print text: a screen of it on a terminal, else blocks"),
        not_yet("stitch-lbr", ""),
        not_yet("switch-off", ""),
        not_yet("switch-on", ""),
        value("sym-annotate", "symbol")
            .help("show where in this function samples fall, refreshed at each interval"),
        long_symbols(),
        names::symfs(),
        switch("tui").help("browse on the terminal, with call graphs that unfold, zooms and a flame view (the default there)"),
    ]
}

/// What perf does not have.
fn own() -> Vec<Arg> {
    vec![
        list("filter", "filter")
            .help("take samples of the tracepoints of the last -e only where this holds"),
        switch("exclude-perf").help("leave this program out of the tracepoints of the last -e"),
        switch("all-kernel").help("observe the kernel alone, whatever the events say"),
        switch("all-user").help("observe user space alone, whatever the events say"),
        switch("roll")
            .help("print a block of lines for each interval, as into a file (the default there)"),
        switch("json").help("print an object for each interval and event, one a line"),
        value("intervals", "n")
            .value_parser(number)
            .help("end after that many intervals"),
    ]
}

fn choose_comms() -> Arg {
    value("comms", "comm[,comm...]").help("only samples of programs with these names")
}

fn long_symbols() -> Arg {
    value("symbols", "symbol[,symbol...]").help("only samples that fell on these functions")
}
