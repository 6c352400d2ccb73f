//! perf's trace scripts that rperf computes itself, compared with perf's own scripts in its interpreters.

use rperf_testkit::{Outcome, may_trace, skip};

use super::trace_scripts::{PACKETS, adapted, other_scripts, scripts};
use super::{Tool, Tools, assert_alike};

/// The recorded command, except for `netdev-times`: reads, writes, failing calls, several processes, and a memory compaction.
const COMMAND: &str = "for i in 1 2 3; do cat /etc/passwd > out; cat /nosuch 2> out; done; \
     head -c 100000 /dev/zero | cat > out; cat . 2> out; ls / | wc -l; \
     echo 1 > /proc/sys/vm/compact_memory";

/// Name of the script, its arguments, and the file of perf's script below `scripts/`.
const SCRIPTS: &[(&str, &[&str], &str)] = &[
    ("syscall-counts", &[], "python/syscall-counts.py"),
    ("syscall-counts", &["cat"], "python/syscall-counts.py"),
    (
        "syscall-counts-by-pid",
        &[],
        "python/syscall-counts-by-pid.py",
    ),
    (
        "syscall-counts-by-pid",
        &["cat"],
        "python/syscall-counts-by-pid.py",
    ),
    ("failed-syscalls", &[], "perl/failed-syscalls.pl"),
    ("failed-syscalls", &["cat"], "perl/failed-syscalls.pl"),
    (
        "failed-syscalls-by-pid",
        &[],
        "python/failed-syscalls-by-pid.py",
    ),
    (
        "failed-syscalls-by-pid",
        &["cat"],
        "python/failed-syscalls-by-pid.py",
    ),
    ("rw-by-pid", &[], "perl/rw-by-pid.pl"),
    ("rw-by-file", &["cat"], "perl/rw-by-file.pl"),
    ("rwtop", &["100"], "perl/rwtop.pl"),
    ("netdev-times", &[], "python/netdev-times.py"),
    (
        "netdev-times",
        &["debug", "dev=lo"],
        "python/netdev-times.py",
    ),
    ("task-analyzer", &["--summary"], "python/task-analyzer.py"),
    (
        "task-analyzer",
        &["--ns", "--extended-times"],
        "python/task-analyzer.py",
    ),
    ("futex-contention", &[], "python/futex-contention.py"),
    ("compaction-times", &[], "python/compaction-times.py"),
    (
        "compaction-times",
        &["-pv", "-u"],
        "python/compaction-times.py",
    ),
    (
        "compaction-times",
        &["-p", "-t", "h"],
        "python/compaction-times.py",
    ),
    (
        "compaction-times",
        &["-p", "-fs", "-m", "1-99999999"],
        "python/compaction-times.py",
    ),
];

/// Runs rperf without the folder of perf's scripts.
fn native(tools: &Tools, words: &[&str]) -> Outcome {
    let run = tools.run(Tool::Rperf, words);
    let run = run.env("PERF_EXEC_PATH", tools.path());
    run.finish().expect("rperf starts")
}

/// Replaces the name of the system call in each row by its number, which perf's scripts print unless a package for Python is
/// installed.
fn with_numbers(text: &str) -> String {
    let line = |line: &str| {
        let name = line
            .trim_start()
            .trim_start_matches("syscall: ")
            .split(' ')
            .next()
            .unwrap_or_default();
        let number = rperf_sys::syscall_number(name);
        // Other lines are titles (`comm [pid]`) and the names of the columns.
        let is_row = !line.contains('[') && !line.starts_with("event");
        let Some(number) = number.filter(|_| is_row) else {
            return line.to_owned();
        };
        let number = number.to_string();
        let blanks = name.len().saturating_sub(number.len());
        line.replacen(name, &format!("{number}{}", " ".repeat(blanks)), 1)
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn tables_are_those_of_perfs_scripts() {
    let test = "tables_are_those_of_perfs_scripts";
    let Some(tools) = Tools::find_for(test) else {
        return;
    };
    let (Some(folder), true) = (scripts(), may_trace(test)) else {
        return skip(test, "there are no scripts of perf or no tracepoints");
    };
    let mut differences = Vec::new();
    for (name, arguments, script) in SCRIPTS {
        let command = match *name {
            "netdev-times" => PACKETS,
            _ => COMMAND,
        };
        let record = [
            "script", "record", name, "-a", "-q", "-o", "own.data", "sh", "-c", command,
        ];
        // Only packets are recorded on the whole system: softirqs that receive them run in any task.
        let record = record
            .into_iter()
            .filter(|word| *word != "-a" || *name == "netdev-times");
        let record: Vec<&str> = record.collect();
        let recorded = native(&tools, &record);
        assert_eq!(recorded.status, 0, "{name}: {}", recorded.stderr);
        let report = ["script", "report", name, "-i", "own.data"];
        let rperf = native(&tools, &[&report[..], arguments].concat());
        // Scripts that the installed perf does not have may be in the folder of another release, if one is given.
        let other_release = other_scripts().map(|folder| folder.join(script));
        let candidates = [Some(folder.join(script)), other_release]
            .into_iter()
            .flatten();
        let Some(script) = candidates.into_iter().find(|script| script.exists()) else {
            // Only releases later than the installed perf have the script.
            continue;
        };
        let script = match *name {
            // perf fails in the script's handler of skb:kfree_skb, whose fields have changed since it was written.
            "netdev-times" => adapted(&tools, &script),
            _ => script,
        };
        let words = ["script", "-i", "own.data", "-s", &*script.to_string_lossy()];
        // perf would take the script's options for its own.
        let separator: &[&str] = if arguments.is_empty() { &[] } else { &["--"] };
        let perf = tools.outcome(Tool::Perf, &[&words[..], separator, arguments].concat());
        assert_eq!(perf.status, 0, "{name}: {}", perf.stderr);
        let expected = perf.stdout.lines();
        // Without the notice about the package that knows the names of system calls.
        let expected = expected.skip_while(|line| line.contains("Install"));
        let notice = ["For example:", "  # apt-get", "  # yum", "  etc."];
        let expected: Vec<&str> = expected
            .filter(|line| !notice.iter().any(|text| line.starts_with(text)))
            .collect();
        let actual = match name.contains("syscall") {
            true => with_numbers(&rperf.stdout),
            false => rperf.stdout.clone(),
        };
        let expected = expected.join("\n");
        let rows = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.is_empty());
            let row = |line: &str| match *name {
                // The widths of columns depend on numbers in other columns.
                "task-analyzer" => line.split_whitespace().collect::<Vec<_>>().join(" "),
                _ => line.to_owned(),
            };
            // Scripts in Perl print rows with equal counts in an arbitrary order.
            let mut rows: Vec<String> = lines.map(row).collect();
            rows.sort_unstable();
            rows
        };
        if rperf.status != 0 || rows(&actual) != rows(&expected) {
            differences.push(format!(
                "{name} {arguments:?}:\n{expected}\n--- rperf\n{rperf:?}"
            ));
        }
    }
    assert_alike(&differences);
}

#[test]
fn native_scripts_run_live_and_refuse_wrong_arguments() {
    let test = "native_scripts_run_live_and_refuse_wrong_arguments";
    for (words, message) in [
        (
            &["report", "syscall-counts", "a", "b"][..],
            "usage: script report syscall-counts [comm]\n",
        ),
        (
            &["report", "rw-by-file"],
            "usage: script report rw-by-file <comm>\n",
        ),
        (
            &["rwtop", "often"],
            "script rwtop: interval 'often': not a number of seconds\n",
        ),
    ] {
        let refused = crate::commands::outcome(&[&["script"], words].concat());
        assert_eq!((refused.status, &*refused.stdout), (129, ""), "{refused:?}");
        assert!(refused.stderr.starts_with(message), "{refused:?}");
    }
    let Some(tools) = Tools::find_for(test).filter(|_| may_trace(test)) else {
        return;
    };
    let live = ["script", "failed-syscalls-by-pid", "cat", "/nosuch"];
    let live = native(&tools, &live);
    assert!(live.stdout.contains("\ncat ["), "{live:?}");
    assert!(live.stdout.contains("    err = ENOENT "), "{live:?}");
    let top = native(&tools, &["script", "rwtop", "1", "--", "sleep", "2.5"]);
    // One table per second, and the last one at the end: three, or one fewer or more if the start or end is delayed.
    let tables = top.stdout.matches("read counts by pid:").count();
    assert!((2..=4).contains(&tables), "{top:?}");
    // A recording without the events of the script is refused, too.
    let recorded = native(
        &tools,
        &[
            "record",
            "-q",
            "-e",
            "cpu-clock",
            "-o",
            "other.data",
            "true",
        ],
    );
    assert_eq!(recorded.status, 0, "{recorded:?}");
    let lacking = native(
        &tools,
        &["script", "-i", "other.data", "report", "wakeup-latency"],
    );
    assert_eq!(lacking.status, 255, "{lacking:?}");
    let message = "other.data: the recording has no sched:sched_wakeup, sched:sched_switch\n";
    assert!(lacking.stderr.starts_with(message), "{lacking:?}");
}
