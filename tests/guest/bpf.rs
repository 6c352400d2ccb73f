//! Each of rperf's BPF programs is accepted by the guest's kernel, and counts.

use std::path::Path;

use super::text;

/// A name in `tests/guest/bpf_programs`, and what the output or the messages must contain.
const SHOWN: [(&str, &[&str]); 5] = [
    ("summary", &[" Summary of events:", " load (", "  execve "]),
    ("arguments", &["openat(dfd: CWD, filename: \"./cases\""]),
    ("contention", &["contended   total wait     max wait"]),
    ("owners", &["contended   total wait     max wait"]),
    ("latency", &["  load:", "  TOTAL:  "]),
];

/// What is said if the kernel cannot run the programs.
const WITHOUT: [&str; 3] = ["not in the kernel", "BPF", "hint:"];

/// What is wrong with the output of a program.
pub(super) fn faults(out: &Path) -> Vec<String> {
    let faults = SHOWN.iter().filter_map(|(name, shown)| {
        let printed = text(&out.join(format!("bpf.{name}")));
        let messages = text(&out.join(format!("bpf.{name}.messages")));
        let both = format!("{messages}{printed}");
        let is_well = both.ends_with("\n0\n")
            && shown.iter().all(|shown| both.contains(shown))
            && !WITHOUT.iter().any(|text| both.contains(text));
        (!is_well).then(|| format!("BPF program {name}:\n{both}"))
    });
    faults.collect()
}
