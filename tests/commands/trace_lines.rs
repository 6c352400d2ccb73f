//! `rperf trace`: strings and structures, names of descriptors, JSON, settings, events that switch the output on and off,
//! filters, delays, limits, run times, and trees of processes.

use std::path::Path;
use std::process::Command;

use rperf_testkit::{Outcome, Scratch, skip};

use super::trace::run;
use super::{assert_refused, rperf};
use crate::kernel::can_trace;

/// Whether the notes of a trace say that the memory to which arguments point is not shown, or was read late: this machine permits
/// no BPF.
fn lacks_memory(ran: &Outcome) -> bool {
    ran.stderr.contains("are shown as addresses") || ran.stderr.contains("marked as late")
}

/// Runs a trace that shows memory, and returns its calls without times and threads. Prints that the test is skipped and
/// returns `None` if this machine cannot.
pub(super) fn run_with_memory(
    test: &str,
    scratch: &Scratch,
    words: &[&str],
) -> Option<Vec<String>> {
    if !can_trace(test) {
        return None;
    }
    let ran = run(scratch, words);
    if lacks_memory(&ran) {
        skip(test, "this machine has no BPF");
        return None;
    }
    // A line is `TIME (DURATION): COMM/TID CALL`.
    let call = |line: &str| {
        let (_, call) = line.split_once("): ")?;
        let (_, call) = call.split_once(' ')?;
        Some(call.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    Some(ran.stderr.lines().filter_map(call).collect())
}

#[test]
fn strings_and_structures_are_those_in_memory() {
    let test = "strings_and_structures_are_those_in_memory";
    let scratch = Scratch::new();
    // In buffers, control characters are shown as decimal numbers: `\9` is the tab.
    let script = r#"cat /nosuch; printf 'a\tb' >/dev/null; exec "$0" x '"'"#;
    let words = [
        "trace",
        "-e",
        "openat,write,execve,wait4",
        "sh",
        "-c",
        script,
        "/bin/true",
    ];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    for expected in [
        r#"openat(dfd: CWD, filename: "/nosuch") = -1 ENOENT (No such file or directory)"#,
        r"write(fd: 1</dev/null>, buf: a\9b, count: 3) = 3",
    ] {
        assert!(
            calls.iter().any(|call| call == expected),
            "{expected}: {calls:#?}"
        );
    }
    let begins = |begin: &str| calls.iter().any(|call| call.starts_with(begin));
    assert!(
        begins(r#"execve(filename: "/bin/true", argv: ["/bin/true", "x", "\""], envp: 0x"#),
        "{calls:#?}"
    );
    assert!(
        calls
            .iter()
            .any(|call| call.contains("wait4(") && call.contains("stat_addr: { .exited: 1 }")),
        "{calls:#?}"
    );
}

#[test]
fn descriptors_have_the_names_at_the_time_of_the_call() {
    let test = "descriptors_have_the_names_at_the_time_of_the_call";
    let scratch = Scratch::new();
    for name in ["a", "b"] {
        let written = scratch.write(name, b"hello\n");
        written.expect("the folder is writable");
    }
    // Only reads are shown, but the names come from other calls.
    let words = ["trace", "-e", "read", "cat", "a", "b"];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    let folder = scratch.path().canonicalize().expect("the folder exists");
    let folder = folder.display();
    for name in ["a", "b"] {
        let begin = format!(r"read(fd: 3<{folder}/{name}>, buf: hello\10, count: ");
        let matching = calls.iter().filter(|call| call.starts_with(&begin));
        assert_eq!(matching.count(), 1, "{begin}: {calls:#?}");
    }
    assert!(
        calls.iter().all(|call| call.starts_with("read(")),
        "{calls:#?}"
    );
}

/// Descriptors that processes opened before the trace have names, also in a trace of the whole machine.
#[test]
fn descriptors_of_the_whole_machine_have_names() {
    let test = "descriptors_of_the_whole_machine_have_names";
    let scratch = Scratch::new();
    scratch
        .write("a", b"hello\n")
        .expect("the folder is writable");
    let reading = "exec 3<a; while read line <&3 || sleep 0.02; do :; done";
    let mut reader = Command::new("sh")
        .args(["-c", reading])
        .current_dir(scratch.path())
        .spawn()
        .expect("sh starts");
    // The shell copies descriptor 3 for each read.
    let words = ["trace", "-a", "-e", "dup2", "sleep", "0.5"];
    let calls = run_with_memory(test, &scratch, &words);
    reader.kill().expect("a child");
    reader.wait().expect("a child");
    let folder = scratch.path().canonicalize().expect("the folder exists");
    let begin = format!("dup2(oldfd: 3<{}/a>", folder.display());
    if let Some(calls) = calls {
        assert!(calls.iter().any(|call| call.contains(&begin)), "{calls:#?}");
    }
}

#[test]
fn strings_are_truncated_and_unreadable_ones_have_their_address() {
    let test = "strings_are_truncated_and_unreadable_ones_have_their_address";
    let scratch = Scratch::new();
    let words = [
        "trace",
        "--string-size",
        "3",
        "-e",
        "write",
        "sh",
        "-c",
        "echo hello",
    ];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    assert!(
        calls
            .iter()
            .any(|call| call.contains("buf: hel..., count: 6) = 6")),
        "{calls:#?}"
    );
    let open = "import ctypes; ctypes.CDLL(None).open(ctypes.c_void_p(8), 0)";
    let words = ["trace", "--failure", "-e", "openat", "python3", "-c", open];
    if !Path::new("/usr/bin/python3").exists() {
        return skip(test, "there is no python3");
    }
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    let expected = "openat(dfd: CWD, filename: 0x8 (unreadable)) = -1 EFAULT (Bad address)";
    assert!(calls.iter().any(|call| call == expected), "{calls:#?}");
    let words = ["trace", "--string-size", "5000", "true"];
    assert_refused(
        &words,
        129,
        "--string-size: 5000 bytes are too many\nhint: at most 4096\n",
    );
}

#[test]
fn calls_and_events_are_printed_as_json() {
    let test = "calls_and_events_are_printed_as_json";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "--json",
        "-o",
        "lines",
        "-e",
        "openat,exit_group,sched:sched_process_exec",
        "sh",
        "-c",
        "cat /nosuch; exit 3",
    ];
    let ran = run(&scratch, &words);
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    let lines = std::fs::read_to_string(scratch.path().join("lines")).expect("the file exists");
    let objects: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object"))
        .collect();
    assert!(
        objects.iter().all(|object| object["version"] == 1),
        "{lines}"
    );
    // The third value of openat, its flags, is 0 for the operand of cat. Libraries and locales are opened with `O_CLOEXEC`.
    let failed = objects.iter().find(|object| {
        object["error"] == "ENOENT" && object["comm"] == "cat" && object["values"][2] == 0
    });
    let failed = failed.unwrap_or_else(|| panic!("{lines}"));
    assert_eq!(
        (&failed["result"], &failed["name"]),
        (&(-2).into(), &"openat".into())
    );
    assert_eq!(failed["arguments"]["dfd"], "CWD");
    let ended = objects
        .iter()
        .filter(|object| object["name"] == "exit_group");
    // cat fails with 1, and the shell exits with 3.
    let codes: Vec<&serde_json::Value> = ended.map(|object| &object["values"][0]).collect();
    assert_eq!(codes, [&1, &3], "{lines}");
    assert!(
        objects.iter().any(|object| object["kind"] == "event" && object["name"] == "sched:sched_process_exec"),
        "{lines}"
    );
    let both = ["trace", "--json", "-s", "true"];
    assert_refused(
        &both,
        129,
        "--json prints calls and events, not their sums\nhint: leave out -s, -S and --errno-summary\n",
    );
}

#[test]
fn events_switch_lines_on_and_off() {
    let test = "events_switch_lines_on_and_off";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let script = "cd /; cat /dev/null; cd /tmp";
    let count = |ran: &Outcome, name: &str| {
        let lines = ran.stderr.lines();
        lines.filter(|line| line.contains(name)).count()
    };
    let words = [
        "trace",
        "-e",
        "chdir",
        "--switch-on",
        "sched:sched_process_exit",
        "sh",
        "-c",
        script,
    ];
    let ran = run(&scratch, &words);
    assert_eq!(
        count(&ran, "chdir("),
        1,
        "only the one after the exit of cat: {}",
        ran.stderr
    );
    assert!(
        !ran.stderr.contains("sched_process_exit("),
        "{}",
        ran.stderr
    );
    let words = [
        "trace",
        "-e",
        "chdir",
        "--switch-off",
        "sched:sched_process_exit",
        "--show-on-off-events",
        "sh",
        "-c",
        script,
    ];
    let ran = run(&scratch, &words);
    assert_eq!(
        count(&ran, "chdir("),
        1,
        "only the one before the exit of cat: {}",
        ran.stderr
    );
    let exits = count(&ran, "sched_process_exit(");
    assert_eq!(exits, 1, "{}", ran.stderr);
    assert_refused(
        &["trace", "--show-on-off-events", "true"],
        129,
        "--show-on-off-events needs --switch-on or --switch-off\n",
    );
}

#[test]
fn filters_apply_to_the_events_of_the_option_before_them() {
    let test = "filters_apply_to_the_events_of_the_option_before_them";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "-e",
        "syscalls:sys_enter_chdir,syscalls:sys_enter_exit_group",
        "-e",
        "syscalls:sys_enter_dup2",
        "--filter",
        "oldfd == 99",
        "sh",
        "-c",
        "cd /; cd / >/dev/null",
    ];
    let ran = run(&scratch, &words);
    let count = |name: &str| {
        ran.stderr
            .lines()
            .filter(|line| line.contains(name))
            .count()
    };
    assert_eq!(
        (count("enter_chdir("), count("enter_dup2(")),
        (2, 0),
        "{}",
        ran.stderr
    );
    assert_refused(
        &["trace", "-e", "chdir", "--filter", "x == 1", "true"],
        129,
        "--filter: system calls have no fields to filter\n\
         hint: filter a tracepoint: -e syscalls:sys_enter_openat --filter 'dfd == 3'\n",
    );
}

#[test]
fn settings_change_the_layout() {
    let test = "settings_change_the_layout";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let settings = b"[trace]\n\tshow_arg_names = no\n\tshow_duration = no\n\tshow_timestamp = no\n\targs_alignment = 0\n";
    let path = scratch.write("settings", settings);
    let path = path.expect("the folder is writable");
    let words = [
        "trace",
        "-e",
        "write,clock_nanosleep",
        "sh",
        "-c",
        "echo 'a b'; sleep 0.01",
    ];
    let ran = rperf(&words).env("PERF_CONFIG", path).finish();
    let ran = ran.expect("rperf starts");
    if lacks_memory(&ran) {
        return skip(test, "this machine has no BPF");
    }
    let written = ran.stderr.lines().find(|line| line.contains("write("));
    let written = written.unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(
        written.starts_with("sh/") && written.ends_with(" write(1, a b\\10, 4) = 4"),
        "{written}"
    );
    let slept = ran
        .stderr
        .lines()
        .find(|line| line.contains("clock_nanosleep("));
    let slept = slept.unwrap_or_else(|| panic!("{}", ran.stderr));
    assert!(
        slept.contains("clock_nanosleep(0, 0, {0, 10000000}, 0"),
        "{slept}"
    );
}

#[test]
fn a_delayed_trace_names_descriptors_opened_before_it() {
    let test = "a_delayed_trace_names_descriptors_opened_before_it";
    let scratch = Scratch::new();
    // The trace begins after 5 seconds: well after the first `cd` and well before the second, also on a busy machine.
    let script = "exec 9</dev/null; cd /; sleep 12; cd /tmp; read x <&9";
    let words = [
        "trace",
        "-D",
        "5000",
        "-e",
        "chdir,dup2",
        "sh",
        "-c",
        script,
    ];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    let [changed, duplicated, ..] = &calls[..] else {
        panic!("{calls:#?}");
    };
    assert_eq!(
        changed, "chdir(filename: \"/tmp\") = 0",
        "the first chdir is before the trace"
    );
    assert!(
        duplicated.starts_with("dup2(oldfd: 9</dev/null>)"),
        "{calls:#?}"
    );
    let words = ["trace", "-D", "soon", "true"];
    assert_refused(
        &words,
        129,
        "-D: 'soon' is not a number of milliseconds\nhint: -D 500\n",
    );
}

/// At the return from a signal handler the kernel reports the exit of system call -1.
#[test]
fn returns_from_signal_handlers_are_no_calls() {
    let test = "returns_from_signal_handlers_are_no_calls";
    let scratch = Scratch::new();
    let script = "trap 'cd /' USR1; kill -USR1 $$; cd /tmp";
    let words = ["trace", "sh", "-c", script];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    let has = |text: &str| calls.iter().any(|call| call.contains(text));
    assert!(
        has("rt_sigreturn(") && has("chdir(filename: \"/tmp\")"),
        "{calls:#?}"
    );
    // A call with an unknown number would be shown as `syscall_NUMBER`.
    assert!(!has("syscall_"), "{calls:#?}");
}

#[test]
fn run_times_are_in_the_titles_of_summaries() {
    let test = "run_times_are_in_the_titles_of_summaries";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "-s",
        "--sched",
        "sh",
        "-c",
        "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done",
    ];
    let ran = run(&scratch, &words);
    let title = ran.stderr.lines().find(|line| line.starts_with(" sh ("));
    let title = title.unwrap_or_else(|| panic!("{}", ran.stderr));
    let time = title
        .strip_suffix(" msec")
        .and_then(|title| title.rsplit(' ').next());
    let time: f64 = time
        .and_then(|time| time.parse().ok())
        .unwrap_or_else(|| panic!("{title}"));
    assert!((0.5..60_000.0).contains(&time), "{title}");
    assert_refused(
        &["trace", "--sched", "true"],
        129,
        "--sched needs -s or -S\n",
    );
}

#[test]
fn processes_are_a_tree_of_their_programs() {
    let test = "processes_are_a_tree_of_their_programs";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let script = "cd /tmp; cat /nosuch; sh -c 'kill -9 $$'; exit 3";
    let ran = run(&scratch, &["trace", "--exec-tree", "sh", "-c", script]);
    if lacks_memory(&ran) {
        return skip(test, "this machine has no BPF");
    }
    assert_eq!(ran.status, 3, "{}", ran.stderr);
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .skip_while(|line| !line.contains("program ["))
        .collect();
    let [_, shell, cat, killed] = lines[..] else {
        panic!("{}", ran.stderr);
    };
    assert!(
        shell.contains("\"sh\", \"-c\", \"cd /tmp; cat") && shell.ends_with(" = 3"),
        "{shell}"
    );
    assert!(
        cat.ends_with("    \"cat\", \"/nosuch\" [/tmp] = 1"),
        "{cat}"
    );
    assert!(
        killed.ends_with("    \"sh\", \"-c\", \"kill -9 $$\" [/tmp] = SIGKILL"),
        "{killed}"
    );
    let words = ["trace", "--exec-tree", "-e", "open", "true"];
    assert_refused(
        &words,
        129,
        "--exec-tree selects its own calls\nhint: leave out -e\n",
    );
}

#[test]
fn run_times_are_summed_up_and_shown_once() {
    if !can_trace("run_times_are_summed_up_and_shown_once") {
        return;
    }
    let scratch = Scratch::new();
    let event = "sched:sched_stat_runtime";
    let words = ["trace", "-S", "--sched", "-e", event, "sleep", "0.01"];
    let ran = run(&scratch, &words);
    // `--sched` needs this event, too, but it is not opened twice: no two of its lines have the same time.
    let timestamps: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains(event))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(!timestamps.is_empty(), "{}", ran.stderr);
    let mut once = timestamps.clone();
    once.dedup();
    assert_eq!(timestamps, once, "{}", ran.stderr);
    let title = ran.stderr.lines().find(|line| line.contains(" events, "));
    assert!(
        title.is_some_and(|title| title.ends_with(" msec") && !title.contains(" 0.000 ")),
        "{}",
        ran.stderr
    );
}

/// Calls on CPUs that are not traced may close a descriptor and open it for another file.
#[test]
fn descriptors_have_no_names_if_only_some_cpus_are_traced() {
    let test = "descriptors_have_no_names_if_only_some_cpus_are_traced";
    let scratch = Scratch::new();
    let script = "for i in 1 2 3; do echo x; done >/dev/null";
    let name = "fd: 1</dev/null>";
    let words = ["trace", "-e", "write", "sh", "-c", script];
    let Some(calls) = run_with_memory(test, &scratch, &words) else {
        return;
    };
    assert!(calls.iter().any(|call| call.contains(name)), "{calls:#?}");
    let words = ["trace", "-C", "0", "-e", "write", "sh", "-c", script];
    let calls = run_with_memory(test, &scratch, &words).unwrap_or_default();
    assert!(!calls.iter().any(|call| call.contains(name)), "{calls:#?}");
}

#[test]
fn events_have_limits_of_their_own() {
    if !can_trace("events_have_limits_of_their_own") {
        return;
    }
    let scratch = Scratch::new();
    let limited = "sched:sched_switch/nr=2/,sched:sched_waking/nr=1,max-stack=3/";
    // The trace ends long before the command would.
    let started = std::time::Instant::now();
    let ran = run(&scratch, &["trace", "-a", "-e", limited, "sleep", "30"]);
    assert!(started.elapsed().as_secs() < 20);
    let count = |text: &str| {
        let lines = ran.stderr.lines().filter(|line| line.contains(text));
        lines.count()
    };
    assert_eq!(
        (count(" sched:sched_switch("), count(" sched:sched_waking(")),
        (2, 1),
        "{}",
        ran.stderr
    );
    // `max-stack=3`: the stack of the one sched_waking has 3 frames, which are indented.
    assert_eq!(count("                    "), 3, "{}", ran.stderr);
    let group = "{sched:sched_switch/nr=3/,sched:sched_waking/nr=2/}";
    let of_group = run(&scratch, &["trace", "-a", "-e", group, "sleep", "30"]);
    let lines = of_group.stderr.lines();
    let lines = lines.filter(|line| line.contains(" sched:sched_"));
    assert_eq!(lines.count(), 5, "{}", of_group.stderr);
    assert_refused(
        &["trace", "-e", "sched:sched_switch/nr=x/", "true"],
        129,
        "-e sched:sched_switch/nr=x/: 'x' is not a number of events\n",
    );
}
