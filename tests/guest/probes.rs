//! Probes of the kernel: what `probe.sh` left.

use std::path::Path;

use super::text;
use crate::differential::difference;

/// What `types` must tell, in this order.
const TOLD: &[&str] = &[
    // By the kernel's own types.
    "\t@<do_sys_openat2+0>\n",
    "\t\tint\tdfd\n",
    "\t\tstruct open_how*\thow\n",
    "Added new events:\n",
    "(on do_sys_openat2 with dfd filename:ustring flags=how->flags:x64)",
    // What cat opens, with the functions it is called by.
    "probe:opened",
    "dfd=-100 filename_ustring=\"/payload/definitions\" flags=0x",
    "do_sys_openat2",
    "entry_SYSCALL_64",
    "probe:named",
    "name=\"definitions\"",
    // ENOENT.
    "filename_ustring=\"/payload/nosuch\"",
    "arg1=-2",
    "probe:opened",
    "Removed event: probe:ended__return\nRemoved event: probe:named\nRemoved event: probe:opened\n",
    // For one run, and gone after it.
    "Added new event for this run:\n  probe:do_sys_openat2 (on do_sys_openat2 with filename:ustring)\n",
    "filename_ustring=\"/payload/definitions\"",
    "probe:do_sys_openat2__return: ",
    "\"probe:*\" does not hit any event.",
    "the kernel refused the event: ",
    "hint: exc_int3 is one of the functions that the kernel does not let be probed",
    "hint: block:block_rq_complete is a tracepoint of this name",
];

/// What is wrong with the texts that both tools wrote, and with what rperf makes of types.
pub(super) fn faults(out: &Path) -> Vec<String> {
    let read = |name: &str| text(&out.join(name));
    let mut found = Vec::new();
    for name in ["definitions", "life", "kept"] {
        let theirs = read(&format!("{name}.perf"));
        // Each names itself.
        let ours = read(&format!("{name}.rperf")).replace("\trperf record", "\tperf record");
        let difference = difference(&theirs, &ours);
        found.extend(difference.map(|found| format!("probe: {name}\n{found}")));
        if theirs.is_empty() {
            found.push(format!("probe: {name} is empty"));
        }
    }
    let types = read("types");
    let mut rest = types.as_str();
    for part in TOLD {
        match rest.split_once(part) {
            Some((_, behind)) => rest = behind,
            None => {
                found.push(format!("probe: {part:?} is missing in\n{types}"));
                break;
            }
        }
    }
    found
}
