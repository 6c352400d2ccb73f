//! `script -s` and `-g`: scripts, mostly in Python, on recordings of the repository. `own` is rperf, or the test's own script.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Scratch, real_perf, skip, write_program};

use crate::tidy::root;

/// Recordings of other machines, with many kinds of samples.
pub(crate) const RECORDINGS: [&str; 14] = [
    "x86_64/branches-flags.data",
    "x86_64/branches.data",
    "x86_64/bts.data",
    "x86_64/counted.data",
    "x86_64/cycles.data",
    "x86_64/group.data",
    "x86_64/kprobe.data",
    "x86_64/leader.data",
    "x86_64/memory.data",
    "x86_64/pages.data",
    "x86_64/precise.data",
    "x86_64/registers.data",
    "x86_64/stores.data",
    "x86_64/switches.data",
];

/// A script that prints the arguments of its functions.
const PRINT_ALL: &str = "
import os, sys
sys.path.append(os.environ['PERF_EXEC_PATH'] + '/scripts/python/Perf-Trace-Util/lib/Perf/Trace')
from perf_trace_context import *
from Core import *
from Util import *
def trace_begin():
    print('begin', sys.argv[1:])
    print(perf_script_context is not None, taskState(2), trace_flag_str(9), nsecs_str(1500), strerror(-2))
def trace_end(): print('end')
def show(values): return sorted(values.items(), key=lambda pair: pair[0])
def trace_unhandled(event, context, fields, sample):
    print(event, common_pc(context), common_flags(context), show(fields), show(sample))
def process_event(values):
    print(show(values))
def context_switch(*values): print(values)
def throttle(*values): print(values)
def unthrottle(*values): print(values)
";

pub(super) fn has_python() -> bool {
    let output = Command::new("python3").arg("--version").output();
    output.is_ok_and(|output| output.status.success())
}

/// Runs `program` with `script` on a recording of the repository.
fn run(program: &str, script: &str, recording: &str, words: &[&str]) -> Outcome {
    let scratch = Scratch::new();
    scratch
        .write("own.py", script.as_bytes())
        .expect("a file can be written");
    let recording = root().join("tests/fixtures").join(recording);
    let recording = recording.to_string_lossy().into_owned();
    let start = ["script", "-f", "-i", &recording, "-s", "own.py"];
    let run = rperf_testkit::Run::new(program).args([&start[..], words].concat());
    run.within(scratch.path())
        .finish()
        .expect("the program starts")
}

/// Runs rperf with `script` on a recording of cycles.
fn rperf(script: &str, words: &[&str]) -> Outcome {
    run(
        env!("CARGO_BIN_EXE_rperf"),
        script,
        "x86_64/cycles.data",
        words,
    )
}

#[test]
fn functions_get_the_values_that_perf_passes() {
    let test = "functions_get_the_values_that_perf_passes";
    let (true, Some(perf)) = (has_python(), real_perf()) else {
        return skip(test, "there is no perf or no Python");
    };
    for recording in RECORDINGS {
        let expected = run(&perf.to_string_lossy(), PRINT_ALL, recording, &["a", "b c"]);
        let own = run(
            env!("CARGO_BIN_EXE_rperf"),
            PRINT_ALL,
            recording,
            &["a", "b c"],
        );
        assert_eq!((own.status, expected.status), (0, 0), "{}", own.stderr);
        // Without python-audit, perf's module `Util` prints a notice first.
        let start = expected
            .stdout
            .find("begin [")
            .expect("trace_begin is called");
        assert_eq!(own.stdout, expected.stdout[start..], "{recording}");
    }
}

#[test]
fn a_script_gets_the_same_values_if_only_those_it_reads_are_sent() {
    if !has_python() {
        return skip(
            "a_script_gets_the_same_values_if_only_those_it_reads_are_sent",
            "there is no Python",
        );
    }
    let script = "
count = 0
def process_event(values):
    global count
    count += values['sample']['period'] > 0 and 'comm' in values and 'symbol' not in values.get('sample')
def trace_end(): print(count)
";
    // rperf finds the keys in the source text and sends only their values. With `dict(values)`, it sends all.
    let few = rperf(script, &[]);
    let all = rperf(
        &script.replace("values.get('sample')", "dict(values)['sample']"),
        &[],
    );
    assert_eq!(
        (few.status, &few.stdout),
        (0, &all.stdout),
        "{}",
        few.stderr
    );
    assert_ne!(few.stdout, "0\n");
}

#[test]
fn scripts_end_with_their_own_status() {
    if !has_python() {
        return skip("scripts_end_with_their_own_status", "there is no Python");
    }
    // Besides its own status: 255 if it cannot be loaded; 134, as after abort(3) in perf, if one of its functions fails.
    for (script, status, stdout, stderr) in [
        ("import sys; print('x'); sys.exit(3)", 3, "x\n", ""),
        ("def trace_begin(): raise SystemExit", 0, "", ""),
        ("def x(:", 255, "", "SyntaxError"),
        (
            "import nothing_of_this_name",
            255,
            "",
            "ModuleNotFoundError",
        ),
        ("import SchedGui", 255, "", "SchedGui needs a window system"),
        (
            "print(1)\ndef process_event(): pass",
            134,
            "1\n",
            "takes 0 positional arguments but 1 was given\nproblem in Python trace event handler\n",
        ),
        (
            "def process_event(v):\n    raise ValueError('own')",
            134,
            "",
            "line 2, in process_event",
        ),
        ("def trace_end(): 1 / 0", 134, "", "ZeroDivisionError"),
    ] {
        let outcome = rperf(script, &[]);
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (status, stdout),
            "{script}: {}",
            outcome.stderr
        );
        // Compared line by line: rperf's warnings can be between the interpreter's lines.
        for line in stderr.lines() {
            assert!(
                outcome.stderr.contains(line),
                "{script}: {}",
                outcome.stderr
            );
        }
        // `call_for_all`, in rperf's Python code, calls the functions of the script; tracebacks must not show it.
        let has_frames_of_rperf = outcome.stderr.contains("call_for_all");
        assert!(!has_frames_of_rperf, "{}", outcome.stderr);
    }
}

#[test]
fn bad_scripts_and_interpreters_are_named() {
    for (words, status, message) in [
        (
            &["-s", "/nonexistent.py"][..],
            255,
            "-s /nonexistent.py: No such file",
        ),
        (&["-s", "list"], 129, "invalid script extension: -s list"),
        (
            &["-s", "ruby:x.py"],
            129,
            "invalid language specifier: -s ruby:x.py",
        ),
    ] {
        let outcome = crate::commands::outcome(&[&["script"], words].concat());
        assert_eq!(outcome.status, status, "{}", outcome.stderr);
        assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    }
    let scratch = Scratch::new();
    for name in ["own.py", "own.pl"] {
        scratch.write(name, b"").expect("a file can be written");
    }
    let recording = root().join("tests/fixtures/x86_64/cycles.data");
    let with_interpreter = |interpreter: &str, script: &str| {
        let (recording, script) = (recording.to_string_lossy(), scratch.path().join(script));
        let input = ["script", "-f", "-i", &*recording];
        let options = ["--python", interpreter, "-s", &*script.to_string_lossy()];
        crate::commands::outcome(&[&input[..], &options].concat())
    };
    let outcome = with_interpreter("python3", "own.pl");
    assert_eq!(
        (outcome.status, &*outcome.stderr),
        (129, "--python applies to Python scripts only\n")
    );
    let outcome = with_interpreter("/nonexistent/python", "own.py");
    assert_eq!(outcome.status, 255);
    let message = "/nonexistent/python: No such file";
    assert!(outcome.stderr.starts_with(message), "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("hint: install Python 3"),
        "{}",
        outcome.stderr
    );
}

/// The output of `program script` for the fixture with kprobes.
pub(super) fn printed_for_kprobes(scratch: &Scratch, program: &str, words: &[&str]) -> String {
    let recording = root().join("tests/fixtures/x86_64/kprobe.data");
    let start = ["script", "-f", "-i", &*recording.to_string_lossy()];
    let run = rperf_testkit::Run::new(program).args([&start[..], words].concat());
    let outcome = run
        .within(scratch.path())
        .finish()
        .expect("the program starts");
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

#[test]
fn generated_scripts_run_under_both_tools() {
    let test = "generated_scripts_run_under_both_tools";
    let (true, Some(perf)) = (has_python(), real_perf()) else {
        return skip(test, "there is no perf or no Python");
    };
    let scratch = Scratch::new();
    let call = |program: &str, words: &[&str]| printed_for_kprobes(&scratch, program, words);
    let own = env!("CARGO_BIN_EXE_rperf");
    let perf = perf.to_string_lossy();
    let mut outputs = Vec::new();
    for generator in [own, &*perf] {
        call(generator, &["-g", "python"]);
        for program in [own, &*perf] {
            outputs.push(call(program, &["-s", "perf-script.py"]));
        }
    }
    assert!(
        outputs[0].starts_with("in trace_begin\nkprobes__"),
        "{}",
        outputs[0]
    );
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    // A file name in place of the language: its extension chooses the language.
    call(own, &["-g", "python"]);
    call(own, &["-g", "own.py"]);
    let texts = ["perf-script.py", "own.py"].map(|name| {
        let path = scratch.path().join(name);
        std::fs::read_to_string(path).expect("it is written")
    });
    assert_eq!(texts[0], texts[1]);
    for language in ["ruby", "own.rb"] {
        let refused = crate::commands::outcome(&["script", "-g", language]);
        assert_eq!(refused.status, 129, "{refused:?}");
    }
}

#[test]
fn scripts_have_their_context_without_importing_it() {
    if !has_python() {
        return skip(
            "scripts_have_their_context_without_importing_it",
            "there is no python3",
        );
    }
    let outcome = rperf(
        "def trace_begin(): print(type(perf_script_context).__name__)\n",
        &[],
    );
    assert_eq!(outcome.stdout.trim(), "Context", "{}", outcome.stderr);
}

/// On another kernel, a tracepoint can have other fields. A handler whose number of parameters does not fit gets each field by
/// name.
#[test]
fn handlers_for_another_kernel_get_fields_by_name() {
    if !has_python() {
        return skip(
            "handlers_for_another_kernel_get_fields_by_name",
            "there is no python3",
        );
    }
    let common = "event, context, cpu, secs, nsecs, pid, comm, callchain";
    // The handler prints its parameters after the 8 common ones.
    let run_handler = |parameters: &str| {
        let script = format!(
            "def kprobes__opened({common}{parameters}):\n    print({})\n",
            "dict(list(locals().items())[8:])"
        );
        run(
            env!("CARGO_BIN_EXE_rperf"),
            &script,
            "x86_64/kprobe.data",
            &[],
        )
    };
    let first_line = |parameters| {
        let outcome = run_handler(parameters);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        outcome.stdout.lines().next().unwrap_or_default().to_owned()
    };
    let usual = first_line(", __probe_ip, dfd, file");
    assert!(usual.ends_with("'file': '/proc/self/status'}"), "{usual}");
    assert_eq!(first_line(", file"), "{'file': '/proc/self/status'}");
    let with_sample = first_line(", file, sample");
    let expected = "{'file': '/proc/self/status', 'sample': {";
    assert!(with_sample.starts_with(expected), "{with_sample}");
    // The recorded tracepoint has no field `unknown`. Then all fields are passed by position, as in perf.
    let refused = run_handler(", unknown");
    assert_eq!(refused.status, 134);
    assert!(
        refused
            .stderr
            .contains("takes 9 positional arguments but 11 were given"),
        "{}",
        refused.stderr
    );
}

/// Samples of events whose names or systems are not valid function names, as input of `data convert`, and texts that generated
/// scripts print for them. perf is terminated by a signal if the name of an event or system contains `-`.
const ODD_NAMES: [(&str, &[&str]); 2] = [
    (
        "a 1 [000] 1.000001: 9p:9p_req: tag=5\na 1 [000] 1.000002: 9p:2nd: 2nd=6 in=7\n",
        &["tag=5\n", "2nd=6, in=7\n"],
    ),
    (
        "a 1 [000] 1.000001: own-system:an-event: in=8\n",
        &["own-system", "an-event", "in=8\n"],
    ),
];

#[test]
fn generated_scripts_handle_events_with_odd_names() {
    let test = "generated_scripts_handle_events_with_odd_names";
    let (true, Some(perf)) = (has_python(), real_perf()) else {
        return skip(test, "there is no perf or no Python");
    };
    let scratch = Scratch::new();
    let call = |program: &str, words: &[&str]| {
        let run = rperf_testkit::Run::new(program).args(words);
        let outcome = run.within(scratch.path()).finish();
        let outcome = outcome.expect("the program starts");
        assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
        outcome.stdout
    };
    let (own, perf) = (env!("CARGO_BIN_EXE_rperf"), perf.to_string_lossy());
    for (text, parts) in ODD_NAMES {
        scratch.write("text", text.as_bytes()).expect("a file");
        call(
            own,
            &[
                "data",
                "convert",
                "-i",
                "text",
                "--to-perf",
                "perf.data",
                "--force",
            ],
        );
        for (language, script) in [("python", "perf-script.py"), ("perl", "perf-script.pl")] {
            call(own, &["script", "-g", language]);
            let words = ["script", "-s", script];
            let printed = call(own, &words);
            for part in parts {
                assert!(printed.contains(part), "{language}: {printed}");
            }
            // Without the dicts of samples: perf 6.1 adds invalid values of counters to samples that have none.
            let compared = |text: &str| {
                let lines = text.lines().filter(|line| !line.starts_with("Sample: "));
                lines.map(str::to_owned).collect::<Vec<_>>()
            };
            if !text.contains('-') {
                let expected = call(&perf, &words);
                assert_eq!(compared(&printed), compared(&expected), "{language}");
            }
        }
    }
}

#[test]
fn interpreters_that_do_not_read_do_not_block() {
    let scratch = Scratch::new();
    scratch.write("own.py", b"").expect("a file can be written");
    let recording = root().join("tests/fixtures/x86_64/cycles.data");
    let (recording, large) = (recording.to_string_lossy(), "x".repeat(100_000));
    // The interpreter is false(1), which ends with status 1 without reading.
    let words = [
        "script",
        "-f",
        "-i",
        &*recording,
        "--python",
        "false",
        "-s",
        "own.py",
    ];
    // The script's arguments, which rperf sends to the interpreter through a pipe, are more than a pipe holds.
    let words = [&words[..], &[&*large; 14]].concat();
    let run = rperf_testkit::Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let outcome = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
}

#[test]
fn interpreters_may_be_started_by_wrappers() {
    if !has_python() {
        return skip(
            "interpreters_may_be_started_by_wrappers",
            "there is no python3",
        );
    }
    let scratch = Scratch::new();
    // The shell keeps the ends of the pipes open until Python has ended.
    let wrapper = scratch.path().join("wrapper");
    write_program(&wrapper, "#!/bin/sh\npython3 \"$@\"\nexit $?\n");
    let own = "import sys\ndef trace_end(): sys.exit(7)\n";
    scratch.write("own.py", own).expect("a file");
    let recording = root().join("tests/fixtures/x86_64/cycles.data");
    let (wrapper, recording) = (wrapper.to_string_lossy(), recording.to_string_lossy());
    let words = [
        "script",
        "-f",
        "-i",
        &*recording,
        "--python",
        &*wrapper,
        "-s",
        "own.py",
    ];
    let run = rperf_testkit::Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let outcome = run.within(scratch.path()).finish().expect("rperf starts");
    assert_eq!(outcome.status, 7, "{}", outcome.stderr);
}

#[test]
fn counts_that_cannot_be_decoded_are_reported() {
    if !has_python() {
        return skip(
            "counts_that_cannot_be_decoded_are_reported",
            "there is no python3",
        );
    }
    let scratch = Scratch::new();
    scratch
        .write("own.py", b"def stat__interval(time): print('interval')\n")
        .expect("a file can be written");
    let call = |words: &[&str]| {
        let run = rperf_testkit::Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
        run.within(scratch.path()).finish().expect("rperf starts")
    };
    let recorded = call(&[
        "stat",
        "record",
        "-e",
        "task-clock",
        "-o",
        "stat.data",
        "true",
    ]);
    assert_eq!(recorded.status, 0, "{}", recorded.stderr);
    let path = scratch.path().join("stat.data");
    let mut bytes = std::fs::read(&path).expect("the recording was written");
    // A PERF_RECORD_STAT of 48 bytes becomes one of 16, which is too short, and a PERF_RECORD_FINISHED_ROUND.
    // The PERF_RECORD_STAT_ROUND after it stays, for which `stat__interval` is called.
    let header = [76, 0, 0, 0, 0, 0, 48, 0];
    let place = bytes.windows(8).position(|window| window == header);
    let place = place.expect("there are counts");
    bytes[place + 6] = 16;
    bytes[place + 16..place + 24].copy_from_slice(&[68, 0, 0, 0, 0, 0, 32, 0]);
    std::fs::write(&path, bytes).expect("the recording can be written");
    let outcome = call(&["script", "-i", "stat.data", "-s", "own.py"]);
    assert_eq!(outcome.stdout, "interval\n", "{}", outcome.stderr);
    let message = "1 record cannot be decoded";
    assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
}

#[test]
fn top_scripts_refresh_their_screen_until_interrupted() {
    let test = "top_scripts_refresh_their_screen_until_interrupted";
    if !crate::kernel::can_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_rperf");
    // Ctrl-C ends the terminal's shell, so another shell, which handles the signal, writes rperf's status.
    let line =
        format!("sh -c \"trap : INT; {program} script sctop 1; echo \\$? > part; mv part status\"");
    let started = crate::commands::tmux::Tmux::start_line((100, 200), scratch.path(), &line);
    let Some(pane) = started else {
        return;
    };
    let title = "syscall events:";
    let first = pane.wait("a table", |screen| has_rows(screen, title));
    // Each table begins on an empty screen.
    pane.wait("another table", |screen| {
        has_rows(screen, title) && *screen != *first && screen.matches(title).count() == 1
    });
    pane.press(&["C-c"]);
    let status = scratch.path().join("status");
    let start = std::time::Instant::now();
    while !status.exists() && start.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let status = std::fs::read_to_string(status).expect("the script ends");
    assert_eq!(status, "0\n");
}

/// Whether a screen has the title of a table and a row that ends with a digit.
fn has_rows(screen: &str, title: &str) -> bool {
    let is_row = |line: &str| line.ends_with(|last: char| last.is_ascii_digit());
    screen.contains(title) && screen.lines().any(is_row)
}

/// Waits until the process blocks SIGINT (proc_pid_status(5), `SigBlk`).
fn wait_until_interrupts_are_blocked(pid: u32) {
    const SIGINT_BIT: u64 = 1 << (2 - 1);
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
        let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        if mask.is_some_and(|mask| mask & SIGINT_BIT != 0) {
            return;
        }
        assert!(Instant::now() < deadline, "{status}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// rperf blocks and ignores SIGINT: in a pipeline, Ctrl-C also reaches the recorder, which then ends the stream.
#[test]
fn an_interrupt_before_a_stream_begins_does_not_stop_the_script() {
    let test =
        "commands::script::scripts::an_interrupt_before_a_stream_begins_does_not_stop_the_script";
    if !has_python() {
        return skip(test, "there is no python3");
    }
    let scratch = Scratch::new();
    let script = b"def process_event(values): pass\ndef trace_end(): print('end')\n";
    scratch.write("own.py", script).expect("a script");
    let program = env!("CARGO_BIN_EXE_rperf");
    let file = root().join("tests/fixtures/x86_64/cycles.data");
    let inject = Command::new(program)
        .args(["inject", "-o", "-", "-i"])
        .arg(file)
        .output();
    let stream = inject.expect("rperf starts").stdout;
    let mut reader = Command::new(program)
        .args(["script", "-s", "own.py", "-i", "-"])
        .current_dir(scratch.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("rperf starts");
    wait_until_interrupts_are_blocked(reader.id());
    let interrupted = Command::new("kill")
        .args(["-INT", &reader.id().to_string()])
        .status();
    assert!(interrupted.expect("kill starts").success());
    let mut input = reader.stdin.take().expect("a pipe");
    input.write_all(&stream).expect("the stream is read");
    drop(input);
    let deadline = Instant::now() + Duration::from_secs(30);
    while reader.try_wait().expect("a child").is_none() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    // The reader has ended, unless it hangs.
    let _ = reader.kill();
    let outcome = reader.wait_with_output().expect("a child");
    assert!(outcome.status.success(), "{outcome:?}");
    assert_eq!(outcome.stdout, b"end\n");
}
