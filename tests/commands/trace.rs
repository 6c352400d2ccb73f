//! `rperf trace`: lines compared with perf's, summary tables, selections, recordings and refusals.

use rperf_testkit::{Outcome, Run, Scratch, real_perf, skip};

use super::{assert_refused, rperf};
use crate::kernel::can_trace;

#[track_caller]
pub(super) fn run(scratch: &Scratch, words: &[&str]) -> Outcome {
    let run = rperf(words)
        .within(scratch.path())
        .env("HOME", scratch.path());
    run.finish().expect("rperf starts")
}

/// Returns a call with an address in place of each string, structure or array: perf shows some of them as addresses.
fn without_memory(call: &str) -> String {
    let mut call = call.to_owned();
    // Buffers have no quotes: they end at the name of the next argument.
    for (begin, end) in [(" buf: ", ", count: "), ("ubuf: ", ", len: ")] {
        if let Some((before, rest)) = call.split_once(begin)
            && let Some((_, after)) = rest.split_once(end)
        {
            call = format!("{before}{begin}0x7fffffffffff{end}{after}");
        }
    }
    let mut text = String::new();
    // The character that ends the argument being replaced; `None` outside of such an argument.
    let mut end = None;
    for letter in call.chars() {
        let begins = text.ends_with(": ");
        match (end, letter) {
            (Some(last), _) if letter == last => {
                end = None;
                text.push_str("0x7fffffffffff");
            }
            (Some(_), _) => {}
            (None, '"') if begins => end = Some('"'),
            (None, '{') if begins => end = Some('}'),
            (None, '[') if begins => end = Some(']'),
            (None, _) => text.push(letter),
        }
    }
    text
}

/// Returns a line without its time, its thread and the paths of descriptors, with `P` for each pointer, string, structure or
/// array.
fn normalized(line: &str) -> String {
    let call = line.split_once("): ").map_or(line, |(_, rest)| rest);
    let call = without_memory(call);
    let call = call.as_str();
    // The first word is the thread: `true/123`.
    let call = call.split_once(' ').map_or(call, |(_, rest)| rest);
    let words = call.split_inclusive([' ', ',', ')', '<']);
    let mut text = String::new();
    let mut in_path = false;
    for word in words {
        if in_path {
            in_path = !word.contains('>');
            text.push_str(word.split_once('>').map_or("", |(_, rest)| rest));
            continue;
        }
        // A pointer, in full or only its lower 32 bits. Shorter numbers are others, such as flags.
        let is_address = word.starts_with("0x") && word.len() > 8;
        text.push_str(match is_address {
            true if word.ends_with(',') => "P,",
            true if word.ends_with(')') => "P)",
            true => "P",
            false => word.strip_suffix('<').unwrap_or(word),
        });
        in_path = word.ends_with('<');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The calls in the lines of a trace, in a form that is the same in each run of the program.
fn calls(lines: &str) -> Vec<String> {
    // Only lines with a thread, such as `true/123`, are calls.
    let lines = lines.lines().filter(|line| line.contains("/"));
    let calls = lines.map(normalized);
    // set_tid_address returns the thread's id, which differs between runs.
    calls
        .filter(|call| !call.starts_with("set_tid_address"))
        .collect()
}

#[test]
fn lines_are_those_of_perf() {
    let test = "lines_are_those_of_perf";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    // Without -o: perf's output file would be open in the command, too, and change the numbers of file descriptors.
    let theirs = Run::new(perf)
        .args(["trace", "/bin/true"])
        .within(scratch.path());
    let theirs = theirs.finish().expect("perf starts");
    if theirs.status != 0 {
        return skip(test, "this perf has no trace");
    }
    let ours = run(&scratch, &["trace", "/bin/true"]);
    assert_eq!(ours.status, 0);
    let (theirs, ours) = (calls(&theirs.stderr), calls(&ours.stderr));
    assert!(ours.len() > 10, "{ours:?}");
    assert_eq!(ours, theirs);
}

#[test]
fn failed_calls_and_calls_that_never_return_are_shown() {
    if !can_trace("failed_calls_and_calls_that_never_return_are_shown") {
        return;
    }
    let scratch = Scratch::new();
    let ran = run(
        &scratch,
        &[
            "trace",
            "-e",
            "chdir,exit_group",
            "sh",
            "-c",
            "cd /nosuch; exit 3",
        ],
    );
    assert_eq!(ran.status, 3, "the status of the command");
    let failed = ") = -1 ENOENT (No such file or directory)";
    let lines: Vec<String> = ran.stderr.lines().map(normalized).collect();
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("chdir(filename: P") && line.ends_with(failed)),
        "{lines:?}"
    );
    assert!(
        lines.contains(&"exit_group(error_code: 3) = ?".to_owned()),
        "{lines:?}"
    );
    let failures = run(
        &scratch,
        &[
            "trace",
            "--failure",
            "-e",
            "chdir,exit_group",
            "sh",
            "-c",
            "cd /; cd /nosuch",
        ],
    );
    let lines = failures
        .stderr
        .lines()
        .filter(|line| line.contains("chdir("));
    assert_eq!(lines.count(), 1, "{}", failures.stderr);
}

#[test]
fn a_recording_has_the_lines_of_a_live_trace() {
    if !can_trace("a_recording_has_the_lines_of_a_live_trace") {
        return;
    }
    let scratch = Scratch::new();
    let recorded = run(
        &scratch,
        &["trace", "record", "-o", "t.data", "--", "/bin/true"],
    );
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let replayed = run(&scratch, &["trace", "-i", "t.data"]);
    let live = run(&scratch, &["trace", "/bin/true"]);
    let (replayed, live) = (calls(&replayed.stderr), calls(&live.stderr));
    assert!(live.len() > 10, "{live:?}");
    assert_eq!(replayed, live);
    let table = run(&scratch, &["trace", "-i", "t.data", "--errno-summary"]);
    assert!(
        table.stderr.starts_with("\n Summary of events:\n\n true ("),
        "{}",
        table.stderr
    );
    assert!(
        table.stderr.contains("\t\t\t\tENOENT: 1\n"),
        "{}",
        table.stderr
    );
    let limited = run(&scratch, &["trace", "-i", "t.data", "--max-events", "2"]);
    assert_eq!(limited.stderr.lines().count(), 2, "{}", limited.stderr);
}

#[test]
fn a_command_keeps_running_after_max_events() {
    if !can_trace("a_command_keeps_running_after_max_events") {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "--max-events",
        "2",
        "sh",
        "-c",
        "sleep 0.5; echo done",
    ];
    let ran = run(&scratch, &words);
    assert_eq!((ran.status, ran.stdout.as_str()), (0, "done\n"));
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}

/// The command runs in the cgroup of this test.
#[test]
fn calls_are_summed_up_by_cgroup() {
    let test = "calls_are_summed_up_by_cgroup";
    if !can_trace(test) {
        return;
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let Some(group) = group else {
        return skip(test, "there are no cgroups of version 2");
    };
    let scratch = Scratch::new();
    let mode = ["trace", "-s", "--summary-mode", "cgroup"];
    let script = ["-e", "chdir", "sh", "-c", "(cd /); (cd /; cd /)"];
    let ran = run(&scratch, &[&mode[..], &script].concat());
    // Each of the three calls counts as two events, entry and return.
    let title = format!("\n {group}, 6 events, 100.0%\n");
    assert!(
        ran.stderr.contains(&title) && ran.stderr.matches(" events, ").count() == 1,
        "{title}: {}",
        ran.stderr
    );
    // With -C, calls are counted with tracepoints.
    let refused = run(&scratch, &[&mode[..], &["-C", "0", "true"]].concat());
    let message = "--summary-mode cgroup: only programs in the kernel (BPF) count by cgroup\n";
    assert!(refused.stderr.starts_with(message), "{}", refused.stderr);
    assert_eq!(refused.status, 129);
}

#[test]
fn calls_of_all_threads_are_summed_up() {
    if !can_trace("calls_of_all_threads_are_summed_up") {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "-s",
        "--summary-mode",
        "total",
        "-e",
        "exit_group,chdir",
        "sh",
        "-c",
        "(cd /); (cd /; cd /)",
    ];
    let ran = run(&scratch, &words);
    let rows: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.starts_with("   chdir "))
        .collect();
    let [row] = rows[..] else {
        panic!("one row: {}", ran.stderr);
    };
    let numbers: Vec<&str> = row.split_whitespace().take(3).collect();
    assert_eq!(numbers, ["chdir", "3", "0"], "{}", ran.stderr);
}

#[test]
fn excluded_calls_are_not_shown() {
    if !can_trace("excluded_calls_are_not_shown") {
        return;
    }
    let scratch = Scratch::new();
    let ran = run(&scratch, &["trace", "-e", "!brk,mmap,open*", "/bin/true"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    let names: Vec<String> = ran.stderr.lines().map(normalized).collect();
    assert!(
        names.iter().any(|call| call.starts_with("close(")),
        "{names:?}"
    );
    let excluded = ["brk(", "mmap(", "openat("];
    let is_excluded = |call: &String| excluded.iter().any(|name| call.starts_with(name));
    assert!(!names.iter().any(is_excluded), "{names:?}");
}

#[test]
fn losses_are_counted() {
    if !can_trace("losses_are_counted") {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "-m",
        "1",
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1",
        "count=20000",
    ];
    let ran = run(&scratch, &words);
    let losses: Vec<u64> = ran
        .stderr
        .lines()
        .filter_map(|line| {
            line.strip_prefix("LOST ")?
                .strip_suffix(" events!")?
                .parse()
                .ok()
        })
        .collect();
    let total: u64 = losses.iter().sum();
    assert!(total > 0, "one page is too small");
    assert!(
        ran.stderr.contains(&format!("lost {total} events: larger")),
        "{total}"
    );
}

#[test]
fn invalid_words_and_options_are_refused() {
    let unknown = "event syntax error: 'opnat'
                     \\___ neither a system call, nor a group of them, nor an event
hint: did you mean 'openat'? 'list' shows other events
";
    assert_refused(&["trace", "-e", "opnat", "true"], 129, unknown);
    assert_refused(
        &["trace", "--filter-pids", "1,x", "true"],
        129,
        "--filter-pids: 'x' is not a thread id\n",
    );
    assert_refused(
        &["trace", "-a", "record", "--", "true"],
        129,
        "--all-cpus does not apply to 'trace record'
hint: options of 'record' follow the word: trace record -o FILE -- COMMAND
",
    );
    assert_refused(
        &["trace", "-S", "--bpf-summary", "true"],
        129,
        "--bpf-summary needs -s, without -S\n",
    );
    assert_refused(
        &["trace", "/nosuch"],
        255,
        "/nosuch: No such file or directory\n",
    );
    assert_refused(
        &["trace", "--duration", "x", "true"],
        129,
        "--duration: 'x' is not a number of milliseconds\nhint: --duration 5 or --duration 0.1\n",
    );
}

#[test]
fn a_summary_in_the_kernel_counts_every_call_of_the_command_and_its_children() {
    let test = "a_summary_in_the_kernel_counts_every_call_of_the_command_and_its_children";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let script = "dd if=/dev/zero of=/dev/null bs=1 count=20000 status=none; cat nosuch";
    let outcome = run(&scratch, &["trace", "-s", "--", "sh", "-c", script]);
    let table = outcome.stderr;
    if table.contains("counted with tracepoints") {
        return skip(test, "this machine has no BPF");
    }
    let dd = table
        .split(" events, ")
        .find(|block| block.contains(" 20000 "));
    let dd = dd.unwrap_or_else(|| panic!("no block of dd: {table}"));
    let count = |call: &str| {
        let row = dd.lines().find(|line| line.trim_start().starts_with(call));
        let count = row.and_then(|row| row.split_whitespace().nth(1));
        count
            .and_then(|count| count.parse::<u32>().ok())
            .unwrap_or_default()
    };
    // dd also reads the headers of its libraries.
    assert_eq!(count("write "), 20_000, "{table}");
    assert!((20_000..20_020).contains(&count("read ")), "{table}");
    assert!(count("execve ") == 1, "{table}");
    assert!(table.contains("cat ("), "{table}");
}

/// The process runs before the trace begins. Calls of its children are counted, too.
#[test]
fn a_summary_in_the_kernel_counts_calls_of_running_processes() {
    let test = "a_summary_in_the_kernel_counts_calls_of_running_processes";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let script = "while :; do sleep 0.02; cd /nosuch; done";
    let mut busy = std::process::Command::new("sh")
        .args(["-c", script])
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("sh starts");
    let process = busy.id().to_string();
    let outcome = run(
        &scratch,
        &["trace", "-s", "-p", &process, "--", "sleep", "0.5"],
    );
    busy.kill().expect("a child");
    busy.wait().expect("a child");
    let table = outcome.stderr;
    if table.contains("counted with tracepoints") {
        return skip(test, "this machine has no BPF");
    }
    let title = format!(" sh ({process}), ");
    let block = table.split(&title).nth(1);
    let block = block.unwrap_or_else(|| panic!("no block of the process: {table}"));
    let block = block.split("\n\n\n").next().unwrap_or_default();
    let row = block.lines().find(|line| line.starts_with("   chdir "));
    let counts: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
    assert!(
        counts.len() > 2 && counts[1] == counts[2],
        "all fail: {table}"
    );
    // The children of the process are followed.
    assert!(table.contains(" sleep ("), "{table}");
    assert!(table.contains("   clock_nanosleep "), "{table}");
}

/// When the trace begins, threads of the tracer read the names of the descriptors of all processes from links in /proc. These
/// calls of the tracer are not shown.
#[test]
fn a_trace_of_all_tasks_leaves_out_its_own_process() {
    if !can_trace("a_trace_of_all_tasks_leaves_out_its_own_process") {
        return;
    }
    let tracer = std::process::Command::new(env!("CARGO_BIN_EXE_rperf"))
        .args([
            "trace",
            "-a",
            "--json",
            "-e",
            "openat,readlink",
            "sleep",
            "0.3",
        ])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("rperf starts");
    let tracer_pid = tracer.id();
    let ended = tracer.wait_with_output().expect("a child");
    let lines = String::from_utf8_lossy(&ended.stderr).into_owned();
    let objects = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let processes: Vec<u64> = objects.filter_map(|call| call["pid"].as_u64()).collect();
    assert!(!processes.is_empty(), "sleep opens files: {lines}");
    assert!(!processes.contains(&tracer_pid.into()), "{lines}");
}
