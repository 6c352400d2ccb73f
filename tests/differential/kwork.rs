//! `kwork`: the same text as perf 6.1 on recordings of several workloads.
//!
//! perf 6.1 pairs a raise or an entry that lacks its counterpart with an unrelated later event, and pairs the events of a work
//! item only if they are on one CPU (docs/compatibility.md). Before both tools read a recording, the test hides events without a
//! counterpart on their CPU: it replaces their id by that of `sched:sched_process_wait`, which both ignore.

mod unpaired;

use std::fs;

use rperf_testkit::{may_trace, skip};

use self::unpaired::without_unpaired;
use super::{Tool, Tools, assert_alike};

/// The events of `kwork record` of perf 6.1, and one that `kwork` ignores, whose id hidden events get.
const EVENTS: &str = "irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_raise,irq:softirq_entry,irq:softirq_exit,\
    workqueue:workqueue_activate_work,workqueue:workqueue_execute_start,workqueue:workqueue_execute_end,\
    sched:sched_process_wait";

/// Name and command of each recording.
const RECORDINGS: &[(&str, &str)] = &[
    ("idle", "sleep 0.2"),
    (
        "timers",
        "for i in 1 2 3 4; do (for j in 1 2 3; do sleep 0.005; done) & done; wait",
    ),
    (
        "disk",
        "dd if=/dev/zero of=written bs=64k count=20 conv=fsync 2> /dev/null; sync",
    ),
    (
        "processes",
        "for i in 1 2 3 4 5 6; do ls -l /proc/self > /dev/null & done; wait; perf version > /dev/null",
    ),
    (
        "messages",
        "perf bench sched messaging -g 1 -l 10 > /dev/null",
    ),
];

/// Command lines whose text is compared; the first word is the subcommand.
const LINES: &[&[&str]] = &[
    &["report"],
    &["report", "-S"],
    &["report", "-s", "max,count"],
    &["report", "-s", "count"],
    &["report", "-C", "0", "-S"],
    &["report", "-n", "RCU", "-S"],
    &["report", "--time", ",1", "-S"],
    &["latency"],
    &["latency", "-s", "max"],
    &["latency", "-s", "count,avg"],
    &["latency", "-C", "1"],
    &["latency", "-n", "TIMER"],
    &["timehist"],
    &["timehist", "-C", "0", "-n", "RCU"],
];

/// Number of bytes at the start of a function's name that are compared: perf 6.1 overwrites a byte of some names, at about the
/// 20th place.
const COMPARED_BYTES: usize = 18;
/// The width of the column of names, which begins with `(w)` for functions of work items.
const COLUMN: usize = 30;

/// Removes the parts of a text that perf prints wrongly: ends of functions' names, and the load average, of which perf prints a
/// hundredth.
fn comparable(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        match line.find("(w)") {
            Some(place) => {
                let end = (place + COLUMN).min(line.len());
                lines += &line[..(place + 3 + COMPARED_BYTES).min(end)];
                lines += &line[end..];
            }
            None => {
                let (runtime, rest) = line.split_once(" (").unwrap_or((line, ""));
                let is_total = rest.ends_with("load average)");
                lines += if is_total { runtime } else { line };
            }
        }
        lines.push('\n');
    }
    lines
}

#[test]
fn work_is_shown_alike() {
    const NAME: &str = "work_is_shown_alike";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let mut differences = Vec::new();
    for (name, command) in RECORDINGS {
        let fixed = ["-a", "-R", "-m", "1024", "-c", "1", "-e", EVENTS];
        let words = [&fixed[..], &["--", "sh", "-c", command]].concat();
        let Some(file) = tools.record(Tool::Rperf, name, &words) else {
            continue;
        };
        let path = tools.path().join(&file);
        let recording = fs::read(&path).expect("the recording");
        let Some(recording) = without_unpaired(recording) else {
            return skip(NAME, "the ids of the tracepoints cannot be read");
        };
        fs::write(&path, recording).expect("the recording is written");
        for line in LINES {
            let words = [&["kwork", line[0], "-i", &file], &line[1..]].concat();
            let [perf, rperf] = tools.outcomes(&words, b"");
            let [theirs, ours] = [&perf.stdout, &rperf.stdout].map(|text| comparable(text));
            if let Some(difference) = rperf_testkit::golden::difference(&theirs, &ours) {
                differences.push(format!("{name}: {words:?}: {difference}\n{}", rperf.stderr));
            }
            assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}: {rperf:?}");
        }
    }
    assert_alike(&differences);
}
