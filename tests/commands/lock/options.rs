//! Options of `lock report`, `lock info` and `lock contention`: where they print, and what they refuse.

use rperf_testkit::Scratch;

use super::{folder_with_waits, recording, run};
use crate::commands::rperf;

#[test]
fn the_option_output_names_the_file_of_the_table() {
    let scratch = folder_with_waits();
    for command in [
        "lock contention",
        "lock contention -v",
        "lock report",
        "lock info",
    ] {
        let table = run(&scratch, command);
        for words in [
            format!("{command} --output table.txt"),
            command.replace("lock ", "lock --output table.txt "),
        ] {
            let written = run(&scratch, &words);
            assert_eq!((written.status, written.stdout.as_str()), (0, ""));
            assert_eq!(written.stderr, "", "{words}");
            let path = scratch.path().join("table.txt");
            let text = std::fs::read_to_string(&path).expect("the table");
            assert_eq!(text, table.stderr, "{words}");
            std::fs::remove_file(path).expect("the table is removed");
        }
        let printed = run(&scratch, &format!("{command} --output -"));
        assert_eq!(printed.stdout, table.stderr, "{command}");
        let json = run(&scratch, &format!("{command} --json")).stdout;
        let written = run(&scratch, &format!("{command} --json --output rows.json"));
        assert_eq!((written.status, written.stdout.as_str()), (0, ""));
        let path = scratch.path().join("rows.json");
        assert_eq!(std::fs::read_to_string(&path).expect("JSON"), json);
        std::fs::remove_file(path).expect("the rows are removed");
    }
    let refused = run(&scratch, "lock report --output none/table.txt");
    assert_eq!(refused.status, 255, "{refused:?}");
    let message = "failed to write none/table.txt: ";
    assert!(refused.stderr.starts_with(message), "{refused:?}");
}

#[test]
fn records_are_dumped_in_addition_to_the_table() {
    let scratch = folder_with_waits();
    let script = run(&scratch, "script -D").stdout;
    let samples = script.matches("PERF_RECORD_SAMPLE").count();
    assert!(samples > 0, "{script}");
    for command in ["report", "contention", "info"] {
        let table = run(&scratch, &format!("lock {command}"));
        for words in [format!("{command} -D"), format!("-D {command}")] {
            let dumped = run(&scratch, &format!("lock {words}"));
            let count = dumped.stdout.matches("PERF_RECORD_SAMPLE").count();
            assert_eq!(count, samples, "{words}: {dumped:?}");
            assert_eq!((dumped.status, &dumped.stderr), (0, &table.stderr));
        }
    }
    let passed_on = run(&scratch, "lock -D script");
    assert_eq!(passed_on.stdout, script);
    let both = run(&scratch, "lock report -D --json --output rows.json");
    assert_eq!(
        (both.status, both.stdout.contains("PERF_RECORD_SAMPLE")),
        (0, true)
    );
    let path = scratch.path().join("rows.json");
    let json = run(&scratch, "lock report --json").stdout;
    assert_eq!(std::fs::read_to_string(path).expect("JSON"), json);
}

#[test]
fn options_that_exclude_each_other_or_have_no_effect_are_refused() {
    let scratch = folder_with_waits();
    for (words, message) in [
        ("report -D --json", "--json and -D exclude each other"),
        (
            "report -D --json --output -",
            "--json and -D exclude each other",
        ),
        (
            "contention --svg a.svg --output b",
            "--svg and --output exclude each other",
        ),
        (
            "contention -i perf.data -M 1",
            "-i reads a recording, -M shows the running system",
        ),
        (
            "contention -i perf.data --user",
            "-i reads a recording, --user shows the running system",
        ),
        (
            "contention -i perf.data true",
            "-i reads a recording, a command shows the running system",
        ),
        (
            "contention -b -D true",
            "-D reads a recording, -b shows the running system",
        ),
        (
            "-D record true",
            "lock record writes a recording; -D before 'record' applies to reading",
        ),
        (
            "--output a record true",
            "lock record writes a recording; --output before 'record' applies to reading",
        ),
        (
            "--output a script",
            "lock: --output has no effect on 'script'",
        ),
    ] {
        let refused = run(&scratch, &format!("lock {words}"));
        assert_eq!(refused.status, 129, "{words}: {refused:?}");
        let first = refused.stderr.lines().next();
        assert_eq!(first, Some(message), "{words}: {refused:?}");
    }
}

/// Flags of waits (`LCB_F_*`), and the names of their kinds of locks in the table of perf 7.2.
const KINDS: [(u32, &str); 14] = [
    (0, "semaphore"),
    (1, "spinlock"),
    (3, "rwlock"),
    (5, "rwlock"),
    (2, "rwsem"),
    (4, "rwsem"),
    (8, "rt-mutex"),
    (10, "rwlock-rt"),
    (12, "rwlock-rt"),
    (18, "percpu-rwsem"),
    (20, "percpu-rwsem"),
    (32, "mutex"),
    (33, "mutex"),
    (64, "unknown"),
];

#[test]
fn locks_have_the_names_of_their_kinds() {
    let scratch = Scratch::new();
    let content = recording::kinds(&KINDS.map(|(flags, _)| flags));
    scratch.write("perf.data", content).expect("a file");
    let table = run(&scratch, "lock contention -l -q -k wait_total").stderr;
    let mut rows: Vec<&str> = table.lines().collect();
    // The first wait was the shortest.
    rows.reverse();
    assert_eq!(rows.len(), KINDS.len(), "{table}");
    let separated = run(&scratch, "lock contention -l -q -x ; -F contended").stderr;
    for (number, (row, (_, name))) in rows.iter().zip(KINDS).enumerate() {
        // The address is as in `recording::kinds`, the caller as in `LockFile::event`.
        let address = 0xffff_8880_0000_1000 + number as u64 * 0x1008;
        let caller = 0x4000 + address % 0x1000;
        let end = format!("   {address:016x}   {caller:#x} ({name})");
        assert!(row.ends_with(&end), "{row}: {end}");
        let values = format!("{address:x}; {caller:#x}; {name}\n");
        assert!(separated.contains(&values), "{separated}: {values}");
    }
    let json = run(&scratch, "lock contention -l --json").stdout;
    assert!(json.contains("\"rwsem:R\""), "{json}");
    for (kind, expected) in [
        ("rwsem", 2),
        ("rwsem:W", 1),
        ("mutex", 2),
        ("mutex:spin", 1),
        ("mutex-spin", 1),
        ("percpu-rwsem", 2),
        ("pcpu-sem:R", 1),
    ] {
        let rows = run(&scratch, &format!("lock contention -l -q -Y {kind}"));
        assert_eq!(rows.stderr.lines().count(), expected, "{kind}: {rows:?}");
    }
    let unknown = run(&scratch, "lock contention -Y foo");
    assert!(
        unknown.stderr.contains(" futex and futex:PI"),
        "{unknown:?}"
    );
}

#[test]
fn checks_count_the_selected_rows() {
    let scratch = folder_with_waits();
    let checks = |words: &str| {
        let text = run(&scratch, &format!("lock {words}")).stderr;
        let checks = text.split_once("\n=== output for debug ===\n\n");
        let line = checks.and_then(|(_, checks)| checks.lines().next());
        line.unwrap_or_default().to_owned()
    };
    // Without -v, checks are shown only if there is a bad row.
    // The first row is bad: its wait ends twice, which is an impossible order. As in perf, `contention` also counts rows that -E
    // hides, `report` does not.
    assert_eq!(checks("contention"), "bad: 1, total: 3");
    assert_eq!(checks("contention -E 1"), "bad: 1, total: 3");
    assert_eq!(checks("report"), "bad: 1, total: 3");
    assert_eq!(checks("report -E 1"), "bad: 1, total: 1");
    // That wait also begins twice, the second time with the flags of a mutex.
    assert_eq!(checks("contention -Y mutex -v"), "bad: 1, total: 2");
    assert_eq!(checks("contention -Y semaphore -v"), "bad: 0, total: 1");
    // Without a row there are no checks.
    assert_eq!(checks("contention -Y rt-mutex -v"), "");
    scratch
        .write("perf.data", recording::waits_for_one_lock())
        .expect("a file");
    assert_eq!(checks("contention -v"), "bad: 0, total: 1");
    // The end of the wait that -Y does not select is no impossible order.
    assert_eq!(checks("contention -Y spinlock -v"), "bad: 0, total: 1");
    assert_eq!(checks("contention -Y rwsem -v"), "bad: 0, total: 1");
}

/// Also refused: lists without an item, and a negative number of rows (-E).
#[test]
fn columns_are_shown_once_and_unknown_ones_refused() {
    let scratch = folder_with_waits();
    for command in ["contention", "report"] {
        let titles = |options: &str| {
            let table = run(&scratch, &format!("lock {command} {options}"));
            table.stderr.lines().next().unwrap_or_default().to_owned()
        };
        let once = titles("-F wait_max,wait_max,contended,wait_max -k contended");
        assert_eq!(once.matches("max wait").count(), 1, "{once}");
        assert_eq!(once.matches("contended").count(), 1, "{once}");
        // -E 0 shows all rows.
        let all = run(&scratch, &format!("lock {command}"));
        assert_eq!(run(&scratch, &format!("lock {command} -E 0")), all);
    }
    let known =
        "hint: the columns are contended, wait_total, wait_max, wait_min, avg_wait, run_queue\n";
    for (words, message, hint) in [
        (["-k", "acquired"], "Unknown --key: 'acquired'", known),
        (["-k", ""], "Unknown --key: ''", known),
        (
            ["-F", "contended,acquired"],
            "Unknown --field: 'acquired'",
            known,
        ),
        (["-F", ""], "-F needs at least one column", known),
        (["-C", ""], "-C needs at least one CPU", ""),
        (["-p", ","], "-p needs at least one process", ""),
        (["--tid", ""], "--tid needs at least one thread", ""),
    ] {
        let words = [&["lock", "contention"][..], &words].concat();
        let refused = rperf(&words).within(scratch.path()).finish();
        let refused = refused.expect("rperf starts");
        let expected = format!("{message}\n{hint}");
        assert_eq!(
            (refused.status, refused.stderr),
            (129, expected),
            "{words:?}"
        );
    }
    let negative = run(&scratch, "lock contention -E -1");
    assert_eq!(negative.status, 129);
    let first = negative.stderr.lines().next().expect("a message");
    assert!(
        first.contains("option `entries' expects a numerical value: '-1'"),
        "{first}"
    );
    // Only `report` has the column `acquired`.
    assert!(run(&scratch, "lock report -k acquired").status == 0);
}

#[test]
fn truncated_recordings_are_not_said_to_have_no_events() {
    let scratch = Scratch::new();
    let whole = recording::waits();
    // The magic number of the tracing data, which follow the records.
    let tracing_data = whole.windows(4).position(|bytes| bytes == b"\x17\x08Dt");
    // 100 bytes before: the last records are missing, too.
    let end = tracing_data.expect("the tracing data") - 100;
    scratch.write("perf.data", &whole[..end]).expect("a file");
    for command in [
        "report",
        "contention",
        "info",
        "contention --holders",
        // Without -i or -p, `deadlock` is refused with another message.
        "deadlock -i perf.data",
    ] {
        let refused = run(&scratch, &format!("lock {command}"));
        assert_eq!(refused.status, 255, "{command}: {refused:?}");
        let message = "perf.data: the descriptions of its tracepoints are missing, without which its events are unknown";
        assert!(refused.stderr.contains(message), "{command}: {refused:?}");
    }
}

#[test]
fn help_of_record_lists_its_options() {
    let scratch = Scratch::new();
    let help = run(&scratch, "lock record -h");
    assert_eq!(help.status, 129, "{help:?}");
    let usage = "\n Usage: rperf lock record [<options>] [<command>]\n";
    assert!(help.stderr.starts_with(usage), "{help:?}");
    // --call-graph follows its short name -g.
    for switch in ["--holders", "--owners", "--user", "--call-graph"] {
        let line = format!("\n        {switch} ");
        let is_listed = help.stderr.contains(&line)
            || help
                .stderr
                .contains(&line.replace("\n        ", "\n    -g, "));
        assert!(is_listed, "{switch}: {help:?}");
    }
    let options = run(&scratch, "lock record --list-opts").stdout;
    let has = |name: &str| options.split_whitespace().any(|option| option == name);
    assert!(has("--owners") && has("--mmap-pages"), "{options}");
    let unknown = run(&scratch, "lock record --no-such-option");
    let hint = "hint: 'rperf lock record -h' lists the options";
    assert!(unknown.stderr.contains(hint), "{unknown:?}");
}

#[test]
fn flame_graphs_have_totals_in_microseconds() {
    let scratch = folder_with_waits();
    let drawn = run(&scratch, "lock contention --svg waits.svg");
    // Waits of 1000, 4333 and 1000 ns.
    let note = "[ waits.svg: 6.333 us; open it in a web browser ]\n";
    assert_eq!((drawn.status, drawn.stderr.as_str()), (0, note));
    let svg = std::fs::read_to_string(scratch.path().join("waits.svg")).expect("a picture");
    assert!(svg.contains("<title>[spinlock] (5.333 us, "), "{svg}");
}

/// Of the frames of a wait for a futex, none are skipped by default, unlike those of a wait for a lock of the kernel.
#[test]
fn frames_of_user_stacks_are_skipped_on_request() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::lockdep_with_futex())
        .expect("a file");
    for (options, caller) in [
        ("", "0x1000"),
        ("--stack-skip 0", "0x1000"),
        ("--stack-skip 2", "0x3000"),
        ("--stack-skip 9", "Unknown"),
    ] {
        let words = format!("lock contention -q -Y futex {options}");
        let rows = run(&scratch, words.trim()).stderr;
        let end = format!("   futex   {caller}\n");
        assert!(rows.ends_with(&end), "{options}: {rows}");
    }
}
