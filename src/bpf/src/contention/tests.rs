//! Tests of the BPF programs: in an interpreter, the parts that compute and that find owners of futexes; in the kernel, whole
//! programs.

use std::sync::Mutex;
use std::thread;

use proptest::prelude::*;

use super::programs::{self, value};
use super::*;
use crate::Register::{R0, R1, R2, R8, R9};
use crate::testing::running;
use crate::{ProgramBuilder, interpreter};

/// Runs a part of a program with the address of `bytes` in `R8` (an encoded [`WaitSummary`], or the place of a result) and a
/// duration in `R9`. The interpreter lacks atomic additions, so the part may have none.
fn run(part: fn(&mut ProgramBuilder), duration: u64, bytes: &mut [u8]) {
    let with_registers = |b: &mut ProgramBuilder| {
        b.set(R8, R1);
        b.set_wide(R9, duration);
        part(b);
    };
    interpreter::run(with_registers, bytes);
}

proptest! {
    #[test]
    fn extremes_and_logarithms_match_the_standard_library(
        durations in prop::collection::vec((any::<u64>(), 0..64_u32), 1..20),
    ) {
        let durations: Vec<u64> = durations.iter().map(|(number, shift)| number >> shift).collect();
        let mut bytes = vec![0; value::SIZE];
        // In a new summary, the minimum is `u64::MAX`.
        let min = usize::try_from(value::MIN).unwrap();
        bytes[min..min + 8].fill(0xff);
        for duration in &durations {
            run(programs::extremes, *duration, &mut bytes);
            // Here, `R8` is the address of the logarithm, not of a summary.
            let mut logarithm = [0; 8];
            let stored = |b: &mut ProgramBuilder| {
                programs::binary_logarithm(b);
                b.store(crate::Width::Double, R8, 0, R2);
            };
            run(stored, *duration, &mut logarithm);
            prop_assert_eq!(u64::from_ne_bytes(logarithm), u64::from(duration.checked_ilog2().unwrap_or(0)));
        }
        let summary = WaitSummary::decode(&bytes);
        prop_assert_eq!(Some(summary.min), durations.iter().copied().min());
        prop_assert_eq!(Some(summary.max), durations.iter().copied().max());
    }

    #[test]
    fn decoding_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..800)) {
        WaitKey::decode(&bytes);
        WaitSummary::decode(&bytes);
    }
}

/// Arbitrary offsets, as are those of all layouts and of `task_struct::pid` in these tests: the verifier does not check what
/// `bpf_probe_read_kernel` reads.
const NAMESPACES: NamespaceLayout = NamespaceLayout {
    pids: PidLayout {
        thread_pid: 1000,
        level: 4,
        numbers: 96,
    },
    task_pid: 1000,
    upid_namespace: 8,
    number: 120,
};

fn options(tasks: TaskSet, key: ContentionKey) -> ContentionOptions {
    ContentionOptions {
        tasks,
        excluded_process: None,
        key,
        with_stacks: key == ContentionKey::Stack,
        cpus: None,
        locks: None,
        lock_layout: None,
        task_pid_offset: None,
        with_futexes: false,
        namespace_layout: None,
        flags: None,
        cgroups: None,
        max_stack: 8,
        stack_skip: 0,
        max_entries: 1024,
    }
}

/// Starts a summary; `None` with a printed reason if this machine cannot.
fn start(options: &ContentionOptions) -> Option<ContentionSummary> {
    running(ContentionSummary::start(options))
}

/// Lets threads contend for locks of the kernel: pages of one address space are mapped and unmapped by all of them.
fn contend() {
    let shared = Mutex::new(0_u64);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..300 {
                    let memory = vec![1_u8; 1 << 20];
                    *shared.lock().unwrap() += u64::from(memory[4096]);
                }
            });
        }
    });
}

#[test]
fn programs_for_each_key_pass_the_verifier() {
    let owner = ContentionKey::Owner(OwnerLayout {
        mutex: 0,
        rwsem: 8,
        task_pid: 1000,
    });
    for key in [
        ContentionKey::Stack,
        ContentionKey::Thread,
        ContentionKey::Lock,
        ContentionKey::Cgroup,
        owner,
    ] {
        let tasks = TaskSet::Threads {
            threads: vec![1],
            follow: Some(1000),
            from_exec: true,
        };
        // The kernel verifies the programs at the start; the sums are not needed.
        drop(start(&ContentionOptions {
            with_stacks: true,
            excluded_process: Some(1),
            cpus: Some(vec![0]),
            locks: Some(LockFilter {
                addresses: vec![(1 << 63, u64::MAX)],
                names: [
                    LockName::MmapLock,
                    LockName::SigLock,
                    LockName::RunQueue,
                    LockName::Slab(b"kmalloc-64".to_vec()),
                ]
                .to_vec(),
            }),
            lock_layout: Some(LockLayout {
                mmap_lock: [2000, 100],
                siglock: [3000, 8],
                run_queue: Some([200, 300, 0]),
                slab: None,
            }),
            task_pid_offset: Some(1000),
            with_futexes: true,
            namespace_layout: Some(NAMESPACES),
            flags: Some(vec![32, FUTEX]),
            cgroups: Some(vec![1]),
            ..options(tasks, key)
        }));
    }
}

/// Returns the owner of a futex: `words` are operation and value of the call, then the words from the futex on; for a mutex of
/// glibc: lock, count, owner, users, kind, spins (not checked). The memory before and after them is 0.
fn owner(words: [u32; 8]) -> u64 {
    let (call, from_futex) = words.split_at(2);
    owner_within(&[call, &[0; 4], from_futex, &[0; 6]].concat())
}

/// Returns the owner of a futex: `words` are operation and value of the call, then the 16 words around the futex, which is the
/// fifth of the 16.
fn owner_within(words: &[u32]) -> u64 {
    let find_owner = |b: &mut ProgramBuilder| {
        b.set(R8, R1);
        futexes::owner_of_call(b, R8);
        b.store(crate::Width::Double, R8, 0, R0);
    };
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    interpreter::run(find_owner, &mut bytes);
    u64::from_ne_bytes(*bytes.first_chunk().unwrap())
}

#[test]
fn owners_of_futexes_are_read_or_unknown() {
    const WAITERS: u32 = 1 << 31;
    for (words, expected) in [
        // Mutexes: plain, recursive, without elision, shared; WAIT and WAIT_BITSET.
        ([0x80, 2, 2, 0, 77, 1, 0, 9], 77),
        ([0x80, 2, 2, 3, 77, 1, 1, 0], 77),
        ([0x189, 2, 2, 0, 77, 1, 0x202, 0], 77),
        ([0x109, 2, 2, 0, 77, 1, 0x282, 0], 77),
        // Shared, but the call is private, and the other way round.
        ([0x189, 2, 2, 0, 77, 1, 0x80, 0], UNKNOWN_OWNER),
        ([0x109, 2, 2, 0, 77, 1, 0, 0], UNKNOWN_OWNER),
        // A lock no longer contended, no owner, no users, too many users, a count without recursion, another kind.
        ([0x80, 2, 1, 0, 77, 1, 0, 0], UNKNOWN_OWNER),
        ([0x80, 2, 2, 0, 0, 1, 0, 0], UNKNOWN_OWNER),
        ([0x80, 2, 2, 0, 77, 0, 0, 0], UNKNOWN_OWNER),
        ([0x80, 2, 2, 0, 77, 1 << 16, 0, 0], UNKNOWN_OWNER),
        ([0x80, 2, 2, 1, 77, 1, 0, 0], UNKNOWN_OWNER),
        ([0x80, 2, 2, 0, 77, 1, 0x1000, 0], UNKNOWN_OWNER),
        // Priority inheritance.
        ([0x86, 0, WAITERS | 77, 0, 0, 0, 0, 0], 77),
        ([0x8d, 0, 77, 0, 0, 0, 0, 0], 77),
        // Robust mutexes: the futex still has the expected value, or no longer the flag of waiters.
        ([0x80, WAITERS | 77, WAITERS | 77, 0, 0, 0, 0, 0], 77),
        ([0x80, WAITERS | 77, 77, 0, 0, 0, 0, 0], UNKNOWN_OWNER),
        // Calls that are not private: robust mutexes of glibc, futexes of other kinds.
        ([0, WAITERS | 77, WAITERS | 77, 0, 0, 0, 0x90, 0], 77),
        ([0, WAITERS | 77, WAITERS | 77, 0, 0, 0, 0x11, 0], 77),
        (
            [0, WAITERS | 77, WAITERS | 77, 0, 0, 0, 0x80, 0],
            UNKNOWN_OWNER,
        ),
        (
            [0, WAITERS | 77, WAITERS | 77, 0, 0, 0, 0x1010, 0],
            UNKNOWN_OWNER,
        ),
        // A dead owner.
        (
            [0x80, WAITERS | 1 << 30, WAITERS | 1 << 30, 0, 0, 0, 0, 0],
            UNKNOWN_OWNER,
        ),
        // Condition variables, other calls.
        ([0x189, 0, 0, 0, 77, 1, 0, 0], UNKNOWN_OWNER),
        ([0x8b, 2, 2, 0, 77, 1, 0, 0], UNKNOWN_OWNER),
    ] {
        assert_eq!(owner(words), expected, "{words:x?}");
    }
    // Mutexes of musl: the kind (`_m_type`) precedes the futex.
    for (kind, expected) in [
        (0x84, 77),
        (0x81, 77),
        (0x80, UNKNOWN_OWNER),
        (4, UNKNOWN_OWNER),
    ] {
        let around = [
            &[0, WAITERS | 77, 0, 0, 0, kind, WAITERS | 77],
            &[0; 11][..],
        ]
        .concat();
        assert_eq!(owner_within(&around), expected, "{kind:x}");
    }
}

#[test]
fn writers_of_read_write_locks_are_read_or_unknown() {
    /// `pthread_rwlock_t`, locked by the writer 77: 14 words.
    const LOCK: [u32; 14] = [9, 1, 3, 1, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0];
    // Returns the owner if the thread waits for the word `place` of the lock. The 16 words begin 4 words before that word.
    let owner = |operation: u32, lock: [u32; 14], place: usize| {
        let around = [[0; 4].as_slice(), &lock, &[0; 4]].concat();
        owner_within(&[&[operation, 3], &around[place..place + 16]].concat())
    };
    let with = |at: usize, word: u32| {
        let mut lock = LOCK;
        lock[at] = word;
        lock
    };
    assert_eq!(owner(0x189, LOCK, 2), 77);
    // The futex is `__writers_futex`: its value 1 with the flag 2, which means that threads wait.
    assert_eq!(owner(0x189, with(3, 3), 3), 77);
    // Shared by processes.
    assert_eq!(owner(9, with(7, 1), 2), 77);
    for (operation, lock) in [
        // A private wait for a shared lock, and the other way round.
        (0x189, with(7, 1)),
        (9, LOCK),
        // No write phase, no writer, a `__writers_futex` that is not set.
        (0x189, with(0, 8)),
        (0x189, with(6, 0)),
        (0x189, with(3, 0)),
        // Padding that is not empty, unknown flags.
        (0x189, with(4, 1)),
        (0x189, with(9, 1)),
        (0x189, with(11, 1)),
        (0x189, with(12, 3)),
    ] {
        assert_eq!(owner(operation, lock, 2), UNKNOWN_OWNER, "{lock:?}");
    }
    // The futex is another word of the lock.
    assert_eq!(owner(0x189, with(3, 3), 1), UNKNOWN_OWNER);
}

#[test]
fn waits_for_futexes_have_their_process_and_a_user_stack() {
    let by_stack = ContentionOptions {
        with_futexes: true,
        flags: Some(vec![FUTEX]),
        ..options(TaskSet::All, ContentionKey::Stack)
    };
    let Some(summary) = start(&by_stack) else {
        return;
    };
    let (sender, receiver) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || receiver.recv().unwrap());
        thread::sleep(std::time::Duration::from_millis(30));
        sender.send(()).unwrap();
    });
    let sums = summary.read().unwrap();
    let own: Vec<_> = sums
        .iter()
        .filter(|(key, _)| key.process == Some(std::process::id()))
        .collect();
    assert!(sums.keys().all(|key| key.process.is_some()), "{sums:?}");
    let longest = own.iter().map(|(_, sum)| sum.max).max();
    // The thread began to wait while this one slept.
    assert!(longest > Some(10_000_000), "{sums:?}");
    assert!(own.iter().all(|(_, sum)| sum.flags == FUTEX), "{sums:?}");
    let stack = summary.stack(own[0].0.stack.unwrap()).unwrap();
    assert!(!stack.is_empty() && stack[0] < 1 << 63, "{stack:x?}");
}

#[test]
fn waits_are_summed_by_stack_and_by_lock() {
    let stacks = options(TaskSet::All, ContentionKey::Stack);
    let locks = options(TaskSet::All, ContentionKey::Lock);
    // Selects only locks at address 1, which is outside the kernel: there are none.
    let no_locks = ContentionOptions {
        locks: Some(LockFilter {
            addresses: vec![(1, 2)],
            names: Vec::new(),
        }),
        ..options(TaskSet::All, ContentionKey::Lock)
    };
    let [Some(stacks), Some(locks), Some(no_locks)] =
        [stacks, locks, no_locks].map(|options| start(&options))
    else {
        return;
    };
    for _ in 0..20 {
        contend();
        if !locks.read().unwrap().is_empty() {
            break;
        }
    }
    assert!(no_locks.read().unwrap().is_empty());
    let sums = locks.read().unwrap();
    assert!(!sums.is_empty());
    for (key, sum) in &sums {
        assert_eq!((key.value, key.stack), (sum.lock, None));
        assert!(sum.lock >= 1 << 63 && sum.count > 0);
        assert!(sum.min <= sum.max && sum.total >= sum.max, "{sum:?}");
        assert_eq!(sum.buckets.iter().sum::<u64>(), sum.count);
    }
    let sums = stacks.read().unwrap();
    let number = sums.keys().next().unwrap().stack.unwrap();
    let stack = stacks.stack(number).unwrap();
    assert!(!stack.is_empty() && stack.len() <= 8, "{stack:?}");
    assert!(stack[0] >= 1 << 63, "{stack:?}");
    assert_eq!(stacks.losses().unwrap().entries, 0);
}

#[test]
fn programs_that_capture_locks_pass_the_verifier() {
    let owners = Some(OwnerLayout {
        mutex: 0,
        rwsem: 8,
        task_pid: 1000,
    });
    let names = Some(LockLayout {
        mmap_lock: [2000, 100],
        siglock: [3000, 8],
        run_queue: Some([200, 300, 0]),
        slab: None,
    });
    for (owners, names) in [(owners, None), (None, names), (owners, names)] {
        let limited = TaskSet::Threads {
            threads: vec![1],
            follow: Some(1000),
            from_exec: true,
        };
        for tasks in [TaskSet::All, limited] {
            let options = LockCaptureOptions {
                tasks,
                excluded_process: Some(1),
                owners,
                names,
            };
            if running(WaitCapture::of_locks(&options)).is_none() {
                return;
            }
        }
    }
}
