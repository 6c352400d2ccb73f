//! The options of `report`, in perf's order; unimplemented ones are refused by name.

use clap::{Arg, Command};

use crate::cli::filter::args as filter_args;
use crate::cli::options::{counter, number, optional, switch, unsupported, value};
use crate::cli::shared::annotation::code;
use crate::cli::symbol_options::args as symbol_args;
use crate::cli::{debuginfod, input, itrace, jobs};

const ABOUT: &str = "\
Reads a recording and prints a histogram of its samples: one row per command, object and function, largest overhead \
first, with the call graph below each row if callchains were recorded.

With callchains, each row shows the overhead including callees (Children) and its own overhead (Self); --no-children \
shows only its own.";

const CALL_GRAPH: &str = "\
How call graphs are printed: any of these words, separated by commas, in any order.
  graph, fractal          trees, with percentages of the total or of the parent
  flat, folded            single callchains, one frame or one callchain per line
  none                    no call graphs
  PERCENT                 hide branches below this percentage (default 0.5)
  COUNT                   after PERCENT: maximum number of branches of a node
  caller, callee          root is the outermost caller, or the sampled function
  function                merge frames of the same function
  address, srcline        separate frames by address, or by source line
  branch                  prepend the branch stack to the callchain
  percent, period, count  value of a branch: percentage, sum of periods, samples";

const KEYS_HELP: &str = "\
sort keys: comm, comm_nodigit (digits as <N>), pid, tid, tgid, dso, symbol, symoff (symbol+offset), parent, srcline, \
srcfile, cpu, socket, time, parallelism, cgroup, cgroup_id, trace (tracepoint output), tracepoint fields (FIELD, \
EVENT.FIELD, EVENT.*, each with /raw for the unformatted number; trace_fields for all), symbol_size, dso_size, \
code_page_size, weight, ins_lat, retire_lat (sums; of single samples: local_weight, local_ins_lat, local_retire_lat), \
transaction; branch stacks: dso_from, dso_to, symbol_from, symbol_to, addr_from, addr_to, srcline_from, srcline_to, \
mispredict, in_tx, abort, cycles; with --mem-mode: mem, tlb, snoop, locked, blocked, symbol_daddr, \
symbol_iaddr, dso_daddr, phys_daddr, dcacheline, data_page_size";

/// The option that controls colours.
pub(super) const COLOR: &str = "stdio-color";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("report").long_about(ABOUT);
    command
        .args(input_options())
        .args(table())
        .args(selection())
        .args(annotation_and_branches())
        .args(rest())
        .arg(refused_word())
}

/// Returns the options on the input, and those that print data about the file instead of a table.
fn input_options() -> Vec<Arg> {
    vec![
        // The first five options do not exist in perf 6.1. They precede perf's because the error for an ambiguous prefix
        // names the last two matches, which should be the same as in perf. Others that perf 6.1 lacks are further down, such as
        // `json`; of these, `mark-truncated` changes the matches of `--m`.
        debuginfod::option(),
        switch("hints").help("on a terminal, show warnings after the report (default: on)"),
        switch("latency").help("sort by latency (wall-clock time) instead of CPU time; needs record --latency"),
        value("parallelism", "threads").help("only samples taken while this many threads ran: 1, 2-4"),
        switch("idle").help("include the idle task (default: on)"),
        input::option(),
        counter("verbose")
            .short('v')
            .help("show symbol addresses, symbol sources and full object paths; report problems with symbols"),
        switch("quiet")
            .short('q')
            .help("print only the table, no header and no warnings"),
        switch("dump-raw-trace")
            .short('D')
            .help("dump all records: offset, bytes and fields, then --stats"),
        switch("stats").help("print only the number of records per type and samples per event"),
        switch("tasks").help("print only the tree of processes and threads"),
        switch("mmaps").help("like --tasks, with memory mappings"),
        symbol_args::vmlinux(),
        symbol_args::ignore_vmlinux(),
        symbol_args::kallsyms(),
        input::force(),
        symbol_args::modules(),
    ]
}

/// Returns the options on the table's columns and layout.
fn table() -> Vec<Arg> {
    vec![
        switch("show-nr-samples")
            .short('n')
            .help("show the number of samples of each row"),
        switch("threads")
            .short('T')
            .help("print event counts per thread after the report (needs record -s)"),
        value("pretty", "layout").help("format of --threads: normal (one column per event), raw (one line per event)"),
        switch("tui").help("use the terminal browser (the default on a terminal)"),
        switch("stdio").help("print the report as text"),
        switch("json").help("print the rows, not rounded, as one JSON object; without call graphs"),
        switch("csv").help("print the rows, not rounded, as CSV; without call graphs"),
        switch("header").help("print the header (machine and recording) before the report"),
        switch("header-only").help("print only the header (machine and recording)"),
        value("sort", "key[,key...]").short('s').help(
            KEYS_HELP,
        ),
        value("fields", "field[,field...]").short('F').help("columns: overhead, overhead_children, latency, latency_children, overhead_sys, overhead_us, overhead_guest_sys, overhead_guest_us, sample, period, weight1, weight2, weight3 (average weights), and the keys of --sort; a leading + adds to the default columns"),
        switch("show-cpu-utilization").help("show separate columns for kernel and user overhead"),
        switch("showcpuutilization")
            .help("alias of --show-cpu-utilization")
            .hide(true),
        value("parent", "regex")
            .short('p')
            .help("sort key parent: regular expression for functions of the callchain (default: ^sys_|^do_page_fault)"),
        switch("exclude-other")
            .short('x')
            .help("only samples with a callchain that matches --parent"),
        // `graph`: the value if none is given.
        optional("call-graph", "mode", "graph")
            .short('g')
            .help("print call graphs in this way (see --help)")
            .long_help(CALL_GRAPH),
        switch("children")
            .help("accumulate callees into callers (default: on with callchains)"),
        value("max-stack", "frames").value_parser(number).help("use at most this many frames of a callchain, from the root of the call graph; of stacks unwound from copies, the innermost (default: 127)"),
        switch("inverted")
            .short('G')
            .help("print call graphs from caller to callee"),
        value("ignore-callees", "regex")
            .help("attribute callees of functions that match this regular expression to these functions"),
    ]
}

/// Returns the filters, and some options on the table's layout.
fn selection() -> Vec<Arg> {
    vec![
        filter_args::dsos().short('d'),
        filter_args::comms(),
        filter_args::pid(),
        filter_args::tid(),
        filter_args::symbols(),
        value("symbol-filter", "text").help("only functions with this text in their name"),
        value("column-widths", "width[,width...]")
            .short('w')
            .help("column widths, in order (0: as wide as needed)"),
        value("field-separator", "separator")
            .short('t')
            .help("column separator; columns are not padded"),
        switch("hide-unresolved")
            .short('U')
            .help("skip samples without a symbol"),
        symbol_args::symfs(),
        filter_args::cpu(),
        switch("show-info")
            .short('I')
            .help("with --header: print CPU topology and caches in full"),
    ]
}

/// Returns the options on annotation, event groups and branches.
fn annotation_and_branches() -> Vec<Arg> {
    vec![
        code::source(),
        code::asm_raw(),
        code::style(),
        code::prefix(),
        code::prefix_strip(),
        switch("show-total-period").help("show the sum of periods of each row"),
        switch("group").help(
            "show the events of a group side by side (default: on); if given, also all events of a recording without groups",
        ),
        value("group-sort-idx", "number")
            .value_parser(number)
            .help("sort by the nth event of the group, from 0"),
        switch("branch-stack")
            .short('b')
            .help("show branch stacks (the default if recorded)"),
        switch("branch-history").help("extend callchains by the recorded branch stacks"),
        code::objdump(),
        symbol_args::demangle(),
        symbol_args::demangle_kernel(),
        switch("mem-mode").help("show memory accesses: data source, TLB, latency"),
        value("samples", "n")
            .value_parser(number)
            .help("browser: list at most n samples of a function (key r)"),
    ]
}

/// Returns the options on thresholds, time, and other forms of the table.
fn rest() -> Vec<Arg> {
    vec![
        value("percent-limit", "percent")
            .help("hide rows and call graph branches below this percentage"),
        value("percentage", "relative|absolute")
            .help("percentages of filtered samples: relative to them, or absolute (of all samples, the default)"),
        itrace::option(),
        switch("full-source-path").help("print full paths of source files"),
        switch("show-ref-call-graph")
            .help("for events recorded with call-graph=no, show the call graphs of the first event that has any"),
        unsupported("stitch-lbr", "record with --call-graph dwarf for deep stacks"),
        value("socket-filter", "socket")
            .value_parser(number)
            .help("only samples taken on this CPU socket"),
        switch("raw-trace").help("show tracepoint fields unformatted"),
        switch("hierarchy")
            .short('H')
            .help("show sort keys as levels of a tree"),
        // `always` if the option is given without a mode; `auto` if the option is not given.
        optional(COLOR, "mode", "always")
            .help("use colors: always, never, auto (default: auto)"),
        filter_args::time(),
        symbol_args::inline(),
        symbol_args::mark_truncated(),
        code::percent_type(),
        switch("ns").help("print times in nanoseconds"),
        value("time-quantum", "time")
            .help("sort key time: length of an interval: 10ms, 1s (default: 100ms)"),
        filter_args::switch_on(),
        filter_args::switch_off(),
        filter_args::show_switches(),
        switch("total-cycles").help(
            "show basic blocks sorted by cycles (needs record -b)",
        ),
        switch("disable-order").help(
            "with -D: print records in file order",
        ),
        switch("skip-empty").help("hide events without samples (default: on)"),
        jobs::option(),
    ]
}

/// Declares the positional word, which is refused. perf uses it as a symbol filter, but users often mean the name of a file.
fn refused_word() -> Arg {
    Arg::new("symbol-filter-word")
        .num_args(0..)
        .value_name("word")
}
