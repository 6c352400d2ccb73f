//! `lock contention -b`: waits of running programs for futexes, their owners, and their selection by process, thread, CPU and
//! function.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rperf_testkit::{Outcome, Scratch, may_trace, skip, write_program};

use super::owners::compile;
use super::run;

/// How often `locks` waits (`ROUNDS` in its source): 4 to 12 ms each time.
const WAITS: u64 = 110;

/// The program `locks`, whose thread `waiter` waits for a mutex of its main thread `holder`.
struct Waiting(Child);

impl Waiting {
    /// Starts the program on one CPU, and waits until it has a thread named `waiter`.
    fn start(scratch: &Scratch, cpu: &str) -> Self {
        let mut command = Command::new("taskset");
        let words = ["-c", cpu, "./locks", "mutex"];
        let command = command.args(words).current_dir(scratch.path());
        let child = command.stdout(Stdio::null()).spawn();
        let program = Self(child.expect("the program starts"));
        let began = Instant::now();
        while program.waiter().is_none() {
            assert!(began.elapsed() < Duration::from_secs(60), "no thread");
            thread::sleep(Duration::from_millis(1));
        }
        program
    }

    /// The id of the waiting thread, once it has its name.
    fn waiter(&self) -> Option<String> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.0.id())).ok()?;
        let mut tasks = tasks.filter_map(Result::ok);
        let task = tasks.find(|task| {
            let comm = std::fs::read_to_string(task.path().join("comm"));
            comm.is_ok_and(|comm| comm == "waiter\n")
        });
        Some(task?.file_name().to_string_lossy().into_owned())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// A row: its name, the thread if the rows are threads, and the number of finished waits.
#[derive(Debug)]
struct Row {
    name: String,
    tid: Option<u64>,
    waits: u64,
}

/// Returns the rows of JSON; `None` with a printed reason if the kernel does not run the BPF programs.
fn rows(test: &str, outcome: &Outcome) -> Option<Vec<Row>> {
    if outcome.status == 255 && outcome.stderr.contains("BPF") {
        skip(test, &outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(json["lost_records"], 0, "{json}");
    let rows = json["rows"].as_array().expect("rows").iter();
    let rows = rows.map(|row| Row {
        name: row["name"].as_str().expect("a name").to_owned(),
        tid: row["tid"].as_u64(),
        waits: row["acquired"].as_u64().expect("a number"),
    });
    Some(rows.collect())
}

#[test]
fn owners_of_mutexes_are_shown() {
    const NAME: &str = "commands::lock::live_futexes::owners_of_mutexes_are_shown";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "locks") {
        return;
    }
    let rows_of = |kind: &str, options: &str| {
        let outcome = run(
            &scratch,
            &format!("lock contention {options} --json -- ./{kind}"),
        );
        rows(NAME, &outcome)
    };
    // A script for each kind redirects the program's output to a file: the JSON is on the same stdout.
    for kind in ["mutex", "cond"] {
        let text = format!("#!/bin/sh\nexec ./locks {kind} > measured\n");
        write_program(scratch.path().join(kind), &text);
    }
    let count = |rows: &[Row], name: &str| {
        let named = rows.iter().filter(|row| row.name == name);
        named.map(|row| row.waits).sum::<u64>()
    };
    let Some(owners) = rows_of("mutex", "-b --user -o") else {
        return;
    };
    assert_eq!(count(&owners, "holder"), WAITS, "{owners:?}");
    // Without -i, -o implies -b. Condition variables have no owner.
    let Some(owners) = rows_of("cond", "-Y futex -o") else {
        return;
    };
    assert_eq!(count(&owners, "holder"), 0, "{owners:?}");
    assert!(count(&owners, "Unknown") >= WAITS, "{owners:?}");
    // Locks have the names of their variables.
    let Some(locks) = rows_of("mutex", "-b --user -l") else {
        return;
    };
    assert_eq!(count(&locks, "mutex"), WAITS, "{locks:?}");
    // -Y mutex selects mutexes of the kernel, not that of the program: the thread may also wait for kernel mutexes, but less
    // often.
    let Some(threads) = rows_of("mutex", "-b -t -Y mutex") else {
        return;
    };
    assert!(count(&threads, "waiter") < WAITS, "{threads:?}");
}

#[test]
fn processes_threads_cpus_and_functions_are_selected() {
    const NAME: &str =
        "commands::lock::live_futexes::processes_threads_cpus_and_functions_are_selected";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "locks") {
        return;
    }
    let program = Waiting::start(&scratch, "0");
    let (pid, tid) = (program.0.id(), program.waiter().expect("a thread"));
    // rperf runs with each of these options at the same time: with -p and --tid until the program ends, after about a second.
    let options = [
        format!("-p {pid} -t"),
        format!("--tid {tid} -t"),
        format!("-p {pid} -S waiter"),
        format!("-p {pid} -S no_such_function"),
        "-C 0 -t sleep 0.5".to_owned(),
        "-C 1 -t sleep 0.5".to_owned(),
    ];
    let rows_by_options: Vec<Option<Vec<Row>>> = thread::scope(|scope| {
        let running: Vec<_> = options
            .iter()
            .map(|options| {
                let words = format!("lock contention -b -Y futex --json {options}");
                let scratch = &scratch;
                scope.spawn(move || run(scratch, &words))
            })
            .collect();
        running
            .into_iter()
            .map(|running| rows(NAME, &running.join().expect("no panic")))
            .collect()
    });
    let rows_by_options: Option<Vec<Vec<Row>>> = rows_by_options.into_iter().collect();
    let Some([process, thread, function, none, cpu_0, cpu_1]) =
        rows_by_options.as_deref().and_then(|all| all.first_chunk())
    else {
        return;
    };
    // The waits of the thread `waiter`; in the rows of a CPU, other programs wait, too. More than 10 is a low bound: even in
    // 0.5 s the thread waits about 60 times, but some waits end before the measurement begins.
    let tid = tid.parse().ok();
    let waits = |rows: &[Row]| {
        let of_waiter = rows.iter().filter(|row| row.tid == tid);
        of_waiter.map(|row| row.waits).sum::<u64>()
    };
    for (rows, what) in [(process, "-p"), (thread, "--tid"), (cpu_0, "-C 0")] {
        assert!(waits(rows) > 10, "{what}: {rows_by_options:?}");
    }
    assert_eq!(thread.len(), 1, "{rows_by_options:?}");
    // -S gives rows by caller, with names of the form function+0xOFFSET.
    let is_caller = |row: &Row| row.name.contains("+0x") && row.waits > 10;
    assert!(function.iter().any(is_caller), "{rows_by_options:?}");
    assert!(none.is_empty(), "{rows_by_options:?}");
    assert_eq!(waits(cpu_1), 0, "{rows_by_options:?}");
}
