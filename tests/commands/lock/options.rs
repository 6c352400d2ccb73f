//! Options of `lock report`, `lock info` and `lock contention`: where they print, and what they refuse.

use rperf_testkit::Scratch;

use super::{recording, run};

/// A folder with a recording of waits.
fn with_waits() -> Scratch {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::waits())
        .expect("a file");
    scratch
}

#[test]
fn output_names_the_file_of_the_table() {
    let scratch = with_waits();
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
        run(&scratch, &format!("{command} --json --output rows.json"));
        let path = scratch.path().join("rows.json");
        assert_eq!(std::fs::read_to_string(path).expect("JSON"), json);
    }
    let refused = run(&scratch, "lock report --output none/table.txt");
    assert_eq!(refused.status, 255, "{refused:?}");
    let message = "failed to write none/table.txt: ";
    assert!(refused.stderr.starts_with(message), "{refused:?}");
}

#[test]
fn records_are_dumped_before_the_table() {
    let scratch = with_waits();
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
}

#[test]
fn options_that_exclude_each_other_are_named() {
    let scratch = with_waits();
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
