//! The options of `trace`, by purpose. Unimplemented ones are refused by name.

use clap::{Arg, Command};

use crate::cli::input;
use crate::cli::live::workload;
use crate::cli::options::{counter, list, number, number_list, switch, unsupported, value};

const ABOUT: &str = "\
Prints the system calls of a command and its children, of running tasks or of the whole system: when each began, how long it took, its \
arguments and its result. Other events given with -e are printed between them, in time order. The lines go to the standard error, or \
to a file with -o.

The first word that is not an option begins the command, with its own options; `--` may precede the command. With -a, -p, -t, -u or -C, \
the command only sets the duration. 'trace record' writes a recording, which 'trace -i' prints.

\
Strings, buffers and structures that arguments point to are copied by programs in the kernel (BPF), if it has type information and permits \
that; otherwise, those that a command passes to calls are read a little later, and marked (late), and all others appear as addresses. The \
exit status is that of the command.";

const EVENTS: &str = "\
system calls, separated by commas: names, patterns (open*), groups (file, %net); a list that begins with ! selects all others; also other events (see 'list')";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("trace")
        .long_about(ABOUT)
        .args(observed())
        .args(selected())
        .args(shown())
        .args(stacks())
        .args(unimplemented_options())
        .arg(workload::words())
}

/// Returns the options that select tasks and CPUs, and those for the delay and the ring buffers.
fn observed() -> Vec<Arg> {
    vec![
        switch("all-cpus")
            .short('a')
            .help("trace the whole system, all CPUs"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("trace only these CPUs (list: 0,2,4-6)"),
        list("cgroup", "name")
            .short('G')
            .help("trace only this cgroup; needs -a"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("trace these processes, all threads (list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("trace these threads (list: 1,2,3)"),
        value("uid", "user")
            .short('u')
            .help("trace all processes of this user (name or uid)"),
        switch("no-inherit").help("do not trace child processes and threads"),
        value("delay", "ms")
            .short('D')
            .help("begin to trace this many milliseconds after the start"),
        value("mmap-pages", "pages")
            .short('m')
            .help("size of each ring buffer: pages (a power of two) or bytes (512K, 8M)"),
    ]
}

/// Returns the options that select events.
fn selected() -> Vec<Arg> {
    vec![
        list("event", "event").short('e').alias("expr").help(EVENTS),
        list("filter", "filter").help("filter for the tracepoints of the preceding -e"),
        value("switch-on", "event")
            .help("skip calls and events before the first occurrence of this event"),
        value("switch-off", "event")
            .help("skip calls and events from this event on, until the next --switch-on event"),
        switch("show-on-off-events").help("also show the events of --switch-on and --switch-off"),
        value("filter-pids", "pid[,pid]...")
            .value_parser(number_list)
            .help("do not trace these threads"),
        value("duration", "ms")
            .help("show only calls that took at least this many milliseconds, such as 5 or 0.1"),
        switch("failure").help("show only calls that failed"),
        value("max-events", "n")
            .value_parser(number)
            .help("end after n lines of calls and events"),
        switch("syscalls")
            .help("trace system calls (default: yes, unless -e names only other events)"),
    ]
}

/// Returns the options on how events are shown.
fn shown() -> Vec<Arg> {
    vec![
        input::option().help("print the system calls of this recording"),
        input::force(),
        value("output", "file")
            .short('o')
            .help("write the lines to this file"),
        switch("time")
            .short('T')
            .help("show timestamps instead of times since the first event"),
        switch("summary")
            .short('s')
            .help("show only the number and times of each thread's calls"),
        switch("with-summary")
            .short('S')
            .help("show the calls, then their number and times"),
        switch("sched").help("add the time on CPUs to the tables; with -s or -S"),
        switch("bpf-summary").help(
            "with -s: count in the kernel (BPF) if it permits that and the other options need no records (default: yes)",
        ),
        switch("errno-summary").help("count the failures of each call by their error; implies -s"),
        value("summary-mode", "thread|total|cgroup").help(
            "count the calls of each thread (the default), of all, or of each cgroup; with -s or -S",
        ),
        value("string-size", "bytes")
            .value_parser(number)
            .help("show at most this many bytes of strings and buffers (default: 32, with --exec-tree 400); file names are never truncated"),
        switch("force-btf")
            .help("show structures as the kernel's type information (BTF) describes them, also those that have a format of their own"),
        switch("json")
            .help("print each call and event as a JSON object on a line of its own"),
        switch("exec-tree")
            .help("show the processes at the end: programs, directories, times and exit statuses"),
        switch("sort-events").help("show events in the order of their times (always done)"),
        switch("comm").help("show the name of the thread before its number (default: yes)"),
        counter("verbose")
            .short('v')
            .help("be verbose; -vv: show perf_event_attr and every perf_event_open call"),
    ]
}

/// Returns the options on stacks and page faults.
fn stacks() -> Vec<Arg> {
    vec![
        value("pf", "all|maj|min")
            .short('F')
            .help("also show page faults: all, major or minor ones"),
        value("call-graph", "mode[,size]").help(
            "show the stack of each call and event: fp, or dwarf with the size of stack copies",
        ),
        switch("kernel-syscall-graph").help("show the kernel's frames of system calls, too"),
        value("max-stack", "frames").value_parser(number).help(
            "show at most this many frames (default: 127); implies --call-graph dwarf unless --call-graph or -i is given",
        ),
        value("min-stack", "frames")
            .value_parser(number)
            .help("show only calls and events with at least this many frames"),
    ]
}

/// Returns the options that are not implemented.
fn unimplemented_options() -> Vec<Arg> {
    vec![
        unsupported("libtraceevent_print", "use 'trace record' and 'script'"),
        unsupported("map-dump", "'bpftool map' shows the maps of BPF programs"),
        // There is no alternative to suggest.
        unsupported("tool_stats", ""),
        unsupported("print-sample", "'script -D' prints samples"),
        unsupported(
            "proc-map-timeout",
            "mappings are read without a limit of time",
        ),
    ]
}
