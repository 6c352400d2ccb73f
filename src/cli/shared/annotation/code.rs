//! Options for showing annotated code, shared by `annotate`, `report` and (except `--percent-type`) `top`. In their help,
//! `annotate:` distinguishes them from the other options of `report` and `top`.

use clap::Arg;

use crate::cli::options::{number, switch, value};

/// On by default, so this option is mainly used as `--no-source`.
pub(crate) fn source() -> Arg {
    switch("source").help("annotate: interleave source lines (default: on)")
}

pub(crate) fn asm_raw() -> Arg {
    switch("asm-raw").help("annotate: show the bytes of instructions")
}

pub(crate) fn style() -> Arg {
    value("disassembler-style", "att|intel")
        .short('M')
        .help("annotate: x86 syntax, att or intel (default: att)")
}

pub(crate) fn prefix() -> Arg {
    value("prefix", "directory").help("annotate: prefix for absolute paths of source files")
}

pub(crate) fn prefix_strip() -> Arg {
    value("prefix-strip", "n")
        .value_parser(number)
        .help("with --prefix: remove this many leading directories first")
}

pub(crate) fn objdump() -> Arg {
    value("objdump", "path").help("annotate: disassemble with this objdump")
}

pub(crate) fn percent_type() -> Arg {
    value("percent-type", "type").help(
        "annotate: percentages of local-period (default), local-hits, global-period, global-hits",
    )
}
