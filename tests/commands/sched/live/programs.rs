//! The BPF programs of `sched latency --live`, in the running kernel. They keep a row of sums for each task that waited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rperf_bpf::{Error, RunQueueLosses, RunQueueOptions, RunQueueSummary, TaskOffsets};
use rperf_btf::Btf;
use rperf_testkit::skip;

/// All CPUs, as an argument of [`start`].
const ALL_CPUS: Option<u32> = None;
/// More rows than needed for the tasks that wait during a test.
const ENOUGH_ROWS: u32 = 4096;

/// Starts a summary; `None`, with a printed reason, if the kernel does not support or permit it.
fn start(test: &str, cpu: Option<u32>, max_rows: u32) -> Option<RunQueueSummary> {
    let Ok(types) = rperf_sys::read_pseudo_file("/sys/kernel/btf/vmlinux") else {
        skip(test, "the kernel has no BTF");
        return None;
    };
    let types = Btf::parse(&types).unwrap();
    let offset = |member| {
        let offset = types.member_offset("task_struct", member).unwrap();
        u16::try_from(offset).unwrap()
    };
    let offsets = TaskOffsets {
        pid: offset("pid"),
        comm: offset("comm"),
    };
    let options = RunQueueOptions {
        offsets,
        cpu,
        max_rows,
    };
    match RunQueueSummary::start(options) {
        Ok(summary) => Some(summary),
        Err(error @ (Error::NoBpf | Error::NotPermitted | Error::PidNamespace)) => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Runs a thread named `name` that sleeps `sleeps` times for 1 ms; returns its tid and the time for which it lived.
fn sleeper(name: &str, sleeps: u32) -> (u32, Duration) {
    let thread = std::thread::Builder::new().name(name.to_owned());
    let thread = thread.spawn(move || {
        let begin = Instant::now();
        for _ in 0..sleeps {
            std::thread::sleep(Duration::from_millis(1));
        }
        let link = rperf_sys::link_target("/proc/thread-self").unwrap();
        let tid = link.file_name().unwrap().to_str().unwrap();
        (tid.parse().unwrap(), begin.elapsed())
    });
    thread.unwrap().join().unwrap()
}

#[test]
fn waits_of_an_ended_thread_are_read() {
    const NAME: &str = "commands::sched::live::programs::waits_of_an_ended_thread_are_read";
    let Some(mut summary) = start(NAME, ALL_CPUS, ENOUGH_ROWS) else {
        return;
    };
    let (tid, lived) = sleeper("live-sleeper", 50);
    // Removes the rows of ended tasks from the BPF map; `read` still returns them.
    summary.take_ended().unwrap();
    let rows = summary.read().unwrap();
    let (key, waits) = rows.iter().find(|(key, _)| key.thread == tid).unwrap();
    assert!(key.birth > 0);
    assert_eq!(waits.comm, b"live-sleeper");
    // A wait follows the creation of the thread and each sleep; preemption adds others.
    assert!(waits.count >= 51, "{waits:?}");
    // 50 ms more, since the thread also exists before and after the time that it measures.
    let limit = u64::try_from(lived.as_nanos()).unwrap() + 50_000_000;
    assert!(
        waits.runtime > 0 && waits.runtime + waits.total <= limit,
        "{waits:?}"
    );
    assert_eq!(u64::from(waits.buckets.iter().sum::<u32>()), waits.count);
    // `max_end` is not a length, but a time since boot.
    assert!(waits.min <= waits.max && waits.max_end > waits.max);
    assert_eq!(summary.losses().unwrap(), RunQueueLosses::default());
    // Idle tasks have no row.
    assert!(!rows.keys().any(|key| key.thread == 0));
}

#[test]
fn rows_beyond_the_limit_are_counted_and_other_cpus_are_excluded() {
    const NAME: &str = "commands::sched::live::programs::rows_beyond_the_limit_are_counted_and_other_cpus_are_excluded";
    // No CPU has the number 2^20.
    let (Some(full), Some(mut elsewhere)) = (
        start(NAME, ALL_CPUS, 1),
        start(NAME, Some(1 << 20), ENOUGH_ROWS),
    ) else {
        return;
    };
    sleeper("one", 5);
    sleeper("other", 5);
    assert!(full.losses().unwrap().waits > 0);
    assert_eq!(elsewhere.read().unwrap(), BTreeMap::new());
}
