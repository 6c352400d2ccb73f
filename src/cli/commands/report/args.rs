//! The options of `report`, in perf's order; those still to come are refused by name.

use clap::{Arg, Command};

use crate::cli::commands::annotate::code;
use crate::cli::filter::args as choose;
use crate::cli::options::{counter, not_yet, number, optional, switch, value};
use crate::cli::symbol_options::args as names;
use crate::cli::{debuginfod, input, itrace, jobs};

const ABOUT: &str = "\
Reads a recording and shows which code its samples hit: one line per program, library and function, largest share first, \
and with call graphs the chains of callers below each line.

Where the file has call graphs, a line also counts what its callees cost (Children) beside its own samples (Self); \
--no-children counts its own alone.";

const CALL_GRAPH: &str = "\
How call graphs are printed: any of these, separated by commas, in any order.
  graph, fractal          as trees, with shares of the total or of the parent
  flat, folded            as chains one by one, a frame or a chain to a line
  none                    no call graphs
  PERCENT                 leave out branches below it (default 0.5)
  COUNT                   at most that many branches of one fork, after PERCENT
  caller, callee          from the outermost caller down, or from the sampled function up
  function                join calls from all places of a function
  address, srcline        tell calls apart by their address, or by their line in the source
  branch                  begin chains with the branches that led to the sample
  percent, period, count  mark branches with their share, their events or their samples";

const KEYS_HELP: &str = "\
what makes a line: comm, comm_nodigit (its numbers as <N>), pid, tid, tgid, dso, symbol, symoff (each place in it), parent, srcline, srcfile, cpu, socket, time, parallelism (threads that ran), cgroup, cgroup_id, trace (what tracepoints \
tell), a field of theirs (FIELD, EVENT.FIELD, EVENT.*, each with /raw for the number itself; trace_fields for all), symbol_size, dso_size, code_page_size, weight, ins_lat, transaction; of branches: dso_from, dso_to, symbol_from, \
symbol_to, addr_from, addr_to, srcline_from, srcline_to, mispredict, in_tx, abort, cycles; with --mem-mode: mem, tlb, snoop, \
locked, blocked, symbol_daddr, symbol_iaddr, dso_daddr, phys_daddr, dcacheline, data_page_size";

/// The option that says whether the text has colours.
pub(super) const COLOR: &str = "stdio-color";

/// The command and its options.
pub(in crate::cli::commands) fn command() -> Command {
    let command = Command::new("report").long_about(ABOUT);
    command
        .args(input())
        .args(table())
        .args(selection())
        .args(shown())
        .args(rest())
        .arg(symbol_filter())
}

/// What is read, and what is told of the file instead of a table.
fn input() -> Vec<Arg> {
    vec![
        // Before what perf has: of the options that a prefix fits, the last two are named.
        debuginfod::option(),
        switch("hints").help("on a terminal, end with what would spoil the report (the default)"),
        switch("latency").help("order rows by their part of the time that passed, of a recording made with record --latency"),
        value("parallelism", "threads").help("only samples that were taken while so many threads ran: 1, 2-4"),
        switch("idle").help("count idle processors too (the default); --no-idle leaves the idle tasks out"),
        input::option(),
        counter("verbose")
            .short('v')
            .help("show symbols with an address and with where they are from, and objects by their path; say what was found out about symbols"),
        switch("quiet")
            .short('q')
            .help("print the rows alone, and no warnings"),
        switch("dump-raw-trace")
            .short('D')
            .help("print every record: where it stands, its bytes and its fields; then what --stats prints"),
        switch("stats").help("count the records of each kind and the samples of each event, and nothing more"),
        switch("tasks").help("print who ran and who started whom, and nothing more"),
        switch("mmaps").help("the same with what was mapped at the end"),
        names::vmlinux(),
        names::ignore_vmlinux(),
        names::kallsyms(),
        input::force(),
        names::modules(),
    ]
}

/// What makes a table, and how it is laid out.
fn table() -> Vec<Arg> {
    vec![
        switch("show-nr-samples")
            .short('n')
            .help("show the number of samples of each line"),
        switch("threads")
            .short('T')
            .help("end with what was counted in each thread, of a recording made with record -s"),
        value("pretty", "layout").help("of --threads: normal, a column for each event, or raw, a line for each"),
        switch("tui").help("browse on the terminal (the default where there is one)"),
        switch("stdio").help("print text"),
        switch("header").help("print what is known of machine and recording before the report"),
        switch("header-only").help("print only what is known of machine and recording"),
        value("sort", "key[,key...]").short('s').help(
            KEYS_HELP,
        ),
        value("fields", "field[,field...]").short('F').help("the columns to show: overhead, overhead_children, latency, latency_children, overhead_sys, overhead_us, sample, period, weight1, weight2, weight3 (averages of what samples cost), and the keys of --sort; with + before them beside the usual ones"),
        switch("show-cpu-utilization").help("show the shares of kernel and user space"),
        switch("showcpuutilization")
            .help("how perf spells --show-cpu-utilization")
            .hide(true),
        value("parent", "regex")
            .short('p')
            .help("what the key parent shows: functions of call chains that this fits (default: ^sys_|^do_page_fault)"),
        switch("exclude-other")
            .short('x')
            .help("only samples whose call chain has such a function"),
        optional("call-graph", "mode", "graph")
            .short('g')
            .help("how to print call graphs")
            .long_help(CALL_GRAPH),
        switch("children")
            .help("count callees into their callers (the default where there are call graphs)"),
        value("max-stack", "frames").value_parser(number).help("frames of a call chain that count, from the innermost (default: 127)"),
        switch("inverted")
            .short('G')
            .help("print call graphs from the outermost caller down"),
        value("ignore-callees", "regex")
            .help("count functions that this fits for all that they call"),
    ]
}

/// Which samples count.
fn selection() -> Vec<Arg> {
    vec![
        choose::dsos().short('d'),
        choose::comms(),
        choose::pid(),
        choose::tid(),
        choose::symbols(),
        value("symbol-filter", "text").help("only lines of functions whose names contain this"),
        value("column-widths", "width[,width...]")
            .short('w')
            .help("widths of the first columns; 0 leaves one as wide as it needs"),
        value("field-separator", "separator")
            .short('t')
            .help("what stands between cells, which then are not padded"),
        switch("hide-unresolved")
            .short('U')
            .help("leave out what no function is known of"),
        names::symfs(),
        choose::cpu(),
        switch("show-info")
            .short('I')
            .help("with --header, print topology and caches in full"),
    ]
}

/// Code, groups, branches.
fn shown() -> Vec<Arg> {
    vec![
        code::source(),
        code::asm_raw(),
        code::style(),
        code::prefix(),
        code::prefix_strip(),
        switch("show-total-period").help("show the number of events of each line"),
        switch("group").help("show the events of a group beside each other (the default), or all events where there is no group"),
        value("group-sort-idx", "number")
            .value_parser(number)
            .help("order lines by the event of that number in its group, from 0"),
        switch("branch-stack").short('b').help(
            "show the branches that samples came with (the default where there are any)",
        ),
        switch("branch-history").help("call graphs of the branches that led to each sample, told of at both ends"),
        code::objdump(),
        names::demangle(),
        names::demangle_kernel(),
        switch("mem-mode").help("show memory accesses by what they cost and where data was found"),
        not_yet("samples", "the text shows no single samples, 'script' does"),
    ]
}

/// Thresholds, time, and the other forms of the table.
fn rest() -> Vec<Arg> {
    vec![
        value("percent-limit", "percent")
            .help("leave out lines below this share, and branches of call graphs"),
        value("percentage", "relative|absolute")
            .help("what shares are of where samples are chosen: of those, or of all (the default)"),
        itrace::option(),
        switch("full-source-path").help("print source files with their whole path"),
        switch("show-ref-call-graph")
            .help("show events recorded with call-graph=no with the call graphs of the first event that has some"),
        not_yet("stitch-lbr", ""),
        value("socket-filter", "socket")
            .value_parser(number)
            .help("only samples taken on this processor socket"),
        switch("raw-trace").help("show what tracepoints tell field by field, as recorded"),
        switch("hierarchy")
            .short('H')
            .help("print each sort key on a level of its own, with what it is made of below"),
        optional(COLOR, "mode", "always")
            .help("always, never or auto: whether shares from half a percent on have colours (default: auto, on a terminal)"),
        choose::time(),
        names::inline(),
        names::mark_cut(),
        code::percent_type(),
        switch("ns").help("print times to the nanosecond"),
        value("time-quantum", "time")
            .help("what the key time takes for one moment: 10ms, 1s (default: 100ms)"),
        choose::switch_on(),
        choose::switch_off(),
        choose::show_switches(),
        switch("total-cycles").help(
            "show the stretches of code between branches by their cycles, of a recording made with record -b",
        ),
        switch("disable-order").help(
            "with -D: print records in the order of the file; reports are the same in any order",
        ),
        switch("skip-empty").help("leave out events without samples (the default)"),
        jobs::option(),
    ]
}

/// perf takes one word for a symbol filter; a file name often stands there by mistake.
fn symbol_filter() -> Arg {
    Arg::new("symbol-filter-word")
        .num_args(0..)
        .value_name("word")
}
