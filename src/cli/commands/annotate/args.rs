//! The options of `annotate`.

use clap::{Arg, Command};

use super::code;
use crate::cli::filter::args as choose;
use crate::cli::input;
use crate::cli::jobs;
use crate::cli::options::{counter, not_yet, switch, value};
use crate::cli::symbol_options::args as names;

const ABOUT: &str = "\
'annotate' shows the instructions of the functions that samples fell on, the source between them, and before each \
instruction its share of the function's samples. It needs no objdump: code is read and printed by itself, in objdump's words. \
The word after the options, or -s, names one function; without one all are shown, those with most samples first.

Without precise sampling the instruction that a sample names is often the one behind that which took the time.";

/// The options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("annotate")
        .long_about(ABOUT)
        .args(files())
        .args(choose::all())
        .args(looks())
        .args(rest())
        .arg(Arg::new("word").num_args(0..).value_name("symbol"))
}

fn files() -> Vec<Arg> {
    vec![
        input::option(),
        input::force(),
        value("symbol", "symbol")
            .short('s')
            .help("only the function of this name"),
        counter("verbose")
            .short('v')
            .help("say what was found out about symbols"),
        switch("quiet").short('q').help("no notes and no warnings"),
    ]
}

fn looks() -> Vec<Arg> {
    vec![
        switch("show-nr-samples")
            .short('n')
            .help("show numbers of samples instead of shares"),
        switch("show-total-period").help("show numbers of events instead of shares"),
        code::percent_type(),
        value("percent-limit", "percent")
            .help("only functions with at least this share of the event"),
        code::source(),
        code::asm_raw(),
        code::style(),
        switch("print-line")
            .short('l')
            .help("begin with the source lines that have most, and name those of instructions"),
        switch("full-paths")
            .short('P')
            .help("with -l, name source files with their whole path"),
        code::prefix(),
        code::prefix_strip(),
        value("hot", "n")
            .value_parser(crate::cli::options::number)
            .help("only so many of the hottest instructions of each function, and what is around them"),
        switch("group").help("show the events of a group beside each other (the default), or all events where there is no group"),
        switch("skip-empty").help("leave out the columns of events without samples"),
        switch("skip-missing").help("say nothing of functions whose code is not at hand"),
        switch("stdio").help("print text with addresses (the default without a terminal)"),
        switch("stdio2").help("print text with labels, arrows and names instead of addresses"),
        value("stdio-color", "mode").help("colours: always, never or auto (the default)"),
        value("output", "directory")
            .short('o')
            .help("write a file for each function into this directory instead"),
        code::objdump(),
        names::modules(),
        switch("tui").help("browse on the terminal (the default there)"),
        not_yet("gtk", "use --stdio"),
        not_yet("addr2line", "lines are read without it"),
        not_yet("data-type", ""),
        not_yet("type-stat", ""),
        not_yet("code-with-type", ""),
        not_yet("itrace", ""),
        not_yet("dump-raw-trace", "'report -D' prints records").short('D'),
    ]
}

fn rest() -> Vec<Arg> {
    vec![
        names::vmlinux(),
        names::ignore_vmlinux(),
        names::kallsyms(),
        names::symfs(),
        names::demangle(),
        names::demangle_kernel(),
        crate::cli::debuginfod::option(),
        jobs::option(),
    ]
}
