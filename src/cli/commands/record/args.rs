//! The options of `record`, in perf's order; each unimplemented one is refused with a message of its own.

use std::path::Path;

use clap::{Arg, ArgMatches, Command};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::live::{control, probes, workload};
use crate::cli::options::{
    attached, counter, flag, list, number, number_list, short_switch, switch, unsupported, value,
};

const ABOUT: &str = "\
Samples a command, processes, threads, CPUs or the whole system and writes the samples to a file (default: perf.data), \
which Linux perf can read, too.

The first word that is not an option begins the workload: the command to run, with its own options; `--` may precede it. \
Recording ends when the workload ends. With -a, -p, -t, -u or -C the workload only sets the duration, so `sleep 10` is a \
timer. Without workload and target, the whole system is recorded until Ctrl-C.

With -o -, or without -o if the standard output is a pipe, the recording is written to the standard output for `script \
-i -` and `report -i -`; the workload's standard output is then redirected to the standard error.

An existing output file is renamed to FILE.old. The exit status is that of the workload.";

const EVENT: &str = "\
Events to record, separated by commas; may be given several times. Modifiers follow a colon, such \
as u for user space only, or k for the kernel only.
Hardware: cycles instructions cache-references cache-misses branch-instructions branch-misses bus-cycles stalled-cycles-frontend \
stalled-cycles-backend ref-cycles.
Software: cpu-clock task-clock page-faults minor-faults major-faults context-switches (cs) cpu-migrations (migrations) \
alignment-faults emulation-faults cgroup-switches bpf-output dummy.
Tracepoints: system:name; both may be shell patterns (sched:*, 'syscalls:sys_enter_*').
Other events, such as those of caches and PMUs: see 'list'.
The default is cycles, or cpu-clock if the machine has no hardware counters.";

const FILTER: &str = "\
Filter on the fields of the tracepoints of the preceding -e; several filters are joined with &&. Numbers are compared \
with == != < <= > >= &, strings in quotes with == != ~ (~ matches a shell pattern); comparisons are joined with && || ! \
and parentheses. Numbers are decimal, or hexadecimal with 0x; a device number may be written as major:minor.
Example: -e block:block_rq_issue --filter 'nr_sector > 200 && rwbs ~ \"*W*\"'

Filters of other events are applied before samples are written: by a program in the kernel if they compare only a sample's \
tid, pid, cpu, period, addr, uid and gid, otherwise by rperf. rperf cannot compare uid and gid, but also compares ip, id, \
time (nanoseconds), txn, weight (weight1, weight2, weight3), phys_addr, code_pgsz, data_pgsz and the parts of a memory \
access: mem_op, mem_lvl, mem_snoop, mem_remote, mem_lock, mem_dtlb, mem_blk, mem_hops. Values are numbers, or names such as \
load, l2, hitm for the parts of a memory access; operators are == != < <= > >= &. Conditions separated by commas must all \
hold; || separates alternatives within a condition.
Example: -e cpu-clock --filter 'period > 1000, cpu == 1 || cpu == 2'";

const CALL_GRAPH: &str = "\
How to record call graphs.
fp: the kernel follows frame pointers, at most n frames. Programs built without frame pointers give wrong or truncated \
callchains. The caller of a leaf function that sets up no frame is missing.
fp,defer (Linux 6.19 and later): the user part of the callchain is recorded when the task returns to user space, once \
for all samples in the kernel until then; the user stack may be paged in for this. Readers join it with the samples.
dwarf: each sample contains the user registers and a copy of n bytes of the user stack (default 8192, at most 65528), \
which is unwound with DWARF information when the file is read. Files are large: 100 samples need about 0.8 MB.
lbr: the Last Branch Record of Intel processors holds up to about 32 user-space calls that have not returned. Events \
that count only the kernel, and recordings with -b or -j, use frame pointers instead.
-g selects fp, or the setting call-graph.record-mode.";

const UNWIND: &str = "\
When the stack copies of --call-graph dwarf are unwound.
later: when the recording is read (the default, as in Linux perf). The file contains all stack copies.
live: while recording. The file contains callchains, is about twenty times smaller, and can be read by any tool. If \
unwinding cannot keep up, stack copies are stored.";

const THREADS: &str = "\
Read the ring buffers with several threads, each buffer into its own file. The output is a directory, which report and \
script read like a file.
cpu (the default): one thread per CPU. core, package, numa: one thread per core, package or NUMA node, running there.
Or masks CPUS/RUNS_ON separated by colons, one thread per mask: 0,2-4/2-4:1,5-7/5-7. A CPU may be in one CPUS and in one RUNS_ON only.";

/// The command and its options. They are in perf's order, so that each function below also has some options that its name does
/// not cover, such as `-o` among the ring buffers.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("record").long_about(ABOUT);
    command
        .args(events_and_targets())
        .args(rate_and_rings())
        .args(samples())
        .args(side_band_and_privilege_levels())
        .args(output())
        .arg(workload::words())
}

fn events_and_targets() -> Vec<Arg> {
    vec![
        list("event", "event")
            .short('e')
            .help("events to record, separated by commas (see 'list')")
            .long_help(EVENT),
        list("filter", "filter")
            .help("filter for the events of the preceding -e")
            .long_help(FILTER),
        probes::option(),
        switch("futex-owners")
            .help("also record who holds the futexes that threads begin to wait for (set by 'lock record --user')"),
        switch("lock-owners")
            .help("also record the owner and the name of each lock of the kernel that a thread begins to wait for (set by 'lock record --owners')"),
        switch("exclude-perf").help("exclude rperf itself from the events of the preceding -e"),
        value("pid", "pid")
            .short('p')
            .value_parser(number_list)
            .help("record these processes, all threads (list: 1,2,3)"),
        value("tid", "tid")
            .short('t')
            .value_parser(number_list)
            .help("record these threads (list: 1,2,3)"),
        value("pid-ns", "pid")
            .value_parser(number)
            .help("take the ids of -p and -t from the PID namespace of this process (a container)"),
        value("realtime", "priority")
            .short('r')
            .value_parser(number)
            .help("run rperf with this real-time priority (SCHED_FIFO, 1 to 99)"),
        switch("no-buffering").help("wake up for every sample instead of when ring buffers fill"),
        switch("raw-samples")
            .short('R')
            .help("record raw data with every sample (tracepoint samples always have it)"),
        switch("all-cpus")
            .short('a')
            .help("record the whole system (all CPUs)"),
        value("cpu", "cpu")
            .short('C')
            .value_parser(number_list)
            .help("record only these CPUs (list: 0,2,4-6)"),
    ]
}

fn rate_and_rings() -> Vec<Arg> {
    vec![
        value("count", "n")
            .short('c')
            .value_parser(number)
            .help("sampling period: one sample every n events"),
        value("output", "file")
            .short('o')
            .help("output file, - for the standard output (default: perf.data)"),
        switch("no-inherit")
            .short('i')
            .help("do not record child processes and threads"),
        switch("tail-synthesize")
            .help("write mappings and names of running tasks at the end of the file instead of at its start"),
        switch("overwrite")
            .help("flight recorder: keep only the newest records in the ring buffers until --switch-output=signal or the end"),
        switch("no-bpf-event").help("do not record loading and unloading of BPF programs"),
        switch("strict-freq")
            .help("fail if -F exceeds the system's limit, instead of lowering it"),
        value("freq", "n|max")
            .short('F')
            .help("sampling frequency in Hz (default: 4000), or max"),
        value("mmap-pages", "pages[,pages]")
            .short('m')
            .help("size of each ring buffer: pages (a power of two) or bytes (512K, 8M); after a comma: size of each AUX area"),
        value("mmap-flush", "size")
            .help("read a ring buffer only if it holds at least this much: 64K (default: 1 byte; at most a quarter of the buffer)"),
        switch("group").help("put all events into one group"),
        short_switch("g")
            .short('g')
            .help("record callchains (call graphs) by frame pointers"),
        value("call-graph", "mode[,n]")
            .help("record callchains by this method: fp (frame pointers), dwarf (stack copies), lbr (branch records)")
            .long_help(CALL_GRAPH),
        value("unwind", "when")
            .help("when to unwind stack copies: later (when the file is read), live (while recording)")
            .long_help(UNWIND),
        counter("verbose")
            .short('v')
            .help("be verbose; -vv: show perf_event_attr and every perf_event_open call"),
        switch("quiet").short('q').help("print only errors"),
    ]
}

fn samples() -> Vec<Arg> {
    vec![
        switch("stat").short('s').help("record the event counts of each task"),
        switch("data")
            .short('d')
            .help("record data addresses and data mappings"),
        switch("phys-data").help("record physical addresses of data"),
        switch("data-page-size").help("record the page size of data addresses"),
        switch("code-page-size").help("record the page size of code addresses"),
        switch("sample-cpu").help("record the CPU of each sample (implied by -a and -C)"),
        switch("sample-identifier")
            .help("record the event id at a fixed place in each sample (PERF_SAMPLE_IDENTIFIER)"),
        switch("timestamp")
            .short('T')
            .help("record a timestamp in each sample, also with --per-thread"),
        switch("period")
            .short('P')
            .help("record the period in each sample, also if it is fixed (-c)"),
        switch("no-samples")
            .short('n')
            .help("record no samples, only task and mapping records"),
        switch("no-buildid-cache").short('N').help("do not update the build-id cache"),
        switch("no-buildid").short('B').help("do not collect build-ids, do not update the cache"),
        list("cgroup", "name").short('G').help("monitor only this cgroup; in a list, one name per event in order"),
        value("delay", "ms").short('D').allow_hyphen_values(true).help("start events after this time, leave them disabled (-1), or enable them during ranges (10-20,30-40)"),
        switch("kcore").help("write a directory with the records and a copy of /proc/kcore"),
        value("uid", "user").short('u').help("record all processes of this user (name or uid)"),
        switch("branch-any").short('b').help("record taken branches with each sample (branch stack), any kind"),
        value("branch-filter", "filters").short('j').help("record branch stacks with these filters: any_call,u"),
        switch("weight")
            .short('W')
            .help("record the weight of each sample (memory access latency)"),
        switch("transaction").help("record transaction flags (TSX)"),
        switch("per-thread").help("use one ring buffer per thread instead of per CPU; do not follow children"),
        attached("intr-regs", "registers").short('I').help("record registers at the sample: all, or these (ax,ip)"),
        attached("user-regs", "registers").help("record user-space registers: all, or these (ax,ip)"),
        switch("running-time").help("record enabled and running times with counter readings (:S)"),
        value("clockid", "clock").short('k').help("clock for timestamps: monotonic, monotonic_raw, realtime, boottime, tai"),
    ]
}

fn side_band_and_privilege_levels() -> Vec<Arg> {
    vec![
        attached("snapshot", "[e]size")
            .short('S')
            .help("AUX area snapshot mode: keep this much of the hardware trace at SIGUSR2; with e (e64K) also at exit"),
        unsupported("aux-sample", "intel_bts has no AUX samples; --snapshot keeps the end of the trace"),
        value("proc-map-timeout", "ms")
            .value_parser(number)
            .help("time limit for reading /proc/PID/maps of a process (default: 500)"),
        switch("namespaces").help("record namespaces of tasks"),
        switch("all-cgroups").help("record the cgroup of each sample"),
        switch("switch-events").help("record context switches"),
        switch("latency").help("record context switches for report --latency"),
        switch("all-kernel").help("sample only the kernel, for all events"),
        switch("all-user").help("sample only user space, for all events"),
        switch("kernel-callchains").help("exclude user frames from callchains"),
        switch("user-callchains").help("exclude kernel frames from callchains"),
        unsupported("clang-path", ""),
        unsupported("clang-opt", ""),
        unsupported("vmlinux", "the kernel image is used by readers: 'report -k FILE'"),
        switch("buildid-all")
            .help("add all mapped files to the build-id cache, not only those with samples"),
        switch("buildid-mmap").help("record build-ids in MMAP2 records, by the kernel"),
    ]
}

fn output() -> Vec<Arg> {
    vec![
        switch("timestamp-filename").help("append date and time to the output file name"),
        switch("timestamp-boundary")
            .help("record the times of the first and last sample (always done)"),
        attached("switch-output", "when")
            .help("start a new output file at SIGUSR2 (signal, the default), at this size (5M) or after this time (10s, 5m, 1h)"),
        list("switch-output-event", "event")
            .help("start a new output file when one of these events occurs (they are not recorded)"),
        value("switch-max-files", "n")
            .value_parser(number)
            .help("keep only the n newest files of --switch-output"),
        switch("dry-run").help("check the options, then exit"),
        attached("aio", "n").help("asynchronous writes: accepted, no effect (output is buffered by the page cache)"),
        value("affinity", "place")
            .help("CPUs that the reading thread runs on: those of the ring buffer's NUMA node (node), its CPU (cpu), any (sys, the default)"),
        attached("compression-level", "level")
            .short('z')
            .help("compress records with Zstandard (0: off; every other level is the same fast one)"),
        value("duration", "time")
            .help("stop after this time: 10 (seconds), 0.5, 500ms, 5m, 1h; a workload is terminated"),
        value("max-size", "size").help("stop when the output reaches this size: 64K, 5M, 2G"),
        value("num-thread-synthesize", "n")
            .value_parser(number)
            .help("number of threads that read /proc for running processes (default: one per CPU)"),
        control::option(),
        value("synth", "what")
            .help("what to record about running processes: no, all (default), or a list of task, mmap, cgroup"),
        unsupported("debuginfod", "files are downloaded when the recording is read: 'report --debuginfod'"),
        attached("threads", "layout")
            .help("read ring buffers with several threads, into a directory with one file per buffer")
            .long_help(THREADS),
        value("off-cpu-thresh", "ms")
            .value_parser(number)
            .help("with --off-cpu: sum up shorter waits by task and callchain (default: 500)"),
        switch("off-cpu").help("record off-CPU time: how long tasks were blocked or waiting, with callchains"),
    ]
}

/// Refuses `-g dwarf`, `-g fp` and `-g lbr`, which selected a mode in old versions of perf: now the word is the workload, and is
/// accepted if a program of that name exists.
pub(super) fn refuse_old_call_graph_modes(
    matches: &ArgMatches,
    context: &Context,
) -> Result<(), CliError> {
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
        "'{mode}' after -g is taken as the command to run, and there is no such program"
    ))
    .hint(format!("use `--call-graph {mode}`")))
}
