//! The options of `script`; unimplemented ones are refused by name.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command};
use rperf_view::script::Clock;

use super::dump;
use super::settings::ScriptSettings;
use crate::cli::error::CliError;
use crate::cli::filter::args as filter_args;
use crate::cli::options::{counter, list, number, switch, unsupported, value};
use crate::cli::symbol_options::args as symbol_args;
use crate::cli::{debuginfod, input, itrace, jobs};

const ABOUT: &str = "\
Reads a recording and prints every sample in time order: command, thread, CPU, time, period, event, and the address with \
its symbol and object, or the callchain on separate lines. The format is that of perf script.";

const FIELDS: &str = "\
Fields to print, separated by commas; their order is fixed. + or - before each field (+insn,-period) adds it to the \
default fields or removes it. An event type before a colon applies the list to events of that type only: hw, sw, trace, \
raw, break, synth.
Fields: comm tid pid time cpu event trace ip sym dso addr symoff dsoff period misc tod cgroup; memory accesses: data_src \
weight ins_lat retire_lat phys_addr data_page_size code_page_size; registers: iregs uregs; branch stacks: brstack \
brstacksym brstackoff, with the code between branches: brstackinsn brstackinsnlen brstackdisasm; instructions: insn \
insnlen disasm; source: srcline srccode; metric: metrics of a group's counters; bpf-output; flags: kind of branch in \
samples of a hardware trace. callindent synth ipc machine_pid vcpu are accepted, but always empty.";

const TEMPLATE: &str = "\
Print this text for each sample, with the fields in braces: time (nanoseconds), comm, pid, tid, cpu, event, period, trace, \
ip, symbol, offset, dso, dsoff, callchain (functions separated by semicolons, from the sampled one), cgroup, bpf-output, addr, \
data_src, weight and the other fields of memory accesses. {{ and }} are braces, \\t is a tab, \\n a newline.";

const TIME: &str = "\
Only samples from START to END, in seconds as printed: '10.5,12'; '10.5,' has no end, ',12' no start; several ranges are separated by spaces \
in one argument. With --reltime, times are relative to the first sample. In percent of the recording: 10%/2 is the \
second tenth, 10%-20% the same; several are separated by commas.";

const SCRIPT: &str = "\
Passes the samples to the functions of this script: for each tracepoint its handler system__event, otherwise trace_unhandled; \
process_event for samples of other events; trace_begin and trace_end; context_switch, throttle and unthrottle for these records; \
stat__EVENT and stat__interval for the counts of stat record. Words after the file are the script's arguments. Scripts for Linux perf \
run unchanged, in the Python of --python, of the active virtual environment, of the script's first line, or in python3; scripts in Perl \
(handlers system::event) in perl.";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("script").long_about(ABOUT);
    command
        .args(input_and_fields())
        .args(selection())
        .args(records())
        .args(remaining())
        .arg(script_words())
}

fn input_and_fields() -> Vec<Arg> {
    vec![
        // The first four options do not exist in perf 6.1. They precede perf's because the error for an ambiguous prefix
        // names the last two matches, which should be the same as in perf. Others that perf 6.1 lacks are further down, such as
        // `json`; of these, `mark-truncated` changes the matches of `--m`.
        debuginfod::option(),
        symbol_args::ignore_vmlinux(),
        switch("csv").help("print a row for each sample, with the fields of -F separated by commas, and a row of titles"),
        value("template", "text")
            .help("print this text for each sample: '{comm} {pid} {symbol}'")
            .long_help(TEMPLATE),
        switch("dump-raw-trace")
            .short('D')
            .help("dump all records: offset, bytes and fields"),
        switch("dump-unsorted-raw-trace").help("like -D, in file order"),
        counter("verbose")
            .short('v')
            .help("report problems with fields and symbols"),
        switch("Latency")
            .short('L')
            .help("latency format: command names of at most 8 characters, CPUs without brackets"),
        switch("list").short('l').help("list the scripts: built-in ones, and those installed with perf"),
        unsupported("list-dlfilters", ""),
        value("script", "[language:]file")
            .short('s')
            .value_parser(clap::value_parser!(OsString))
            .help("pass the samples to the functions of this script")
            .long_help(SCRIPT),
        value("python", "path")
            .value_parser(clap::value_parser!(OsString))
            .help("with -s: interpreter of Python scripts (default: see the help of -s)"),
        value("gen-script", "language|file")
            .short('g')
            .help("write handlers for the recorded tracepoints: python (perf-script.py), perl (perf-script.pl), or a file NAME.py, NAME.pl"),
        unsupported("dlfilter", ""),
        unsupported("dlarg", ""),
        input::option(),
        switch("debug-mode")
            .short('d')
            .help("print no samples: check that they are in time order"),
        switch("header").help("print the header (machine and recording) before the samples"),
        switch("header-only").help("print only the header (machine and recording)"),
        symbol_args::vmlinux(),
        symbol_args::kallsyms(),
        switch("hide-call-graph")
            .short('G')
            .help("print only the sampled address, no callchains"),
        symbol_args::symfs(),
        list("fields", "field[,field...]")
            .short('F')
            .help("fields to print, separated by commas")
            .long_help(FIELDS),
        switch("all-cpus")
            .short('a')
            .help("with 'script record NAME': sample the whole system"),
    ]
}

fn selection() -> Vec<Arg> {
    vec![
        filter_args::dsos(),
        filter_args::symbols().help("only samples in these functions or at these addresses"),
        value("addr-range", "bytes")
            .value_parser(number)
            .help("with -S ADDRESS: range of this many bytes"),
        unsupported("insn-trace", ""),
        unsupported("xed", ""),
        unsupported("call-trace", ""),
        unsupported("call-ret-trace", ""),
        unsupported("graph-function", ""),
        value("stop-bt", "symbol[,symbol...]").help("end callchains at these functions"),
        filter_args::cpu(),
        filter_args::comms(),
        filter_args::pid(),
        filter_args::tid(),
        value("max-stack", "n")
            .value_parser(number)
            .help("print at most n frames of a callchain (default: 127)"),
        switch("reltime").help("print times relative to the first sample"),
        switch("deltatime").help("print times relative to the previous sample"),
        switch("show-info")
            .short('I')
            .help("print the header with CPU topology and caches in full"),
    ]
}

fn records() -> Vec<Arg> {
    vec![
        switch("show-kernel-path").help("print paths of kernel modules instead of names"),
        switch("show-task-events").help("also print COMM, FORK and EXIT records"),
        switch("show-mmap-events").help("also print MMAP records"),
        switch("show-switch-events").help("also print SWITCH records (context switches)"),
        switch("show-namespace-events").help("also print NAMESPACES records"),
        switch("show-cgroup-events").help("also print CGROUP records"),
        switch("show-lost-events").help("also print LOST records"),
        switch("show-round-events").help("also print FINISHED_ROUND records"),
        switch("show-bpf-events").help("also print BPF_EVENT and KSYMBOL records"),
        switch("show-text-poke-events").help("also print TEXT_POKE records"),
    ]
}

fn remaining() -> Vec<Arg> {
    vec![
        switch("per-event-dump")
            .help("write the samples of each event to its own file, FILE.EVENT.dump"),
        input::force(),
        value("max-blocks", "n")
            .value_parser(number)
            .help("with -F brstackinsn: print at most n basic blocks per sample"),
        switch("ns").help("print times with nanoseconds"),
        switch("json")
            .help("print each sample as a JSON object on one line, with the fields of -F"),
        itrace::option(),
        switch("full-source-path").help("print full paths of source files"),
        symbol_args::demangle(),
        symbol_args::demangle_kernel(),
        filter_args::time().long_help(TIME),
        symbol_args::inline(),
        symbol_args::mark_truncated(),
        unsupported("guestmount", ""),
        unsupported("guestvmlinux", ""),
        unsupported("guestkallsyms", ""),
        unsupported("guestmodules", ""),
        unsupported("guest-code", ""),
        unsupported(
            "stitch-lbr",
            "record with --call-graph dwarf for deep stacks",
        ),
        filter_args::switch_on(),
        filter_args::switch_off(),
        filter_args::show_switches(),
        jobs::option(),
    ]
}

/// The words after the options: `[record|report] NAME` and its arguments, or the arguments of the script of `-s`.
fn script_words() -> Arg {
    Arg::new("script-word")
        .num_args(0..)
        .value_name("word")
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
}

/// Refuses options that exclude each other.
pub(super) fn refuse_mixtures(
    matches: &ArgMatches,
    settings: &ScriptSettings,
) -> Result<(), CliError> {
    let dumps = dump::is_wanted(matches);
    if settings.is_structured {
        refuse_text_options(matches, settings, dumps)?;
    }
    let message = match (dumps, settings.checks_order, settings.per_event_dump) {
        (true, true, _) => "-D and --debug-mode exclude each other",
        (true, _, true) => "-D and --per-event-dump exclude each other",
        (_, true, true) => "--debug-mode and --per-event-dump exclude each other",
        _ => return Ok(()),
    };
    Err(CliError::usage(message))
}

/// Refuses options that do not apply to JSON, CSV or templates. `dumps` is whether a dump is requested.
fn refuse_text_options(
    matches: &ArgMatches,
    settings: &ScriptSettings,
    dumps: bool,
) -> Result<(), CliError> {
    let text_options = [
        (dumps, "-D"),
        (settings.checks_order, "-d"),
        // Only with CSV: the file of each event would lack the titles. JSON and templates have none.
        (
            settings.is_csv() && settings.per_event_dump,
            "--per-event-dump",
        ),
        (settings.header || settings.header_only, "--header"),
        (!settings.records.is_empty(), "--show-...-events"),
        (settings.brief, "-L"),
        (settings.clock == Clock::SinceFirst, "--reltime"),
        (settings.clock == Clock::SinceBefore, "--deltatime"),
        (
            matches.get_one::<u64>("max-blocks").is_some(),
            "--max-blocks",
        ),
    ];
    let format_option = settings.format_option();
    match text_options.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(CliError::usage(format!(
            "{format_option} and {option} exclude each other: {option} applies to the text output"
        ))),
    }
}
