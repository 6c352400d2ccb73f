//! Recordings made by perf in guests (tests/guest), with data that few test machines can record: hardware counters, groups,
//! branch stacks, memory accesses, AUX data, kprobes, arm64 registers.

use std::fs;
use std::path::{Path, PathBuf};

use rperf_testkit::skip;

use super::{Tool, Tools, assert_alike, compare_texts, difference};
use crate::tidy::root;
use crate::tools::without_zero_config;

/// Commands whose text is compared exactly.
const EXACT: &[&[&str]] = &[
    &["script"],
    &["script", "-F", "+addr,+period"],
    &["evlist"],
    &["evlist", "-v"],
    &["report", "--header-only"],
];

/// Reports, whose rows are compared.
const REPORTS: &[&[&str]] = &[
    &["report", "--stdio", "--no-children", "-g", "none"],
    &["report", "--stdio", "-s", "comm,dso"],
];

/// Reports of data that only some recordings have, by file. The symbol is selected by `-s sym`: for `-s symbol`, perf adds IPC
/// columns.
const SPECIAL: &[(&str, &[&str])] = &[
    (
        "x86_64/branches",
        &[
            "-F",
            "overhead,dso_from,dso_to,in_tx,abort,srcline_from,addr_from,addr_to",
        ],
    ),
    ("x86_64/branches", &["-s", "mispredict"]),
    (
        "x86_64/branches",
        &["-F", "overhead,symbol_to,mispredict,cycles,comm"],
    ),
    ("x86_64/branches", &["--no-branch-stack"]),
    (
        "x86_64/branches",
        &["--branch-history", "-s", "srcline,sym"],
    ),
    (
        "x86_64/branches",
        &["--branch-history", "--no-children", "-s", "sym"],
    ),
    (
        "x86_64/branches",
        &["--branch-history", "-g", "callee,0", "-s", "comm"],
    ),
    (
        "x86_64/branches",
        &[
            "--branch-history",
            "--max-stack",
            "3",
            "-g",
            "flat,count",
            "-s",
            "comm",
        ],
    ),
    (
        "x86_64/branches-flags",
        &["-b", "-s", "dso_from,cycles,sym"],
    ),
    ("x86_64/memory", &["--mem-mode"]),
    (
        "x86_64/memory",
        &[
            "--mem-mode",
            "-F",
            "overhead,dcacheline,phys_daddr,data_page_size,symbol_iaddr",
        ],
    ),
    (
        "x86_64/memory",
        &["-s", "local_weight,weight,local_ins_lat,ins_lat,dso"],
    ),
    ("x86_64/stores", &["--mem-mode"]),
    (
        "x86_64/stores",
        &["--mem-mode", "-s", "mem,tlb,snoop,locked,blocked"],
    ),
    (
        "x86_64/pages",
        &[
            "-F",
            "overhead,code_page_size,time,cgroup,cgroup_id,socket,weight,transaction,dso_size",
        ],
    ),
    (
        "x86_64/pages",
        &["--mem-mode", "-F", "overhead,data_page_size,dso_daddr"],
    ),
    ("x86_64/group", &["--hierarchy"]),
    ("x86_64/group", &["--hierarchy", "--group-sort-idx", "1"]),
    (
        "x86_64/group",
        &["--hierarchy", "-s", "dso,sym", "--percent-limit", "8"],
    ),
    ("x86_64/group", &["--group-sort-idx", "1", "-n"]),
    (
        "x86_64/cycles",
        &["--hierarchy", "-n", "--show-cpu-utilization"],
    ),
    (
        "x86_64/kprobe",
        &["-s", "time,cpu,socket", "--ns", "--time-quantum", "1us"],
    ),
];

/// Options that print lists or a dump instead of reports; compared exactly.
const LISTS: &[(&str, &[&str])] = &[
    ("x86_64/kprobe", &["--tasks"]),
    ("x86_64/kprobe", &["--mmaps"]),
    ("x86_64/pages", &["--mmaps"]),
    ("aarch64/group", &["--mmaps"]),
    // A dump of samples that count for two events.
    ("x86_64/leader", &["-D"]),
];

/// Exceptions by file and command, with the reason. `report --header-only` is compared nevertheless.
const EXCEPT: &[(&str, &str, &str)] = &[
    (
        "x86_64/bts",
        "report",
        "perf leaves out the last branch of each part of a trace",
    ),
    (
        "x86_64/bts",
        "script",
        "without --itrace perf shows only calls, which it cannot tell from other branches without their code",
    ),
    (
        "aarch64/dwarf",
        "script",
        "Debian's perf unwinds no other architecture",
    ),
    (
        "aarch64/dwarf",
        "report",
        "Debian's perf unwinds no other architecture",
    ),
    (
        "x86_64/dwarf",
        "script",
        "perf shows no frames of a program whose file is missing",
    ),
    (
        "x86_64/dwarf",
        "report",
        "perf shows no frames of a program whose file is missing",
    ),
    (
        "aarch64/group",
        "report",
        "perf shows no group whose leader has no samples",
    ),
];

/// The fixtures of both machines. They include a recording directory, and files of trace-cmd: both tools refuse these files.
fn fixtures() -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for machine in ["x86_64", "aarch64"] {
        let folder = root().join("tests/fixtures").join(machine);
        let entries = fs::read_dir(&folder).expect("the folder of the fixtures");
        paths.extend(entries.map(|entry| entry.expect("a fixture").path()));
    }
    paths.sort();
    paths
}

/// Returns the difference between both tools' outputs or statuses; `None` if there is none, and for the exceptions in
/// [`EXCEPT`].
fn compare(tools: &Tools, recording: &Path, words: &[&str]) -> Option<String> {
    let machine = recording.parent()?.file_name()?.to_str()?;
    let name = format!("{machine}/{}", recording.file_stem()?.to_str()?);
    let excepted = EXCEPT
        .iter()
        .any(|except| (except.0, except.1) == (name.as_str(), words[0]));
    if excepted && !words.contains(&"--header-only") {
        return None;
    }
    let path = recording.to_str()?;
    let line = [words, &["-f", "-i", path]].concat();
    let perf = tools.outcome(Tool::Perf, &line);
    // Under the name perf, rperf prints this name in its hints, too.
    let rperf = tools.run(Tool::Rperf, &line).arg0("perf");
    let rperf = rperf.finish().expect("rperf starts");
    let text = if words.contains(&"--stdio") {
        let has_sort_keys = words.contains(&"-s");
        compare_texts(
            without_branch_statistics(&perf.stdout, has_sort_keys),
            without_branch_statistics(&rperf.stdout, has_sort_keys),
        )
    } else {
        // `evlist -v` of perf 6.1 omits `config: 0`.
        difference(&perf.stdout, &without_zero_config(&rperf.stdout))
    };
    let status = (perf.status != rperf.status).then(|| {
        format!(
            "  status {} of perf, {} of rperf: {}",
            perf.status, rperf.status, rperf.stderr
        )
    });
    let mismatch = status.or(text)?;
    Some(format!("{}\n{mismatch}", line.join(" ")))
}

/// The text, without the branch statistics if `omit`. They differ for reports with `-s`, in which branches of several types
/// may share a row: perf counts all branches of a row with the type of the first.
fn without_branch_statistics(text: &str, omit: bool) -> &str {
    let end = text.find("# Branch Statistics:").filter(|_| omit);
    end.map_or(text, |end| &text[..end])
}

#[test]
fn rare_features_are_read_as_in_perf() {
    let name = "differential::fixtures::rare_features_are_read_as_in_perf";
    let Some(tools) = Tools::find() else {
        return skip(name, "there is no perf");
    };
    let folder = root().join("tests/fixtures");
    let reports = SPECIAL
        .iter()
        .map(|case| (case, &["report", "--stdio"][..]));
    let lists = LISTS.iter().map(|case| (case, &["report"][..]));
    let mut differences = Vec::new();
    for ((file, words), start) in reports.chain(lists) {
        let recording = folder.join(format!("{file}.data"));
        differences.extend(compare(&tools, &recording, &[start, words].concat()));
    }
    assert_alike(&differences);
}

#[test]
fn traces_are_dumped_and_decoded_alike() {
    let name = "differential::fixtures::traces_are_dumped_and_decoded_alike";
    let Some(tools) = Tools::find() else {
        return skip(name, "there is no perf");
    };
    let recording = root().join("tests/fixtures/x86_64/bts.data");
    let path = recording.to_str().expect("a name in UTF-8");
    let outputs = |words: &[&str]| {
        let line = [words, &["-f", "-i", path]].concat();
        let perf = tools.outcome(Tool::Perf, &line).stdout;
        let rperf = tools.run(Tool::Rperf, &line).arg0("perf");
        (perf, rperf.finish().expect("rperf starts").stdout)
    };
    for command in ["script", "report"] {
        let (perf, rperf) = outputs(&[command, "-D"]);
        assert!(perf.contains("Intel BTS data: size "), "{perf}");
        assert_eq!(difference(&perf, &rperf), None, "{command} -D");
    }
    for words in [
        &["script", "--itrace=b"] as &[&str],
        &["script", "--itrace=b", "-F", "+flags"],
        &["script", "--itrace=b", "-F", "+addr"],
        &[
            "script",
            "--itrace=b",
            "-F",
            "comm,pid,tid,event,period,ip,addr,sym,dso",
        ],
        &["script", "--itrace=b", "-F", "comm,ip,event"],
        &["script", "--itrace=b", "-F", "addr,sym"],
    ] {
        let (perf, rperf) = outputs(words);
        let branches = perf.lines().count();
        assert!(branches > 50, "{perf}");
        // perf omits the last branch of each part of a trace; this trace is one part.
        let ours: Vec<&str> = rperf.lines().collect();
        assert_eq!(ours.len(), branches + 1, "{rperf}");
        let ours = ours[..branches].join("\n") + "\n";
        assert_eq!(difference(&perf, &ours), None, "{words:?}");
    }
    let line = ["script", "--itrace=bi", "-f", "-i", path];
    let refused = tools.outcome(Tool::Rperf, &line);
    let message = "--itrace: unknown letter 'i' in 'bi'";
    assert_eq!(
        (refused.status, refused.stderr.find(message)),
        (129, Some(0))
    );
    let (perf, rperf) = outputs(&["report", "--stats"]);
    assert_eq!(difference(&perf, &rperf), None);
    let (perf, rperf) = outputs(&["report", "--stdio", "-s", "comm", "-n"]);
    // Here, too, perf omits the last branch.
    for (text, branches) in [(&perf, 127), (&rperf, 128)] {
        let head = format!("# Samples: {branches}  of event 'branches:uH'");
        assert!(text.contains(&head), "{text}");
    }
}

#[test]
fn recordings_of_guests_read_alike() {
    let Some(tools) = Tools::find() else {
        return skip(
            "differential::fixtures::recordings_of_guests_read_alike",
            "there is no perf",
        );
    };
    let fixtures = fixtures();
    assert!(fixtures.len() >= 20, "{fixtures:?}");
    let mut differences = Vec::new();
    for fixture in &fixtures {
        for words in EXACT.iter().chain(REPORTS) {
            differences.extend(compare(&tools, fixture, words));
        }
    }
    assert_alike(&differences);
}
