//! The declarations; each command lists them in perf's order.

use clap::Arg;

use crate::cli::options::{switch, value};
use crate::cli::{debuginfod, jobs};

/// All that says where names come from and how they look, and how many threads look.
pub(crate) fn all() -> Vec<Arg> {
    vec![
        vmlinux(),
        ignore_vmlinux(),
        kallsyms(),
        symfs(),
        demangle(),
        demangle_kernel(),
        inline(),
        mark_cut(),
        debuginfod::option(),
        jobs::option(),
    ]
}

pub(crate) fn demangle() -> Arg {
    switch("demangle").help("print names as the source has them (the default)")
}

pub(crate) fn demangle_kernel() -> Arg {
    switch("demangle-kernel").help("the same for names of the kernel")
}

pub(crate) fn ignore_vmlinux() -> Arg {
    switch("ignore-vmlinux").help("read no kernel image that is not named with -k")
}

pub(crate) fn inline() -> Arg {
    switch("inline")
        .help("show functions that were inlined in all callchains (the default in unwound ones)")
}

pub(crate) fn kallsyms() -> Arg {
    value("kallsyms", "file").help("the kernel's list of symbols, for its names")
}

pub(crate) fn mark_cut() -> Arg {
    switch("mark-cut")
        .help("end unwound stacks that lack their outer frames in a frame that says why")
}

pub(crate) fn modules() -> Arg {
    switch("modules")
        .short('m')
        .help("read symbols of modules, which is always done")
}

pub(crate) fn symfs() -> Arg {
    value("symfs", "directory").help("look for files and the build-id cache below this one")
}

pub(crate) fn vmlinux() -> Arg {
    value("vmlinux", "file")
        .short('k')
        .help("the kernel's image, for its names")
}
