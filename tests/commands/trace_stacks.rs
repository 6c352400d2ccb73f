//! `rperf trace`: stacks (their innermost frame is compared with perf's) and page faults.

use rperf_testkit::{Run, Scratch, real_perf, skip};

use super::assert_refused;
use super::trace::run;
use crate::kernel::can_trace;

/// Returns the frames printed below the first line of the text, with their indentation.
fn frames(text: &str) -> Vec<String> {
    let frames = text.lines().skip(1);
    let frames = frames.take_while(|line| line.starts_with("                "));
    frames.map(str::to_owned).collect()
}

#[test]
fn stacks_are_below_the_calls_as_in_perf() {
    let test = "stacks_are_below_the_calls_as_in_perf";
    if !can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let words = ["--call-graph", "fp", "-e", "clock_nanosleep", "sleep", "0"];
    let ours = run(&scratch, &[&["trace"], &words[..]].concat());
    let our_frames = frames(&ours.stderr);
    assert!(
        our_frames
            .first()
            .is_some_and(|frame| frame.contains("nanosleep")),
        "{}",
        ours.stderr
    );
    let with_kernel = ["trace", "--kernel-syscall-graph"];
    let with_kernel = run(&scratch, &[&with_kernel, &words[..]].concat());
    assert!(
        frames(&with_kernel.stderr).len() > our_frames.len()
            && with_kernel.stderr.contains("[kernel.kallsyms]"),
        "{}",
        with_kernel.stderr
    );
    let Some(perf) = real_perf() else {
        return skip(test, "there is no perf");
    };
    let theirs = Run::new(perf).args(["trace"]).args(words);
    let theirs = theirs.within(scratch.path()).finish().expect("perf starts");
    if theirs.status != 0 {
        return skip(test, "this perf has no trace");
    }
    // Only the innermost frame is certain: a C library without frame pointers uses the register for other values.
    assert_eq!(our_frames.first(), frames(&theirs.stderr).first());
}

#[test]
fn stacks_are_limited() {
    if !can_trace("stacks_are_limited") {
        return;
    }
    let scratch = Scratch::new();
    let event_and_command = ["-e", "sched:sched_process_exec", "true"];
    let limited = |words: &[&str]| {
        let words = [
            &["trace", "--call-graph", "fp"],
            words,
            &event_and_command[..],
        ]
        .concat();
        run(&scratch, &words).stderr
    };
    let lines = limited(&["--max-stack", "2"]);
    assert_eq!(frames(&lines).len(), 2, "{lines}");
    // The stack of the exec has fewer than 120 frames: the event is not shown.
    assert_eq!(limited(&["--min-stack", "120"]), "");
    let lines = limited(&["--json", "--max-stack", "1"]);
    let object: serde_json::Value = serde_json::from_str(&lines).expect("one object");
    assert_eq!(object["stack"].as_array().map(Vec::len), Some(1), "{lines}");
}

/// In live traces, `--max-stack` without `--call-graph` implies stack copies.
#[test]
fn stack_copies_are_unwound() {
    if !can_trace("stack_copies_are_unwound") {
        return;
    }
    let scratch = Scratch::new();
    let words = [
        "trace",
        "--max-stack",
        "9",
        "-e",
        "exit_group",
        "sleep",
        "0",
    ];
    assert_eq!(
        run(&scratch, &words).stderr.lines().count(),
        1,
        "exit_group does not return, so no stack is copied"
    );
    let words = ["trace", "--max-stack", "9", "-e", "clock_nanosleep"];
    let ran = run(&scratch, &[&words, &["sleep", "0"][..]].concat());
    let frames = frames(&ran.stderr);
    assert!(
        frames.len() > 2 && frames.iter().any(|frame| frame.contains("/sleep)")),
        "{}",
        ran.stderr
    );
}

#[test]
fn page_faults_are_shown_and_counted() {
    if !can_trace("page_faults_are_shown_and_counted") {
        return;
    }
    let scratch = Scratch::new();
    let words = ["trace", "-F", "all", "--no-syscalls", "-S", "true"];
    let ran = run(&scratch, &words);
    let faults = |kind: &str| {
        let kind = format!(" {kind}fault [");
        ran.stderr
            .lines()
            .filter(|line| line.contains(&kind))
            .count()
    };
    // The summary (`-S`) has a title for each thread with its counts; a count of 0 is not in it.
    let title = ran.stderr.lines().find(|line| line.contains(" events, "));
    let title = title.expect("a thread with events");
    for (kind, count) in [("min", faults("min")), ("maj", faults("maj"))] {
        let text = format!(", {count} {kind}faults");
        assert_eq!(title.contains(&text), count > 0, "{title}: {text}");
    }
    assert!(faults("min") > 10, "{}", ran.stderr);
    // The first instruction of the process, in the dynamic linker, faults since its page is not present: the target is that code.
    // `d`: the target is in a mapping; `.`: a fault of user code.
    let start = ran
        .stderr
        .lines()
        .find(|line| line.contains("fault [_start+0x0] => "));
    assert!(
        start.is_some_and(|line| line.contains("/ld-linux") && line.ends_with(" (d.)")),
        "{}",
        ran.stderr
    );
}

#[test]
fn recorded_stacks_and_faults_are_shown() {
    if !can_trace("recorded_stacks_and_faults_are_shown") {
        return;
    }
    let scratch = Scratch::new();
    let events = "raw_syscalls:sys_enter,raw_syscalls:sys_exit,minor-faults";
    let record = ["record", "-R", "-c", "1", "-d", "-g", "-e", events];
    let words = [&record[..], &["-o", "f", "sleep", "0"]].concat();
    let recorded = run(&scratch, &words);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let printed = run(&scratch, &["trace", "-i", "f", "-e", "clock_nanosleep"]);
    let call = printed.stderr.split_once(" clock_nanosleep(");
    let frames = frames(call.map_or("", |(_, rest)| rest));
    assert!(
        frames.iter().any(|frame| frame.contains("nanosleep")),
        "{}",
        printed.stderr
    );
    assert!(printed.stderr.contains(" minfault ["), "{}", printed.stderr);
}

/// A recording without events of system calls is refused unless `--no-syscalls` is given. This one is recorded without `-d`, so
/// data addresses are unknown: a page fault is shown with the code that caused it and `?` as its target.
#[test]
fn recordings_without_system_calls_are_shown() {
    if !can_trace("recordings_without_system_calls_are_shown") {
        return;
    }
    let scratch = Scratch::new();
    let events = "minor-faults,sched:sched_process_exit";
    let record = ["record", "-R", "-c", "1", "-e", events, "-o", "f", "true"];
    let recorded = run(&scratch, &record);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let printed = run(&scratch, &["trace", "-i", "f", "--no-syscalls"]);
    assert_eq!(printed.status, 0, "{}", printed.stderr);
    let mut faults = printed
        .stderr
        .lines()
        .filter(|line| line.contains("fault ["));
    assert!(
        faults.clone().count() > 0 && faults.all(|line| line.contains("] => ? (?")),
        "{}",
        printed.stderr
    );
    let exit = "sched:sched_process_exit";
    let words = ["trace", "-i", "f", "--no-syscalls", "--switch-on", exit];
    let after = run(&scratch, &words);
    assert_eq!((after.status, after.stderr.contains("fault [")), (0, false));
    let refused = run(
        &scratch,
        &["trace", "-i", "f", "--no-syscalls", "--switch-on", "a:b"],
    );
    let expected = "f: the recording has no event 'a:b' to switch at\n\
        hint: 'rperf evlist' shows its events; --switch-on and --switch-off do not take system calls\n";
    assert_eq!((refused.status, refused.stderr.as_str()), (255, expected));
    let refused = run(&scratch, &["trace", "-i", "f", "-e", exit]);
    let expected = "-e with -i selects system calls, and 'sched:sched_process_exit' is none\n\
        hint: other events of the recording are always shown; --no-syscalls shows only them\n";
    assert_eq!((refused.status, refused.stderr.as_str()), (129, expected));
}

#[test]
fn invalid_and_inapplicable_options_are_refused() {
    assert_refused(
        &["trace", "-F", "some", "true"],
        129,
        "-F: 'some' is not a kind of page faults\nhint: use all, maj or min\n",
    );
    assert_refused(
        &["trace", "--min-stack", "2", "true"],
        129,
        "--kernel-syscall-graph and --min-stack need stacks: add --call-graph fp\n",
    );
    assert_refused(
        &["trace", "-i", "x", "--call-graph", "fp"],
        129,
        "--call-graph applies to live traces, not to -i\n",
    );
}
