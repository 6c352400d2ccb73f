//! The Python module: its wheel is built and installed, and programs use it.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use rperf_testkit::{Outcome, Run, Scratch, may_trace, skip};

use crate::tidy::root;

/// Recordings in tests/fixtures/x86_64.
const RECORDINGS: [&str; 11] = [
    "branches-flags.data",
    "cycles.data",
    "directory.data",
    "dwarf.data",
    "group.data",
    "kprobe.data",
    "leader.data",
    "memory.data",
    "registers.data",
    "switches.data",
    "zstd.data",
];

/// The interpreter of a virtual environment that has the module, or the reason why there is none.
fn interpreter() -> Result<&'static Path, &'static str> {
    static INSTALLED: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(install);
    installed.as_deref().map_err(String::as_str)
}

/// Builds the wheel with the dev profile, and installs it in a virtual environment beside the binary. Returns the interpreter of
/// that environment, or why there is none.
///
/// # Panics
///
/// If the wheel cannot be built or installed.
fn install() -> Result<PathBuf, String> {
    let target = Path::new(env!("CARGO_BIN_EXE_rperf")).parent();
    let folder = target
        .ok_or("the binary is in no folder")?
        .join("python-tests");
    // The system's interpreter has the packages that tests/run.sh installs.
    let system = Path::new("/usr/bin/python3");
    let python = if system.exists() {
        system
    } else {
        Path::new("python3")
    };
    let installed = folder.join("bin/python");
    let run = |program: &Path, words: &[&str]| -> Result<(), String> {
        let output = Command::new(program).args(words).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    };
    let folder = folder.to_string_lossy().into_owned();
    run(
        python,
        &["-m", "venv", "--clear", "--system-site-packages", &folder],
    )
    .map_err(|error| format!("python3 has no venv: {error}"))?;
    let package = root().join("src/python");
    let package = package.to_string_lossy();
    let pip = [
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
        "--config-settings",
        "profile=dev",
        &*package,
    ];
    let result = run(&installed, &pip);
    assert_eq!(result, Ok(()), "pip install ./src/python");
    Ok(installed)
}

/// Runs a program with the module, in a folder that is also its home.
fn python(interpreter: &Path, folder: &Path, program: &str, words: &[&str]) -> Outcome {
    let program = root().join(program);
    let run = Run::new(interpreter).args([&program]).args(words);
    run.env("HOME", folder)
        .within(folder)
        .finish()
        .expect("the interpreter starts")
}

/// The output of a program that must succeed.
fn output(interpreter: &Path, folder: &Path, program: &str, words: &[&str]) -> String {
    let outcome = python(interpreter, folder, program, words);
    assert_eq!(outcome.status, 0, "{program}: {}", outcome.stderr);
    outcome.stdout
}

/// The output of rperf.
fn rperf(folder: &Path, words: &[&str]) -> String {
    let run = Run::new(env!("CARGO_BIN_EXE_rperf")).args(words);
    let outcome = run.env("HOME", folder).within(folder).finish();
    let outcome = outcome.expect("rperf starts");
    assert_eq!(outcome.status, 0, "{words:?}: {}", outcome.stderr);
    outcome.stdout
}

fn fixture(name: &str) -> String {
    let path = root().join("tests/fixtures/x86_64").join(name);
    path.to_string_lossy().into_owned()
}

/// Makes a recording with callchains in `folder`; returns its path.
fn recorded(folder: &Path) -> String {
    let path = folder.join("own.data").to_string_lossy().into_owned();
    let workload = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done";
    let record = ["record", "-q", "-g", "-F", "4000", "-e", "task-clock", "-o"];
    rperf(
        folder,
        &[&record[..], &[&path, "--", "sh", "-c", workload]].concat(),
    );
    path
}

/// The interpreter. If Python or one of these modules is missing, prints that the test is skipped and returns `None`.
fn prepared(test: &str, modules: &[&str]) -> Option<&'static Path> {
    let interpreter = match interpreter() {
        Ok(interpreter) => interpreter,
        Err(reason) => {
            skip(test, reason);
            return None;
        }
    };
    for module in modules {
        let mut import = Command::new(interpreter);
        let import = import.args(["-c", &format!("import {module}")]);
        let status = import.stderr(Stdio::null()).status();
        if !status.is_ok_and(|status| status.success()) {
            skip(test, &format!("Python has no {module}"));
            return None;
        }
    }
    Some(interpreter)
}

/// Samples and periods by event, thread name and tid, from the text of `script`.
fn script_sums(folder: &Path, path: &str) -> BTreeMap<String, (u64, u64)> {
    let command = [
        "script",
        "-f",
        "-i",
        path,
        "-F",
        "comm,tid,period,event",
        "--ns",
        "-G",
    ];
    let mut sums = BTreeMap::new();
    for line in rperf(folder, &command).lines() {
        // The name of a thread may have blanks; the other fields have none.
        let words: Vec<&str> = line.split_whitespace().collect();
        let [comm @ .., tid, period, event] = words.as_slice() else {
            panic!("script printed {line:?}");
        };
        let period: u64 = period.parse().unwrap();
        let event = event.trim_end_matches(':');
        let sum = sums
            .entry(format!("{event} {} {tid}", comm.join(" ")))
            .or_insert((0, 0));
        sum.0 += 1;
        sum.1 += period;
    }
    sums
}

#[test]
fn sums_of_events_and_tables_are_those_of_script() {
    let Some(interpreter) = prepared("sums_of_events_and_tables_are_those_of_script", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let paths: Vec<String> = RECORDINGS.iter().map(|name| fixture(name)).collect();
    let words: Vec<&str> = paths.iter().map(String::as_str).collect();
    let printed = output(interpreter, scratch.path(), "tests/python/sums.py", &words);
    let mut recordings = printed.split("== ").skip(1);
    for path in &paths {
        // The first line is PATH of the heading `== PATH`.
        let rows = recordings.next().unwrap().lines().skip(1);
        let mut sums = BTreeMap::new();
        for line in rows {
            // From the end of the line: the sum of the periods, the samples, and the key as in `script_sums`.
            let mut words = line.rsplitn(3, ' ');
            let mut number = || words.next().unwrap().parse::<u64>().unwrap();
            let (period, samples) = (number(), number());
            sums.insert(words.next().unwrap().to_owned(), (samples, period));
        }
        assert!(!sums.is_empty(), "{path}");
        assert_eq!(sums, script_sums(scratch.path(), path), "{path}");
    }
}

#[test]
fn type_stubs_describe_the_module() {
    let Some(interpreter) = prepared("type_stubs_describe_the_module", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let printed = output(interpreter, scratch.path(), "tests/python/stubs.py", &[]);
    assert_eq!(printed, "good\n");
}

#[test]
fn frames_are_those_of_script() {
    let Some(interpreter) = prepared("frames_are_those_of_script", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    for name in ["cycles.data", "dwarf.data"] {
        let path = fixture(name);
        let program = "tests/python/frames.py";
        let printed = output(interpreter, scratch.path(), program, &[&path]);
        // Only the lines of frames: a line with the time of a sample has no blanks.
        let frames = printed.lines().filter(|line| line.contains(' '));
        let command = ["script", "-f", "-i", &path, "-F", "ip,sym"];
        let text = rperf(scratch.path(), &command);
        let text = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let frames: Vec<&str> = frames.collect();
        assert!(frames.len() > 10, "{name}");
        assert_eq!(frames, text.collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn tables_are_buffers_for_numpy_and_pandas() {
    let test = "tables_are_buffers_for_numpy_and_pandas";
    let Some(interpreter) = prepared(test, &["numpy", "pandas"]) else {
        return;
    };
    let scratch = Scratch::new();
    let path = recorded(scratch.path());
    let printed = output(
        interpreter,
        scratch.path(),
        "tests/python/tables.py",
        &[&path],
    );
    assert!(printed.ends_with("good\n"), "{printed}");
}

#[test]
fn errors_are_exceptions() {
    let Some(interpreter) = prepared("errors_are_exceptions", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let path = recorded(scratch.path());
    let folder = scratch.path().to_string_lossy().into_owned();
    let words = [path.as_str(), &folder];
    let printed = output(
        interpreter,
        scratch.path(),
        "tests/python/errors.py",
        &words,
    );
    assert_eq!(printed, "good\n");
}

#[test]
fn damaged_recordings_are_exceptions() {
    let Some(interpreter) = prepared("damaged_recordings_are_exceptions", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let folder = scratch.path().to_string_lossy().into_owned();
    // The program damages copies of randomly chosen files; `directory.data` is a directory, so it is left out.
    let files = RECORDINGS.iter().filter(|name| **name != "directory.data");
    let copy_count = "80";
    let mut words = vec![folder, copy_count.to_owned()];
    words.extend(files.map(|name| fixture(name)));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let printed = output(
        interpreter,
        scratch.path(),
        "tests/python/damage.py",
        &words,
    );
    assert!(printed.starts_with("good "), "{printed}");
}

#[test]
fn examples_run_on_a_recording() {
    let test = "examples_run_on_a_recording";
    let Some(interpreter) = prepared(test, &["pandas", "matplotlib"]) else {
        return;
    };
    let scratch = Scratch::new();
    let folder = scratch.path();
    let path = recorded(folder);
    let sums = script_sums(folder, &path);
    let samples: u64 = sums.values().map(|(samples, _)| samples).sum();
    let period: u64 = sums.values().map(|(_, period)| period).sum();
    let run = |name: &str, words: &[&str]| {
        output(
            interpreter,
            folder,
            &format!("src/python/examples/{name}"),
            words,
        )
    };
    let top = run("top_functions.py", &["-i", &path]);
    assert!(
        top.contains(&format!(": {samples} samples, {period} in total")),
        "{top}"
    );
    let drawn = run("timeline.py", &["-i", &path, "-o", "timeline.svg"]);
    assert_eq!(drawn, format!("{samples} samples drawn in timeline.svg\n"));
    let stacks = run("stacks.py", &["-i", &path]);
    let weights = stacks
        .lines()
        .map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
    assert_eq!(weights.sum::<u64>(), period);
    assert!(stacks.starts_with("sh;"), "{stacks}");
    let same = run("compare.py", &[&path, &path]);
    assert!(same.contains("change") && same.contains("0.0"), "{same}");
    let events = run("events.py", &[&path]);
    let rows: Vec<&str> = events
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rows.len(), 1, "{events}");
    assert!(
        rows[0].ends_with(&format!(" {samples} {period}")) && events.contains("# mmap_event "),
        "{events}"
    );
}

#[test]
fn fields_of_tracepoints_are_columns() {
    let test = "fields_of_tracepoints_are_columns";
    let Some(interpreter) = prepared(test, &["pandas"]) else {
        return;
    };
    let scratch = Scratch::new();
    // A copy that belongs to this user: the example refuses recordings of other users.
    let content = std::fs::read(fixture("kprobe.data")).expect("the fixture can be read");
    let path = scratch.write("kprobe.data", content).unwrap();
    let path = path.to_string_lossy();
    let table = |field: &str| {
        let words = ["-i", &*path, "kprobes:opened", field];
        let program = "src/python/examples/tracepoint_fields.py";
        output(interpreter, scratch.path(), program, &words)
    };
    let script = ["script", "-i", &path, "-F", "event,trace"];
    let text = rperf(scratch.path(), &script);
    let opened: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("kprobes:opened:"))
        .collect();
    let count = opened.len();
    assert!(count > 1 && opened.iter().all(|line| line.contains(" dfd=-100 ")));
    let numbers = table("dfd");
    let sum = format!("{}", -100 * i64::try_from(count).unwrap());
    // The row of the thread name `load`.
    let row = numbers.lines().find(|line| line.starts_with("load"));
    let row: Vec<&str> = row.unwrap().split_whitespace().collect();
    // Count, sum and minimum.
    assert_eq!(row[1..4], [&*count.to_string(), &sum, "-100"], "{numbers}");
    let same = table("fields.dfd");
    assert_eq!(same.replace("fields.dfd", "dfd"), numbers);
    let texts = table("file");
    let files = opened
        .iter()
        .filter(|line| line.contains("file=\"/proc/self/status\""));
    let row = texts
        .lines()
        .find(|line| line.contains("/proc/self/status"));
    assert!(
        row.is_some_and(|row| row.ends_with(&format!(" {}", files.count()))),
        "{texts}"
    );
}

#[test]
fn twatch_prints_tasks() {
    let test = "twatch_prints_tasks";
    let Some(interpreter) = prepared(test, &[]) else {
        return;
    };
    if !may_trace(test) {
        return;
    }
    let program = root().join("src/python/examples/twatch.py");
    let mut watching = Command::new(interpreter)
        .arg(program)
        // Seconds after which it ends by itself.
        .arg("30")
        .stdout(Stdio::piped())
        .spawn()
        .expect("the interpreter starts");
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "watching");
    let mut task = Command::new("sleep").arg("0.01").spawn().unwrap();
    let pid = task.id();
    task.wait().unwrap();
    let ids = format!("pid: {pid}, tid: {pid}");
    let end = format!("{ids} {{ type: exit, pid: {pid}, ");
    let mut seen = Vec::new();
    for line in lines {
        let line = line.unwrap();
        let is_end = line.contains(&end);
        seen.push(line);
        if is_end {
            break;
        }
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
    let has = |part: &str| seen.iter().any(|line| line.contains(part));
    assert!(
        has(&format!("{{ type: fork, pid: {pid}, ppid: ")),
        "{seen:#?}"
    );
    assert!(
        has(&format!("{ids} {{ type: comm, {ids}, comm: sleep }}")),
        "{seen:#?}"
    );
    assert!(
        has(&format!("{ids} {{ type: mmap, {ids}, start: 0x")),
        "{seen:#?}"
    );
    assert!(
        has(&end) && seen.iter().all(|line| line.starts_with("cpu: ")),
        "{seen:#?}"
    );
}

#[test]
fn live_events_are_counted_and_sampled() {
    let test = "live_events_are_counted_and_sampled";
    let Some(interpreter) = prepared(test, &[]) else {
        return;
    };
    if !may_trace(test) {
        return;
    }
    let scratch = Scratch::new();
    let printed = output(interpreter, scratch.path(), "tests/python/live.py", &[]);
    assert_eq!(printed, "good\n");
}

#[test]
fn counts_are_passed_to_a_function() {
    let Some(interpreter) = prepared("counts_are_passed_to_a_function", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let record = [
        "stat",
        "record",
        "-e",
        "page-faults,context-switches",
        "-I",
        "50",
        "-o",
        "stat.data",
        "sh",
        "-c",
        "cat /etc/passwd > /dev/null; sleep 0.12; cat /etc/passwd > /dev/null",
    ];
    rperf(scratch.path(), &record);
    let path = scratch.path().join("stat.data");
    let path = path.to_string_lossy();
    let printed = output(
        interpreter,
        scratch.path(),
        "tests/python/counts.py",
        &[&path],
    );
    // The counts of all intervals, from the lines of `script`: CPU, thread, value, three fields of times, event.
    let mut sums = BTreeMap::new();
    for line in rperf(scratch.path(), &["script", "-i", &path]).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, value, _, _, _, name] = words.as_slice()
            && let Ok(value) = value.parse::<u64>()
        {
            *sums.entry((*name).to_owned()).or_insert(0) += value;
        }
    }
    let expected: Vec<String> = sums
        .iter()
        .map(|(name, sum)| format!("{name} {sum}"))
        .collect();
    let mut counts: Vec<&str> = printed.lines().collect();
    counts.sort_unstable();
    assert!(counts.len() == 2, "{printed}");
    assert_eq!(counts, expected);
}

#[test]
fn branches_of_a_trace_are_samples() {
    let Some(interpreter) = prepared("branches_of_a_trace_are_samples", &[]) else {
        return;
    };
    let scratch = Scratch::new();
    let path = fixture("bts.data");
    let program = "tests/python/branches.py";
    let printed = output(interpreter, scratch.path(), program, &[&path]);
    let words = ["script", "-f", "-i", &path, "--itrace=b", "-F", "ip,addr"];
    let expected: Vec<String> = rperf(scratch.path(), &words)
        .lines()
        .map(|line| {
            let ends: Vec<&str> = line
                .split_whitespace()
                .filter(|word| *word != "=>")
                .collect();
            ends.join(" ")
        })
        .collect();
    assert_eq!(printed.lines().collect::<Vec<_>>(), expected);
    assert!(expected.len() > 100, "{printed}");
}
