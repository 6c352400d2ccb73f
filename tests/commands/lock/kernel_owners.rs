//! Owners and names of locks of the kernel in recordings: `lock record --owners`.

use rperf_testkit::{Scratch, may_trace, skip};
use serde_json::Value;

use super::{compile_with, folder_with_waits, recording, run};

/// Returns the rows of `lock contention --json`.
fn rows(scratch: &Scratch, options: &str) -> Vec<Value> {
    let words = format!("lock contention -i perf.data --json {options}");
    let outcome = run(scratch, &words);
    assert_eq!(outcome.status, 0, "{words}: {outcome:?}");
    let json: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    json["rows"].as_array().expect("rows").clone()
}

/// Returns the name, the number of begun waits and the total waiting time in ns of each row, sorted by name.
fn sums(rows: &[Value]) -> Vec<(&str, u64, u64)> {
    let mut sums: Vec<_> = rows
        .iter()
        .map(|row| {
            let [waits, total] = ["contended", "total_ns"].map(|key| row[key].as_u64());
            let name = row["name"].as_str().expect("a name");
            (name, waits.expect("a number"), total.expect("a time"))
        })
        .collect();
    sums.sort_unstable();
    sums
}

#[test]
fn records_of_owners_are_matched_to_waits_that_begin_before_or_after_them() {
    let scratch = Scratch::new();
    scratch
        .write("perf.data", recording::waits_with_owners())
        .expect("a file");
    let owners = rows(&scratch, "-o");
    let expected = [("Unknown", 3, 5100), ("alpha", 1, 2100), ("gamma", 2, 2400)];
    assert_eq!(sums(&owners), expected);
    let locks = rows(&scratch, "-l");
    // A lock without a name is shown as the caller of its wait: in this file 0x4000 plus the last three hex digits of the lock's
    // address.
    let expected = [
        ("&kmalloc-64", 1, 1200),
        ("0x4010", 1, 2000),
        ("0x4020", 1, 0),
        ("mmap_lock", 2, 3300),
        ("rq_lock", 1, 3100),
    ];
    assert_eq!(sums(&locks), expected);
    let mmap_lock = locks.iter().find(|row| row["name"] == "mmap_lock");
    let mmap_lock_owners: Vec<&str> = mmap_lock.expect("the lock")["owners"]
        .as_array()
        .expect("owners")
        .iter()
        .filter_map(|owner| owner["comm"].as_str())
        .collect();
    assert_eq!(mmap_lock_owners.len(), 2, "{mmap_lock_owners:?}");
    assert!(
        mmap_lock_owners.contains(&"alpha") && mmap_lock_owners.contains(&"gamma"),
        "{mmap_lock_owners:?}"
    );
    for (options, expected) in [
        ("-l -L mmap_lock", &[("mmap_lock", 2, 3300)][..]),
        ("-t -L mmap_lock", &[("alpha", 1, 1200), ("beta", 1, 2100)]),
        (
            "-o -L &kmalloc-64,rq_lock",
            &[("Unknown", 1, 3100), ("gamma", 1, 1200)],
        ),
        (
            "-l -L 0xffff888000003010,rq_lock",
            &[("0x4010", 1, 2000), ("rq_lock", 1, 3100)],
        ),
        ("-l -L siglock", &[]),
        ("-l -L mmap_lock -Y mutex", &[]),
    ] {
        assert_eq!(sums(&rows(&scratch, options)), expected, "{options}");
    }
    let report = run(&scratch, "lock report -o -q").stderr;
    assert!(
        report.contains("               gamma          2 "),
        "{report}"
    );
}

#[test]
fn recordings_without_owners_and_lock_names_are_refused() {
    let scratch = folder_with_waits();
    for (options, message) in [
        (
            "-o",
            "perf.data: the recording has no owners of locks\nhint: 'rperf lock record --user' records those of futexes, 'lock record --owners' those of locks of the kernel",
        ),
        (
            "-L mmap_lock",
            "--lock-filter: the recording has no names of locks, such as 'mmap_lock'\nhint: record with 'lock record --owners'",
        ),
        (
            "-l -L &kmalloc-64",
            "the recording has no names of locks, such as '&kmalloc-64'",
        ),
    ] {
        let refused = run(&scratch, &format!("lock contention -i perf.data {options}"));
        assert_eq!(refused.status, 255, "{options}: {refused:?}");
        assert!(refused.stderr.contains(message), "{options}: {refused:?}");
    }
}

/// Three threads that change the protection of memory, which takes the `mmap_lock` of their process, and three that read one
/// open file, which takes the mutex of its position. [`compile`] defines the macros `name_of_…`.
const SOURCE: &str = r"
    #define _GNU_SOURCE
    #include <fcntl.h>
    #include <pthread.h>
    #include <sys/mman.h>
    #include <unistd.h>
    static int list;
    static void *map(void *unused) {
        pthread_setname_np(pthread_self(), name_of_mapper);
        char *memory = mmap(0, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (int round = 0; round < 20000; round++)
            mprotect(memory, 1 << 20, round % 2 ? PROT_READ | PROT_WRITE : PROT_READ);
        return unused;
    }
    static void *pass(void *unused) {
        char bytes[4096];
        pthread_setname_np(pthread_self(), name_of_reader);
        for (int round = 0; round < 2000; round++)
            if (read(list, bytes, sizeof bytes) <= 0) lseek(list, 0, SEEK_SET);
        return unused;
    }
    int main(void) {
        pthread_t threads[6];
        list = open(name_of_file, O_RDONLY);
        for (int at = 0; at < 6; at++) pthread_create(&threads[at], 0, at < 3 ? map : pass, 0);
        for (int at = 0; at < 6; at++) pthread_join(threads[at], 0);
    }";

/// Compiles the load in the scratch directory; if there is no compiler, prints this and returns `false`.
fn compile(test: &str, scratch: &Scratch) -> bool {
    scratch.write("load.c", SOURCE).expect("a file");
    let words = [
        "-O1",
        "-pthread",
        "-Dname_of_mapper=\"mapper\"",
        "-Dname_of_reader=\"reader\"",
        "-Dname_of_file=\"/proc/kallsyms\"",
        "-o",
        "load",
        "load.c",
    ];
    compile_with(test, scratch, &words)
}

/// Whether the first of `owners` has a row, and each row is that of one of `owners`, of the main thread or of `Unknown`.
fn are_owners(rows: &[Value], owners: &[&str]) -> bool {
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    let is_possible = |name: &&str| owners.contains(name) || ["load", "Unknown"].contains(name);
    names.contains(&owners[0]) && names.iter().all(is_possible)
}

#[test]
fn owners_and_names_of_a_program_are_recorded() {
    const NAME: &str = "commands::lock::kernel_owners::owners_and_names_of_a_program_are_recorded";
    let scratch = Scratch::new();
    if !may_trace(NAME) || !compile(NAME, &scratch) {
        return;
    }
    let (mut owners, mut mutexes) = (Vec::new(), Vec::new());
    // On a busy machine the threads may run one after the other, so that none waits.
    for _ in 0..5 {
        let outcome = run(&scratch, "lock record --owners -o perf.data -- ./load");
        if outcome
            .stderr
            .contains("owners and names of locks are not recorded")
        {
            return skip(NAME, &outcome.stderr);
        }
        assert_eq!(outcome.status, 0, "{outcome:?}");
        owners = rows(&scratch, "-o -L mmap_lock");
        mutexes = rows(&scratch, "-o -Y mutex -S fdget,ksys_read,ksys_lseek");
        if !owners.is_empty() && !mutexes.is_empty() {
            break;
        }
    }
    // Only the program's own threads take the locks of its memory and file.
    assert!(are_owners(&owners, &["mapper", "reader"]), "{owners:?}");
    assert!(are_owners(&mutexes, &["reader"]), "{mutexes:?}");
    let locks = rows(&scratch, "-l");
    let named = locks.iter().filter(|row| row["name"] == "mmap_lock");
    let named: Vec<&Value> = named.collect();
    assert_eq!(named.len(), 1, "{locks:?}");
    // Filters by name and by address select the same row.
    let address = named[0]["address"].as_str().expect("an address");
    let by_name = rows(&scratch, "-l -L mmap_lock");
    assert_eq!(by_name, rows(&scratch, &format!("-l -L {address}")));
    assert_eq!(by_name[0]["contended"], named[0]["contended"]);
    // No thread waits for a lock that it has.
    for thread in rows(&scratch, "-t -L mmap_lock") {
        for owner in thread["owners"].as_array().expect("owners") {
            assert!(owner["tid"] != thread["tid"], "{thread}");
        }
    }
    let script = run(&scratch, "script -F event,comm");
    assert!(
        script.stdout.contains("lock-waits:"),
        "{}",
        script.stdout.len()
    );
}
