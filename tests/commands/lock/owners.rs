//! Recordings of programs with known waits: the owners of futexes, chains of waits, and deadlocks.

use std::path::Path;
use std::process::Command;

use rperf_testkit::{Scratch, may_trace, skip};
use serde_json::Value;

use super::{compile_with, recording, run};

/// Compiles a program of `tests/workloads` in the scratch directory; without a compiler, skips the test and returns `false`.
pub(super) fn compile(test: &str, scratch: &Scratch, name: &str) -> bool {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/workloads");
    let source = source.join(format!("{name}.c")).display().to_string();
    let options = [
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-pthread",
        "-o",
        name,
        &source,
    ];
    compile_with(test, scratch, &options)
}

/// Records with these options and command; `false` with a printed reason if the kernel does not run the BPF programs that find
/// owners.
fn record(test: &str, scratch: &Scratch, options: &str) -> bool {
    let outcome = run(
        scratch,
        &format!("lock record --user -o perf.data {options}"),
    );
    if outcome
        .stderr
        .contains("owners of futexes are not recorded")
    {
        skip(test, &outcome.stderr);
        return false;
    }
    assert!(scratch.path().join("perf.data").exists(), "{outcome:?}");
    true
}

/// Returns the JSON that a command prints; no records may be lost.
fn json(scratch: &Scratch, words: &str) -> Value {
    let outcome = run(scratch, words);
    assert_eq!(outcome.status, 0, "{words}: {outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(json["lost_records"], 0, "{json}");
    json
}

/// Returns the names of the owners that `lock COMMAND -o` shows, each with the number of waits for the locks that it held.
fn waits(scratch: &Scratch, command: &str) -> Vec<(String, u64)> {
    let json = json(scratch, &format!("lock {command} -o --json -i perf.data"));
    let rows = json["rows"].as_array().expect("rows").iter();
    rows.map(|row| {
        let waits = row["acquired"].as_u64().expect("a number");
        (row["name"].as_str().expect("a name").to_owned(), waits)
    })
    .collect()
}

fn waits_of(owners: &[(String, u64)], name: &str) -> u64 {
    let named = owners.iter().filter(|(owner, _)| owner == name);
    named.map(|(_, waits)| waits).sum()
}

#[test]
fn owners_of_mutexes_and_read_write_locks_are_recorded() {
    const NAME: &str =
        "commands::lock::owners::owners_of_mutexes_and_read_write_locks_are_recorded";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "locks") || !compile(NAME, &scratch, "chains") {
        return;
    }
    if !record(NAME, &scratch, "-- ./locks mutex") {
        return;
    }
    let owners = waits(&scratch, "contention -Y futex");
    // 110 waits. On a busy machine a wait may begin while the owner releases the lock, and then has no known owner.
    let held = waits_of(&owners, "holder");
    assert!((100..=110).contains(&held), "{owners:?}");
    assert_eq!(waits_of(&waits(&scratch, "report"), "holder"), held);
    let text = run(&scratch, "lock contention -o -i perf.data").stderr;
    let row = text.lines().find(|row| row.ends_with("   holder"));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(row.starts_with(&format!("{held:10} ")), "{text}");
    let callers = run(&scratch, "lock contention -v -Y futex -i perf.data").stderr;
    assert!(callers.contains("\theld by holder ("), "{callers}");
    // Condition variables have no owner, and readers of a read-write lock are unknown.
    for options in ["-- ./locks cond", "-- ./chains readers"] {
        assert!(record(NAME, &scratch, options));
        let owners = waits(&scratch, "contention -Y futex");
        assert_eq!(waits_of(&owners, "holder"), 0, "{options}: {owners:?}");
        assert!(waits_of(&owners, "Unknown") >= 10, "{options}: {owners:?}");
    }
    assert!(record(NAME, &scratch, "-- ./chains rwlock"));
    let owners = waits(&scratch, "contention -Y futex");
    // 40 waits. On a busy machine a thread may come too late to wait, or one of the two threads may wait for the other one.
    assert!(waits_of(&owners, "holder") >= 20, "{owners:?}");
    assert_eq!(waits_of(&owners, "reader"), 0, "{owners:?}");
    // 20 waits for a mutex of another process, again fewer on a busy machine.
    assert!(record(NAME, &scratch, "-- ./chains shared"));
    let owners = waits(&scratch, "contention -Y futex");
    assert!(
        (15..=20).contains(&waits_of(&owners, "holder")),
        "{owners:?}"
    );
}

/// Returns the names of the waiting threads of a chain or circle, followed by that of the holder that the last one waits for.
fn names(chain: &Value) -> Vec<&str> {
    let waits = chain["waits"].as_array().expect("waits");
    let threads = waits.iter().map(|wait| &wait["comm"]);
    let last = waits.last().map(|wait| &wait["holder_comm"]);
    threads.chain(last).filter_map(Value::as_str).collect()
}

#[test]
fn chains_last_as_long_as_the_program_waits() {
    const NAME: &str = "commands::lock::owners::chains_last_as_long_as_the_program_waits";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "chains") {
        return;
    }
    if !record(NAME, &scratch, "-- ./chains chain 4") {
        return;
    }
    let report = json(&scratch, "lock deadlock --json -i perf.data");
    assert_eq!(report["deadlocks"], serde_json::json!([]), "{report}");
    let chains = report["chains"].as_array().expect("chains");
    let total = |expected: &[&str]| {
        let chain = chains.iter().find(|chain| names(chain) == expected);
        let chain = chain.unwrap_or_else(|| panic!("{expected:?}: {report}"));
        chain["total_ns"].as_u64().expect("a number") / 1_000_000
    };
    // link-3 holds its mutex for 300 ms; link-2 begins to wait after 20 ms, link-1 after 40 ms, link-0 after 60 ms. Sleeps may
    // take longer.
    let whole = total(&["link-0", "link-1", "link-2", "link-3"]);
    assert!((150..=250).contains(&whole), "{whole}: {report}");
    let part = total(&["link-1", "link-2", "link-3"]);
    assert!(
        (170..=270).contains(&part) && part >= whole,
        "{part}: {report}"
    );
    let text = run(&scratch, "lock deadlock -i perf.data -E 1").stdout;
    assert!(
        text.contains("\nno deadlock among known holders\n"),
        "{text}"
    );
    assert_eq!(text.matches("\nchain: ").count(), 1, "{text}");
    let locks = ["waits for mutex 0x", " (links+0x50) held by "];
    assert!(locks.iter().all(|lock| text.contains(lock)), "{text}");
    let first = json(&scratch, "lock deadlock -i perf.data --json -E 1");
    assert_eq!(first["chains"].as_array().map(Vec::len), Some(1), "{first}");
}

#[test]
fn deadlocks_of_a_recording_are_found_with_their_times() {
    const NAME: &str =
        "commands::lock::owners::deadlocks_of_a_recording_are_found_with_their_times";
    let scratch = Scratch::new();
    if !may_trace(NAME)
        || !compile(NAME, &scratch, "chains")
        || !compile(NAME, &scratch, "deadlock")
    {
        return;
    }
    if !record(NAME, &scratch, "-- ./chains circle") {
        return;
    }
    let report = json(&scratch, "lock deadlock --json -i perf.data");
    let deadlocks = report["deadlocks"].as_array().expect("deadlocks");
    assert_eq!(deadlocks.len(), 1, "{report}");
    let mut members = names(&deadlocks[0]);
    members.sort_unstable();
    members.dedup();
    assert_eq!(members, ["circle-0", "circle-1"], "{report}");
    // The waits time out after 300 ms.
    let [from, until] = ["from_ns", "until_ns"].map(|key| deadlocks[0][key].as_u64());
    let millis = (until.expect("it ends") - from.expect("a time")) / 1_000_000;
    assert!((200..=320).contains(&millis), "{millis}: {report}");
    for wait in deadlocks[0]["waits"].as_array().expect("waits") {
        assert_eq!(
            (&wait["type"], &wait["timeout"]),
            (&"mutex".into(), &true.into())
        );
        let variable = wait["variable"].as_str().expect("a variable");
        assert!(["links", "links+0x28"].contains(&variable), "{wait}");
        assert!(wait["stack"].to_string().contains("+0x"), "{wait}");
    }
    // A deadlock of three threads that lasts until the end of the recording.
    let script = "#!/bin/sh\n./deadlock 3 plain > out 2>&1 &\necho $! > pid\nsleep 3\n";
    scratch.write("hang.sh", script).expect("a file");
    assert!(record(NAME, &scratch, "-- sh hang.sh"));
    let pid = std::fs::read_to_string(scratch.path().join("pid")).expect("a pid");
    let killed = Command::new("kill").args(["-9", pid.trim()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let report = json(&scratch, "lock deadlock --json -i perf.data");
    let deadlocks = report["deadlocks"].as_array().expect("deadlocks");
    assert_eq!(deadlocks.len(), 1, "{report}");
    assert_eq!(deadlocks[0]["until_ns"], Value::Null, "{report}");
    let mut members = names(&deadlocks[0]);
    members.sort_unstable();
    members.dedup();
    assert_eq!(members, ["worker-0", "worker-1", "worker-2"], "{report}");
    let text = run(&scratch, "lock deadlock -i perf.data").stdout;
    assert!(
        text.contains("\ndeadlock: 3 threads wait for each other, from "),
        "{text}"
    );
    assert!(text.contains(" to the end of the recording ("), "{text}");
}

#[test]
fn run_queue_time_is_subtracted_from_waits() {
    const NAME: &str = "commands::lock::owners::run_queue_time_is_subtracted_from_waits";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "chains") {
        return;
    }
    // Another program takes the processor that the waiting threads need.
    let script = "#!/bin/sh\n(while :; do :; done) & busy=$!\n./chains rwlock\nkill $busy\n";
    scratch.write("busy.sh", script).expect("a file");
    // `--hold` is short for `--holders`, which also records switches and wakeups.
    let command = "lock record --user --hold -q -o perf.data -- taskset -c 0 sh busy.sh";
    let outcome = run(&scratch, command);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let report = json(&scratch, "lock contention -t -Y futex --json");
    let rows = report["rows"].as_array().expect("rows").iter();
    let mut total = 0;
    for row in rows.filter(|row| row["name"] == "reader" || row["name"] == "writer") {
        let [waited, queued] = ["total_ns", "run_queue_ns"].map(|key| row[key].as_u64());
        let (waited, queued) = (waited.expect("a time"), queued.expect("a time"));
        assert!(queued < waited, "{row}");
        total += queued;
        let columns = "lock contention -t -Y futex -q -x , -F wait_total,run_queue";
        let lines = run(&scratch, columns).stderr;
        let line = lines.lines().find(|line| {
            line.ends_with(&format!(", {}", row["name"].as_str().unwrap_or_default()))
        });
        let line = line.unwrap_or_else(|| panic!("{lines}"));
        let expected = format!("{}, {queued}, ", waited - queued);
        assert!(line.starts_with(&expected), "{line} {row}");
    }
    // Nanoseconds in run queues, the sum for 40 waits, most of which end while the other program runs.
    assert!(total > 50_000, "{total}: {report}");
    // A recording without `--holders`.
    assert!(record(NAME, &scratch, "-- ./chains shared"));
    let refused = run(&scratch, "lock contention -F run_queue");
    assert_eq!(refused.status, 255, "{refused:?}");
    let message = "perf.data: the recording has no switches and wakeups of threads\nhint: record with 'rperf lock record --holders'";
    assert!(refused.stderr.contains(message), "{refused:?}");
    // `lock contention -b` also subtracts the time in run queues.
    let options = "lock contention -b -Y futex -t -q -x , -F wait_total,run_queue";
    let live = run(&scratch, &format!("{options} -- taskset -c 0 sh busy.sh"));
    if live.status == 255 && live.stderr.contains("BPF") {
        return skip(NAME, &live.stderr);
    }
    let lines = live.stderr.lines();
    let lines = lines.filter(|line| line.ends_with(", reader") || line.ends_with(", writer"));
    let times = lines.map(|line| {
        let mut words = line.split(", ").map(|word| word.parse::<u64>());
        let mut next = || words.next().expect("a column").expect("a time");
        [next(), next()]
    });
    let times: Vec<[u64; 2]> = times.collect();
    assert_eq!(times.len(), 2, "{live:?}");
    let [waited, queued] = [0, 1].map(|column| times.iter().map(|row| row[column]).sum::<u64>());
    // 40 waits of 5 ms.
    assert!(waited > 100_000_000, "{live:?}");
    assert!((50_000..waited).contains(&queued), "{live:?}");
}

#[test]
fn recordings_without_owners_are_refused() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::lockdep_with_futex())
        .expect("a file");
    for words in [
        "lock contention -o -i perf.data",
        "lock report -o -i perf.data",
        "lock deadlock -i perf.data",
    ] {
        let refused = run(&scratch, words);
        assert_eq!(refused.status, 255, "{words}: {refused:?}");
        let message = "perf.data: the recording has no owners of locks\nhint: 'rperf lock record --user' records";
        assert!(refused.stderr.contains(message), "{words}: {refused:?}");
    }
    let both = run(&scratch, "lock deadlock -p 1 -i perf.data");
    let message = "lock deadlock: -p looks at running processes, -i at a recording";
    assert_eq!(both.status, 129, "{both:?}");
    assert!(both.stderr.contains(message), "{both:?}");
}
