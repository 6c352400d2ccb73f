//! The options of `annotate`.

use clap::{Arg, Command};

use crate::cli::filter::args as filter_args;
use crate::cli::input;
use crate::cli::jobs;
use crate::cli::options::{counter, switch, unsupported, value};
use crate::cli::shared::annotation::code;
use crate::cli::symbol_options::args as symbol_args;

const ABOUT: &str = "\
Shows the instructions of sampled functions with their source lines, each instruction with its share of the function's \
samples. rperf disassembles by itself, in the format of objdump, which need not be installed. The word after the \
options, or -s, names one function. If none is given, all sampled functions are shown, the hottest first.

Unless events are recorded with precise sampling (record -e EVENT:p), a sample is often attributed to the instruction after \
the one that took the time.";

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("annotate")
        .long_about(ABOUT)
        .args(general_options())
        .args(filter_args::common())
        .args(display_options())
        .args(symbol_and_job_options())
        // A second word is accepted here, to be refused with a message of its own.
        .arg(Arg::new("word").num_args(0..).value_name("symbol"))
}

fn general_options() -> Vec<Arg> {
    vec![
        input::option(),
        input::force(),
        value("symbol", "symbol")
            .short('s')
            .help("annotate only this function"),
        counter("verbose")
            .short('v')
            .help("report problems with symbol tables and debug information"),
        switch("quiet")
            .short('q')
            .help("print neither notes nor warnings"),
    ]
}

fn display_options() -> Vec<Arg> {
    vec![
        switch("show-nr-samples")
            .short('n')
            .help("show the number of samples instead of percentages"),
        switch("show-total-period").help("show the sum of periods instead of percentages"),
        code::percent_type(),
        value("percent-limit", "percent").help("skip functions below this percentage"),
        code::source(),
        code::asm_raw(),
        code::style(),
        switch("print-line")
            .short('l')
            .help("print the hottest source lines first, and the source line of each instruction"),
        switch("full-paths")
            .short('P')
            .help("with -l: print full paths of source files"),
        code::prefix(),
        code::prefix_strip(),
        value("hot", "n")
            .value_parser(crate::cli::options::number)
            .help("show only the n hottest instructions of each function, with context"),
        switch("group").help(
            "show the events of a group side by side (default: on); if given, also all events of a recording without groups",
        ),
        switch("skip-empty").help("hide the columns of events without samples"),
        switch("skip-missing").help("do not warn about functions without code"),
        switch("stdio")
            .help("print text with addresses (the default if the output is not a terminal)"),
        switch("stdio2").help("print text with jump labels and arrows instead of addresses"),
        value("stdio-color", "mode").help("use colors: always, never, auto (default)"),
        value("output", "directory")
            .short('o')
            .help("write one file per function into this directory"),
        code::objdump(),
        symbol_args::modules(),
        switch("tui").help("use the terminal browser (the default on a terminal)"),
        unsupported("gtk", "use --stdio"),
        unsupported("addr2line", "source lines are read without addr2line"),
        unsupported(
            "data-type",
            "'report --mem-mode -s symbol_daddr' shows variables",
        ),
        // Empty: the message has no hint, since there is nothing to use instead.
        unsupported("type-stat", ""),
        unsupported("code-with-type", ""),
        unsupported("itrace", "report and script have it"),
        switch("dump-raw-trace")
            .short('D')
            .help("dump all records instead, as report -D does"),
    ]
}

fn symbol_and_job_options() -> Vec<Arg> {
    vec![
        symbol_args::vmlinux(),
        symbol_args::ignore_vmlinux(),
        symbol_args::kallsyms(),
        symbol_args::symfs(),
        symbol_args::demangle(),
        symbol_args::demangle_kernel(),
        crate::cli::debuginfod::option(),
        jobs::option(),
    ]
}
