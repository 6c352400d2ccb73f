//! `kmem`: the same text as perf 6.1 on recordings of both tools.
//!
//! perf 6.1 gives all pages one caller and has old names of migrate types (docs/compatibility.md): tables of pages are compared
//! without callers, and with the names of current kernels in perf's text.

use rperf_testkit::{may_trace, skip};

use super::{Tool, Tools, assert_alike};

/// Name and command of each recording.
const RECORDINGS: &[(&str, &str)] = &[
    ("processes", "for i in 1 2; do ls -l /usr > /dev/null; done"),
    (
        "files",
        "mkdir d; for j in 1 2; do (for i in 1 2 3 4 5 6 7 8; do : > d/$j$i; done) & done; wait; rm -r d",
    ),
    (
        "messages",
        "perf bench sched messaging -g 1 -l 2 > /dev/null",
    ),
];

/// Options of `kmem stat` with which both tools print the same about the slab allocator.
const SLAB: &[&[&str]] = &[
    &[],
    &["--slab", "--caller"],
    &["--alloc"],
    &["--caller", "--alloc", "-l", "5"],
    &["--caller", "-l", "3", "--alloc", "-l", "7"],
    &["--caller", "-s", "hit"],
    &["--caller", "-s", "callsite"],
    &["--alloc", "-s", "ptr"],
    &["--caller", "-s", "ptr"],
    &["--caller", "-s", "hit,ptr"],
    &["--alloc", "-s", "pingpong,bytes"],
    &["--caller", "--raw-ip", "-s", "frag"],
    &["--caller", "--time", ",99999999"],
];

/// Options of `kmem stat` with which both tools print the same about the page allocator, except callers and migrate types.
const PAGE: &[&[&str]] = &[
    &["--page"],
    &["--page", "--alloc"],
    &["--page", "--alloc", "-s", "page"],
    &["--page", "--alloc", "-s", "order,bytes", "-l", "9"],
    &["--page", "--alloc", "-s", "gfp,hit"],
    &["--page", "--live"],
];

/// Returns a text of perf with the names that migrate types have in current kernels.
fn renamed(text: &str) -> String {
    text.replace("|  RECLAIM |", "|  *       |")
        .replace("|  MOVABLE |", "|  RECLAIM |")
        .replace("|  *       |", "|  MOVABLE |")
        .replace(
            "Unmovable   Reclaimable       Movable      Reserved",
            "Unmovable       Movable   Reclaimable    HighAtomic",
        )
}

/// Returns the text without the last column of its tables, which is the caller in tables of pages.
fn without_callers(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let line = match line.rsplit_once(" | ") {
            Some((row, _)) => row,
            None => line,
        };
        lines += line;
        lines.push('\n');
    }
    lines
}

/// Compares the text of both tools with each of the lists of options in `cases`; `normalize` returns the comparable text of perf
/// and of rperf.
fn differences(
    tools: &Tools,
    file: &str,
    cases: &[&[&str]],
    normalize: impl Fn([&str; 2]) -> [String; 2],
) -> Vec<String> {
    let mut differences = Vec::new();
    for options in cases {
        let words = [&["kmem", "-i", file], *options, &["stat"]].concat();
        // perf sorts callers by an address that it does not set: with this variable, the C library fills new memory
        // with 0, the complement of 255.
        let outcome = |tool| {
            let run = tools.run(tool, &words).env("MALLOC_PERTURB_", "255");
            run.finish().expect("the tool starts")
        };
        let [perf, rperf] = [Tool::Perf, Tool::Rperf].map(outcome);
        let [theirs, ours] = normalize([&perf.stdout, &rperf.stdout]);
        if let Some(difference) = rperf_testkit::golden::difference(&theirs, &ours) {
            differences.push(format!("{file}: {words:?}: {difference}\n{}", rperf.stderr));
        }
        assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}: {rperf:?}");
    }
    differences
}

#[test]
fn allocations_are_shown_alike() {
    const NAME: &str = "allocations_are_shown_alike";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let mut all_differences = Vec::new();
    for (name, command) in RECORDINGS {
        for (tool, program) in [(Tool::Perf, "perf"), (Tool::Rperf, "rperf")] {
            for (allocator, cases) in [("--slab", SLAB), ("--page", PAGE)] {
                // Samples of the page allocator have callchains, which are slow to compare.
                if allocator == "--page" && *name != "processes" {
                    continue;
                }
                let file = format!("{name}-{program}{allocator}.data");
                let words = [
                    "kmem", allocator, "record", "-m", "4096", "-o", &file, "--", "sh", "-c",
                    command,
                ];
                let recorded = tools.outcome(tool, &words);
                if recorded.status != 0 {
                    skip(NAME, &recorded.stderr);
                    continue;
                }
                all_differences.extend(differences(&tools, &file, cases, |texts| {
                    match (allocator, texts) {
                        ("--slab", texts) => texts.map(str::to_owned),
                        (_, [perf, rperf]) => {
                            [renamed(&without_callers(perf)), without_callers(rperf)]
                        }
                    }
                }));
            }
        }
    }
    assert_alike(&all_differences);
}
