//! Locks in memory that processes share, programs in namespaces, and Java virtual machines.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rperf_testkit::{Run, Scratch, may_trace, skip};
use serde_json::Value;

use super::deadlock::Hanging;
use super::owners::compile;
use super::run;

/// Whether PID namespaces can be created; otherwise prints that the test is skipped.
fn has_namespaces(test: &str) -> bool {
    let tried = Run::new("unshare")
        .args(["-pf", "--kill-child", "true"])
        .finish();
    let may = tried.is_ok_and(|tried| tried.status == 0);
    if !may {
        skip(test, "PID namespaces cannot be created");
    }
    may
}

/// Starts a program and waits for its first line, which must begin with `ready`.
fn start(scratch: &Scratch, words: &[&str]) -> Hanging {
    let [program, arguments @ ..] = words else {
        panic!("no program");
    };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(scratch.path());
    let child = command.stdout(Stdio::piped()).spawn();
    let mut program = Hanging(child.expect("the program starts"));
    let mut line = String::new();
    let out = program.0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert!(line.starts_with("ready"), "{words:?}: {line}");
    program
}

/// Returns the only child process of a process.
fn child_of(pid: u32) -> u32 {
    let path = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(path).expect("children");
    children.trim().parse().expect("one child")
}

/// Returns the processes that `lock deadlock` shows, once their threads have at least `waits` waits.
fn processes(scratch: &Scratch, pid: u32, waits: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let outcome = run(scratch, &format!("lock deadlock -p {pid} --json"));
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{outcome:?}"
        );
        let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let processes = json["processes"].as_array().expect("processes").clone();
        let all = processes
            .iter()
            .filter_map(|process| process["waits"].as_array());
        if all.map(Vec::len).sum::<usize>() >= waits {
            return processes;
        }
        let waited = began.elapsed();
        assert!(waited < Duration::from_secs(20), "{processes:?}");
    }
}

fn wait_of<'p>(processes: &'p [Value], name: &str) -> &'p Value {
    let waits = processes
        .iter()
        .filter_map(|process| process["waits"].as_array());
    let wait = waits.flatten().find(|wait| wait["comm"] == name);
    wait.unwrap_or_else(|| panic!("{name}: {processes:?}"))
}

#[test]
fn circles_of_two_processes_are_found_from_one_of_them() {
    const NAME: &str =
        "commands::lock::shared_locks::circles_of_two_processes_are_found_from_one_of_them";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "shared_locks") {
        return;
    }
    for kind in ["plain", "robust", "rwlock"] {
        let program = start(&scratch, &["./shared_locks", kind]);
        let alpha = program.0.id();
        let beta = child_of(alpha);
        // The waits of alpha, of beta-2, and of beta, which joins beta-2.
        let process_list = processes(&scratch, alpha, 3);
        let pids: Vec<&Value> = process_list.iter().map(|process| &process["pid"]).collect();
        assert_eq!(pids, [alpha, beta], "{kind}: {process_list:?}");
        let [alpha_wait, beta_2_wait] = [
            wait_of(&process_list, "alpha"),
            wait_of(&process_list, "beta-2"),
        ];
        assert_eq!(
            (&alpha_wait["holder_comm"], &alpha_wait["holder_pid"]),
            (&"beta-2".into(), &beta.into())
        );
        assert_eq!(
            (&beta_2_wait["holder_comm"], &beta_2_wait["holder_pid"]),
            (&"alpha".into(), &alpha.into())
        );
        for process in &process_list {
            assert_eq!(
                process["deadlocks"][0].as_array().map(Vec::len),
                Some(2),
                "{process_list:?}"
            );
        }
        assert_eq!(process_list[1]["holds_locks_of_others"], true);
        for wait in [alpha_wait, beta_2_wait] {
            assert!(wait["stack"].to_string().contains("take_lock+"), "{wait}");
        }
        let text = run(&scratch, &format!("lock deadlock -p {alpha}")).stdout;
        let heading = format!(
            "process beta ({beta}), which has locks that the others wait for: 2 threads, 2 waiting for futexes\n"
        );
        assert!(text.contains(&heading), "{text}");
        assert!(
            text.contains(&format!(", process {beta}) waits for ")),
            "{text}"
        );
    }
    // With these kinds beta-2 does not wait: there is no circle.
    for kind in ["pi", "chain"] {
        let program = start(&scratch, &["./shared_locks", kind]);
        let process_list = processes(&scratch, program.0.id(), 2);
        assert_eq!(
            wait_of(&process_list, "alpha")["holder_comm"],
            "beta-2",
            "{kind}"
        );
        assert_eq!(
            process_list[0]["deadlocks"],
            serde_json::json!([]),
            "{process_list:?}"
        );
        let text = run(&scratch, &format!("lock deadlock -p {}", program.0.id())).stdout;
        assert!(
            text.contains(") does not wait for a futex\n"),
            "{kind}: {text}"
        );
    }
}

#[test]
fn threads_are_found_by_their_ids_in_pid_namespaces() {
    const NAME: &str =
        "commands::lock::shared_locks::threads_are_found_by_their_ids_in_pid_namespaces";
    let scratch = Scratch::new();
    let may = may_trace(NAME) && has_namespaces(NAME);
    if !may || !compile(NAME, &scratch, "shared_locks") {
        return;
    }
    // Both processes in one namespace.
    let words = [
        "unshare",
        "-pf",
        "--kill-child",
        "--mount-proc",
        "./shared_locks",
        "plain",
    ];
    let program = start(&scratch, &words);
    let alpha = child_of(program.0.id());
    let process_list = processes(&scratch, alpha, 3);
    let alpha_wait = wait_of(&process_list, "alpha");
    assert_eq!(
        (&alpha_wait["holder_comm"], &alpha_wait["holder_pid"]),
        (&"beta-2".into(), &child_of(alpha).into())
    );
    assert_eq!(
        process_list[0]["deadlocks"][0].as_array().map(Vec::len),
        Some(2),
        "{process_list:?}"
    );
    // alpha waits for beta-2, which is in the PID namespace of beta; the id of beta-2 there is 2.
    let program = start(&scratch, &["./shared_locks", "apart"]);
    let process_list = processes(&scratch, program.0.id(), 3);
    let alpha_wait = wait_of(&process_list, "alpha");
    assert_eq!(alpha_wait["holder_comm"], "beta-2", "{process_list:?}");
    assert_eq!(
        process_list[0]["deadlocks"][0].as_array().map(Vec::len),
        Some(2),
        "{process_list:?}"
    );
}

#[test]
fn functions_of_programs_in_mount_namespaces_are_named() {
    const NAME: &str =
        "commands::lock::shared_locks::functions_of_programs_in_mount_namespaces_are_named";
    let scratch = Scratch::new();
    let may = may_trace(NAME) && has_namespaces(NAME);
    if !may || !compile(NAME, &scratch, "shared_locks") {
        return;
    }
    std::fs::create_dir(scratch.path().join("mounted")).expect("a directory");
    let script = "mount -t tmpfs none mounted && cp shared_locks mounted/ && exec mounted/shared_locks plain";
    let words = ["unshare", "-m", "sh", "-c", script];
    let program = start(&scratch, &words);
    assert!(!scratch.path().join("mounted/shared_locks").exists());
    let process_list = processes(&scratch, program.0.id(), 3);
    for name in ["alpha", "beta-2"] {
        let wait = wait_of(&process_list, name);
        assert!(wait["stack"].to_string().contains("take_lock+"), "{wait}");
    }
}

#[test]
fn owners_in_other_processes_and_namespaces_are_shown_live() {
    const NAME: &str =
        "commands::lock::shared_locks::owners_in_other_processes_and_namespaces_are_shown_live";
    const WAITS: u64 = 12;
    /// `ROUNDS` of tests/workloads/locks.c.
    const LOCKS_WAITS: u64 = 110;
    let scratch = Scratch::new();
    let may = may_trace(NAME) && has_namespaces(NAME);
    if !may || !compile(NAME, &scratch, "shared_locks") || !compile(NAME, &scratch, "locks") {
        return;
    }
    let owners = |command: &str| {
        let words = format!("lock contention -b --user -o --json -- {command}");
        let outcome = run(&scratch, &words);
        if outcome.status == 255 && outcome.stderr.contains("BPF") {
            skip(NAME, &outcome.stderr);
            return None;
        }
        assert_eq!(outcome.status, 0, "{outcome:?}");
        // Lines of the program may precede the JSON.
        let json = outcome.stdout.lines().find(|line| line.starts_with('{'));
        let json: Value = serde_json::from_str(json.expect("JSON")).expect("JSON");
        Some(json["rows"].as_array().expect("rows").clone())
    };
    let waits = |rows: &[Value], name: &str| {
        let named = rows.iter().filter(|row| row["name"] == name);
        named
            .filter_map(|row| row["acquired"].as_u64())
            .sum::<u64>()
    };
    for (command, owner, expected) in [
        (format!("./shared_locks plain {WAITS}"), "alpha", WAITS),
        (
            format!("unshare -pf --mount-proc ./shared_locks plain {WAITS}"),
            "alpha",
            WAITS,
        ),
        (
            "unshare -pf ./locks mutex".to_owned(),
            "holder",
            LOCKS_WAITS,
        ),
    ] {
        let Some(rows) = owners(&command) else {
            return;
        };
        assert_eq!(waits(&rows, owner), expected, "{command}: {rows:?}");
    }
    // Only beta, which waits, is observed; its namespace is older than the observation.
    let words = [
        "unshare",
        "-pf",
        "--kill-child",
        "./shared_locks",
        "plain",
        "2000",
    ];
    let (_program, beta) = start_with_descendant(&scratch, &words, 2);
    let outcome = run(
        &scratch,
        &format!("lock contention -b --user -o -p {beta} --json sleep 1"),
    );
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    let rows = json["rows"].as_array().expect("rows");
    assert!(waits(rows, "alpha") > 5, "{json}");
    let row = rows
        .iter()
        .find(|row| row["name"] == "alpha")
        .expect("a row");
    // The owner is the main thread of alpha, whose id is that of its process.
    assert_eq!(row["owner_process"], row["tid"], "{json}");
    // beta has a PID namespace of its own; alpha, the owner, is outside.
    let (_program, beta) = start_with_descendant(&scratch, &["./shared_locks", "apart", "2000"], 1);
    let outcome = run(
        &scratch,
        &format!("lock contention -b --user -o -p {beta} sleep 1"),
    );
    let mut lines = outcome.stderr.lines().chain(outcome.stdout.lines());
    assert!(lines.any(|line| line.ends_with("   alpha")), "{outcome:?}");
}

/// Starts a program; returns it and the pid of its descendant of this generation (1 is its child), once there is one.
fn start_with_descendant(scratch: &Scratch, words: &[&str], generation: usize) -> (Hanging, u32) {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).current_dir(scratch.path());
    let program = Hanging(command.spawn().expect("the program starts"));
    let began = Instant::now();
    loop {
        let child = |pid: u32| {
            let path = format!("/proc/{pid}/task/{pid}/children");
            std::fs::read_to_string(path)
                .ok()?
                .trim()
                .parse::<u32>()
                .ok()
        };
        let descendants = std::iter::successors(Some(program.0.id()), |pid| child(*pid));
        if let Some(pid) = descendants.take(generation + 1).nth(generation) {
            return (program, pid);
        }
        assert!(began.elapsed() < Duration::from_secs(20), "no child");
    }
}

#[test]
fn java_virtual_machines_are_recognized() {
    const NAME: &str = "commands::lock::shared_locks::java_virtual_machines_are_recognized";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "deadlock") {
        return;
    }
    scratch.write("empty.c", "").expect("a file");
    // A process that maps a `libjvm.so` is taken for a Java virtual machine.
    let words = ["-shared", "-o", "libjvm.so", "empty.c"];
    let compiled = Run::new("cc").within(scratch.path()).args(words).finish();
    assert_eq!(compiled.expect("cc starts").status, 0);
    for is_java in [false, true] {
        let library = scratch.path().join("libjvm.so");
        let preload = format!("LD_PRELOAD={}", library.display());
        let words = ["env", preload.as_str(), "./deadlock", "2", "chain"];
        // The program that is not Java runs without `env` and the library.
        let words = if is_java { &words[..] } else { &words[2..] };
        let program = start(&scratch, words);
        let pid = program.0.id();
        let text = run(&scratch, &format!("lock deadlock -p {pid}")).stdout;
        let line = format!("'jcmd {pid} Thread.print' lists them and their deadlocks\n");
        assert_eq!(text.ends_with(&line), is_java, "{text}");
        assert_eq!(processes(&scratch, pid, 1)[0]["java"], is_java);
    }
}
