//! The arithmetic in an interpreter, and counts in the running kernel.

use std::os::fd::{AsFd as _, AsRawFd as _};

use proptest::prelude::*;
use rperf_sys::{AnonymousMap, Counter, ObservedTask, PageOptions, page_size};
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat};

use super::*;
use crate::Register::{R0, R1, R6};
use crate::testing::{running, this_thread};
use crate::{ProgramBuilder, interpreter};

/// Runs a part of a program with `R6` at the start of the memory, and `R0` at the offset `sums`.
fn run(part: impl FnOnce(&mut ProgramBuilder), memory: &mut [u8], sums: usize) {
    let with_registers = |b: &mut ProgramBuilder| {
        b.set(R6, R1);
        b.address(R0, R1, i32::try_from(sums).unwrap());
        part(b);
    };
    interpreter::run(with_registers, memory);
}

proptest! {
    #[test]
    fn differences_of_readings_are_summed(readings in prop::collection::vec(any::<[[u64; 3]; 2]>(), 1..8)) {
        // `add_up` does not depend on the number of CPUs.
        let events = Events { count: 2, possible_cpus: 4 };
        // The readings of 2 events (`programs::reading`: BUSY, then 2 times STRIDE), then their sums (2 times `SUM_SIZE`).
        let sums = 8 + 2 * 48;
        let mut memory = vec![0; sums + 2 * 24];
        for of_events in &readings {
            run(|b| {
                for (index, values) in (0..).zip(of_events) {
                    programs::store_reading(b, *values);
                    programs::advance(b, index);
                }
            }, &mut memory, sums);
            run(|b| programs::add_up(b, events), &mut memory, sums);
        }
        // The sum of all differences is the last reading, since the first difference is that to 0.
        let last = readings.last().unwrap();
        let found = decode(&memory[sums..], 2);
        for (values, by_cpu) in last.iter().zip(found) {
            let expected = CountSum { value: values[0], enabled: values[1], running: values[2] };
            // The memory has the sums of one CPU.
            prop_assert_eq!(by_cpu, vec![expected]);
        }
    }

    #[test]
    fn decoding_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200), events in 0..9_usize) {
        prop_assert_eq!(decode(&bytes, events).len(), events);
    }
}

/// Long programs could not be encoded if they jumped too far: the distances of jumps have 16 bits.
#[test]
fn programs_for_many_events_can_be_built() {
    let events = Events {
        count: i16::try_from(MAX_COUNTED_EVENTS).unwrap(),
        possible_cpus: 8,
    };
    // Cgroups at 20 levels of the hierarchy.
    let cgroups = Groups::Cgroups((1..=20).collect());
    // Any value does for the descriptors of the 6 maps: nothing is loaded.
    let descriptors = [0; 6];
    // The number of a program whose events are counted.
    let counted_program = 0;
    for program in [
        programs::account(events, &Groups::Tasks),
        programs::account(events, &cgroups),
        programs::enter(events, counted_program),
        programs::leave(events, counted_program),
    ] {
        program.encode(&descriptors).unwrap();
    }
}

/// Opens `PERF_COUNT_SW_PAGE_FAULTS` on each online CPU; `None` if one cannot be opened.
fn page_faults() -> Option<Vec<(u32, Counter)>> {
    let attr = Attr {
        kind: EventType::SOFTWARE,
        config: 2,
        flags: AttrFlags::DISABLED,
        read_format: ReadFormat::TOTAL_TIME_ENABLED | ReadFormat::TOTAL_TIME_RUNNING,
        ..Attr::default()
    };
    let cpus = rperf_sys::Sysfs::new("/sys")
        .cpus(rperf_sys::CpuState::Online)
        .unwrap();
    let open = |cpu: &u32| {
        let observed = ObservedTask {
            pid: -1,
            cpu: cpu.cast_signed(),
        };
        let no_leader = None;
        Some((*cpu, Counter::open(&attr, observed, no_leader).ok()?))
    };
    cpus.numbers().iter().map(open).collect()
}

/// Counts page faults of each group of a scope while `work` runs; `None` if the event cannot be opened, or, with a printed
/// reason, if the programs cannot run.
fn count(scope: &CountedScope, work: impl FnOnce()) -> Option<Vec<CountSum>> {
    let counters = page_faults()?;
    let fds = counters.iter().map(|(cpu, counter)| CpuCounter {
        cpu: *cpu,
        fd: counter.as_fd(),
    });
    let kernel = running(KernelCounters::start(scope, &[fds.collect()]))?;
    for (_, counter) in &counters {
        counter.enable().unwrap();
    }
    work();
    let cpus: Vec<u32> = counters.iter().map(|(cpu, _)| *cpu).collect();
    let mut groups = kernel.read(&cpus).unwrap();
    assert_eq!(kernel.lost_tasks().unwrap(), 0);
    let groups = groups.iter_mut().map(|events| {
        // The sums of the only event, by CPU.
        let sums = events.remove(0).into_iter();
        sums.fold(CountSum::default(), |sum, one| CountSum {
            value: sum.value + one.value,
            enabled: sum.enabled + one.enabled,
            running: sum.running + one.running,
        })
    });
    Some(groups.collect())
}

/// Touches pages that were never touched: a page fault for each. The tests allow for a few hundred other faults.
fn fault(pages: usize) {
    for _ in 0..pages {
        let mut page = AnonymousMap::new(page_size(), PageOptions::default()).unwrap();
        page.bytes_mut()[0] = 1;
    }
}

fn threads(threads: Vec<u32>) -> CountedScope {
    CountedScope::Tasks(TaskSet::Threads {
        threads,
        follow: None,
        from_exec: false,
    })
}

#[test]
fn a_running_thread_is_counted_up_to_now() {
    let Some(counted) = count(&threads(vec![this_thread()]), || fault(2000)) else {
        return;
    };
    let [sum] = counted[..] else {
        panic!("{counted:?}")
    };
    assert!((2000..2400).contains(&sum.value), "{sum:?}");
    assert!(sum.enabled > 0 && sum.running == sum.enabled, "{sum:?}");
}

#[test]
fn other_threads_are_not_counted() {
    let work = || std::thread::spawn(|| fault(2000)).join().unwrap();
    if let Some(counted) = count(&threads(vec![this_thread()]), work) {
        assert!(counted[0].value < 500, "{counted:?}");
    }
}

#[test]
fn threads_that_end_are_counted_to_their_end() {
    let (send, receive) = std::sync::mpsc::channel();
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let worker = std::thread::spawn(move || {
        send.send(this_thread()).unwrap();
        wait.recv().unwrap();
        fault(3000);
    });
    let scope = threads(vec![receive.recv().unwrap()]);
    let counted = count(&scope, || {
        go.send(()).unwrap();
        worker.join().unwrap();
    });
    if let Some(counted) = counted {
        assert!((3000..3400).contains(&counted[0].value), "{counted:?}");
    }
}

#[test]
fn the_root_cgroup_contains_all_tasks() {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let folder = rperf_sys::CgroupFolder::find(&mounts);
    let Some((id, level)) = folder.and_then(|folder| folder.id_and_level("/").unwrap()) else {
        return;
    };
    // No cgroup has this id.
    let empty = CgroupPlace {
        id: u64::MAX,
        level: 3,
    };
    let scope = CountedScope::Cgroups(vec![empty, CgroupPlace { id, level }]);
    if let Some(counted) = count(&scope, || fault(2000)) {
        assert_eq!(counted[0], CountSum::default());
        assert!(counted[1].value >= 2000, "{counted:?}");
    }
}

#[test]
fn programs_without_types_and_unknown_programs_are_refused() {
    let Ok(program) = rperf_sys::KprobeProgram::empty() else {
        return;
    };
    let path = format!("/proc/self/fdinfo/{}", program.as_fd().as_raw_fd());
    let fdinfo = std::fs::read_to_string(path).unwrap();
    let id = fdinfo
        .lines()
        .find_map(|line| line.strip_prefix("prog_id:\t"));
    let id: u32 = id.unwrap().parse().unwrap();
    for (id, expected) in [(id, "type information"), (u32::MAX, "no BPF program")] {
        let scope = CountedScope::Programs(vec![id]);
        match KernelCounters::start(&scope, &[Vec::new()]) {
            Err(Error::NotPermitted | Error::PidNamespace) => {}
            Err(error) => assert!(error.to_string().contains(expected), "{error}"),
            Ok(_) => panic!("{id}"),
        }
    }
}
