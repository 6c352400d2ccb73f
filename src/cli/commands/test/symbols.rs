//! Symbols of the kernel and of this program.

use std::path::Path;

use rperf_symbol::{Binding, ObjectKind, ObjectRequest, SearchPaths, load};
use rperf_sys::{read_pseudo_file, uname};

use super::environment::{TestResult, TestRun, failed, skip};
use super::machine::PARANOID;
use super::sysctl;
use crate::cli::live::explain::reason;
use rperf_input::DiskFiles;

/// Functions that the symbol table of this program must have.
const WORKLOAD_FUNCTIONS: &[&str] = &[
    "noploop",
    "test_loop",
    "leaf",
    "parent",
    "leafloop",
    "brstack",
];

/// Checks that /proc/kallsyms shows addresses; logs which kernel images exist.
pub(super) fn of_kernel(run: &mut TestRun<'_>) -> TestResult {
    run.log(sysctl::described("kernel/kptr_restrict"));
    let release = uname()?.release;
    for path in [
        format!("/usr/lib/debug/boot/vmlinux-{release}"),
        format!("/usr/lib/debug/lib/modules/{release}/vmlinux"),
        format!("/boot/vmlinux-{release}"),
        "/proc/kcore".to_owned(),
    ] {
        let state = if Path::new(&path).exists() {
            "found"
        } else {
            "not found"
        };
        run.log(format_args!("{path}: {state}"));
    }
    let listing = match read_pseudo_file("/proc/kallsyms") {
        Ok(listing) => listing,
        Err(error) => return skip(format!("/proc/kallsyms: {}", reason(&error))),
    };
    let lines = listing
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    let is_hidden = |line: &&[u8]| {
        line.iter()
            .take_while(|byte| **byte != b' ')
            .all(|byte| *byte == b'0')
    };
    let count = lines.clone().count();
    // The addresses are hidden only if all of them are 0: on some kernels, per-CPU variables have the address 0.
    let hidden = lines.filter(is_hidden).count();
    run.log(format_args!(
        "/proc/kallsyms: {count} symbols, {hidden} without an address"
    ));
    match (count, hidden) {
        (0, _) => skip("/proc/kallsyms is empty"),
        (count, hidden) if count == hidden => skip(needed_for_addresses()),
        _ => Ok(()),
    }
}

/// Returns which setting hides the kernel's addresses, and which setting or capability would show them, if any does
/// (`kallsyms_show_value` of the kernel).
fn needed_for_addresses() -> String {
    match sysctl::value("kernel/kptr_restrict").as_str() {
        "0" => format!(
            "addresses are hidden, {}: needs 1 or less, or CAP_SYSLOG",
            sysctl::described(PARANOID)
        ),
        "1" => "addresses are hidden, kptr_restrict is 1: needs CAP_SYSLOG".to_owned(),
        value => format!("addresses are hidden from all users, kptr_restrict is {value}"),
    }
}

/// Checks this program's symbol table; with `-vv` logs every symbol, because perf's test scripts search for them.
pub(super) fn of_program(run: &mut TestRun<'_>) -> TestResult {
    let program = run.environment.program.clone();
    run.log(format_args!("Testing {}", program.display()));
    let request = ObjectRequest::new(&program, ObjectKind::User);
    let build_id_cache = None;
    let loaded = load(&DiskFiles, &SearchPaths::new(build_id_cache), &request);
    for finding in &loaded.findings {
        run.log(finding);
    }
    let table = loaded.table;
    run.log(format_args!(
        "{} symbols from {}",
        table.len(),
        loaded.source.display()
    ));
    if table.is_empty() {
        return skip("the program is stripped");
    }
    if run.environment.verbosity > 1 {
        for (index, symbol) in table.iter() {
            let binding = match symbol.binding {
                Binding::Local => 'l',
                Binding::Weak => 'w',
                _ => 'g',
            };
            let name = table.name(index);
            run.log(format_args!(
                " {:x}-{:x} {binding} {name}",
                symbol.start, symbol.end
            ));
        }
    }
    let has_symbol = |name: &&&str| {
        table
            .iter()
            .any(|(index, _)| table.raw_name(index) == **name)
    };
    match WORKLOAD_FUNCTIONS.iter().find(|name| !has_symbol(name)) {
        Some(missing) => failed(format!("no symbol {missing}")),
        None => Ok(()),
    }
}
