//! Tests that plans (lists of the memory to copy at the start or return of a system call) are encoded as the BPF programs read
//! them, and that the running kernel accepts the programs.

use super::*;
use crate::testing::running;
use rperf_syscalls::{Abi, SyscallTable};

/// The plans of all system calls of this machine, by number.
fn plans() -> Vec<(u32, CapturePlan)> {
    let all = SyscallTable::of(Abi::native().unwrap()).all().into_iter();
    all.map(|(number, call)| (number, call.capture_plan()))
        .collect()
}

#[test]
fn plans_are_encoded_for_the_programs() {
    let table = SyscallTable::of(Abi::X86_64);
    let plan = |name| {
        let number = table.number(name).unwrap();
        table.get(number).unwrap().capture_plan()
    };
    // An entry of a plan has 16 bytes (`layout::entry`; in `at_entry`, the word means the start of the call): the kind of memory,
    // its argument, the kind of its length, the argument of the length, then the factor of the length (or a fixed length itself)
    // and the limit. 32 is the limit of buffers, and of strings that are not paths.
    let opened = encode(&plan("openat").at_entry, 32);
    assert_eq!(opened.len(), 64);
    // A text at argument 1, up to 4098 bytes (`PATH_MAX` and 2, so that a longer text is recognized); then nothing.
    assert_eq!(opened[..8], [2, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(opened[8..12], 4098_u32.to_ne_bytes());
    assert_eq!(opened[16..], [0; 48]);
    let written = encode(&plan("write").at_entry, 32);
    // Bytes at argument 1; their number is argument 2 times 1, but at most 32.
    assert_eq!(written[..4], [1, 1, 1, 2]);
    assert_eq!(
        written[4..12],
        [1_u32.to_ne_bytes(), 32_u32.to_ne_bytes()].concat()
    );
    let read = encode(&plan("read").at_return, 32);
    // Bytes at argument 1; their number is the call's result.
    assert_eq!(read[..4], [1, 1, 2, 0]);
    let accepted = encode(&plan("accept").at_return, 32);
    // Bytes at argument 1; their number is the `int` to which argument 2 points. Then that number itself: 4 bytes at argument 2.
    assert_eq!(accepted[..4], [1, 1, 3, 2]);
    assert_eq!(accepted[16..24], [1, 2, 0, 0, 4, 0, 0, 0]);
    let executed = encode(&plan("execve").at_entry, 32);
    // The list of texts at argument 1 (`argv`) precedes the path at argument 0: the programs need a list as the first entry.
    assert_eq!(
        (executed[..2].to_vec(), executed[16..18].to_vec()),
        (vec![3, 1], vec![2, 0])
    );
}

#[test]
fn every_plan_has_64_bytes_and_at_most_one_list() {
    for (_, plan) in plans() {
        for captures in [&plan.at_entry, &plan.at_return] {
            let encoded = encode(captures, u32::MAX);
            assert_eq!(encoded.len(), 64);
            let lists = captures.iter().filter(|capture| {
                matches!(
                    capture.source,
                    CaptureSource::Texts
                        | CaptureSource::Vectors(_)
                        | CaptureSource::Message
                        | CaptureSource::Messages(_)
                )
            });
            assert!(lists.count() <= 1);
        }
    }
}

#[test]
fn the_programs_pass_the_verifier() {
    let plans = plans();
    for tasks in [
        TaskSet::All,
        TaskSet::Threads {
            threads: vec![1],
            // The offset of `task_struct::pid`, with which children are followed. Any value will do: `from_exec` lets thread 1
            // wait for an exec that does not come, so no child of it is followed.
            follow: Some(1000),
            from_exec: true,
        },
    ] {
        let started = ArgumentCapture::start(&CaptureOptions {
            tasks,
            excluded_process: Some(std::process::id()),
            excluded_threads: &[1, 2],
            cgroups: &[],
            plans: &plans,
            string_size: 32,
        });
        // `None` if BPF programs cannot run here; the test is then reported as skipped.
        let Some(capture) = running(started) else {
            return;
        };
        assert_eq!(capture.lost_tasks().unwrap(), 0);
    }
}
