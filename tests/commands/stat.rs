//! `rperf stat`: output streams, exit statuses, formats and error messages.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Run, Scratch, may_trace};

use super::record::signal;
use crate::kernel::{Running, can_trace, is_root, rperf_in};

fn stat(words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    stat_in(&scratch, words)
}

fn stat_in(scratch: &Scratch, words: &[&str]) -> Outcome {
    let words = [&["stat"], words].concat();
    rperf_in(scratch, &words).finish().expect("rperf starts")
}

#[test]
fn the_workloads_exit_status_and_output_are_passed_on() {
    for (script, status) in [("echo out; exit 7", 7), ("echo out; kill -9 $$", 137)] {
        let outcome = stat(&["-e", "cs", "sh", "-c", script]);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (status, "out\n"));
        let title = format!(" Performance counter stats for 'sh -c {script}':");
        assert!(outcome.stderr.contains(&title), "{}", outcome.stderr);
        assert_eq!(outcome.stderr.contains("sh: Killed\n"), status == 137);
    }
}

#[test]
fn elapsed_time_spans_the_workload_and_its_usage_is_printed() {
    let outcome = stat(&["-n", "sleep", "0.05"]);
    let time = |label: &str| -> f64 {
        let line = outcome.stderr.lines().find(|line| line.ends_with(label));
        let line = line.unwrap_or_else(|| panic!("{label}: {}", outcome.stderr));
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    assert!(time("seconds time elapsed") >= 0.05);
    assert!(time("seconds user") + time("seconds sys") > 0.0);
}

#[test]
fn a_dummy_event_counts_nothing() {
    let words = ["-x,", "-e", "faults:u,dummy", "-r", "2", "true"];
    let outcome = stat(&words);
    let dummy = outcome.stderr.lines().nth(1).unwrap_or_default();
    assert!(dummy.starts_with("0,,dummy,0.00%,"), "{}", outcome.stderr);
}

#[test]
fn tables_are_written_to_file_or_descriptor() {
    let scratch = Scratch::new();
    let file = scratch.path().join("table");
    assert_eq!(
        stat_in(&scratch, &["-e", "cs", "-o", "table", "true"]).stderr,
        ""
    );
    let append = ["-e", "cs", "-o", "table", "--append", "-x,", "true"];
    assert_eq!(stat_in(&scratch, &append).stderr, "");
    let text = fs::read_to_string(&file).expect("the file is there");
    assert_eq!(text.matches("# started on ").count(), 2, "{text}");
    assert!(text.contains("seconds time elapsed"), "{text}");
    let object = ["-e", "cs", "-j", "-o", "object", "true"];
    assert_eq!(stat_in(&scratch, &object).stderr, "");
    let object = fs::read(scratch.path().join("object")).expect("the file is there");
    let object: serde_json::Value = serde_json::from_slice(&object).expect("JSON without a date");
    assert_eq!(object["event"], "cs");
    let closed = stat(&["-e", "cs", "--log-fd", "99", "true"]);
    // 234: perf returns -EINVAL.
    assert_eq!(closed.status, 234);
    assert_eq!(closed.stderr, "Failed opening logfd: Bad file descriptor\n");
    let to_stdout = stat(&["-e", "cs", "-x,", "--log-fd", "1", "true"]);
    assert!(to_stdout.stdout.contains(",,cs,"), "{to_stdout:?}");
    assert_eq!(stat(&["--quiet", "-e", "cs", "true"]).stderr, "");
}

#[test]
fn each_line_is_a_json_object() {
    let outcome = stat(&["-j", "-e", "task-clock,cs,cycles", "true"]);
    let lines: Vec<serde_json::Value> = outcome
        .stderr
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    assert_eq!(lines.len(), 3, "{}", outcome.stderr);
    assert_eq!(lines[0]["unit"], "msec");
    assert_eq!(lines[0]["metric-unit"], "CPUs utilized");
    assert_eq!(lines[1]["event"], "cs");
}

/// Rows have the fields that perf 6.1's checker of JSON expects, also rows of unsupported events.
#[test]
fn json_rows_have_all_fields_of_perfs_checker() {
    const EVENT_KEYS: [&str; 7] = [
        "counter-value",
        "unit",
        "event",
        "event-runtime",
        "pcnt-running",
        "metric-value",
        "metric-unit",
    ];
    for (options, first_keys) in [
        (&["-e", "cs,dummy,cycles,cpu-clock"][..], &[][..]),
        (&["-a"], &[]),
        (&["-A", "-a"], &["cpu"]),
        (&["-I", "1000"], &["interval"]),
        (&["--per-core", "-a"], &["core", "aggregate-number"]),
        (&["--per-socket", "-a"], &["socket", "aggregate-number"]),
        (&["--per-die", "-a"], &["die", "aggregate-number"]),
        (&["--per-node", "-a"], &["node", "aggregate-number"]),
    ] {
        let outcome = stat(&[&["-j"], options, &["true"]].concat());
        let expected: Vec<&str> = first_keys.iter().chain(&EVENT_KEYS).copied().collect();
        assert!(!outcome.stderr.is_empty(), "{options:?}");
        for line in outcome.stderr.lines() {
            let row: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            for key in &expected {
                assert!(row.contains_key(*key), "{key}: {line}");
            }
            // The checker counts commas.
            assert_eq!(line.matches(',').count(), expected.len() - 1, "{line}");
            let value = row["counter-value"].as_str().expect("a string");
            let is_missing = ["<not counted>", "<not supported>"].contains(&value);
            assert!(is_missing || value.parse::<f64>().is_ok(), "{line}");
            for number in ["event-runtime", "pcnt-running", "metric-value"] {
                assert!(row[number].is_number(), "{number}: {line}");
            }
        }
    }
}

#[test]
fn pre_and_post_commands_run_each_time() {
    let words = ["-e", "cs", "--pre", "echo before", "--post", "echo after"];
    let words = [&words[..], &["-r", "2", "-S", "echo", "run"]].concat();
    let outcome = stat(&words);
    assert_eq!(outcome.stdout, "before\nrun\nafter\nbefore\nrun\nafter\n");
    assert!(
        outcome.stderr.contains("'echo run' (2 runs):"),
        "{}",
        outcome.stderr
    );
    let failed = stat(&["-e", "cs", "--pre", "exit 3", "true"]);
    assert_eq!(failed.status, 3, "{}", failed.stderr);
}

#[test]
fn a_timeout_ends_the_workload() {
    let began = Instant::now();
    let outcome = stat(&["-e", "cs", "--timeout", "100", "sleep", "30"]);
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(outcome.status, 143);
    assert!(
        outcome.stderr.starts_with("sleep: Terminated\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_delay_is_reported_and_an_endless_delay_counts_nothing() {
    let outcome = stat(&["-e", "cs", "-D", "30", "sleep", "0.1"]);
    assert!(
        outcome
            .stderr
            .starts_with("Events disabled\nEvents enabled\n")
    );
    let never = stat(&["-e", "cs", "-D", "-1", "true"]);
    assert!(
        never.stderr.contains("<not counted>      cs"),
        "{}",
        never.stderr
    );
    assert!(
        never.stderr.contains("hint: <not counted>: cs never ran"),
        "{}",
        never.stderr
    );
}

#[test]
fn intervals_are_in_order_and_the_summary_is_their_sum() {
    check_intervals(&[]);
    // More intervals than there are: the last one, which is incomplete, is shown, too.
    check_intervals(&["--interval-count", "1000"]);
}

fn check_intervals(limit: &[&str]) {
    let words = ["-I", "30", "--summary", "-x,", "-e", "faults:u"];
    let script = "for i in 1 2 3 4 5; do true; sleep 0.02; done; exec true";
    let outcome = stat(&[&words[..], limit, &["sh", "-c", script]].concat());
    let lines: Vec<Vec<&str>> = outcome
        .stderr
        .lines()
        .map(|line| line.split(',').collect())
        .collect();
    let (summary, intervals) = lines.split_last().expect("there are lines");
    assert!(intervals.len() >= 3, "{}", outcome.stderr);
    assert_eq!(summary[0].trim(), "summary");
    // An interval in which the workload only sleeps has no count.
    let count = |line: &Vec<&str>| line[1].parse::<u64>().unwrap_or_default();
    assert!(count(summary) > 0, "{}", outcome.stderr);
    assert_eq!(intervals.iter().map(count).sum::<u64>(), count(summary));
    let times: Vec<f64> = intervals
        .iter()
        .map(|line| line[0].trim().parse().unwrap())
        .collect();
    assert!(times.is_sorted() && times[0] >= 0.03, "{times:?}");
}

#[test]
fn a_process_is_counted_and_missing_cpus_and_processes_are_refused() {
    let spinning = Running::spin();
    let pid = spinning.0.id().to_string();
    let outcome = stat(&["-x,", "-e", "task-clock", "-p", &pid, "sleep", "0.1"]);
    let clock: f64 = outcome
        .stderr
        .split(',')
        .next()
        .unwrap()
        .parse()
        .expect("a clock");
    assert!(clock > 0.0, "{}", outcome.stderr);
    let by_thread = stat(&[
        "--per-thread",
        "-x,",
        "-e",
        "cs",
        "-p",
        &pid,
        "sleep",
        "0.05",
    ]);
    assert!(
        by_thread.stderr.starts_with(&format!("sh-{pid},")),
        "{}",
        by_thread.stderr
    );
    let absent = stat(&["-e", "cs", "-C", "4000", "true"]);
    assert_eq!(absent.status, 255);
    let message = "CPU 4000 is not online: choose from 0";
    assert!(absent.stderr.starts_with(message), "{}", absent.stderr);
    let no_process = stat(&["-e", "cs", "-p", "4194303"]);
    // 244: the status of `perf record` for a target that does not exist (`perf stat` has 234).
    assert_eq!(no_process.status, 244);
    assert!(
        no_process.stderr.contains("4194303"),
        "{}",
        no_process.stderr
    );
}

#[test]
fn names_of_threads_are_whole_in_json() {
    // With a space and a slash, like the names of QEMU's threads for virtual CPUs.
    let name = "CPU 0/KVM";
    let script = format!("printf '{name}' > /proc/$$/comm; while :; do :; done");
    let spinning = Command::new("sh").args(["-c", &script]).spawn();
    let spinning = Running(spinning.expect("sh starts"));
    let pid = spinning.0.id().to_string();
    let comm = || fs::read_to_string(format!("/proc/{pid}/comm"));
    while comm().expect("a name").trim_end() != name {
        std::thread::sleep(Duration::from_millis(1));
    }
    let words = ["--per-thread", "-j", "-e", "cs", "-p", &pid];
    let counted = stat(&[&words[..], &["sleep", "0.05"]].concat()).stderr;
    let thread = format!("{{\"thread\" : \"{name}-{pid}\", ");
    assert!(counted.starts_with(&thread), "{counted}");
}

#[test]
fn a_group_is_counted_without_its_unsupported_event() {
    let outcome = stat(&["-x,", "-e", "{faults,node-prefetch-misses}", "true"]);
    let lines: Vec<&str> = outcome.stderr.lines().collect();
    let [warning, faults, missing] = lines[..] else {
        panic!("{}", outcome.stderr)
    };
    assert!(warning.starts_with("Warning: node-prefetch-misses can't be counted"));
    assert!(!faults.starts_with('<'), "{faults}");
    assert!(missing.starts_with("<not supported>,,node-prefetch-misses,"));
}

#[test]
fn invalid_options_and_missing_programs_are_refused() {
    for (words, message) in [
        (&["-A", "true"][..], "system-wide mode"),
        (&["--per-core", "true"], "system-wide mode"),
        (&["-G", "a", "-e", "cs", "true"], "system-wide mode"),
        (&["--interval-count", "2", "true"], "interval-print"),
        (&["--timeout", "5", "true"], ">= 10ms"),
        (&["--table", "true"], "-r"),
        (&["--table", "-r", "1", "true"], "-r"),
        (&["-x,", "-j", "true"], "-x and -j"),
        (&["-o", "f", "--log-fd", "2", "true"], "--log-fd"),
        (&["--append", "true"], "-o"),
        (&["-A", "--per-core", "-a", "true"], "exclude each other"),
        (&["--per-thread", "true"], "-p -t -a"),
        (&["-D", "x", "true"], "'x' is not a delay"),
        (
            &["--pmu-filter", "imc_9", "-e", "cs", "true"],
            "no PMU 'imc_9'",
        ),
        (
            &["--all-user", "--all-kernel", "true"],
            "cannot be used with all-user",
        ),
    ] {
        let outcome = stat(words);
        assert_eq!(outcome.status, 129, "{words:?} {outcome:?}");
        assert!(
            outcome.stderr.contains(message),
            "{words:?} {}",
            outcome.stderr
        );
    }
    let missing = stat(&["-e", "cs", "./no-such-program"]);
    assert_eq!(missing.status, 255);
    assert!(
        missing
            .stderr
            .starts_with("Workload failed: No such file or directory\n")
    );
    assert!(missing.stderr.contains("./no-such-program"));
}

#[test]
fn easily_misunderstood_options_have_hints() {
    let hint = |words: &[&str]| {
        let stderr = stat(words).stderr;
        let last = stderr.lines().next_back().unwrap_or_default().to_owned();
        last.strip_prefix("hint: ").map(str::to_owned)
    };
    let single_run = hint(&["-v", "-n", "true"]);
    let expected = "-r 5 repeats the command and shows means with standard errors";
    assert_eq!(single_run.as_deref(), Some(expected));
    assert_eq!(hint(&["-n", "true"]), None);
    assert_eq!(hint(&["-v", "-n", "-r", "2", "true"]), None);
    let system_wide = hint(&["-a", "-n", "true"]);
    let expected = "the whole system was counted while 'true' ran";
    assert_eq!(system_wide.as_deref(), Some(expected));
    let one_cpu = hint(&["-C", "0", "-n", "true"]);
    let expected = "all tasks on these CPUs were counted while 'true' ran";
    assert_eq!(one_cpu.as_deref(), Some(expected));
    // `sleep` is given only to set the duration.
    assert_eq!(hint(&["-a", "-n", "sleep", "0.01"]), None);
}

#[test]
fn breakpoints_beyond_the_hardware_limit_are_named() {
    let events = (0..20).map(|number| format!("mem:{:#x}:w:u", 0x1000 + 8 * number));
    let outcome = stat(&["-e", &events.collect::<Vec<_>>().join(","), "true"]);
    // If there are no hardware breakpoints at all, even the first is not supported.
    if outcome.status == 0 {
        assert!(outcome.stderr.contains("<not supported>"), "{outcome:?}");
        return;
    }
    assert_eq!(outcome.status, 255, "{outcome:?}");
    let message = "Error:\nno breakpoint register is free for mem:0x10";
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");
}

#[test]
fn dozens_of_tracepoints_are_counted() {
    if !is_root() {
        return rperf_testkit::skip(
            "commands::stat::dozens_of_tracepoints_are_counted",
            "needs root",
        );
    }
    if !rperf_testkit::may_trace("commands::stat::dozens_of_tracepoints_are_counted") {
        return;
    }
    let outcome = stat(&["-x,", "-e", "sched:*,syscalls:sys_enter_r*", "true"]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    assert!(outcome.stderr.lines().count() > 20, "{}", outcome.stderr);
    assert!(
        outcome.stderr.lines().all(|line| !line.starts_with('<')),
        "{}",
        outcome.stderr
    );
}

/// A program that mostly reads and writes uses less than 30 times the CPU time if these calls are counted. The
/// limit is loose: it finds only a large slowdown.
#[test]
fn counted_system_calls_cost_little() {
    if !rperf_testkit::may_trace("commands::stat::counted_system_calls_cost_little") {
        return;
    }
    let copy = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1"];
    let copy = [&copy[..], &["count=100000", "status=none"]].concat();
    // CPU time, which does not depend on other tasks.
    let cpu_seconds = |options: &[&str]| {
        let outcome = stat(&[options, &copy].concat());
        let times = outcome.stderr.lines().filter_map(|line| {
            let line = line.strip_suffix(" user").or(line.strip_suffix(" sys"))?;
            line.trim().strip_suffix(" seconds")?.parse::<f64>().ok()
        });
        (times.sum::<f64>(), outcome.stderr)
    };
    let (uncounted, _) = cpu_seconds(&["-n"]);
    let (counted, message) = cpu_seconds(&["-e", "syscalls:sys_enter_r*,syscalls:sys_enter_w*"]);
    assert!(
        message.contains(" 100000      syscalls:sys_enter_write "),
        "{message}"
    );
    assert!(
        uncounted > 0.0 && counted < 30.0 * uncounted,
        "{uncounted} {counted}"
    );
}

/// Many system-wide tracepoints are opened together; each is counted as if it were alone.
#[test]
fn system_wide_tracepoints_are_counted_separately() {
    let test = "commands::stat::system_wide_tracepoints_are_counted_separately";
    if !can_trace(test) {
        return;
    }
    // Most of these events are rare; reboot(2) is never called. The second sched_switch has a filter that no event passes.
    let events = "sched:*,syscalls:sys_enter_reboot,syscalls:sys_enter_mq_open";
    let never = "common_pid == 1 && common_pid == 2";
    let outcome = stat(&[
        "-a",
        "-x,",
        "-e",
        events,
        "-e",
        "sched:sched_switch",
        "--filter",
        never,
        "sleep",
        "0.05",
    ]);
    assert_eq!(outcome.status, 0, "{}", outcome.stderr);
    let counts: Vec<(&str, u64)> = outcome
        .stderr
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            assert_eq!(cells[4], "100.00", "{line}");
            (cells[2], cells[0].parse().expect("a count"))
        })
        .collect();
    assert!(counts.len() > 18, "{}", outcome.stderr);
    let counts_of = |name: &str| {
        let named = counts.iter().filter(|(other, _)| *other == name);
        named.map(|(_, count)| *count).collect::<Vec<_>>()
    };
    assert_eq!(counts_of("syscalls:sys_enter_reboot"), [0]);
    let switches = counts_of("sched:sched_switch");
    assert!(switches[0] > 0 && switches[1] == 0, "{switches:?}");
}

/// The first two events are given as by a shell that expands `--event=faults:{k,u}`.
#[test]
fn kernel_and_user_counts_add_up() {
    if !is_root() {
        return rperf_testkit::skip(
            "commands::stat::kernel_and_user_counts_add_up",
            "counting in the kernel needs root",
        );
    }
    let words = [
        "-x,",
        "--event=faults:k",
        "--event=faults:u",
        "-e",
        "faults",
        "true",
    ];
    let outcome = stat(&words);
    let row = |line: &str| {
        let mut cells = line.split(',');
        let count: Option<u64> = cells.next()?.parse().ok();
        Some((count?, cells.nth(1)?.to_owned()))
    };
    let rows: Option<Vec<(u64, String)>> = outcome.stderr.lines().map(row).collect();
    let Some([(kernel, first), (user, second), (all, third)]) = rows.as_deref() else {
        panic!("three counts: {}", outcome.stderr)
    };
    assert_eq!([first, second, third], ["faults:k", "faults:u", "faults"]);
    assert!(*kernel + *user == *all && *user > 0, "{}", outcome.stderr);
}

#[test]
fn counters_beyond_the_limit_of_open_files_are_refused() {
    let program = env!("CARGO_BIN_EXE_rperf");
    let events = vec!["faults:u"; 20].join(",");
    let line = format!("ulimit -n 16; exec {program} stat -e {events} true");
    // Root runs the line without CAP_SYS_RESOURCE, with which rperf could raise the limit.
    let run = match is_root() {
        true => Run::new("setpriv").args(["--bounding-set=-sys_resource", "sh", "-c", &line]),
        false => Run::new("sh").args(["-c", &line]),
    };
    let outcome = run.finish().expect("a shell starts");
    assert_eq!(outcome.status, 255, "{outcome:?}");
    let message = "Error:\nToo many events are opened.\n\
                   hint: the limit of open files is at its maximum; raise it as root with 'ulimit -Hn'";
    assert!(outcome.stderr.starts_with(message), "{outcome:?}");
}

/// Closing the counters of tracepoints takes long. A signal that arrives after the workload's end, while they are being closed,
/// must also end the repetitions.
#[test]
fn a_signal_after_the_workloads_end_ends_the_repetition() {
    const NAME: &str = "commands::stat::a_signal_after_the_workloads_end_ends_the_repetition";
    if !may_trace(NAME) {
        return;
    }
    let script = "(sleep 0.02; kill -TERM $PPID) & echo run";
    let outcome = stat(&["-e", "sched:*", "-r", "4", "sh", "-c", script]);
    let runs = outcome.stdout.lines().count();
    assert!((1..4).contains(&runs), "{runs} runs: {}", outcome.stderr);
}

#[test]
fn each_repetition_has_its_intervals() {
    let words = "-e cs -r 2 -I 30 sleep 0.05";
    let outcome = stat(&words.split(' ').collect::<Vec<_>>());
    let (titles, rows): (Vec<&str>, Vec<&str>) = outcome
        .stderr
        .lines()
        .partition(|line| line.starts_with('#'));
    assert_eq!(titles.len(), 1, "{outcome:?}");
    let seconds = rows.iter().map(|row| {
        let first = row.split_whitespace().next().expect("a time");
        first.parse::<f64>().expect("seconds")
    });
    // Times count from the start of the repetition.
    let seconds: Vec<f64> = seconds.collect();
    let restarts = seconds.windows(2).filter(|pair| pair[1] < pair[0]);
    assert_eq!(restarts.count(), 1, "{outcome:?}");
}

/// After a signal, `stat` prints the last counts and is then terminated by the signal: a shell's loop around it ends, too.
#[test]
fn a_signal_ends_the_process_after_the_last_counts() {
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        let target = Running::spin();
        let pid = target.0.id().to_string();
        let mut command = Command::new(env!("CARGO_BIN_EXE_rperf"));
        // Without the signal, counting ends after 30 s, and the test fails.
        let words = "stat -e cs -I 50 --timeout 30000 -p";
        command.args(words.split(' ').chain([pid.as_str()]));
        command.stderr(Stdio::piped());
        let mut counting = Running(command.spawn().expect("rperf starts"));
        let mut lines = BufReader::new(counting.0.stderr.take().expect("a pipe")).lines();
        let is_count = |line: &String| line.trim_end().ends_with(" cs");
        let counted = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| is_count(&line));
        assert!(counted, "stat ended");
        signal(&counting, name);
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        assert!(rest.last().is_some_and(is_count), "{rest:?}");
        let status = counting.0.wait().expect("a child");
        assert_eq!(status.signal(), Some(number));
    }
}
