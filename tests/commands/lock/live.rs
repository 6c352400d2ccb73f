//! `lock contention` of the running system.

use rperf_testkit::{Outcome, Scratch, may_trace, skip};

use super::super::rperf;
use super::{compile_with, run};

/// Runs `lock contention` with a workload that contends for locks. If the kernel does not run the BPF programs, prints the reason
/// and returns `None`.
fn contention(test: &str, options: &str) -> Option<Outcome> {
    if !may_trace(test) {
        return None;
    }
    let scratch = Scratch::new();
    let program = env!("CARGO_BIN_EXE_rperf");
    let load = format!("{program} bench sched messaging -g 1 -l 100 > /dev/null");
    let mut words = vec!["lock", "contention"];
    words.extend(options.split(' '));
    words.extend(["--", "sh", "-c", &load]);
    let outcome = rperf(&words).within(scratch.path()).finish();
    let outcome = outcome.expect("rperf starts");
    if outcome.status == 255 && outcome.stderr.contains("BPF") {
        skip(test, &outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status, 0, "{options}: {outcome:?}");
    Some(outcome)
}

/// Like [`contention`], repeated up to nine times while there is no wait: some runs of the workload have no contention.
fn contention_with_waits(test: &str, options: &str) -> Option<Outcome> {
    let mut outcome = contention(test, options)?;
    for _ in 0..9 {
        // A row in JSON has a name; rows of a table follow its titles and an empty line.
        if outcome.stdout.contains("\"name\"") || outcome.stderr.lines().count() > 2 {
            break;
        }
        outcome = contention(test, options)?;
    }
    Some(outcome)
}

/// Returns the rows of the printed JSON; checks that no records were lost.
fn rows(outcome: &Outcome) -> Vec<serde_json::Value> {
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(json["lost_records"], 0, "{outcome:?}");
    json["rows"].as_array().expect("rows").clone()
}

/// The kinds of rows: of callers, locks, threads, owners and cgroups.
#[test]
fn waits_of_the_running_system_have_rows_of_every_kind() {
    const NAME: &str = "commands::lock::live::waits_of_the_running_system_have_rows_of_every_kind";
    for (options, title) in [
        ("-ab", "type   caller"),
        ("-ab -l", "address   symbol"),
        ("-ab -t", "pid   comm"),
        ("-ab -o", "pid   owner"),
        ("-ab --lock-cgroup", "avg wait   cgroup"),
        ("-ab -G /", "type   caller"),
        ("-b", "type   caller"),
    ] {
        let Some(outcome) = contention_with_waits(NAME, options) else {
            return;
        };
        let mut lines = outcome.stderr.lines();
        let titles = lines.next().unwrap_or_default();
        assert!(
            titles.starts_with(" contended   total wait     max wait     avg wait"),
            "{outcome:?}"
        );
        assert!(titles.ends_with(title), "{options}: {outcome:?}");
        let row = lines.nth(1).unwrap_or_default();
        let first = row.split_whitespace().next().unwrap_or_default();
        assert!(
            first.parse::<u64>().is_ok_and(|count| count > 0),
            "{options}: {outcome:?}"
        );
    }
}

/// The sums are those of the BPF programs, which run in the kernel.
#[test]
fn sums_of_the_kernel_are_consistent_and_named() {
    const NAME: &str = "commands::lock::live::sums_of_the_kernel_are_consistent_and_named";
    let Some(outcome) = contention_with_waits(NAME, "-ab --json") else {
        return;
    };
    let all = rows(&outcome);
    let number = |row: &serde_json::Value, key: &str| row[key].as_u64().expect("a number");
    for row in &all {
        let [count, total] = ["acquired", "total_ns"].map(|key| number(row, key));
        assert!(number(row, "min_ns") <= number(row, "max_ns"), "{row}");
        assert!(number(row, "max_ns") <= total && count > 0, "{row}");
        // A bucket is its start, its end and its number of waits.
        let histogram = row["histogram"].as_array().expect("buckets");
        let waits = histogram
            .iter()
            .map(|bucket| bucket[2].as_u64().expect("a number"));
        assert_eq!(waits.sum::<u64>(), count, "{row}");
    }
    // Rows are named by caller and offset. Functions of locks, which are the innermost frames, are not callers.
    let names: Vec<&str> = all.iter().filter_map(|row| row["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.contains("+0x")), "{names:?}");
    assert!(
        !names
            .iter()
            .any(|name| name.starts_with("queued_spin_lock")),
        "{names:?}"
    );
    let Some(spinning) = contention_with_waits(NAME, "-ab --json -Y spinlock") else {
        return;
    };
    let spinlocks = rows(&spinning);
    assert!(
        !spinlocks.is_empty() && spinlocks.iter().all(|row| row["type"] == "spinlock"),
        "{spinlocks:?}"
    );
    let Some(none) = contention(NAME, "-ab --json -L 1") else {
        return;
    };
    assert!(rows(&none).is_empty(), "no lock has the address 1");
    let Some(threads) = contention_with_waits(NAME, "-b -t --json") else {
        return;
    };
    // Without -a, only tasks of the workload are shown. A task without a known name is shown as `:TID`.
    let tasks = rows(&threads);
    let known = ["rperf", "sh", "sched-messaging"];
    let is_known = |row: &serde_json::Value| {
        row["name"]
            .as_str()
            .is_some_and(|name| known.contains(&name) || name.starts_with(':'))
    };
    assert!(!tasks.is_empty() && tasks.iter().all(is_known), "{tasks:?}");
}

/// Compiles a program whose threads map memory, and runs it with `lock contention`; returns the names of the rows. If there is no
/// compiler or the kernel does not run the BPF programs, prints this and returns `None`.
fn row_names(test: &str, options: &str) -> Option<Vec<String>> {
    const SOURCE: &str = r"
        #include <pthread.h>
        #include <sys/mman.h>
        static void *map(void *unused) {
            for (int round = 0; round < 20000; round++) {
                char *memory = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                memory[0] = 1;
                munmap(memory, 8192);
            }
            return unused;
        }
        int main(void) {
            pthread_t threads[4];
            for (int at = 0; at < 4; at++) pthread_create(&threads[at], 0, map, 0);
            for (int at = 0; at < 4; at++) pthread_join(threads[at], 0);
        }";
    if !may_trace(test) {
        return None;
    }
    let scratch = Scratch::new();
    scratch.write("maps.c", SOURCE).expect("a file");
    let words = ["-O1", "-pthread", "-o", "maps", "maps.c"];
    if !compile_with(test, &scratch, &words) {
        return None;
    }
    let outcome = run(
        &scratch,
        &format!("lock contention -b --json {options} -- ./maps"),
    );
    if outcome.status == 255 && outcome.stderr.contains("BPF") {
        skip(test, &outcome.stderr);
        return None;
    }
    assert_eq!(outcome.status, 0, "{outcome:?}");
    let rows = rows(&outcome);
    let names = rows.iter().filter_map(|row| row["name"].as_str());
    Some(names.map(str::to_owned).collect())
}

#[test]
fn locks_of_the_running_system_are_named_and_selected_by_name() {
    const NAME: &str =
        "commands::lock::live::locks_of_the_running_system_are_named_and_selected_by_name";
    let Some(all) = row_names(NAME, "-l") else {
        return;
    };
    let count = |name: &str| all.iter().filter(|row_name| *row_name == name).count();
    assert_eq!(count("mmap_lock"), 1, "{all:?}");
    // A lock in an object of a slab cache has the name of the cache, after a `&`.
    let slab = std::path::Path::new("/sys/kernel/slab").exists();
    if slab && all.iter().any(|name| name.starts_with('&')) {
        let is_cache = |name: &str| std::path::Path::new("/sys/kernel/slab").join(name).exists();
        let named = all.iter().filter_map(|name| name.strip_prefix('&'));
        let unknown: Vec<&str> = named.filter(|name| !is_cache(name)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
    let only = row_names(NAME, "-l -L mmap_lock").unwrap_or_default();
    assert_eq!(only, ["mmap_lock"]);
    let callers = row_names(NAME, "-L mmap_lock").unwrap_or_default();
    assert!(
        callers.iter().any(|name| name.contains("mmap")),
        "{callers:?}"
    );
    let others = row_names(NAME, "-l -L siglock,rq_lock,&no_such_cache");
    let others = others.unwrap_or_default();
    let selected = ["siglock", "rq_lock"];
    assert!(
        others.iter().all(|name| selected.contains(&name.as_str())),
        "{others:?}"
    );
}

#[test]
fn invalid_options_and_combinations_are_refused() {
    let scratch = Scratch::new();
    for (words, message) in [
        ("lock contention -a -i x true", "-i reads a recording"),
        (
            "lock contention -b -o -l true",
            "--lock-cgroup excludes -t, -l and -o; -o excludes -l",
        ),
        (
            "lock contention -b -G no/such true",
            "there is no cgroup 'no/such'",
        ),
        (
            "lock contention -b -L no_such_lock true",
            "'no_such_lock' is neither an address nor a variable of the running kernel",
        ),
        (
            "lock contention -b --max-stack 128 true",
            "--max-stack 128: BPF programs read 1 to 127 frames",
        ),
        (
            "lock contention -b --stack-skip 256 true",
            "--stack-skip 256: BPF programs skip at most 255 frames",
        ),
        (
            "lock contention --json -x ,",
            "-x and --json exclude each other",
        ),
        (
            "lock report --json -F acquired",
            "-F and --json exclude each other",
        ),
        (
            "lock contention -J 1ms@x true",
            "--inject-delay is not supported yet",
        ),
    ] {
        let outcome = run(&scratch, words);
        assert_eq!(outcome.status, 129, "{words}: {outcome:?}");
        assert!(outcome.stderr.contains(message), "{words}: {outcome:?}");
    }
}
