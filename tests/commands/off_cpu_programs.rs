//! The BPF programs that sum up off-CPU time, in the running kernel.

use std::time::Duration;

use rperf_bpf::{Error, OffCpuOptions, OffCpuPrograms, OffCpuWait};
use rperf_testkit::skip;

/// Returns the offset of `task_struct::pid` in the running kernel; `None` without BTF.
fn task_pid() -> Option<u16> {
    let types = std::fs::read("/sys/kernel/btf/vmlinux").ok()?;
    let types = rperf_btf::Btf::parse(&types).ok()?;
    let offset = types.member_offset("task_struct", "pid")?;
    u16::try_from(offset).ok()
}

/// Loads the programs with room for 1000 sums; `threshold` is the shortest wait, in ns, that becomes a record if its CPU has a
/// `bpf-output` event.
fn load(threshold: u64) -> Option<OffCpuPrograms> {
    load_with(threshold, 1000)
}

/// Like [`load`], with room for `max_sums` sums; `None`, with a printed reason, if this kernel has no BTF or does not permit the
/// programs.
fn load_with(threshold: u64, max_sums: u32) -> Option<OffCpuPrograms> {
    let Some(task_pid) = task_pid() else {
        skip("off_cpu_programs", "the kernel has no BTF");
        return None;
    };
    let options = OffCpuOptions {
        task_pid,
        all_tasks: false,
        follows_children: true,
        max_stack: 64,
        max_sums,
        threshold,
    };
    match OffCpuPrograms::load(options) {
        Ok(programs) => Some(programs),
        Err(
            error @ (Error::NoBpf
            | Error::NotPermitted
            | Error::PidNamespace
            | Error::Attach { .. }),
        ) => {
            skip("off_cpu_programs", &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Returns the id of this thread.
fn this_thread() -> u32 {
    let link = rperf_sys::link_target("/proc/thread-self").unwrap();
    link.file_name().unwrap().to_str().unwrap().parse().unwrap()
}

/// Returns the sums of waits of this thread and of threads that it starts, while `work` runs; no wait may be lost.
fn waits(programs: &OffCpuPrograms, work: impl FnOnce()) -> Vec<OffCpuWait> {
    // `from_exec`: the thread is observed at once, not from its next exec on. The empty list: no CPU has a `bpf-output` event, so
    // long waits are summed, too.
    let from_exec = false;
    programs.begin(&[], &[this_thread()], from_exec).unwrap();
    work();
    programs.end();
    let losses = programs.losses().unwrap();
    assert_eq!((losses.tasks, losses.waits), (0, 0));
    programs.sums().unwrap()
}

const MILLI: u64 = 1_000_000;

#[test]
fn waits_of_a_place_are_summed() {
    let Some(programs) = load(u64::MAX) else {
        return;
    };
    let thread = this_thread();
    let found = waits(&programs, || {
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
        }
    });
    let longest = found.iter().max_by_key(|wait| wait.nanos).unwrap();
    assert_eq!(
        (longest.place.thread, longest.place.process),
        (thread, std::process::id())
    );
    assert!(longest.nanos >= 100 * MILLI, "{found:?}");
    for number in [longest.place.kernel_stack, longest.place.user_stack] {
        let frames = programs.stack(number.unwrap()).unwrap();
        assert!(frames.len() > 1, "{frames:x?}");
    }
}

#[test]
fn waits_of_new_threads_and_waits_in_progress_count() {
    let Some(programs) = load(u64::MAX) else {
        return;
    };
    let (send, receive) = std::sync::mpsc::channel();
    let own = this_thread();
    let found = waits(&programs, || {
        drop(std::thread::spawn(move || {
            send.send(this_thread()).unwrap();
            std::thread::sleep(Duration::from_secs(3600));
        }));
        std::thread::sleep(Duration::from_millis(50));
    });
    let child = receive.recv().unwrap();
    for thread in [own, child] {
        let of_thread = found.iter().filter(|wait| wait.place.thread == thread);
        let nanos: u64 = of_thread.map(|wait| wait.nanos).sum();
        // Less than the 50 ms, since the child begins to sleep later. Its wait is still in progress at the end.
        assert!(nanos >= 40 * MILLI, "{found:?}");
    }
}

#[test]
fn long_waits_without_an_event_are_summed_too() {
    // With this threshold, each wait is long.
    let Some(programs) = load(0) else {
        return;
    };
    let found = waits(&programs, || std::thread::sleep(Duration::from_millis(20)));
    let nanos: u64 = found.iter().map(|wait| wait.nanos).sum();
    assert!(nanos >= 20 * MILLI, "{found:?}");
}

#[test]
fn waits_without_room_for_a_sum_are_counted_as_lost() {
    let Some(programs) = load_with(u64::MAX, 1) else {
        return;
    };
    let (send, receive) = std::sync::mpsc::channel::<()>();
    let from_exec = false;
    programs.begin(&[], &[this_thread()], from_exec).unwrap();
    // This wait takes the only sum. On a busy machine, a shorter sleep can end before the thread is switched out.
    std::thread::sleep(Duration::from_millis(20));
    // A wait in another place, for which there is no room. It lasts the whole timeout, since `send` is neither used nor dropped.
    let late = receive.recv_timeout(Duration::from_millis(30));
    assert!(late.is_err());
    programs.end();
    drop(send);
    let losses = programs.losses().unwrap();
    assert!(losses.waits >= 1, "{losses:?}");
    // About 30 ms: a bit less, since the timeout starts before the thread is switched out, or more on a busy machine.
    assert!(
        (25 * MILLI..1000 * MILLI).contains(&losses.nanos),
        "{losses:?}"
    );
    assert_eq!(programs.sums().unwrap().len(), 1);
}
