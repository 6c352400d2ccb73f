//! The options of `record`, in perf's order; those still to come are refused by name.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{control, probes, workload};
use crate::cli::options::{
    attached, counter, flag, list, not_yet, number, number_list, short_switch, switch, value,
};

const ABOUT: &str = "\
Samples a program, processes, processors or the whole system, and writes the samples to a file (perf.data unless -o names \
another). The file is one that Linux perf reads.

The first word that is no option begins the workload: everything from there on belongs to it, with or without `--` before \
it. Recording ends when the workload ends; with -a, -p, -t or -C the workload only sets how long, so that `sleep 10` is a \
timer. Without workload and target the whole system is recorded until Ctrl-C.

Into a pipe (-o -, or no -o and a pipe as standard output) goes a stream that `script -i -` and `report -i -` read while it \
comes; what the workload prints goes to the standard error then.

An existing output file is kept as FILE.old. The exit status is that of the workload.";

const EVENT: &str = "\
The events to record, separated by commas; may be given several times. Modifiers follow a colon: u counts in user space \
only, k in the kernel only.
Hardware: cycles instructions cache-references cache-misses branch-instructions branch-misses bus-cycles ref-cycles.
Software: cpu-clock task-clock page-faults minor-faults major-faults context-switches (cs) cpu-migrations (migrations) \
alignment-faults emulation-faults dummy.
Tracepoints: system:name, both of which may be shell patterns (sched:*, 'syscalls:sys_enter_*').
Without -e it is cycles, or cpu-clock where the machine has no hardware counters.";

const FILTER: &str = "\
A condition on the fields of the tracepoints of the last -e before it; several are joined with &&. Comparisons are == != < \
<= > >= & for numbers, == != ~ for text in quotes (~ compares with a shell pattern), joined by && || ! and parentheses. \
Numbers are decimal, or hexadecimal with 0x; a device number may be given as major:minor.
Example: -e block:block_rq_issue --filter 'nr_sector > 200 && rwbs ~ \"*W*\"'

Samples of other events are compared by what they hold and left out while they are written: ip, id, tid, pid, cpu, time \
(in nanoseconds), addr, period, txn, weight (weight1, weight2, weight3), phys_addr, code_pgsz, data_pgsz with == != < <= > >= & \
and a number; commas mean all, || means any of those between commas.
Example: -e cpu-clock --filter 'period > 1000, cpu == 1 || cpu == 2'";

const CALL_GRAPH: &str = "\
How to record call graphs.
fp: the kernel follows frame pointers, at most n frames. Programs built without them give wrong or short chains, \
and a function that sets up no frame of its own, as most that call no other, hides its caller.
fp,defer (Linux 6.19 and later): callers in user space are found when the task returns there, once for all samples \
that it had in the kernel until then; they may be paged in for it. Readers put them together with the samples.
dwarf: each sample holds the registers and a copy of the stack, n bytes of it (8192, at most 65528), from which the frames \
are found when the file is read. Files grow accordingly: 100 samples are about 0.8 MB.
lbr: the processor keeps the last calls of user space that have not returned (Intel's, some 32 of them). Not of events that \
count the kernel alone, nor beside -b and -j: their callchains go by frame pointers.
-g alone means fp, or what the setting call-graph.record-mode says.";

const UNWIND: &str = "\
When the copies of stacks of --call-graph dwarf are unwound.
later: when the recording is read (the default, as in Linux perf). The file holds all copies.
live: while recording, so that the file holds callchains, some twenty times smaller, for any reader. Where unwinding does not keep \
up, copies are stored.";

const THREADS: &str = "\
Empty the rings in several threads, each ring into a file of its own: the output is a directory, which report and script \
read as they do a file.
cpu (the default): a thread for each CPU. core, package, numa: one for each of these, which runs there.
Or masks CPUS/RUNS_ON separated by colons, a thread each: 0,2-4/2-4:1,5-7/5-7. No CPU may be in two of a kind.";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("record").long_about(ABOUT);
    command
        .args(events_and_targets())
        .args(rate_and_rings())
        .args(samples())
        .args(kinds())
        .args(output())
        .arg(workload::words())
}

/// Events and targets.
fn events_and_targets() -> Vec<Arg> {
    vec![
        list("event", "event")
            .short('e')
            .help("events to record, separated by commas")
            .long_help(EVENT),
        list("filter", "filter")
            .help("take samples of the events of the last -e only where this holds")
            .long_help(FILTER),
        probes::option(),
        switch("exclude-perf").help("leave the recorder itself out of the events of the last -e"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("record all threads of these processes (a list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("record these threads (a list: 1,2,3)"),
        value("realtime", "priority")
            .short('r')
            .value_parser(number)
            .help("empty the rings at this real-time priority (SCHED_FIFO, 1 to 99)"),
        switch("no-buffering").help("wake up for every record instead of when rings fill"),
        switch("raw-samples").short('R').help(
            "record raw data with samples of every event; those of tracepoints always have it",
        ),
        switch("all-cpus")
            .short('a')
            .help("record the whole system, all CPUs"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("record what runs on these CPUs (a list: 0,2,4-6)"),
    ]
}

/// Rate, buffers, call graphs.
fn rate_and_rings() -> Vec<Arg> {
    vec![
        value("count", "n")
            .short('c')
            .value_parser(number)
            .help("one sample every n events"),
        value("output", "file")
            .short('o')
            .help("write to this file (default: perf.data), or with - into a pipe"),
        switch("no-inherit")
            .short('i')
            .help("leave out the children of what is recorded"),
        switch("tail-synthesize")
            .help("tell of what runs at the end of each file instead of at its start"),
        switch("overwrite")
            .help("keep the last samples, as many as the rings hold: a flight recorder, for --switch-output=signal"),
        switch("no-bpf-event").help("leave out what BPF programs come and go"),
        switch("strict-freq")
            .help("stop where -F is above the system's limit, instead of lowering it"),
        value("freq", "n|max")
            .short('F')
            .help("samples per second and CPU (default: 4000), or max"),
        value("mmap-pages", "pages[,pages]")
            .short('m')
            .help("size of each ring buffer: pages, a power of two, or 512K, 8M; behind a comma that of areas for hardware traces"),
        value("mmap-flush", "size")
            .help("leave rings alone that hold less than this, at most a quarter of a ring: 64K (default: 1 byte)"),
        switch("group").help("count all events as one group, as '{a,b}' does for some"),
        short_switch("g")
            .short('g')
            .help("record call graphs by frame pointers"),
        value("call-graph", "mode[,n]")
            .help("how to record call graphs: fp, by frame pointers, dwarf, by copies of stacks, or lbr, by the processor")
            .long_help(CALL_GRAPH),
        value("unwind", "when")
            .help("when copies of stacks are unwound: later, by readers, or live, while recording")
            .long_help(UNWIND),
        counter("verbose")
            .short('v')
            .help("say more: the attributes of each event, each call that opens one"),
        switch("quiet").short('q').help("print nothing but errors"),
    ]
}

/// What a sample holds.
fn samples() -> Vec<Arg> {
    vec![
        switch("stat").short('s').help("record the counts of each task when it ends"),
        switch("data")
            .short('d')
            .help("record data addresses and the mappings of data"),
        switch("phys-data").help("record physical data addresses"),
        switch("data-page-size").help("record the page sizes of data addresses"),
        switch("code-page-size").help("record the page sizes of instruction pointers"),
        switch("sample-cpu").help("record the CPU of each sample (-a and -C do anyway)"),
        switch("sample-identifier")
            .help("record the event's id in each sample, where even old readers find it"),
        switch("timestamp")
            .short('T')
            .help("record the time of each sample even with --per-thread"),
        switch("period")
            .short('P')
            .help("record the period of each sample even where it is fixed"),
        switch("no-samples")
            .short('n')
            .help("take no samples: record only what starts, ends and is mapped"),
        switch("no-buildid-cache").short('N').help("leave the build-id cache alone"),
        switch("no-buildid").short('B').help("neither record build-ids nor fill the cache"),
        list("cgroup", "name").short('G').help("see the tasks of this cgroup alone; a list has one name for each event, in order"),
        value("delay", "ms").short('D').allow_hyphen_values(true).help("start events after ms milliseconds, never (-1), or run them in ranges (10-20,30-40)"),
        switch("kcore").help("write a directory, with a copy of the kernel's code beside the records"),
        value("uid", "user").short('u').help("record all processes of this user, by name or number"),
        switch("branch-any").short('b').help("record the last branches of each sample, where the machine keeps them"),
        value("branch-filter", "filters").short('j').help("record the last branches of these kinds: any_call,u"),
        switch("weight")
            .short('W')
            .help("record what the samples of memory accesses weigh"),
        switch("transaction").help("record the flags of transactions"),
        switch("per-thread").help("one ring per thread instead of per CPU; no children"),
        attached("intr-regs", "registers").short('I').help("record the registers at the interrupt, all or these (ax,ip)"),
        attached("user-regs", "registers").help("record the registers of user space, all or these (ax,ip)"),
        switch("running-time").help("record how long events were enabled and on a counter with reads (:S)"),
        value("clockid", "clock").short('k').help("take times from this clock: monotonic, monotonic_raw, realtime, boottime, tai"),
    ]
}

/// Side information and which half of the machine is seen.
fn kinds() -> Vec<Arg> {
    vec![
        attached("snapshot", "[e]size")
            .short('S')
            .help("keep the end of a hardware trace, at SIGUSR2 and with e when the recording ends: e64K"),
        not_yet("aux-sample", "Intel's branch trace store cannot be copied into samples: '--snapshot' keeps the end of the trace"),
        value("proc-map-timeout", "ms")
            .value_parser(number)
            .help("read the mappings of each process that runs before for no longer than this (default: 500)"),
        switch("namespaces").help("record the namespaces of tasks"),
        switch("all-cgroups").help("record the cgroup of each sample, and what cgroups there are"),
        switch("switch-events").help("record context switches"),
        switch("latency").help("record what report --latency needs: context switches"),
        switch("all-kernel").help("record the kernel alone, whatever the events say"),
        switch("all-user").help("record user space alone, whatever the events say"),
        switch("kernel-callchains").help("leave user frames out of call graphs"),
        switch("user-callchains").help("leave the kernel's frames out of call graphs"),
        not_yet("clang-path", ""),
        not_yet("clang-opt", ""),
        not_yet("vmlinux", "the kernel's file is for reading: 'report -k FILE'"),
        switch("buildid-all")
            .help("record the build-ids of all that is mapped, which is done anyway"),
        switch("buildid-mmap").help("have the kernel put build-ids into the records of mappings"),
    ]
}

/// Shape of the output, and control while recording.
fn output() -> Vec<Arg> {
    vec![
        switch("timestamp-filename").help("add date and time to the name of the output"),
        switch("timestamp-boundary")
            .help("record the times of the first and the last sample, which is done anyway"),
        attached("switch-output", "when")
            .help("go on in a new file at SIGUSR2 (signal, the default), at a size (5M) or after a time (10s, 5m, 1h)"),
        list("switch-output-event", "event")
            .help("go on in a new file when one of these events happens, which are not recorded themselves"),
        value("switch-max-files", "n")
            .value_parser(number)
            .help("keep the last n files of --switch-output"),
        switch("dry-run").help("check the options and do nothing else"),
        attached("aio", "n").help("taken as it is meant: nothing waits for the disk where the page cache has room"),
        value("affinity", "place")
            .help("empty each ring on its NUMA node (node) or CPU (cpu), or where the system likes (sys, the default)"),
        attached("compression-level", "level")
            .short('z')
            .help("compress the samples (Zstandard, one fast level whatever is given; 0 for none)"),
        value("max-size", "size").help("end when the output has this size: 64K, 5M, 2G"),
        value("num-thread-synthesize", "n")
            .value_parser(number)
            .help("threads that read what ran before (default: one on each processor, fewer for few processes)"),
        control::option(),
        value("synth", "what")
            .help("tell of what ran before: no, all (default), or some of task (names), mmap, cgroup"),
        not_yet("debuginfod", "objects are fetched when a recording is read: 'report --debuginfod'"),
        attached("threads", "layout")
            .help("empty the rings in several threads, into a directory with a file for each ring")
            .long_help(THREADS),
        value("off-cpu-thresh", "ms")
            .value_parser(number)
            .help("of waits that --off-cpu finds, add up those that are shorter, by task and callchain (default: 0)"),
        switch("off-cpu").help("record how long tasks were off their CPUs, with the callchains of what they waited in"),
    ]
}

/// `-g dwarf` was the way to ask for DWARF stacks once; now `dwarf` would be the workload. Stops unless there is a
/// program of that name.
pub(super) fn check_old_spelling(matches: &ArgMatches, context: &Context) -> Result<(), CliError> {
    let first = matches
        .get_raw("workload")
        .and_then(|mut words| words.next());
    let Some(mode) = first.and_then(|word| {
        ["fp", "dwarf", "lbr"]
            .into_iter()
            .find(|mode| word == *mode)
    }) else {
        return Ok(());
    };
    let path = context.var("PATH").unwrap_or_default();
    let exists = std::env::split_paths(&path).any(|directory| directory.join(mode).is_file())
        || Path::new(mode).is_file();
    if flag(matches, "g") != Some(true) || exists {
        return Ok(());
    }
    Err(CliError::usage(format!(
        "'{mode}' after -g is taken for the workload, and there is no such program"
    ))
    .hint(format!("use `--call-graph {mode}`")))
}
