//! The options about code that `annotate` shares with the browsers of other commands.

use clap::Arg;

use crate::cli::options::{number, switch, value};

pub(in crate::cli::commands) fn source() -> Arg {
    switch("source").help("show source lines between annotated instructions (the default)")
}

pub(in crate::cli::commands) fn asm_raw() -> Arg {
    switch("asm-raw").help("show the bytes of annotated instructions")
}

pub(in crate::cli::commands) fn style() -> Arg {
    value("disassembler-style", "att|intel")
        .short('M')
        .help("how operands of x86 are written in annotated code (default: att)")
}

pub(in crate::cli::commands) fn prefix() -> Arg {
    value("prefix", "directory").help("look for source files with absolute paths below this one")
}

pub(in crate::cli::commands) fn prefix_strip() -> Arg {
    value("prefix-strip", "n")
        .value_parser(number)
        .help("leave out this many directories of their paths first")
}

pub(in crate::cli::commands) fn objdump() -> Arg {
    value("objdump", "path").help("let this program print the instructions")
}

pub(in crate::cli::commands) fn percent_type() -> Arg {
    value("percent-type", "type").help(
        "what shares of annotated code are of: local-period (the default), local-hits, global-period, global-hits",
    )
}
