//! kprobes: the output of `probe.sh`.

use std::path::Path;

use super::text;
use crate::differential::difference;

/// Strings that the file `types`, the output of rperf only, must contain in this order.
const EXPECTED_IN_TYPES: &[&str] = &[
    // Types from BTF.
    "\t@<do_sys_openat2+0>\n",
    "\t\tint\tdfd\n",
    "\t\tstruct open_how*\thow\n",
    "Added new events:\n",
    "(on do_sys_openat2 with dfd filename:ustring flags=how->flags:x64)",
    // The file that cat opens, with a callchain.
    "probe:opened",
    "dfd=-100 filename_ustring=\"/payload/definitions\" flags=0x",
    "do_sys_openat2",
    "entry_SYSCALL_64",
    "probe:named",
    "name=\"definitions\"",
    // The file that does not exist: the open returns -2, ENOENT.
    "filename_ustring=\"/payload/nosuch\"",
    "arg1=-2",
    // The count of `stat`.
    "probe:opened",
    "Removed event: probe:ended__return\nRemoved event: probe:named\nRemoved event: probe:opened\n",
    // An event for one run, removed after it.
    "Added new event for this run:\n  probe:do_sys_openat2 (on do_sys_openat2 with filename:ustring)\n",
    "filename_ustring=\"/payload/definitions\"",
    "probe:do_sys_openat2__return: ",
    "\"probe:*\" does not hit any event.",
    "the kernel refused the event: ",
    "hint: exc_int3 is in the kernel's list of functions that cannot be probed",
    "hint: block:block_rq_complete is a tracepoint; ",
];

/// Returns the differences between the texts of both tools, the texts of perf that are empty, and the first of
/// [`EXPECTED_IN_TYPES`] that is missing.
pub(super) fn faults(out: &Path) -> Vec<String> {
    let read = |name: &str| text(&out.join(name));
    let mut faults = Vec::new();
    // The outputs for the definitions in `/payload/definitions`, for events from creation to removal, and for cached
    // definitions.
    for name in ["definitions", "life", "kept"] {
        let theirs = read(&format!("{name}.perf"));
        // Each tool prints its own name, and perf prints no hints.
        let ours = read(&format!("{name}.rperf")).replace("\trperf record", "\tperf record");
        let ours = ours
            .split_inclusive('\n')
            .filter(|line| !line.contains("hint: "));
        let ours: String = ours.collect();
        let difference = difference(&theirs, &ours);
        faults.extend(difference.map(|difference| format!("probe: {name}\n{difference}")));
        if theirs.is_empty() {
            faults.push(format!("probe: {name} is empty"));
        }
    }
    let types = read("types");
    let mut rest = types.as_str();
    for part in EXPECTED_IN_TYPES {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => {
                faults.push(format!("probe: {part:?} is missing in\n{types}"));
                break;
            }
        }
    }
    faults
}
