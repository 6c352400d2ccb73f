//! Replays compared with Linux perf: samples of random recordings, and the names of DSOs.

use std::num::NonZeroUsize;

use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use rperf_perfdata::PerfData;
use rperf_replay::{FoldControl, Replay};
use rperf_testkit::{Run, Scratch, real_perf, skip};
use rperf_wire::{Endian, Mmap, Mmap2, MmapId, Record, SampleId, SampleType};

use crate::file::{FileBuilder, attr};
use crate::oracle::{Event, Look, Seen, Step, events, record};
use crate::{KERNEL, USER};

/// Replaces other threads by the main thread of their process. If a process id is reused while a thread of the old process
/// exists, perf looks up that thread's samples in the old mappings, rperf in those of the new process. Real threads don't
/// outlive their process.
fn main_threads_only(event: Event) -> Event {
    let Event::Step(time, step) = event else {
        return event;
    };
    let step = match step {
        Step::Sample {
            pid,
            kernel,
            address,
            ..
        } => Step::Sample {
            pid,
            tid: pid,
            kernel,
            address,
        },
        Step::Comm {
            pid, name, exec, ..
        } => Step::Comm {
            pid,
            tid: pid,
            name,
            exec,
        },
        Step::Fork {
            parent,
            child,
            exec,
        } => Step::Fork {
            parent,
            child: (child.0, child.0),
            exec,
        },
        other => other,
    };
    Event::Step(time, step)
}

/// Omits mappings of the kernel and of modules: their unusual addresses confuse perf. Unregisters older code before other
/// code is registered at its address: perf would keep the older name.
fn without_ambiguous_kernel_code(event: Event) -> Vec<Event> {
    match event {
        Event::Step(_, Step::Kernel { .. }) => Vec::new(),
        Event::Step(time, Step::RegisterCode { start, .. }) => {
            vec![Event::Step(time, Step::UnregisterCode { start }), event]
        }
        other => vec![other],
    }
}

/// Lines of `perf script -F comm,tid,ip,dso`: `one 3 2a (/bin/a)`.
fn perf_lines(perf: &std::path::Path, file: &[u8]) -> Vec<String> {
    let scratch = Scratch::new();
    let path = scratch.write("perf.data", file).expect("written");
    let path = path.to_str().expect("a plain path");
    let run = Run::new(perf).args(["script", "-f", "-i", path, "-F", "comm,tid,ip,dso"]);
    let outcome = run.finish().expect("perf runs");
    let text = outcome.stdout;
    let lines = text
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// The line of a sample as perf prints it.
fn line((_, comm, place): &Seen, (tid, ip): (u32, u64)) -> String {
    let dso = place.as_ref().map_or("[unknown]", |(name, _)| name);
    format!("{comm} {tid} {ip:x} ({dso})")
}

/// The same lines from rperf. `samples` has each sample's position in the file, with its thread id and address.
fn rperf_lines(file: &[u8], samples: &[(u64, (u32, u64))]) -> Vec<String> {
    let data = PerfData::parse(file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let mut lines = Vec::new();
    // `ordered` delivers blocks of samples, which `Look` renders as their position in the file, comm and object.
    let mut take = |block: &mut Vec<Seen>| {
        for seen in block {
            let seen_at = seen.0;
            let sample = samples.iter().find(|(position, _)| *position == seen_at);
            lines.push(line(seen, sample.expect("a sample of the file").1));
        }
        FoldControl::Continue
    };
    replay
        .ordered(NonZeroUsize::MIN, &Look, &mut take)
        .expect("no threads are started");
    lines
}

#[test]
fn perf_sees_the_same() {
    let Some(perf) = real_perf() else {
        return skip("perf_sees_the_same", "there is no perf");
    };
    let config = ProptestConfig {
        cases: 100,
        failure_persistence: None,
        max_shrink_iters: 200,
        ..ProptestConfig::default()
    };
    // Fixed seeds: there are recordings on which perf 6.1 never terminates.
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let ran = TestRunner::new_with_rng(config, rng).run(&events(), |events| {
        let events = events.into_iter().map(main_threads_only);
        let events: Vec<Event> = events.flat_map(without_ambiguous_kernel_code).collect();
        let (file, ordered_steps) = record(&events);
        let samples: Vec<_> = ordered_steps
            .iter()
            .filter_map(|(position, step)| match step {
                Step::Sample { tid, address, .. } => Some((*position, (*tid, *address))),
                _ => None,
            })
            .collect();
        if !samples.is_empty() {
            prop_assert_eq!(rperf_lines(&file, &samples), perf_lines(&perf, &file));
        }
        Ok(())
    });
    if let Err(failure) = ran {
        panic!("{failure}");
    }
}

/// A mapping whose names in perf and rperf are compared.
struct NamedMapping {
    name: &'static str,
    /// `PROT_*` of mmap(2): 1 read, 2 write, 4 execute.
    prot: u32,
    /// `MAP_*` of mmap(2): 1 shared, 2 private, 0x20 anonymous, 0x40000 huge pages.
    flags: u32,
    kernel: bool,
}

const fn user(name: &'static str, prot: u32, flags: u32) -> NamedMapping {
    NamedMapping {
        name,
        prot,
        flags,
        kernel: false,
    }
}

const fn kernel(name: &'static str) -> NamedMapping {
    NamedMapping {
        name,
        prot: 5,
        flags: 0,
        kernel: true,
    }
}

const NAMED_MAPPINGS: [NamedMapping; 23] = [
    user("//anon", 5, 0x22),
    user("//anon", 3, 0x22),
    user("[heap]", 3, 0x22),
    user("[heap]", 7, 0x22),
    user("[stack]", 3, 0x22),
    user("[stack:77]", 7, 0x22),
    user("/SYSV00001234 (deleted)", 5, 1),
    user("/dev/zero", 5, 2),
    user("/dev/zero (deleted)", 3, 2),
    user("/anon_hugepage (deleted)", 5, 2),
    user("/usr/bin/huge", 5, 0x40002),
    user("/memfd:jit (deleted)", 5, 2),
    user("/usr/bin/gone (deleted)", 5, 2),
    user("/usr/lib/libx.so.6", 1, 2),
    user("[vdso]", 5, 0x22),
    user("[vsyscall]", 4, 0x22),
    user("[uprobes]", 4, 0x22),
    user("inode.slice/", 5, 2),
    kernel("/lib/modules/6.1/kernel/fs/ext4/ext4.ko"),
    kernel("/lib/modules/6.1/kernel/sound/snd-hda-intel.ko.xz"),
    kernel("/lib/modules/6.1/extra/odd.name"),
    kernel("[bracketed]"),
    kernel("/lib/modules/6.1/kernel/plain.ko.gz"),
];

/// A recording of the [`NAMED_MAPPINGS`], each at addresses of its own with one sample, and the addresses of the samples.
fn named_recording() -> (Vec<u8>, Vec<u64>) {
    const PID: u32 = 4_000_000;
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    // One event, number 0 below, with the id 1.
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    let mut addresses = Vec::new();
    for (number, named) in (1..).zip(&NAMED_MAPPINGS) {
        let base = if named.kernel {
            0xffff_ffff_c000_0000
        } else {
            0x7f00_0000_0000
        };
        let (start, time) = (base + number * 0x1_0000, number * 1000);
        let misc = if named.kernel { KERNEL } else { USER };
        let pid = if named.kernel { u32::MAX } else { PID };
        let id = SampleId {
            pid_tid: Some((pid, pid)),
            time: Some(time),
            ..SampleId::default()
        };
        let mmap = Mmap {
            pid: pid.cast_signed(),
            tid: pid,
            start,
            len: 0x1000,
            pgoff: 0x3000,
            filename: named.name.as_bytes(),
        };
        let inode = MmapId::Inode {
            major: 8,
            minor: 1,
            inode: 5,
            generation: 0,
        };
        let (prot, flags) = (named.prot, named.flags);
        let record = Record::Mmap2(Mmap2 {
            mmap,
            id: inode,
            prot,
            flags,
        });
        file.record(0, misc, &record, &id);
        let sample = rperf_wire::SampleRecord {
            ip: Some(start + 0x10),
            pid_tid: Some((PID, PID)),
            time: Some(time + 1),
            ..rperf_wire::SampleRecord::default()
        };
        file.sample(0, misc, &sample);
        addresses.push(start + 0x10);
    }
    (file.finish(), addresses)
}

#[test]
fn perf_names_objects_the_same() {
    let Some(perf) = real_perf() else {
        return skip("perf_names_objects_the_same", "there is no perf");
    };
    let (file, addresses) = named_recording();
    let data = PerfData::parse(&file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    // All processes and mappings of the recording.
    let world = replay.world();
    let dso = |address| {
        let mut mappings = world.mappings().iter();
        let mapping = mappings.find(|at| at.start <= address && address < at.end);
        world.dso(mapping.expect("mapped").dso)
    };
    let scratch = Scratch::new();
    let path = scratch.write("perf.data", &file).expect("written");
    let path = path.to_str().expect("a plain path");
    let run = Run::new(&perf).args(["script", "-f", "-i", path, "-F", "ip,dso"]);
    let script = run.finish().expect("perf runs").stdout;
    let lines: Vec<&str> = script.lines().map(str::trim).collect();
    let expected: Vec<String> = addresses
        .iter()
        .map(|address| format!("{address:x} ({})", dso(*address).name))
        .collect();
    assert_eq!(lines, expected);
    let report = [
        "report",
        "-f",
        "-i",
        path,
        "--stdio",
        "-q",
        "-s",
        "dso",
        "--percentage",
        "relative",
        "-F",
        "dso",
    ];
    let report = Run::new(&perf)
        .args(report)
        .finish()
        .expect("perf runs")
        .stdout;
    let mut shown: Vec<&str> = report
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    shown.sort_unstable();
    let mut short: Vec<&str> = addresses
        .iter()
        .map(|address| dso(*address).short_name.as_str())
        .collect();
    short.sort_unstable();
    short.dedup();
    assert_eq!(shown, short);
}
