//! `lock deadlock`, on programs that hang.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rperf_testkit::{Scratch, may_trace};

use super::owners::compile;
use super::run;

/// In bytes: 40 on x86-64, 48 on aarch64.
const MUTEX_SIZE: usize = size_of::<libc::pthread_mutex_t>();

/// A program that is killed when this is dropped.
pub(super) struct Hanging(pub(super) Child);

impl Drop for Hanging {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Starts the program with `words`, the number of workers and the kind of their locks (or `chain`), and waits until each
/// worker has its first lock.
fn start(scratch: &Scratch, words: [&str; 2]) -> Hanging {
    let mut command = Command::new(scratch.path().join("deadlock"));
    let child = command.args(words).stdout(Stdio::piped()).spawn();
    let mut program = Hanging(child.expect("the program starts"));
    let mut line = String::new();
    let out = program.0.stdout.take().expect("a pipe");
    BufReader::new(out)
        .read_line(&mut line)
        .expect("a line is read");
    assert_eq!(line, "ready\n");
    program
}

/// Returns the process in the JSON of `lock deadlock`, once at most one of its threads does not wait for a futex: the last worker
/// of a `chain` sleeps.
fn report(scratch: &Scratch, program: &Hanging) -> serde_json::Value {
    // The program sleeps before it prints "ready", but on a busy machine its threads may not yet wait for their second locks.
    for _ in 0..50 {
        let pid = program.0.id();
        let outcome = run(scratch, &format!("lock deadlock -p {pid} --json"));
        assert_eq!(
            (outcome.status, outcome.stderr.as_str()),
            (0, ""),
            "{outcome:?}"
        );
        let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        let process = json["processes"][0].clone();
        let waits = process["waits"].as_array().expect("waits").len();
        if waits as u64 + 1 >= process["threads"].as_u64().expect("a number") {
            return process;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("threads do not wait");
}

#[test]
fn circles_of_one_to_three_threads_are_found_with_their_locks_and_functions() {
    const NAME: &str = "commands::lock::deadlock::circles_of_one_to_three_threads_are_found_with_their_locks_and_functions";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "deadlock") {
        return;
    }
    for (count, kind) in [
        (1, "plain"),
        (2, "plain"),
        (3, "plain"),
        (2, "recursive"),
        (3, "robust"),
        (2, "timed"),
    ] {
        let program = start(&scratch, [&count.to_string(), kind]);
        let process = report(&scratch, &program);
        let circles = process["deadlocks"].as_array().expect("deadlocks");
        assert_eq!(circles.len(), 1, "{kind}: {process}");
        assert_eq!(
            circles[0].as_array().map(Vec::len),
            Some(count),
            "{process}"
        );
        let waits = process["waits"].as_array().expect("waits");
        let wait_of = |name: &str| {
            let wait = waits.iter().find(|wait| wait["comm"] == name);
            wait.unwrap_or_else(|| panic!("{name}: {process}"))
        };
        let worker = |number: usize| format!("worker-{}", number % count);
        for number in 0..count {
            let wait = wait_of(&worker(number));
            assert_eq!(wait["holder_comm"], worker(number + 1), "{kind}: {wait}");
            assert_eq!(wait["type"], "mutex");
            let expected = match (number + 1) % count {
                0 => "locks".to_owned(),
                place => format!("locks+{:#x}", place * MUTEX_SIZE),
            };
            assert_eq!(wait["variable"], expected, "{wait}");
            assert_eq!(wait["timeout"], kind == "timed", "{wait}");
            let stack = wait["stack"].to_string();
            assert!(stack.contains("take_second_lock+"), "{kind}: {wait}");
        }
        // The main thread, which joins worker-0, is outside the circle; without -v, only threads in circles have stacks. Joined
        // threads are known only on x86-64.
        let join_wait = waits.iter().find(|wait| wait["type"] == "thread");
        if cfg!(target_arch = "x86_64") {
            let join_wait = join_wait.unwrap_or_else(|| panic!("{process}"));
            assert_eq!(join_wait["holder_comm"], "worker-0", "{join_wait}");
            assert_eq!(join_wait["stack"], serde_json::json!([]));
        }
    }
}

#[test]
fn no_deadlock_is_reported_if_there_is_none() {
    const NAME: &str = "commands::lock::deadlock::no_deadlock_is_reported_if_there_is_none";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "deadlock") {
        return;
    }
    let program = start(&scratch, ["3", "chain"]);
    let process = report(&scratch, &program);
    assert_eq!(process["deadlocks"], serde_json::json!([]), "{process}");
    let outcome = run(&scratch, &format!("lock deadlock -v -p {}", program.0.id()));
    assert_eq!(outcome.stderr, "");
    let text = outcome.stdout;
    assert!(
        text.ends_with("\nno deadlock among known holders\n"),
        "{text}"
    );
    // worker-0 waits for worker-1, and worker-1 for worker-2, which sleeps.
    let [first, second] = [
        format!("(locks+{:#x}) held by worker-1 (", MUTEX_SIZE),
        format!("(locks+{:#x}) held by worker-2 (", 2 * MUTEX_SIZE),
    ];
    let places = [first, second].map(|line| text.find(&line).unwrap_or_else(|| panic!("{text}")));
    assert!(places[0] < places[1], "{text}");
    assert!(text.contains("take_second_lock+0x"), "{text}");
    let end = text.lines().rfind(|line| line.starts_with("  worker-2 ("));
    assert!(
        end.is_some_and(|line| line.ends_with("does not wait for a futex")),
        "{text}"
    );
    // The kernel refuses the last wait of a circle of locks with priority inheritance; glibc then waits for another futex.
    let program = start(&scratch, ["2", "pi"]);
    let process = report(&scratch, &program);
    assert_eq!(process["deadlocks"], serde_json::json!([]), "{process}");
    let waits = process["waits"].as_array().expect("waits");
    let pi_waits = waits.iter().filter(|wait| wait["type"] == "PI lock");
    assert_eq!(pi_waits.count(), 1, "{process}");
}

#[test]
fn missing_and_invalid_process_ids_are_refused() {
    let scratch = Scratch::new();
    for (words, status, message) in [
        (
            "lock deadlock",
            129,
            "lock deadlock: no process given\nhint: -p PID looks at a running process, -i FILE",
        ),
        (
            "lock deadlock -p x",
            129,
            "'x' is not a process or thread id",
        ),
        (
            "lock deadlock -p 2147483646",
            255,
            "process 2147483646: No such file or directory",
        ),
    ] {
        let refused = run(&scratch, words);
        assert_eq!(refused.status, status, "{words}: {refused:?}");
        assert!(refused.stderr.contains(message), "{words}: {refused:?}");
    }
}
