//! Waits for locks of user programs, compared with what a program measures itself.

use rperf_testkit::{Run, Scratch, may_trace, skip};

use super::run;

/// What the program measured for its object.
struct Measured {
    address: u64,
    /// Nanoseconds, ascending.
    waits: Vec<u64>,
}

/// Parses the lines `ADDRESS NANOSECONDS`.
fn measured(lines: &str) -> Measured {
    let words: Vec<(&str, &str)> = lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let address = words[0].0.trim_start_matches("0x");
    let mut waits: Vec<u64> = words
        .iter()
        .map(|words| words.1.parse().expect("a number"))
        .collect();
    waits.sort_unstable();
    Measured {
        address: u64::from_str_radix(address, 16).expect("an address"),
        waits,
    }
}

fn rows(scratch: &Scratch, words: &str) -> Vec<serde_json::Value> {
    let json = run(scratch, words).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    json["rows"].as_array().expect("rows").clone()
}

/// Compares the quantiles of the waiting thread with those that it measured, and the addresses with that of the object.
fn compare(scratch: &Scratch, kind: &str, object: &Measured) {
    let threads = rows(scratch, "lock contention -t -Y futex --json");
    let waiter = threads.iter().find(|row| row["name"] == "waiter");
    let waiter = waiter.unwrap_or_else(|| panic!("{kind}: {threads:?}"));
    let count = object.waits.len();
    for (key, per_mille) in [("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990)] {
        let exact = object.waits[(count * per_mille).div_ceil(1000) - 1];
        let percentile = waiter[key].as_u64().expect("a number");
        let error = percentile.abs_diff(exact) as f64 / exact as f64;
        assert!(error < 0.05, "{kind} {key}: {percentile}, measured {exact}");
    }
    assert_eq!(waiter["wakers"][0]["comm"], "holder", "{kind}: {waiter}");
    // Threads wait on two words of a condition variable, which has 48 bytes, in turn.
    let locks = rows(scratch, "lock contention -l -Y futex --json");
    let within = locks.iter().filter(|row| {
        let address = row["address"].as_str().unwrap_or_default();
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
        address.is_ok_and(|address| (object.address..object.address + 48).contains(&address))
    });
    let within: Vec<&serde_json::Value> = within.collect();
    let waits = within
        .iter()
        .map(|row| row["acquired"].as_u64().expect("a number"));
    let waits: u64 = waits.sum();
    assert!(waits >= count as u64, "{kind}: {waits} waits in {locks:?}");
    // Locks have the names of their variables, if owners of futexes were recorded.
    let has_variables = run(scratch, "evlist").stdout.contains("futex-waits");
    for row in within.iter().filter(|_| has_variables) {
        let name = row["name"].as_str().unwrap_or_default();
        assert_eq!(name.split('+').next(), Some(kind), "{row}");
    }
}

#[test]
fn waits_of_a_program_are_as_long_as_it_measures() {
    const NAME: &str = "commands::lock::user_locks::waits_of_a_program_are_as_long_as_it_measures";
    if !may_trace(NAME) {
        return;
    }
    let scratch = Scratch::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/workloads/locks.c");
    let options = [
        "-O1",
        "-g",
        "-fno-omit-frame-pointer",
        "-pthread",
        "-o",
        "locks",
        source,
    ];
    let compiled = Run::new("cc").within(scratch.path()).args(options).finish();
    if !compiled.is_ok_and(|compiled| compiled.status == 0) {
        return skip(NAME, "there is no C compiler");
    }
    for kind in ["mutex", "cond", "semaphore"] {
        let record = format!("lock record --user -q -o perf.data -- ./locks {kind}");
        let made = run(&scratch, &record);
        assert_eq!(made.status, 0, "{made:?}");
        compare(&scratch, kind, &measured(&made.stdout));
    }
    // By caller: the functions that wait, also if the recorded stack lacks the innermost.
    let callers = run(&scratch, "lock contention -v");
    let table = callers.stderr;
    assert!(table.contains("        futex   "), "{table}");
    assert!(table.contains("woken by holder ("), "{table}");
    let waiter = run(&scratch, "lock contention -t -Y futex").stderr;
    let rows: Vec<&str> = waiter
        .lines()
        .filter(|row| row.ends_with("   waiter"))
        .collect();
    assert_eq!(rows.len(), 1, "{waiter}");
    assert!(!waiter.contains("spinlock"), "{waiter}");
}
