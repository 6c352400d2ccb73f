//! Checks that the guest's kernel accepts each of rperf's BPF programs, and that each program counts.

use std::path::Path;

use super::text;

/// A name in `tests/guest/bpf_programs`, and texts that the output or the messages must contain.
const SHOWN: [(&str, &[&str]); 10] = [
    ("summary", &[" Summary of events:", " load (", "  execve "]),
    ("arguments", &["openat(dfd: CWD, filename: \"./cases\""]),
    ("contention", &["contended   total wait     max wait"]),
    ("owners", &["contended   total wait     max wait"]),
    ("locks", &["record: Captured and wrote"]),
    ("latency", &["  load:", "  TOTAL:  "]),
    ("counters", &["      page-faults", " msec task-clock"]),
    (
        "filter",
        &[
            "\n0 of ",
            " samples did not match the filter of their event",
        ],
    ),
    ("waits", &["record: Captured and wrote"]),
    ("counted", &[" for 'BPF program(s) ", " msec task-clock"]),
];

/// Words of the messages that are printed if the kernel cannot run the programs, or they count nothing.
const FAILURES: [&str; 6] = [
    "not in the kernel",
    "cannot sum up",
    "BPF",
    "<not",
    "hint:",
    "not recorded",
];

/// Describes the programs whose output in the folder `out` is wrong.
pub(super) fn faults(out: &Path) -> Vec<String> {
    let faults = SHOWN.iter().filter_map(|(name, shown)| {
        let printed = text(&out.join(format!("bpf.{name}")));
        let messages = text(&out.join(format!("bpf.{name}.messages")));
        let both = format!("{messages}{printed}");
        let is_well = both.ends_with("\n0\n")
            && shown.iter().all(|shown| both.contains(shown))
            && !FAILURES.iter().any(|text| has_outside_title(&both, text));
        (!is_well).then(|| format!("BPF program {name}:\n{both}"))
    });
    faults.collect()
}

/// Whether a text is in lines other than titles of counts, which name the programs that are counted.
fn has_outside_title(output: &str, text: &str) -> bool {
    let mut lines = output.lines();
    lines.any(|line| !line.contains("Performance counter stats for ") && line.contains(text))
}
