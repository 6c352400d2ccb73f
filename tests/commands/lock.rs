//! `rperf lock`: waits recomputed from `script`, events of lockdep, names of locks, and what is refused.

mod cgroups;
mod deadlock;
mod histograms;
mod holders;
mod kernel_owners;
mod live;
mod live_futexes;
mod options;
mod owners;
pub(crate) mod recording;
mod shared_locks;
mod user_locks;

use std::collections::{BTreeMap, HashMap};

use rperf_testkit::{Outcome, Run, Scratch, may_trace, skip};

use super::rperf;

#[track_caller]
fn run(scratch: &Scratch, words: &str) -> Outcome {
    let words: Vec<&str> = words.split(' ').collect();
    let run = rperf(&words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Runs the C compiler with these options in the scratch directory. If there is no compiler, skips the test and returns `false`.
fn compile_with(test: &str, scratch: &Scratch, options: &[&str]) -> bool {
    let compiled = Run::new("cc").within(scratch.path()).args(options).finish();
    let Ok(compiled) = compiled else {
        skip(test, "there is no C compiler");
        return false;
    };
    assert_eq!(compiled.status, 0, "{compiled:?}");
    true
}

/// Creates a folder with a recording of waits.
fn folder_with_waits() -> Scratch {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::waits())
        .expect("a file");
    scratch
}

/// Returns the number of waits for each lock, and their sum, maximum and minimum in nanoseconds, from the lines of `script`.
fn recomputed(script: &str) -> BTreeMap<String, [u64; 4]> {
    // The times of begins without an end so far, by thread and lock. A repeated begin does not replace the first one.
    let mut open: HashMap<(String, String), u64> = HashMap::new();
    let mut locks: BTreeMap<String, [u64; 4]> = BTreeMap::new();
    for line in script.lines().filter(|line| line.contains("contention_")) {
        let (prefix, fields) = line.split_once(" lock:contention_").expect("an event");
        let mut words = prefix.split_whitespace();
        let tid = words.next().expect("a thread").to_owned();
        let time = words.next().expect("a time").trim_end_matches(':');
        let time: u64 = time.replace('.', "").parse().expect("nanoseconds");
        let (kind, fields) = fields.split_once(": ").expect("fields");
        let lock = fields.split_whitespace().next().expect("a lock").to_owned();
        if kind == "begin" {
            open.entry((tid, lock)).or_insert(time);
        } else if let Some(begin) = open.remove(&(tid, lock.clone())) {
            let wait = time - begin;
            let row = locks.entry(lock).or_insert([0, 0, 0, u64::MAX]);
            *row = [
                row[0] + 1,
                row[1] + wait,
                row[2].max(wait),
                row[3].min(wait),
            ];
        }
    }
    locks
}

#[test]
fn waits_match_the_events_of_script() {
    const NAME: &str = "commands::lock::waits_match_the_events_of_script";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let load = "bench sched messaging -g 1 -l 50";
    let program = env!("CARGO_BIN_EXE_rperf");
    let recorded = run(
        &scratch,
        &format!("lock record -q -o perf.data -a -- {program} {load}"),
    );
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let script = run(&scratch, "script --ns -F tid,time,event,trace");
    let expected = recomputed(&script.stdout);
    assert!(!expected.is_empty(), "no waits: {script:?}");
    let json = run(&scratch, "lock contention -l --json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let actual: BTreeMap<String, [u64; 4]> = rows
        .iter()
        .map(|row| {
            // `acquired` is the number of waits that ended.
            let keys = ["acquired", "total_ns", "max_ns", "min_ns"];
            let values = keys.map(|key| row[key].as_u64().expect("a number"));
            (row["address"].as_str().expect("text").to_owned(), values)
        })
        .collect();
    assert_eq!(actual, expected);
    for command in ["contention", "contention -t", "report", "report -t"] {
        let json = run(&scratch, &format!("lock {command} --json")).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let rows = json["rows"].as_array().expect("rows");
        let total = rows.iter().filter_map(|row| row["total_ns"].as_u64());
        let expected_total: u64 = expected.values().map(|[_, sum, ..]| sum).sum();
        assert_eq!(total.sum::<u64>(), expected_total, "{command}");
    }
    // Text is on stderr, as in perf. With -q it has neither titles nor counts of events in an impossible order.
    for command in ["contention", "contention -x ,", "report"] {
        let table = run(&scratch, &format!("lock {command}"));
        let rows = run(&scratch, &format!("lock {command} -q"));
        assert_eq!((table.stdout.as_str(), rows.stdout.as_str()), ("", ""));
        let (titles, rest) = table.stderr.split_once('\n').expect("titles");
        assert!(titles.contains("contended"), "{command}: {table:?}");
        let rest = rest.trim_start_matches('\n');
        assert!(!rows.stderr.is_empty(), "{command}: {rows:?}");
        assert!(
            rest.starts_with(&rows.stderr),
            "{command}: {rest}\n{rows:?}"
        );
    }
}

#[test]
fn recordings_without_the_events_are_refused() {
    const NAME: &str = "commands::lock::recordings_without_the_events_are_refused";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let recorded = run(
        &scratch,
        "record -q -o perf.data -e sched:sched_switch -a -- true",
    );
    assert_eq!(recorded.status, 0, "{recorded:?}");
    for (words, message) in [
        (
            "lock contention",
            "perf.data: the recording has no lock:contention_begin events\nhint: record with 'rperf lock record'",
        ),
        (
            "lock report",
            "the recording has no lock:contention_begin events",
        ),
        (
            "lock info",
            "the recording has no lock:contention_begin events",
        ),
    ] {
        let outcome = run(&scratch, words);
        assert_eq!(outcome.status, 255, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words}: {outcome:?}");
    }
}

#[test]
fn unknown_words_and_conflicting_options_are_refused() {
    let scratch = folder_with_waits();
    for (words, message) in [
        ("lock report -k none", "Unknown --key: 'none'"),
        ("lock contention -Y none", "Unknown lock flags: none"),
        ("lock contention -t -l", "-t and -l exclude each other"),
        ("lock watch", "unknown subcommand 'watch'"),
    ] {
        let outcome = run(&scratch, words);
        assert_eq!(outcome.status, 129, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words}: {outcome:?}");
    }
}

/// The text is compared with that of perf 6.1 in tests/differential.
#[test]
fn events_of_lockdep_are_shown_as_json_and_not_by_contention() {
    let scratch = Scratch::new();
    // Such as two exclusive acquires of one lock by one thread.
    let with_impossible_orders = true;
    scratch
        .write("perf.data", recording::lockdep(with_impossible_orders))
        .expect("a file");
    let json = run(&scratch, "lock report --json -c").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["name"] == "&pool->lock");
    let row = row.expect("the class");
    // The only wait was from 1,004,000 to 1,010,001 ns.
    assert_eq!(
        (&row["contended"], &row["total_ns"]),
        (&1.into(), &6001.into())
    );
    assert_eq!(row["histogram"], serde_json::json!([[4096, 8192, 1]]));
    assert_eq!(row["p50_ns"], 6001);
    let both = run(&scratch, "lock info");
    let lists = [run(&scratch, "lock info -t"), run(&scratch, "lock info -m")];
    let expected = format!("{}\n{}", lists[0].stderr, lists[1].stderr);
    assert_eq!((both.status, both.stderr), (0, expected));
    let json = run(&scratch, "lock info -m --json").stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["threads"], serde_json::Value::Null);
    assert_eq!(json["locks"][2]["class"], "a_name_of_many_letters");
    let refused = run(&scratch, "lock contention");
    assert_eq!(refused.status, 255, "{refused:?}");
    let hint = "hint: it has those of lockdep, which 'rperf lock report' shows";
    assert!(refused.stderr.contains(hint), "{refused:?}");
}

#[test]
fn futexes_of_a_recording_of_lockdep_are_shown_with_a_warning() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::lockdep_with_futex())
        .expect("a file");
    let table = run(&scratch, "lock contention").stderr;
    let warning = "only waits for futexes are shown: locks of the kernel were recorded with the events of lockdep";
    assert!(table.contains(warning), "{table}");
    let rows: Vec<&str> = table.lines().filter(|row| row.contains(" us ")).collect();
    assert_eq!(rows.len(), 1, "{table}");
    assert!(rows[0].starts_with("         1      2.50 us "), "{table}");
    assert!(rows[0].contains("  futex   "), "{table}");
    let futexes = run(&scratch, "lock contention -Y futex").stderr;
    assert!(!futexes.contains("lockdep"), "{futexes}");
    let report = run(&scratch, "lock report").stderr;
    assert!(report.contains("&pool->lock"), "{report}");
}

#[test]
fn waits_for_kernel_locks_beside_lockdep_are_shown_without_a_warning() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::lockdep_with_waits())
        .expect("a file");
    let table = run(&scratch, "lock contention").stderr;
    assert!(!table.contains("only waits for futexes"), "{table}");
    let rows = table.lines().filter(|row| row.contains(" us ")).count();
    assert_eq!(rows, 2, "{table}");
}

#[test]
fn options_before_script_apply_to_it() {
    const NAME: &str = "commands::lock::options_before_script_apply_to_it";
    let scratch = folder_with_waits();
    let path = scratch.path().join("perf.data");
    if std::os::unix::fs::chown(&path, Some(65534), Some(65534)).is_err() {
        return skip(NAME, "only root can give a file to another user");
    }
    let refused = run(&scratch, "lock script");
    assert!(refused.status != 0, "{refused:?}");
    let forced = run(&scratch, "lock -f script");
    assert_eq!(forced.status, 0, "{forced:?}");
    assert!(
        forced.stdout.contains("lock:contention_begin"),
        "{forced:?}"
    );
    let missing = run(&scratch, "lock -f --symfs none script");
    assert_eq!(
        missing.status,
        run(&scratch, "script -f --symfs none").status
    );
    assert!(missing.stderr.contains("none"), "{missing:?}");
    // `-q` would have no effect on `script`, and is refused.
    let quiet = run(&scratch, "lock -f -q script");
    assert_eq!(quiet.status, 129, "{quiet:?}");
}

/// perf 7.2 prints the same names; its `-L` takes only locks at the beginning of a variable.
#[test]
fn locks_are_named_and_selected_by_variables() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::global_locks())
        .expect("a file");
    let listing = "ffffffff81000000 T _text\nffffffff81004000 T caller\nffffffff82000000 D first_locks\nffffffff82000100 b second_lock\nffffffff82000200 B behind\n";
    scratch.write("kallsyms", listing).expect("a file");
    let names = |options: &str| {
        let words = format!("lock contention -l --kallsyms kallsyms --json {options}");
        let json = run(&scratch, words.trim()).stdout;
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let rows = json["rows"].as_array().expect("rows").iter();
        let mut names: Vec<String> = rows
            .map(|row| row["name"].as_str().expect("a name").to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    // A lock without a name is shown by its caller. In `recording`, the caller is the address 0x4000 plus the low 12 bits of the
    // lock's address, and has no symbol.
    assert_eq!(names(""), ["0x4000", "first_locks", "second_lock"]);
    assert_eq!(names("-L first_locks"), ["first_locks"]);
    assert_eq!(
        names("-L 0xffffffff82000100,first_locks"),
        ["first_locks", "second_lock"]
    );
    let unknown = run(&scratch, "lock contention -L no_lock --kallsyms kallsyms");
    assert_eq!(unknown.status, 129, "{unknown:?}");
    let message = "'no_lock' is neither an address nor a variable of the recording's kernel";
    assert!(unknown.stderr.contains(message), "{unknown:?}");
    // A kernel without CONFIG_KALLSYMS_ALL lists few variables, whose ends are unknown: only locks at their beginnings are named.
    // Such a kernel is assumed here, since less than one symbol in a hundred is a variable.
    let functions: String = (0..300)
        .map(|number| format!("ffffffff8101{number:04x} t function{number}\n"))
        .collect();
    scratch
        .write("kallsyms", format!("{functions}{listing}"))
        .expect("a file");
    assert_eq!(names(""), ["0x4000", "0x4008", "second_lock"]);
    assert!(names("-L first_locks").is_empty());
}

#[test]
fn waits_without_end_are_shown_and_impossible_orders_counted() {
    let scratch = folder_with_waits();
    let table = run(&scratch, "lock contention").stderr;
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(
        rows[2],
        "         2      5.33 us      4.33 us      2.67 us     spinlock   0x4000"
    );
    assert_eq!(
        rows[3],
        "         1      1.00 us      1.00 us      1.00 us        mutex   0x4010"
    );
    assert_eq!(
        rows[4],
        "         1         0 ns         0 ns         0 ns    semaphore   0x4008"
    );
    let checks = "bad: 1, total: 3\nbad rate: 33.33 %\nhistogram of events caused bad sequence\n    acquire: 0\n   acquired: 1\n";
    assert!(table.contains(checks), "{table}");
    let quiet = run(&scratch, "lock contention -q").stderr;
    assert!(!quiet.contains("bad"), "{quiet}");
}

#[test]
fn empty_filters_and_impossible_map_sizes_are_refused() {
    let scratch = Scratch::new();
    for (options, message) in [
        ("-L ,", "-L needs at least one name"),
        ("-Y ,", "-Y needs at least one name"),
        ("-S ,", "-S needs at least one name"),
        ("-G ,", "-G needs at least one name"),
        ("-M 0", "-M 0: BPF maps have 1 to 16777216 rows"),
        (
            "-M 4294967295",
            "-M 4294967295: BPF maps have 1 to 16777216 rows",
        ),
    ] {
        let refused = run(&scratch, &format!("lock contention -b {options} true"));
        assert_eq!(refused.status, 129, "{options}: {refused:?}");
        assert!(refused.stderr.contains(message), "{options}: {refused:?}");
    }
}
