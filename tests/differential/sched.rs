//! `sched`: the same text as perf 6.1 on recordings of several workloads.
//!
//! perf 6.1 ignores `sched_waking` in `sched latency`, and does not know the state of preempted tasks. So `sched_wakeup` is
//! recorded, and the state `R+` is replaced by `R` in the file (docs/compatibility.md).

use std::fs;

use rperf_testkit::{may_trace, skip};

use super::{Tool, Tools, assert_alike};

/// The recorded events.
const EVENTS: &str = "sched:sched_switch,sched:sched_stat_runtime,sched:sched_process_fork,sched:sched_wakeup_new,\
    sched:sched_migrate_task,sched:sched_wakeup";

/// Name, additional options, and shell command of each recording.
const RECORDINGS: &[(&str, &[&str], &str)] = &[
    ("idle", &[], "sleep 0.1"),
    (
        "timers",
        &[],
        "for i in 1 2 3 4; do (for j in 1 2 3; do sleep 0.005; done) & done; wait",
    ),
    (
        "pipes",
        &["-g", "--kernel-callchains"],
        "yes | head -c 3000000 | tr y n | wc -c > /dev/null",
    ),
    (
        "processes",
        &[],
        "for i in 1 2 3 4 5 6; do ls -l /proc/self > /dev/null & done; wait; perf version > /dev/null",
    ),
    (
        "messages",
        &[],
        "perf bench sched messaging -g 1 -l 10 > /dev/null",
    ),
    (
        "build",
        &[],
        "for i in 1 2; do echo 'int main() { return 0; }' | c++ -x c++ -O1 -o built$i - & done; wait",
    ),
    ("database", &[], DATABASE),
];

/// Transactions that are written to the disk, by SQLite, or by dd if Python or its SQLite module is missing.
const DATABASE: &str = "python3 -c '
import sqlite3
base = sqlite3.connect(\"base\")
base.execute(\"create table t (a)\")
for i in range(10):
    base.execute(\"insert into t values (?)\", (i,))
    base.commit()
' 2> /dev/null || dd if=/dev/zero of=base bs=4k count=10 oflag=dsync 2> /dev/null";

/// Subcommands and options with which both tools print the same.
const LINES: &[&[&str]] = &[
    &["latency"],
    &["latency", "-p"],
    &["latency", "-s", "max"],
    &["latency", "-p", "-s", "runtime,switch"],
    &["latency", "-s", "switch,avg"],
    &["map"],
    &["map", "--compact"],
    &["map", "-v"],
    &["timehist", "-S"],
    &["timehist", "-MVw"],
    &["timehist", "-n", "-M"],
    &["timehist", "-s"],
    &["timehist", "-s", "--state"],
    &["timehist", "-C", "0", "-S"],
    &["timehist", "--max-stack", "2", "-w"],
    &["timehist", "--no-call-graph", "-t", "1,2,14,15,16,18", "-S"],
    &["timehist", "--time", ",1"],
    &["script", "-F", "comm,tid,cpu,time,event,trace"],
];

/// The texts of rperf and of perf for the idle time of a CPU without switches from the idle task.
const UNKNOWN_IDLE: [&str; 2] = [
    "idle time unknown: no switch from the idle task was recorded",
    "idle entire time window",
];

/// The bit of a preempted task in `prev_state`.
const PREEMPTED: u64 = 0x100;

/// Replaces the state `R+` by `R` in all samples of `sched_switch`.
fn without_preemption(file: &mut [u8], switch_id: u16) {
    // The raw data of a sample begin at `at`, after their size (4 bytes), which is at a multiple of 8. They have 64 bytes of
    // fields and 4 of padding. The first field is the id of the tracepoint; `prev_state` is at byte 32.
    for at in (4..file.len().saturating_sub(68)).step_by(8) {
        let bytes = |from: usize, length: usize| &file[at + from..at + from + length];
        let has_size = file[at - 4..at] == 68_u32.to_le_bytes();
        if has_size
            && bytes(0, 2) == switch_id.to_le_bytes()
            && bytes(32, 8) == PREEMPTED.to_le_bytes()
        {
            file[at + 32..at + 40].fill(0);
        }
    }
}

#[test]
fn scheduling_is_shown_alike() {
    const NAME: &str = "scheduling_is_shown_alike";
    let (Some(tools), true) = (Tools::find_for(NAME), may_trace(NAME)) else {
        return;
    };
    let id = fs::read_to_string("/sys/kernel/tracing/events/sched/sched_switch/id");
    let Ok(id) = id.unwrap_or_default().trim().parse() else {
        return skip(NAME, "the id of sched_switch cannot be read");
    };
    let mut differences = Vec::new();
    for (name, options, command) in RECORDINGS {
        let fixed = ["-a", "-R", "-m", "1024", "-c", "1", "-e", EVENTS];
        let workload = ["--", "sh", "-c", command];
        let words = [&fixed[..], options, &workload].concat();
        let Some(file) = tools.record(Tool::Rperf, name, &words) else {
            continue;
        };
        let path = tools.path().join(&file);
        let mut bytes = fs::read(&path).expect("the recording");
        without_preemption(&mut bytes, id);
        fs::write(&path, bytes).expect("the recording is written");
        for line in LINES {
            let words = [&["sched", "-i", &file], *line].concat();
            let [perf, rperf] = tools.outcomes(&words, b"");
            let [ours, theirs] = UNKNOWN_IDLE;
            let text = rperf.stdout.replace(ours, theirs);
            if let Some(difference) = rperf_testkit::golden::difference(&perf.stdout, &text) {
                differences.push(format!("{name}: {words:?}: {difference}\n{}", rperf.stderr));
            }
            assert_eq!((perf.status, rperf.status), (0, 0), "{words:?}: {rperf:?}");
        }
        differences.extend(differences_of_json(&tools, &file));
        differences.extend(differences_of_replay(&tools, &file));
    }
    assert_alike(&differences);
}

/// Compares the rows of rperf's `latency --json`, and the sums of their run times and waits, with the text of perf.
fn differences_of_json(tools: &Tools, file: &str) -> Vec<String> {
    let perf = tools.outcome(Tool::Perf, &["sched", "-i", file, "latency", "-p"]);
    let words = ["sched", "-i", file, "latency", "-p", "--json"];
    let printed = tools.outcome(Tool::Rperf, &words).stdout;
    let json: serde_json::Value = serde_json::from_str(&printed).expect("JSON");
    let number = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a number");
    let millis = |nanos: u64| format!("{:.3}", nanos as f64 / 1e6);
    let (mut rows, mut runtime, mut waits) = (Vec::new(), 0, 0);
    for row in json["rows"].as_array().expect("rows") {
        runtime += number(row, "runtime_ns");
        waits += number(row, "waits");
        let name = format!("{}:{}", row["comm"].as_str().expect("a name"), row["tid"]);
        let times = ["runtime_ns", "mean_delay_ns", "max_delay_ns"];
        let [runtime, mean, max] = times.map(|key| millis(number(row, key)));
        rows.push(format!("{name} {runtime} {} {mean} {max}", row["waits"]));
    }
    rows.push(format!("TOTAL: {} {waits}", millis(runtime)));
    let table = perf.stdout.lines().filter(|line| line.contains(" ms |"));
    let expected = table.map(|line| {
        // Some cells begin with `avg:` or `max:`.
        let cells = line.split('|').take(5);
        let cells = cells.map(|cell| {
            let cell = cell
                .trim()
                .trim_start_matches(['a', 'v', 'g', 'm', 'x', ':']);
            cell.trim_end_matches(" ms").trim().to_owned()
        });
        let cells: Vec<String> = cells.filter(|cell| !cell.is_empty()).collect();
        cells.join(" ")
    });
    let mut expected: Vec<String> = expected.collect();
    // If the name of a task begins with letters of `avg:` and `max:`, they were removed from perf's cell, too.
    let without_letters = |row: &String| {
        let row = row.trim_start_matches(['a', 'v', 'g', 'm', 'x', ':']);
        row.to_owned()
    };
    let mut rows: Vec<String> = rows.iter().map(without_letters).collect();
    expected.sort();
    rows.sort();
    match rows == expected {
        true => Vec::new(),
        false => vec![format!("{file}: JSON {rows:#?}\nperf {expected:#?}")],
    }
}

/// Compares the counts of events that `replay` prints; rperf prints them even with `-r 0`, which replays nothing. Returns `None`
/// if the counts are alike, or if perf 6.1 prints none: it fails if a task that has exited wakes another.
fn differences_of_replay(tools: &Tools, file: &str) -> Option<String> {
    let counts = |tool: Tool, repeat: &str| {
        let words = ["sched", "-i", file, "replay", "-r", repeat];
        let text = tools.outcome(tool, &words).stdout;
        ["nr_run_events:", "nr_wakeup_events:"].map(|name| {
            let mut lines = text.lines();
            let count = lines.find_map(|line| line.strip_prefix(name))?;
            count.trim().parse::<u64>().ok()
        })
    };
    let (perf, rperf) = (counts(Tool::Perf, "1"), counts(Tool::Rperf, "0"));
    let [Some(perf_runs), Some(perf_wakeups)] = perf else {
        return None;
    };
    let [rperf_runs, rperf_wakeups] = rperf.map(Option::unwrap_or_default);
    // perf leaves out a few wakeups: rperf may count up to 2 % more, plus one.
    let most_wakeups = perf_wakeups + perf_wakeups / 50 + 1;
    let is_alike =
        rperf_runs == perf_runs && (perf_wakeups..=most_wakeups).contains(&rperf_wakeups);
    (!is_alike).then(|| format!("{file}: replay: {perf:?} {rperf:?}"))
}
