//! Declarations of the symbol options.

use clap::Arg;

use crate::cli::options::{switch, value};
use crate::cli::{debuginfod, jobs};

/// Returns the options of this file except `--modules`, followed by `--debuginfod` and `--jobs`. `--modules` has no effect: the
/// few commands that accept it add it themselves.
pub(crate) fn all() -> Vec<Arg> {
    vec![
        vmlinux(),
        ignore_vmlinux(),
        kallsyms(),
        symfs(),
        demangle(),
        demangle_kernel(),
        inline(),
        mark_truncated(),
        debuginfod::option(),
        jobs::option(),
    ]
}

pub(crate) fn demangle() -> Arg {
    switch("demangle").help("demangle C++, Rust and OCaml symbols (default: on)")
}

pub(crate) fn demangle_kernel() -> Arg {
    switch("demangle-kernel").help("also demangle kernel symbols")
}

pub(crate) fn ignore_vmlinux() -> Arg {
    switch("ignore-vmlinux").help("do not read a kernel image unless -k names one")
}

pub(crate) fn inline() -> Arg {
    switch("inline").help("show inlined functions in callchains (default: only in unwound ones)")
}

pub(crate) fn kallsyms() -> Arg {
    value("kallsyms", "file").help("kallsyms file to read kernel symbols from")
}

pub(crate) fn mark_truncated() -> Arg {
    switch("mark-truncated")
        .help("end incomplete unwound callchains in a frame that names the reason")
}

pub(crate) fn modules() -> Arg {
    switch("modules")
        .short('m')
        .help("read symbols of kernel modules (always done)")
}

pub(crate) fn symfs() -> Arg {
    value("symfs", "directory")
        .help("look up object files and the build-id cache below this directory")
}

pub(crate) fn vmlinux() -> Arg {
    value("vmlinux", "file")
        .short('k')
        .help("kernel image to read symbols from")
}
