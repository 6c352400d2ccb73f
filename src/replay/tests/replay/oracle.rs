//! The World (processes, names and mappings at every time), compared with a plain sequential replay of the same records.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use crate::file::{FileBuilder, attr};
use crate::sequential_machine::{NaiveMachine, NaiveQueue, Piece, joined};
use crate::{KERNEL, USER};
use proptest::prelude::*;
use rperf_perfdata::{PerfData, Records};
use rperf_replay::{
    Fold, FoldControl, Machine, Order, Render, Replay, Sample, World, WorldBuilder,
};
use rperf_wire::{
    Comm, CpuMode, Endian, Ksymbol, MAP_PRIVATE, Misc, Mmap, Mmap2, MmapId, PROT_EXEC, PROT_READ,
    RawRecord, Record, SampleId, SampleType, Task,
};

/// One step of a recording.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Mmap {
        pid: u32,
        start: u64,
        len: u64,
        file: u8,
    },
    /// Parent and child are given by process and thread id.
    Fork {
        parent: (u32, u32),
        child: (u32, u32),
        exec: bool,
    },
    Exit {
        pid: u32,
    },
    Comm {
        pid: u32,
        tid: u32,
        name: u8,
        exec: bool,
    },
    /// Maps the kernel or one of its modules ([`kernel_name`]) at address `6 * place`.
    Kernel {
        place: u64,
    },
    /// Registers generated code of the kernel.
    RegisterCode {
        start: u64,
        len: u32,
        name: u8,
    },
    /// Unregisters generated code of the kernel.
    UnregisterCode {
        start: u64,
    },
    Sample {
        pid: u32,
        tid: u32,
        kernel: bool,
        address: u64,
    },
}

/// A step with its time (0: a record without a time), or the end of a round (a `FINISHED_ROUND` record).
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Step(u64, Step),
    Round,
}

fn pid() -> impl Strategy<Value = u32> {
    0_u32..6
}

/// Process and thread id, mostly of main threads, sometimes of a second thread of the process.
fn pid_and_tid() -> impl Strategy<Value = (u32, u32)> {
    (pid(), 0_u32..4).prop_map(|(pid, thread)| (pid, if thread == 0 { pid + 10 } else { pid }))
}

fn step() -> impl Strategy<Value = Step> {
    let mmap =
        (pid(), 0_u64..40, 0_u64..12, any::<u8>()).prop_map(|(pid, start, len, file)| Step::Mmap {
            pid,
            start,
            len,
            file: file % 5,
        });
    let fork = (pid(), pid_and_tid(), any::<bool>()).prop_map(|(ppid, child, exec)| Step::Fork {
        parent: (ppid, ppid),
        child,
        exec,
    });
    let comm = (pid_and_tid(), any::<u8>(), any::<bool>()).prop_map(|((pid, tid), name, exec)| {
        Step::Comm {
            pid,
            tid,
            name: name % 7,
            exec,
        }
    });
    // As in the kernel, code never extends into the code after it: each piece begins at one of ten places, 6 apart, and is at
    // most 6 long. Generated code may be at every place, modules and the kernel at the last three.
    let register_code =
        (0_u64..10, 1_u32..6, any::<u8>()).prop_map(|(place, len, name)| Step::RegisterCode {
            start: place * 6,
            len,
            name,
        });
    let sample =
        (pid_and_tid(), any::<bool>(), 0_u64..62).prop_map(|((pid, tid), kernel, address)| {
            Step::Sample {
                pid,
                tid,
                kernel,
                address,
            }
        });
    prop_oneof![
        4 => mmap,
        3 => fork,
        1 => pid().prop_map(|pid| Step::Exit { pid }),
        2 => comm,
        1 => register_code,
        1 => (7_u64..10).prop_map(|place| Step::Kernel { place }),
        1 => (0_u64..60).prop_map(|start| Step::UnregisterCode { start }),
        6 => sample,
    ]
}

/// Times sometimes decrease, as between rings, and some are missing.
pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (any::<u8>(), 0_u64..30, step());
    prop::collection::vec(event, 0..120).prop_map(|raw| {
        let mut base = 1;
        let mut events = Vec::new();
        for (choice, offset, step) in raw {
            match choice % 16 {
                0 => {
                    base += 30;
                    events.push(Event::Round);
                }
                1 | 2 => events.push(Event::Step(0, step)),
                _ => events.push(Event::Step(base + offset, step)),
            }
        }
        events
    })
}

const NAMES: [&str; 5] = ["/bin/a", "/bin/b", "/lib/c.so", "/lib/d.so", "[vsyscall]"];
const COMMS: [&str; 7] = ["one", "two", "three", "four", "five", "six", "seven"];

/// Appends a step to the file and returns its position.
fn write(file: &mut FileBuilder, time: u64, step: &Step) -> u64 {
    let id = |pid, tid| SampleId {
        pid_tid: Some((pid, tid)),
        time: Some(time),
        ..SampleId::default()
    };
    let task = |child: (u32, u32), parent: (u32, u32)| Task {
        pid: child.0,
        tid: child.1,
        ppid: parent.0,
        ptid: parent.1,
        time,
    };
    match step.clone() {
        Step::Mmap {
            pid,
            start,
            len,
            file: name,
        } => {
            let mmap = Mmap {
                pid: pid.cast_signed(),
                tid: pid,
                start,
                len,
                pgoff: u64::from(name) * 1000,
                filename: NAMES[usize::from(name)].as_bytes(),
            };
            let inode = MmapId::Inode {
                major: 8,
                minor: 1,
                inode: 5,
                generation: 0,
            };
            let record = Record::Mmap2(Mmap2 {
                mmap,
                id: inode,
                prot: PROT_READ | PROT_EXEC,
                flags: MAP_PRIVATE,
            });
            file.record(0, USER, &record, &id(pid, pid))
        }
        Step::Fork {
            parent,
            child,
            exec,
        } => {
            let misc = if exec { Misc::FORK_EXEC } else { Misc(0) };
            file.record(
                0,
                misc,
                &Record::Fork(task(child, parent)),
                &id(parent.0, parent.1),
            )
        }
        Step::Exit { pid } => {
            let exited = task((pid, pid), (1, 1));
            file.record(0, Misc(0), &Record::Exit(exited), &id(pid, pid))
        }
        Step::Comm {
            pid,
            tid,
            name,
            exec,
        } => {
            let comm = COMMS[usize::from(name)].as_bytes();
            let misc = if exec { Misc::COMM_EXEC } else { Misc(0) };
            file.record(
                0,
                misc,
                &Record::Comm(Comm { pid, tid, comm }),
                &id(pid, tid),
            )
        }
        Step::Kernel { place } => {
            let filename = kernel_name(place);
            let mmap = Mmap {
                pid: -1,
                tid: 0,
                start: place * 6,
                len: 6,
                pgoff: 0,
                filename: filename.as_bytes(),
            };
            file.record(0, KERNEL, &Record::Mmap(mmap), &id(0, 0))
        }
        Step::RegisterCode { start, len, name } => {
            let name = format!("bpf_prog_{name}");
            let symbol = ksymbol(start, len, REGISTER, name.as_bytes());
            file.record(0, Misc(0), &Record::Ksymbol(symbol), &id(0, 0))
        }
        Step::UnregisterCode { start } => {
            let symbol = ksymbol(start, 1, UNREGISTER, b"gone");
            file.record(0, Misc(0), &Record::Ksymbol(symbol), &id(0, 0))
        }
        Step::Sample {
            pid,
            tid,
            kernel,
            address,
        } => {
            let sample = rperf_wire::SampleRecord {
                ip: Some(address),
                pid_tid: Some((pid, tid)),
                time: Some(time),
                ..rperf_wire::SampleRecord::default()
            };
            file.sample(0, if kernel { KERNEL } else { USER }, &sample)
        }
    }
}

/// The name of the mapping at a place: one of two modules, or the kernel after them.
fn kernel_name(place: u64) -> String {
    match place {
        9 => "[kernel.kallsyms]".to_owned(),
        _ => format!("[module{place}]"),
    }
}

/// The flags of KSYMBOL records.
const REGISTER: u16 = 0;
const UNREGISTER: u16 = 1;

/// The KSYMBOL record of a BPF program.
fn ksymbol(addr: u64, len: u32, flags: u16, name: &[u8]) -> Ksymbol<'_> {
    Ksymbol {
        addr,
        len,
        ksym_type: 1,
        flags,
        name,
    }
}

/// The view of a sample: its position, the thread's name, and the name of the object with the offset in it (in the kernel and its
/// modules, the address).
pub(crate) type Seen = (u64, String, Option<(String, u64)>);

/// Applies a step to the oracle; returns the view of a sample, `None` for other steps.
fn apply(machine: &mut NaiveMachine, position: u64, step: &Step) -> Option<Seen> {
    match step.clone() {
        Step::Mmap {
            pid,
            start,
            len,
            file,
        } => machine.mmap(
            pid,
            Piece {
                start,
                end: start + len,
                pgoff: u64::from(file) * 1000,
                name: NAMES[usize::from(file)].to_owned(),
            },
        ),
        Step::Fork {
            parent,
            child,
            exec,
        } => machine.fork(parent, child, exec),
        // The World ignores EXIT records: a thread stays until its id is used again.
        Step::Exit { .. } => {}
        Step::Comm { pid, tid, name, .. } => machine.comm(pid, tid, COMMS[usize::from(name)]),
        // Symbols of the kernel and its modules are found by address, not by file offset.
        Step::Kernel { place } => machine.map_kernel(Piece {
            start: place * 6,
            end: place * 6 + 6,
            pgoff: place * 6,
            name: kernel_name(place),
        }),
        Step::RegisterCode { start, len, name } => machine.register_code(Piece {
            start,
            end: start + u64::from(len),
            pgoff: 0,
            name: format!("bpf_prog_{name}"),
        }),
        Step::UnregisterCode { start } => machine.unregister_code(start),
        Step::Sample {
            pid,
            tid,
            kernel,
            address,
        } => {
            let place = if kernel {
                machine.kernel(address)
            } else {
                machine.user(pid, address)
            };
            return Some((position, machine.comm_of(tid), place));
        }
    }
    None
}

/// The final mappings of a process in the World.
fn mapped(world: &World, pid: u32) -> Vec<Piece> {
    let visible = world.mappings_of(pid).into_iter();
    // A mapping that is partly hidden by later ones may be visible in several ranges.
    let pieces = visible.map(|range| {
        let mapping = world.mapping(range.id);
        Piece {
            start: range.start,
            end: range.end,
            pgoff: mapping.pgoff + (range.start - mapping.start),
            name: world.dso(mapping.dso).name.clone(),
        }
    });
    joined(pieces.collect())
}

/// Process, parent and name of every thread in FORK and COMM records.
fn tasks(world: &World) -> BTreeMap<u32, (u32, Option<u32>, String)> {
    let threads = world.threads().filter(|thread| thread.has_task_records);
    threads
        .map(|thread| {
            let comm = world.comm(thread.comm).to_owned();
            (thread.tid, (thread.pid, thread.parent, comm))
        })
        .collect()
}

fn look(world: &World, sample: &Sample<'_>) -> Seen {
    let (mode, order) = (sample.cpu_mode(), sample.order);
    let ip = sample.wire.ip.expect("recorded");
    let mapping = world.lookup(Machine::Host, mode, sample.pid, order, ip);
    let place = mapping.map(|id| {
        let mapping = world.mapping(id);
        (
            world.dso(mapping.dso).name.clone(),
            mapping.object_address(ip),
        )
    });
    let comm = world.comm_at(sample.tid, order);
    (order.position, world.comm(comm).to_owned(), place)
}

/// Renders the view of each sample.
pub(crate) struct Look;

impl Render for Look {
    type Out = Vec<Seen>;
    type Scratch = ();

    fn render(&self, world: &World, sample: &Sample<'_>, _: &mut (), out: &mut Vec<Seen>) {
        out.push(look(world, sample));
    }
}

#[derive(Default)]
struct Gather(Vec<Seen>);

impl Fold for Gather {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        self.0.push(look(world, sample));
    }

    fn merge(&mut self, later: Self) {
        self.0.extend(later.0);
    }
}

/// Writes the events to a file and to a model of perf's queue. Returns the file, and the steps in perf's order, each with its
/// position in the file. Late records are omitted, since rperf intentionally handles them differently from perf.
pub(crate) fn record(events: &[Event]) -> (Vec<u8>, Vec<(u64, Step)>) {
    let sample_type = SampleType::IP | SampleType::TID | SampleType::TIME;
    let mut file = FileBuilder::new(Endian::Little, &[(attr(sample_type), vec![1])]);
    let mut queue = NaiveQueue::new();
    for event in events {
        match event {
            Event::Round => {
                file.round();
                queue.finish_round();
            }
            Event::Step(time, _) if *time != 0 && *time < queue.flushed => {}
            Event::Step(time, step) => {
                let position = write(&mut file, *time, step);
                queue.push(*time, (position, step.clone()));
            }
        }
    }
    (file.finish(), queue.finish())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn world_answers_as_a_plain_replay_does(events in events()) {
        let (file, delivered) = record(&events);
        let mut machine = NaiveMachine::new();
        let expected: Vec<Seen> = delivered
            .iter()
            .filter_map(|(position, step)| apply(&mut machine, *position, step))
            .collect();
        let data = PerfData::parse(&file).expect("a valid file");
        let replay = Replay::open(&data).expect("a valid recording");
        for threads in [1, 3] {
            let threads = NonZeroUsize::new(threads).expect("not zero");
            let mut seen = Vec::new();
            let mut take = |block: &mut Vec<Seen>| {
                seen.append(block);
                FoldControl::Continue
            };
            replay.ordered(threads, &Look, &mut take).expect("enough memory");
            prop_assert_eq!(&seen, &expected);
            let mut folded = replay.fold(threads, Gather::default).0;
            // Folding is in file order, not in order of delivery.
            let mut sorted = expected.clone();
            folded.sort();
            sorted.sort();
            prop_assert_eq!(folded, sorted);
        }
        let world = replay.world();
        for pid in 0..20 {
            prop_assert_eq!(mapped(world, pid), machine.mapped(pid), "of {}", pid);
        }
        prop_assert_eq!(tasks(world), machine.tasks());
    }

    /// Between records the builder answers like the oracle.
    #[test]
    fn growing_world_answers_between_records(events in events()) {
        let (file, delivered) = record(&events);
        let mut machine = NaiveMachine::new();
        let mut builder = WorldBuilder::new(Endian::Little);
        // The records get new times, so that their order is that of the delivery; the times in the file are not used.
        for (time, (position, step)) in (1..).zip(&delivered) {
            let order = Order { time, position: *position };
            let raw = raw_at(&file, *position);
            builder.push(order, &raw).expect("a valid record");
            let Some((_, comm, place)) = apply(&mut machine, *position, step) else { continue };
            let Step::Sample { pid, tid, kernel, address } = step else { continue };
            let mode = if *kernel { CpuMode::Kernel } else { CpuMode::User };
            let world = builder.world();
            let found = world.lookup(Machine::Host, mode, *pid, order, *address);
            let found = found.map(|id| {
                let mapping = world.mapping(id);
                (world.dso(mapping.dso).name.clone(), mapping.object_address(*address))
            });
            prop_assert_eq!(found, place);
            prop_assert_eq!(world.comm(world.comm_at(*tid, order)), comm);
        }
    }
}

fn raw_at(file: &[u8], position: u64) -> RawRecord<'_> {
    let bytes = &file[usize::try_from(position).expect("small")..];
    let mut records = Records::new(bytes, position, Endian::Little);
    records.next().expect("a record").expect("complete").raw
}

/// Every process maps something over inherited mappings and forks the next.
#[test]
fn long_fork_chains_keep_inherited_state() {
    const LENGTH: u32 = 150;
    let mut events = Vec::new();
    let mut time = 1;
    let mut push = |step| {
        time += 1;
        events.push(Event::Step(time, step));
    };
    for pid in 1..LENGTH {
        let (start, file) = (u64::from(pid * 7 % 40), 0);
        push(Step::Mmap {
            pid,
            start,
            len: 3,
            file,
        });
        push(Step::Fork {
            parent: (pid, pid),
            child: (pid + 1, pid + 1),
            exec: false,
        });
        for address in 0..48 {
            let (pid, tid, kernel) = (pid + 1, pid + 1, false);
            push(Step::Sample {
                pid,
                tid,
                kernel,
                address,
            });
        }
    }
    let (file, delivered) = record(&events);
    let mut machine = NaiveMachine::new();
    let steps = delivered.iter();
    let expected: Vec<Seen> = steps
        .filter_map(|(position, step)| apply(&mut machine, *position, step))
        .collect();
    let data = PerfData::parse(&file).expect("a valid file");
    let replay = Replay::open(&data).expect("a valid recording");
    let folded = replay.fold(NonZeroUsize::MIN, Gather::default);
    assert_eq!(folded.0, expected);
}
