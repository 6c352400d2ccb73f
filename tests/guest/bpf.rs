//! Checks that the guest's kernel accepts rperf's BPF programs, and that commands print what the programs recorded.

use std::path::Path;

use super::text;

/// For each command: its name, and texts that its output or its messages must contain. The name begins the command's line in
/// `tests/guest/bpf_programs`; only `counted` has no line there, its command is in `tests/guest/run.sh`.
const PROGRAMS: [(&str, &[&str]); 10] = [
    ("summary", &[" Summary of events:", " load (", "  execve "]),
    ("arguments", &["openat(dfd: CWD, filename: \"./cases\""]),
    ("contention", &["contended   total wait     max wait"]),
    ("owners", &["contended   total wait     max wait"]),
    ("locks", &["record: Captured and wrote"]),
    ("latency", &["  load:", "  TOTAL:  "]),
    ("counters", &["      page-faults", " msec task-clock"]),
    (
        "filter",
        // The filter of this command matches every sample: 0 samples did not match.
        &[
            "\n0 of ",
            " samples did not match the filter of their event",
        ],
    ),
    ("waits", &["record: Captured and wrote"]),
    ("counted", &[" for 'BPF program(s) ", " msec task-clock"]),
];

/// Words of the messages that are printed if the kernel cannot run the programs, or if the programs count nothing.
const FAILURES: [&str; 6] = [
    "not in the kernel",
    "cannot sum up",
    "BPF",
    "<not",
    "hint:",
    "not recorded",
];

/// Describes the commands with BPF programs whose output in the folder `out` is wrong.
pub(super) fn faults(out: &Path) -> Vec<String> {
    let faults = PROGRAMS.iter().filter_map(|(name, expected)| {
        let printed = text(&out.join(format!("bpf.{name}")));
        let messages = text(&out.join(format!("bpf.{name}.messages")));
        let both = format!("{messages}{printed}");
        // The output ends with the exit status.
        let is_correct = both.ends_with("\n0\n")
            && expected.iter().all(|text| both.contains(text))
            && !FAILURES.iter().any(|text| is_reported(&both, text));
        (!is_correct).then(|| format!("BPF programs of {name}:\n{both}"))
    });
    faults.collect()
}

/// Whether `text` is in a line that reports a failure. Titles of counts, which name the counted programs, and hints on
/// events that are throttled in a slow emulated machine are not failures.
fn is_reported(output: &str, text: &str) -> bool {
    let is_ignored = |line: &&str| {
        line.contains("Performance counter stats for ") || line.starts_with("hint: throttled ")
    };
    let mut lines = output.lines().filter(|line| !is_ignored(line));
    lines.any(|line| line.contains(text))
}
