//! Waits for locks of user programs, compared with what a program measures itself.

use rperf_testkit::{Scratch, may_trace};

use super::owners::compile;
use super::run;

/// The address of the program's lock, and its waits as the program measured them.
struct Measured {
    address: u64,
    /// Nanoseconds, ascending.
    waits: Vec<u64>,
}

/// Parses the lines `ADDRESS NANOSECONDS`.
fn measured(lines: &str) -> Measured {
    let pairs: Vec<(&str, &str)> = lines
        .lines()
        .filter_map(|line| line.split_once(' '))
        .collect();
    let address = pairs[0].0.trim_start_matches("0x");
    let mut waits: Vec<u64> = pairs
        .iter()
        .map(|pair| pair.1.parse().expect("a number"))
        .collect();
    waits.sort_unstable();
    Measured {
        address: u64::from_str_radix(address, 16).expect("an address"),
        waits,
    }
}

/// Returns the rows of the JSON that a command prints.
fn rows(scratch: &Scratch, words: &str) -> Vec<serde_json::Value> {
    let json = run(scratch, words).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    json["rows"].as_array().expect("rows").clone()
}

/// Compares the percentiles of the waiting thread with those that it measured, and the addresses and names of locks with the
/// program's lock. `kind` is the kind of the lock and the name of its variable in the program.
fn compare(scratch: &Scratch, kind: &str, lock: &Measured) {
    let threads = rows(scratch, "lock contention -t -Y futex --json");
    let waiter = threads.iter().find(|row| row["name"] == "waiter");
    let waiter = waiter.unwrap_or_else(|| panic!("{kind}: {threads:?}"));
    let count = lock.waits.len();
    for (key, per_mille) in [("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990)] {
        let exact = lock.waits[(count * per_mille).div_ceil(1000) - 1];
        let percentile = waiter[key].as_u64().expect("a number");
        let error = percentile.abs_diff(exact) as f64 / exact as f64;
        // The program's times include its calls of the clock and of the lock's functions.
        assert!(error < 0.05, "{kind} {key}: {percentile}, measured {exact}");
    }
    assert_eq!(waiter["wakers"][0]["comm"], "holder", "{kind}: {waiter}");
    // A condition variable, the largest of the locks, has 48 bytes; threads wait on two of its words in turn.
    let locks = rows(scratch, "lock contention -l -Y futex --json");
    let within = locks.iter().filter(|row| {
        let address = row["address"].as_str().unwrap_or_default();
        let address = u64::from_str_radix(address.trim_start_matches("0x"), 16);
        address.is_ok_and(|address| (lock.address..lock.address + 48).contains(&address))
    });
    let within: Vec<&serde_json::Value> = within.collect();
    let waits = within
        .iter()
        .map(|row| row["acquired"].as_u64().expect("a number"));
    let waits: u64 = waits.sum();
    assert!(waits >= count as u64, "{kind}: {waits} waits in {locks:?}");
    // Locks have the names of their variables if the event `futex-waits` was recorded, which needs rights to load BPF programs.
    let has_futex_waits = run(scratch, "evlist").stdout.contains("futex-waits");
    for row in within.iter().filter(|_| has_futex_waits) {
        let name = row["name"].as_str().unwrap_or_default();
        assert_eq!(name.split('+').next(), Some(kind), "{row}");
    }
}

#[test]
fn waits_of_a_program_are_as_long_as_it_measures() {
    const NAME: &str = "commands::lock::user_locks::waits_of_a_program_are_as_long_as_it_measures";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch, "locks") {
        return;
    }
    for kind in ["mutex", "cond", "semaphore"] {
        let record = format!("lock record --user -q -o perf.data -- ./locks {kind}");
        let recorded = run(&scratch, &record);
        assert_eq!(recorded.status, 0, "{recorded:?}");
        compare(&scratch, kind, &measured(&recorded.stdout));
    }
    // With -v, rows of callers list the threads that ended the waits.
    let callers = run(&scratch, "lock contention -v");
    let table = callers.stderr;
    assert!(table.contains("        futex   "), "{table}");
    assert!(table.contains("woken by holder ("), "{table}");
    let threads = run(&scratch, "lock contention -t -Y futex").stderr;
    let rows: Vec<&str> = threads
        .lines()
        .filter(|row| row.ends_with("   waiter"))
        .collect();
    assert_eq!(rows.len(), 1, "{threads}");
    assert!(!threads.contains("spinlock"), "{threads}");
}
