//! `rperf kallsyms`: addresses of functions of the running kernel.

use std::collections::BTreeMap;
use std::fs;

use rperf_testkit::skip;

use super::assert_refused;
use crate::tools::{Tool, Tools};

/// Compares about 100 symbols of any type, without those of modules. perf must find most of them; the limits are rough, since the
/// symbols depend on the kernel.
#[test]
fn kernel_functions_match_perf() {
    const TEST: &str = "kernel_functions_match_perf";
    let Some(tools) = Tools::find_for(TEST) else {
        return;
    };
    let listing = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let name_and_hidden = |line: &str| -> Option<(String, bool)> {
        let [address, _, name] = line.split(' ').collect::<Vec<_>>()[..] else {
            return None;
        };
        let hidden = address.bytes().all(|digit| digit == b'0');
        Some((name.to_owned(), hidden))
    };
    let lines: Vec<(String, bool)> = listing.lines().filter_map(name_and_hidden).collect();
    if lines.iter().all(|(_, hidden)| *hidden) {
        return skip(TEST, "the addresses of the kernel are hidden");
    }
    let mut count: BTreeMap<&str, u32> = BTreeMap::new();
    for (name, _) in &lines {
        *count.entry(name).or_default() += 1;
    }
    // If a name is not unique, perf prints an arbitrary function. Functions of modules (`NAME\t[MODULE]`) are removed below.
    let unique = count.into_iter().filter(|(_, count)| *count == 1);
    let unique: Vec<&str> = unique.map(|(name, _)| name).collect();
    let step = unique.len() / 100 + 1;
    let mut line = vec!["kallsyms"];
    line.extend(
        unique
            .into_iter()
            .step_by(step)
            .filter(|name| !name.contains('\t')),
    );
    line.extend(["schedule", "nosuchfunction"]);
    let perf = tools.outcome(Tool::Perf, &line);
    let rperf = tools.outcome(Tool::Rperf, &line);
    // perf does not find symbols of the init section, which are outside of the addresses that it takes for the kernel's, nor
    // those of types other than T, W, D and B.
    let pairs = perf.stdout.lines().zip(rperf.stdout.lines());
    let (mut same, mut unknown) = (0, 0);
    for (perf, rperf) in pairs {
        match perf.ends_with(": not found") {
            true => unknown += 1,
            false => {
                assert_eq!(rperf, perf);
                same += 1;
            }
        }
    }
    assert!(same > 50 && unknown < same, "{same} and {unknown}");
    assert!(
        rperf
            .stdout
            .contains("\nschedule: [kernel] [kernel.kallsyms] 0x")
    );
    assert!(rperf.stdout.ends_with("\nnosuchfunction: not found\n"));
    // perf exits with 0 even if a function is not found.
    assert_eq!((perf.status, rperf.status), (0, 1));
    let two = tools.outcome(Tool::Rperf, &["kallsyms", "schedule,vfs_read"]);
    assert_eq!((two.status, two.stdout.lines().count()), (0, 2));
}

#[test]
fn a_name_is_needed() {
    let stderr =
        "rperf kallsyms: no function given\nhint: 'rperf kallsyms schedule' looks up a function\n";
    assert_refused(&["kallsyms"], 129, stderr);
    assert_refused(&["kallsyms", ","], 129, stderr);
}
