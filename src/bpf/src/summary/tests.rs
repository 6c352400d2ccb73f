//! Tests of the summary of system calls: the arithmetic of its programs in an interpreter, and the whole in the running kernel.
//! Also tests of [`ProgramBuilder`].

use proptest::prelude::*;
use rperf_sys::RawTracepointProgram;

use super::*;
use crate::Register::{R1, R7, R8};
use crate::Width;
use crate::testing::{running, this_thread};
use crate::{ProgramBuilder, interpreter};

/// Runs a part of a program with the duration in `R7` and a value of the map at `R8`.
fn run(part: fn(&mut ProgramBuilder), duration: u64, value: &mut [u8]) {
    let with_registers = |b: &mut ProgramBuilder| {
        b.set(R8, R1);
        b.set_wide(R7, duration);
        part(b);
    };
    interpreter::run(with_registers, value);
}

/// Durations of every magnitude.
fn durations() -> impl Strategy<Value = Vec<u64>> {
    let any_magnitude = (any::<u64>(), 0..64_u32).prop_map(|(number, shift)| number >> shift);
    prop::collection::vec(any_magnitude, 1..20)
}

proptest! {
    #[test]
    fn squares_have_128_bits(durations in durations()) {
        let mut value = vec![0; CALL_SIZE];
        let mut expected = 0_u128;
        for duration in durations {
            run(programs::add_square, duration, &mut value);
            expected = expected.wrapping_add(u128::from(duration) * u128::from(duration));
        }
        prop_assert_eq!(CallSummary::decode(&value).squares, expected);
    }

    #[test]
    fn durations_are_in_the_bucket_that_contains_them(durations in durations()) {
        let mut value = vec![0; CALL_SIZE];
        let mut expected = vec![0; SUMMARY_BUCKETS];
        for duration in durations {
            run(programs::count_in_bucket, duration, &mut value);
            let bucket = (0..SUMMARY_BUCKETS).rev().find(|bucket| bucket_start(*bucket) <= duration);
            expected[bucket.unwrap()] += 1;
        }
        prop_assert_eq!(CallSummary::decode(&value).buckets, expected);
    }

    #[test]
    fn decoding_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        CallKey::decode(&bytes);
        CallSummary::decode(&bytes);
    }

    #[test]
    fn jumps_lead_to_their_labels(targets in prop::collection::vec(0..30_usize, 30)) {
        // Block N adds 1 << N, and jumps to the block targets[N] if that comes after block N.
        let mut b = ProgramBuilder::new();
        let labels: Vec<_> = targets.iter().map(|_| b.label()).collect();
        b.set(R7, 0);
        for (index, target) in targets.iter().enumerate() {
            b.place(labels[index]);
            b.operate(crate::Operation::Add, R7, 1 << index);
            if *target > index {
                b.jump(labels[*target]);
            }
        }
        b.store(Width::Double, R1, 0, R7);
        b.exit();
        let (mut expected, mut at) = (0_u64, 0);
        while at < targets.len() {
            expected += 1 << at;
            at = targets[at].max(at + 1);
        }
        let program = b.encode(&[]).unwrap().concat();
        let mut memory = [0; 8];
        rbpf::EbpfVmRaw::new(Some(&program)).unwrap().execute_program(&mut memory).unwrap();
        prop_assert_eq!(u64::from_ne_bytes(memory), expected);
    }
}

#[test]
fn errors_of_programs() {
    // The number in each error is the index of the instruction.
    let mut b = ProgramBuilder::new();
    let label = b.label();
    b.jump(label);
    assert_eq!(b.encode(&[]), Err(crate::BuildError::NoPlace(0)));
    let mut b = ProgramBuilder::new();
    b.map(R1, crate::MapId(1));
    assert_eq!(b.encode(&[7]), Err(crate::BuildError::NoMap(0)));
    let mut b = ProgramBuilder::new();
    let label = b.label();
    b.jump(label);
    // More instructions than a jump, with its signed offset of 16 bits, can skip.
    for _ in 0..40_000 {
        b.set(R7, 0);
    }
    b.place(label);
    assert_eq!(b.encode(&[]), Err(crate::BuildError::TooFar(0)));
}

/// Starts a summary; `None` with a printed reason if this machine cannot.
fn start(options: &SummaryOptions) -> Option<SyscallSummary> {
    running(SyscallSummary::start(options))
}

fn options(tasks: TaskSet) -> SummaryOptions {
    SummaryOptions {
        by_cgroup: false,
        tasks,
        excluded_process: None,
        calls: None,
        max_pairs: 1024,
    }
}

/// These threads, without the tasks that they create.
fn threads(threads: Vec<u32>) -> TaskSet {
    TaskSet::Threads {
        threads,
        follow: None,
        from_exec: false,
    }
}

#[test]
fn calls_of_a_thread_are_counted() {
    let Some(summary) = start(&options(threads(vec![this_thread()]))) else {
        return;
    };
    for _ in 0..1000 {
        let _ = rperf_sys::effective_user();
    }
    for _ in 0..7 {
        rperf_sys::read_pseudo_file("/proc/nosuch").unwrap_err();
    }
    let calls = summary.read().unwrap();
    let call = |name| {
        let number = rperf_sys::syscall_number(name).unwrap();
        let mut found = calls.iter().filter(|(key, _)| key.call == number);
        let (key, call) = found.next().unwrap();
        assert!(found.next().is_none() && key.thread == this_thread() && !key.is_compat);
        call
    };
    // `effective_user` above.
    let users = call("geteuid");
    assert_eq!((users.count, users.errors), (1000, 0));
    assert_eq!(users.buckets.iter().sum::<u32>(), 1000);
    assert!(users.min <= users.max && users.total >= 1000 * users.min);
    assert!(users.squares >= u128::from(users.max).pow(2));
    assert_eq!(users.process, std::process::id());
    let opens = call("openat");
    assert_eq!((opens.count, opens.errors), (7, 7));
    // ENOENT, 7 times.
    assert_eq!(opens.errnos, BTreeMap::from([(2, 7)]));
    assert_eq!(summary.losses().unwrap(), SummaryLosses::default());
}

#[test]
fn full_maps_and_selected_calls_and_excluded_processes() {
    // The call of `effective_user` below.
    let user = rperf_sys::syscall_number("geteuid").unwrap();
    let selected = SummaryOptions {
        calls: Some(vec![user]),
        ..options(threads(vec![this_thread()]))
    };
    let full = SummaryOptions {
        // No second pair of task and system call finds room.
        max_pairs: 1,
        ..options(threads(vec![this_thread()]))
    };
    let without = SummaryOptions {
        excluded_process: Some(std::process::id()),
        ..options(TaskSet::All)
    };
    let all = options(TaskSet::All);
    let summaries = [selected, full, without, all].map(|options| start(&options));
    let [Some(selected), Some(full), Some(without), Some(all)] = summaries else {
        return;
    };
    rperf_sys::read_pseudo_file("/proc/nosuch").unwrap_err();
    let _ = rperf_sys::effective_user();
    assert!(full.losses().unwrap().calls > 0);
    let read = |summary: &SyscallSummary| summary.read().unwrap();
    assert!(read(&selected).keys().all(|key| key.call == user) && !read(&selected).is_empty());
    assert_eq!(read(&full).len(), 1);
    let own = |call: &CallSummary| call.process == std::process::id();
    assert!(!read(&without).values().any(own));
    assert!(read(&all).values().any(own));
}

#[test]
fn the_verifier_explains_a_rejection() {
    let mut b = ProgramBuilder::new();
    b.load(Width::Double, R1, R7, 0);
    b.exit();
    let failure = RawTracepointProgram::load("", &b.encode(&[]).unwrap()).unwrap_err();
    // With EPERM, or without a log, the verifier was not reached.
    if failure.error.raw_os_error() != Some(1) && !failure.log.is_empty() {
        assert!(failure.log.contains("R7 !read_ok"), "{}", failure.log);
    }
}

#[test]
fn programs_that_follow_children_from_exec_pass_the_verifier() {
    // Any thread, and any offset of `task_struct::pid` (1000): the programs are loaded, but nothing is read from the summary.
    let summary = start(&SummaryOptions {
        tasks: TaskSet::Threads {
            threads: vec![1],
            follow: Some(1000),
            from_exec: true,
        },
        ..options(TaskSet::All)
    });
    drop(summary);
}

/// The id of a cgroup is the inode number of its folder.
#[test]
fn calls_by_cgroup() {
    let summary = start(&SummaryOptions {
        by_cgroup: true,
        ..options(TaskSet::All)
    });
    let Some(summary) = summary else { return };
    // Some calls of this thread.
    for _ in 0..10 {
        std::thread::yield_now();
    }
    let calls = summary.read().unwrap();
    let own = calls
        .iter()
        .filter(|(_, call)| call.process == std::process::id());
    // With `by_cgroup`, `birth_or_cgroup` is the id of the cgroup.
    let groups: std::collections::BTreeSet<u64> = own.map(|(key, _)| key.birth_or_cgroup).collect();
    assert_eq!(groups.len(), 1, "{groups:?}");
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let cgroup_mounts = mounts.lines().filter(|line| line.contains(" cgroup2 "));
    let places: Vec<&str> = cgroup_mounts
        .filter_map(|line| line.split(' ').nth(1))
        .collect();
    let path = std::fs::read_to_string("/proc/self/cgroup").unwrap();
    let path = path.lines().find_map(|line| line.strip_prefix("0::"));
    let Some((place, path)) = places.first().zip(path) else {
        return;
    };
    use std::os::unix::fs::MetadataExt as _;
    let folder = std::fs::metadata(format!("{place}{path}")).unwrap();
    assert!(groups.contains(&folder.ino()));
}
