//! The options of `script`, in perf's order; those still to come are refused by name.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command};
use rperf_view::script::Clock;

use super::dump;
use super::settings::Settings;
use crate::cli::error::CliError;
use crate::cli::filter::args as choose;
use crate::cli::options::{counter, list, not_yet, number, switch, value};
use crate::cli::symbol_options::args as names;
use crate::cli::{debuginfod, input, itrace, jobs};

const ABOUT: &str = "\
Reads a recording and prints every sample in the order of time: program, thread, CPU, time, period, event, and the address \
with its function and file, or the whole call chain on lines of its own. The text is the one that scripts for Linux perf \
read.";

const FIELDS: &str = "\
The fields to print, separated by commas; their order is fixed. A list that begins with + or - adds to the default or takes \
away from it. A kind before a colon limits the list to events of that kind: hw, sw, trace, raw, break, synth.
Fields: comm tid pid time cpu event trace ip sym dso addr symoff dsoff period misc tod cgroup; of memory accesses data_src weight ins_lat retire_lat \
phys_addr data_page_size code_page_size; registers iregs uregs; branches brstack brstacksym brstackoff, and the code between them brstackinsn brstackinsnlen \
brstackdisasm; the instruction insn insnlen disasm; source srcline srccode; what counters of a group say together metric; bpf-output. Only \
samples of a hardware trace or of a guest have flags callindent synth ipc machine_pid vcpu: these are empty.";

const TIME: &str = "\
Only samples from START to END, in seconds as they are printed: 10.5,12 or 10.5, or ,12; several of them between blanks in \
one word. With --reltime they count from the first sample. In percent of the recording: 10%/2 is the second tenth, 10%-20% \
the same, and several are separated by commas.";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("script").long_about(ABOUT);
    command
        .args(input_and_fields())
        .args(selection())
        .args(records())
        .args(rest())
        .arg(script())
}

/// What is read and which columns are printed.
fn input_and_fields() -> Vec<Arg> {
    vec![
        // Before what perf has: of the options that a prefix fits, the last two are named.
        debuginfod::option(),
        switch("dump-raw-trace")
            .short('D')
            .help("print every record: where it stands, its bytes and its fields"),
        switch("dump-unsorted-raw-trace").help("the same in the order of the file"),
        counter("verbose")
            .short('v')
            .help("say what was found out about fields and symbols"),
        switch("Latency")
            .short('L')
            .help("print eight letters of names, and CPUs without brackets"),
        switch("list")
            .short('l')
            .help("list the scripts that are built in"),
        not_yet("list-dlfilters", ""),
        not_yet(
            "script",
            "no interpreter is built in: pipe the text, or that of --json, into the script",
        )
        .short('s'),
        not_yet(
            "gen-script",
            "scripts read the lines of --json, an object for each sample",
        )
        .short('g'),
        not_yet("dlfilter", ""),
        not_yet("dlarg", ""),
        input::option(),
        switch("debug-mode")
            .short('d')
            .help("print no samples; say which are out of order"),
        switch("header").help("print what is known of machine and recording before the samples"),
        switch("header-only").help("print only what is known of machine and recording"),
        names::vmlinux(),
        names::kallsyms(),
        switch("hide-call-graph")
            .short('G')
            .help("print the sampled address alone, without its callers"),
        names::symfs(),
        list("fields", "field[,field...]")
            .short('F')
            .help("the fields to print")
            .long_help(FIELDS),
        not_yet("all-cpus", "record with 'record -a', then read").short('a'),
    ]
}

/// Which samples are printed.
fn selection() -> Vec<Arg> {
    vec![
        choose::dsos(),
        choose::symbols().help("only samples in these functions, or at these addresses"),
        value("addr-range", "bytes")
            .value_parser(number)
            .help("with -S ADDRESS, so many bytes from there on"),
        not_yet("insn-trace", ""),
        not_yet("xed", ""),
        not_yet("call-trace", ""),
        not_yet("call-ret-trace", ""),
        not_yet("graph-function", ""),
        value("stop-bt", "symbol[,symbol...]").help("leave out the callers of these functions"),
        choose::cpu(),
        choose::comms(),
        choose::pid(),
        choose::tid(),
        value("max-stack", "n")
            .value_parser(number)
            .help("print at most so many frames of a call chain (default: 127)"),
        switch("reltime").help("times count from the first sample printed"),
        switch("deltatime").help("times count from the sample printed before"),
        switch("show-info")
            .short('I')
            .help("print the header with topology and caches"),
    ]
}

/// Records that are no samples.
fn records() -> Vec<Arg> {
    vec![
        switch("show-kernel-path").help("print the path of a kernel module's file, not its name"),
        switch("show-task-events").help("print records of names, new and ended threads"),
        switch("show-mmap-events").help("print records of mappings"),
        switch("show-switch-events").help("print records of context switches"),
        switch("show-namespace-events").help("print records of namespaces"),
        switch("show-cgroup-events").help("print records of cgroups"),
        switch("show-lost-events").help("print records of what was lost"),
        switch("show-round-events").help("print the ends of rounds over the rings"),
        switch("show-bpf-events").help("print records of BPF programs and their symbols"),
        switch("show-text-poke-events").help("print records of changes in the kernel's code"),
    ]
}

/// Names, times, guests.
fn rest() -> Vec<Arg> {
    vec![
        switch("per-event-dump")
            .help("print the samples of each event into a file of its own, FILE.EVENT.dump"),
        input::force(),
        value("max-blocks", "n")
            .value_parser(number)
            .help("print at most so many stretches of code with -F brstackinsn"),
        switch("ns").help("print times in nanoseconds"),
        switch("json")
            .help("print each sample as a JSON object on a line of its own, with the fields of -F"),
        itrace::option(),
        switch("full-source-path").help("print source files with their whole path"),
        names::demangle(),
        names::demangle_kernel(),
        choose::time().long_help(TIME),
        names::inline(),
        names::mark_cut(),
        not_yet("guestmount", ""),
        not_yet("guestvmlinux", ""),
        not_yet("guestkallsyms", ""),
        not_yet("guestmodules", ""),
        not_yet("guest-code", ""),
        not_yet("stitch-lbr", ""),
        choose::switch_on(),
        choose::switch_off(),
        choose::show_switches(),
        jobs::option(),
    ]
}

/// The name of a script, with words of its own; also the place of old spellings.
fn script() -> Arg {
    Arg::new("script-word")
        .num_args(0..)
        .value_name("word")
        .trailing_var_arg(true)
        .allow_hyphen_values(true)
        .value_parser(clap::value_parser!(OsString))
}

/// Options that leave each other nothing to do.
pub(super) fn refuse_mixtures(matches: &ArgMatches, settings: &Settings) -> Result<(), CliError> {
    let dumps = dump::is_wanted(matches);
    if settings.objects {
        refuse_text(matches, settings, dumps)?;
    }
    let refused = match (dumps, settings.checks, settings.per_event) {
        (true, true, _) => "-D prints everything, --debug-mode nothing",
        (true, _, true) => "-D prints everything in one place, --per-event-dump each event apart",
        (_, true, true) => "--debug-mode prints nothing, also not in files of --per-event-dump",
        _ => return Ok(()),
    };
    Err(CliError::usage(refused))
}

/// Options of text, which objects have no place for.
fn refuse_text(matches: &ArgMatches, settings: &Settings, dumps: bool) -> Result<(), CliError> {
    let others = [
        (dumps, "-D"),
        (settings.checks, "-d"),
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
    match others.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, option)) => Err(CliError::usage(format!(
            "--json prints samples alone, with the times of the recording: {option} is for text"
        ))),
    }
}
