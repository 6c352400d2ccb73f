//! `report --stdio` compared with perf's. Rows are compared as cells: rperf never truncates a cell. Call graphs
//! are compared as trees with equal siblings sorted: perf orders such siblings by memory address.

use std::cmp::Reverse;
use std::fmt::Write as _;
use std::thread;

use rperf_testkit::{Run, skip};

use super::compare::difference;
use super::recordings::{FinishedRecording, RECORDINGS, Recording};
use super::workloads::Workloads;
use super::{Tool, Tools, assert_alike};

/// Options of `report` for every recording that is not system-wide.
const REPORT: &[&[&str]] = &[&[], &["--no-children", "-n"], &["-g", "none"]];

/// Additional options for the recording whose name begins with [`THOROUGH`].
const MORE: &[&[&str]] = &[
    &["-g", "none", "--no-children"],
    &["-s", "comm"],
    &["-s", "dso"],
    &["-s", "sym"],
    &["-s", "pid"],
    &["-s", "cpu,dso,comm", "-n"],
    &["-s", "sym,dso", "--no-children"],
    &["-s", "socket,time", "--no-children", "-g", "none"],
    &[
        "-s",
        "time,dso",
        "--time-quantum",
        "20ms",
        "--ns",
        "--no-children",
        "-g",
        "none",
    ],
    &[
        "-F",
        "overhead,sym,symbol_size,weight",
        "--no-children",
        "-g",
        "none",
    ],
    &["--hierarchy", "-g", "none"],
    &["--hierarchy", "-n", "-s", "dso,comm", "-g", "none"],
    &["-g", "callee"],
    &["-g", "caller,2", "--no-children"],
    &["-g", "0"],
    &["-g", "fractal,2"],
    &["-g", "fractal,0,3,count", "--no-children"],
    &["-g", "flat,1"],
    &["-g", "folded,0,period", "--no-children"],
    &["-g", "period,1", "-G", "--no-children"],
    &["-q"],
    &[
        "--show-total-period",
        "--show-cpu-utilization",
        "-g",
        "none",
    ],
    &["-F", "comm,overhead,sym", "--no-children"],
    &["-F", "+period", "-s", "dso", "-g", "none"],
    &["-F", "overhead,sample", "-s", "comm,dso", "-g", "none"],
    &["-s", "+cpu", "-g", "none"],
    &["-s", "comm,sample,overhead_us", "-g", "none"],
    &["-w", "0,12,0,6", "-n", "--no-children", "-g", "none"],
    &["--comms", "frames", "-n"],
    &[
        "--comms",
        "frames",
        "--percentage",
        "relative",
        "-g",
        "none",
    ],
    &["--dsos", "frames,libc.so.6", "--no-children"],
    &["-S", "leaf,msort_with_tmp.part.0", "--no-children"],
    &["--comms", "frames", "--dsos", "frames", "--no-children"],
    &["--percent-limit", "5"],
    &["--percent-limit", "5", "-g", "20,caller"],
    &["--time", "10%-80%", "-g", "none"],
    &["--max-stack", "2"],
    &["--stats"],
    &["--max-stack", "3", "--no-children"],
    &["-U"],
    &["--symbol-filter", "mem"],
    &["-s", "parent", "-g", "none"],
    &["-s", "parent,sym", "-p", "^(main|middle|leaf)", "-n"],
    &["-p", "sort|middle", "-x", "--no-children", "-g", "caller"],
    &[
        "-p",
        "^l.*f$",
        "-s",
        "comm",
        "-x",
        "--percentage",
        "relative",
        "-g",
        "none",
    ],
    &["--ignore-callees", "middle|sort", "--no-children"],
    &[
        "--ignore-callees",
        "^main$",
        "--no-children",
        "-s",
        "dso,sym",
    ],
    &["-g", "folded,1,caller,count"],
    &["-g", "flat,2,4,callee,percent", "--no-children"],
    &["-g", "fractal,caller", "--comms", "frames", "--no-children"],
    &["-G", "-g", "flat"],
    &["--percent-limit", "3", "-g", "fractal"],
    &[
        "--percentage",
        "relative",
        "--dsos",
        "frames",
        "-g",
        "fractal,0,period",
        "--no-children",
    ],
    &[
        "--percentage",
        "relative",
        "-S",
        "leaf",
        "--no-children",
        "-g",
        "caller",
    ],
    &["--hierarchy", "-s", "dso,sym", "-g", "caller,1"],
    &["--hierarchy", "-s", "dso,sym", "-g", "fractal"],
    &["--no-group", "-g", "none"],
    &["--group", "-n", "-g", "none"],
    &["--header-only"],
    &["--header-only", "-I"],
];

/// Options that print lists, compared exactly, for the recording whose name begins with [`THOROUGH`].
const LISTS: &[&[&str]] = &[&["--tasks"], &["--mmaps"]];

/// The beginning of the name of the recording that is compared with most options.
const THOROUGH: &str = "frames, with";

/// Additional options for the recordings whose names begin with one of [`SEVERAL`].
const MORE_EVENTS: &[&[&str]] = &[
    &["-s", "cpu,dso,comm", "-n"],
    &["-s", "sym,dso", "--no-children"],
    &["-g", "caller,2", "--no-children"],
    &[
        "--show-total-period",
        "--show-cpu-utilization",
        "-g",
        "none",
    ],
    &["-w", "0,12,0,6", "-n", "--no-children", "-g", "none"],
    &["--no-group", "-g", "none"],
    &["--group", "-n", "-g", "none"],
];

/// Beginnings of the names of recordings with several events and callchains.
const SEVERAL: &[&str] = &["several events with", "a group"];

/// The only options for system-wide recordings, apart from those with `--pid` ([`STEADY`]). Others would show differences:
/// programs that are not ours have many overlapping symbols and broken callchains, perf loses the mappings of programs that start
/// while perf starts, and one additional row moves all later ones.
const SYSTEM_WIDE: &[&[&str]] = &[
    &["-g", "none", "-s", "comm,pid", "--no-children", "-n"],
    &["-g", "none", "-s", "cpu,comm,pid"],
];

/// Options for system-wide recordings, used together with `--pid` of a process that ran throughout. All sort by pid: perf filters
/// a row of several processes by the process of its first sample.
const STEADY: &[&[&str]] = &[
    &["-g", "none", "-s", "pid,dso"],
    &["-g", "none", "-s", "pid,comm,dso", "--no-children", "-n"],
];

#[test]
fn report_prints_the_same_rows_and_graphs() {
    let Some(tools) = Tools::find() else {
        return skip("report_prints_the_same_rows_and_graphs", "there is no perf");
    };
    let workloads = Workloads::build(tools.path());
    let mut differences = Vec::new();
    for recording in RECORDINGS {
        let compare = |finished: &FinishedRecording| {
            let file = finished.file.as_str();
            let lines = lines_for(recording).into_iter();
            let mut mismatches: Vec<String> = lines
                .filter_map(|words| compare_report(&tools, file, words))
                .collect();
            if let Some(pid) = finished.steady.filter(|_| recording.is_system_wide()) {
                let chosen = ["--pid", &pid.to_string()];
                let lines = STEADY.iter().map(|words| [words, &chosen[..]].concat());
                mismatches.extend(lines.filter_map(|words| compare_report(&tools, file, &words)));
            }
            if recording.name.starts_with(THOROUGH) {
                let lists = LISTS.iter();
                mismatches.extend(lists.filter_map(|words| compare_list(&tools, file, words)));
            }
            mismatches
        };
        let mismatches =
            recording.differences_with_process(&tools, &workloads, Tool::Perf, compare);
        differences.extend(mismatches);
    }
    workloads.clean_up();
    assert_alike(&differences);
}

/// The options for a recording, except [`STEADY`] and [`LISTS`].
fn lines_for(recording: &Recording) -> Vec<&'static [&'static str]> {
    if recording.is_system_wide() {
        return SYSTEM_WIDE.to_vec();
    }
    let begins = |start: &&str| recording.name.starts_with(start);
    let more = match SEVERAL.iter().any(begins) {
        true => MORE_EVENTS,
        false if begins(&THOROUGH) => MORE,
        false => &[],
    };
    REPORT.iter().chain(more).copied().collect()
}

fn compare_list(tools: &Tools, file: &str, words: &[&str]) -> Option<String> {
    let line = [&["report", "-i", file], words].concat();
    let [perf, rperf] = tools.outcomes(&line, b"");
    assert_eq!((perf.status, rperf.status), (0, 0), "{line:?}: {rperf:?}");
    let mismatch = difference(&perf.stdout, &rperf.stdout)?;
    Some(format!("{}\n{mismatch}", line.join(" ")))
}

pub(super) fn compare_report(tools: &Tools, file: &str, words: &[&str]) -> Option<String> {
    let line = [&["report", "--stdio", "-i", file], words].concat();
    let unprepared = |run: Run| run;
    compare_runs(tools, &line, unprepared)
}

/// Compares the reports of one command line, which both tools run at the same time. `prepare` adds to each run what the line does
/// not say, such as its input.
pub(super) fn compare_runs(
    tools: &Tools,
    line: &[&str],
    prepare: impl Fn(Run) -> Run + Sync,
) -> Option<String> {
    let outcome = |tool| prepare(tools.run(tool, line)).finish();
    let (perf, rperf) = thread::scope(|scope| {
        let perf = scope.spawn(|| outcome(Tool::Perf));
        let rperf = outcome(Tool::Rperf);
        (perf.join().expect("perf ran"), rperf)
    });
    let (perf, rperf) = (perf.expect("perf starts"), rperf.expect("rperf starts"));
    let command = line.join(" ");
    assert_eq!(perf.status, 0, "perf {command}: {}", perf.stderr);
    if rperf.status != 0 {
        return Some(format!(
            "{command}\n  status {}: {}",
            rperf.status, rperf.stderr
        ));
    }
    assert!(!perf.stdout.is_empty(), "{command} prints nothing");
    let mismatch = compare_texts(&perf.stdout, &rperf.stdout)?;
    Some(format!("{command}\n{mismatch}"))
}

/// Returns the first unintended differences of two reports; `None` if there are none.
pub(crate) fn compare_texts(perf: &str, rperf: &str) -> Option<String> {
    let ours = normalized(rperf, &[]);
    let theirs = normalized(perf, &ours.lines().collect::<Vec<_>>());
    difference(&theirs, &ours)
}

/// The line for the remaining callees or callers of a frame. perf appends ` (inlined)` depending on uninitialised
/// memory.
const REST: &str = "-[...]";

/// Returns a report without intended differences. For perf's report, `full_lines` are the lines of rperf's normalised one: they
/// complete the cells that perf truncated.
fn normalized(text: &str, full_lines: &[&str]) -> String {
    let mut lines = Vec::new();
    let mut graph: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim_end) {
        // Only the lines of call graphs are indented this far.
        if line.starts_with("            ") {
            let plain = line.strip_suffix(" (inlined)");
            graph.push(plain.filter(|plain| plain.ends_with(REST)).unwrap_or(line));
            continue;
        }
        for branch in tree(&std::mem::take(&mut graph)) {
            lines.extend(branch.lines().map(str::to_owned));
        }
        // The dotted lines below the titles are as wide as their columns; only perf prints a tip at the end.
        if line.starts_with("# .")
            || line.starts_with("# (Tip")
            || line.starts_with("# (Cannot load tips")
            || line == "#"
            || line.is_empty()
        {
            continue;
        }
        let cells = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        let full_line = full_lines.get(lines.len()).copied().unwrap_or_default();
        let cells: Vec<&str> = cells.map(|cell| untruncated(cell, full_line)).collect();
        lines.push(cells.join("  "));
    }
    sort_equals(&mut lines);
    lines.join("\n")
}

/// Sorts adjacent rows of equal weight whose functions have no symbol: perf's order depends on the shape of its rb-tree of rows.
fn sort_equals(lines: &mut [String]) {
    let weight = |line: &String| {
        let unnamed = line.contains("] 0x");
        unnamed.then(|| line.split("  ").next().unwrap_or_default().to_owned())
    };
    for rows in
        lines.chunk_by_mut(|one, next| weight(one).is_some_and(|own| weight(next) == Some(own)))
    {
        rows.sort();
    }
}

/// Returns the cell of `full_line` that begins with `cell`; `cell` itself if there is none. perf truncates cells to the width of
/// those that it saw first, at least 7 characters.
fn untruncated<'a>(cell: &'a str, full_line: &'a str) -> &'a str {
    if cell.len() < 7 {
        return cell;
    }
    let mut full_cells = full_line.split("  ");
    full_cells
        .find(|full| full.starts_with(cell))
        .unwrap_or(cell)
}

/// A branch of a printed graph.
struct Branch {
    column: usize,
    /// Its percentage or count as printed; empty if there is none.
    share: String,
    frames: Vec<String>,
    branches: Vec<Branch>,
}

/// Returns the branches of a printed graph, each with its inner branches on further lines; equal siblings are sorted.
fn tree(lines: &[&str]) -> Vec<String> {
    let mut root = Branch {
        column: 0,
        share: String::new(),
        frames: Vec::new(),
        branches: Vec::new(),
    };
    for line in lines {
        let text = line.trim_start_matches([' ', '|']);
        let Some(marked) = text.strip_prefix("--") else {
            if !text.is_empty() {
                innermost(&mut root, usize::MAX)
                    .frames
                    .push(text.to_owned());
            }
            continue;
        };
        // `---` begins a stem, which has no percentage.
        let (share, frame) = match marked.strip_prefix('-') {
            Some(frame) => ("", frame),
            None => marked.split_once("--").unwrap_or(("", marked)),
        };
        let column = line.len() - text.len();
        innermost(&mut root, column).branches.push(Branch {
            column,
            share: share.to_owned(),
            frames: vec![frame.to_owned()],
            branches: Vec::new(),
        });
    }
    render(&root, 0)
}

/// Descends from `branch` to the inner branch that was added last, as long as that begins left of `column`, and returns the last
/// branch reached. The branches below the frames of a stem are thus inside the stem.
fn innermost(branch: &mut Branch, column: usize) -> &mut Branch {
    let deeper = |branch: &Branch| {
        branch
            .branches
            .last()
            .is_some_and(|inner| inner.column < column)
    };
    let mut at = branch;
    while deeper(at) {
        let end = at.branches.len() - 1;
        at = &mut at.branches[end];
    }
    at
}

/// Returns the branches inside `outer`, the one with the largest share first, equal ones in alphabetical order. Branches without
/// a share are stems, which count as 100 %.
fn render(outer: &Branch, depth: usize) -> Vec<String> {
    let rendered = outer.branches.iter().map(|branch| {
        let frames = branch.frames.join(";");
        let mut text = format!("{:depth$}{} {frames}", "", branch.share);
        for line in render(branch, depth + 1) {
            let _ = write!(text, "\n{line}");
        }
        let digits = branch.share.trim_end_matches('%');
        let share = digits.parse().unwrap_or(100.0_f64);
        (Reverse((share * 100.0) as u64), text)
    });
    let mut rendered: Vec<(Reverse<u64>, String)> = rendered.collect();
    rendered.sort();
    rendered.into_iter().map(|(_, text)| text).collect()
}
