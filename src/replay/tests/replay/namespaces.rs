//! Namespaces and cgroups, compared with a linear search of the same records.

use proptest::prelude::*;
use rperf_replay::{Order, WorldBuilder};
use rperf_wire::{Cgroup, Encoder, Endian, Namespace, Namespaces, RawRecord, Record, Task};

const ENDIAN: Endian = Endian::Little;

#[derive(Debug, Clone)]
enum Step {
    /// The task enters namespaces.
    Enter { tid: u32, inode: u64 },
    /// The task is new: its namespaces are unknown until it enters some.
    Fork { tid: u32 },
    /// A cgroup is created.
    Cgroup { id: u64, name: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (0_u32..4, 1_u64..9).prop_map(|(tid, inode)| Step::Enter { tid, inode }),
        1 => (0_u32..4).prop_map(|tid| Step::Fork { tid }),
        1 => (0_u64..4, any::<u8>()).prop_map(|(id, name)| Step::Cgroup { id, name }),
    ];
    prop::collection::vec(step, 0..40)
}

/// The links of a task's namespaces of all 7 kinds, with one inode.
fn links(inode: u64) -> Vec<Namespace> {
    vec![Namespace { dev: 4, inode }; 7]
}

fn push(builder: &mut WorldBuilder, order: Order, record: &Record<'_>) {
    let mut body = Vec::new();
    record.encode_body(&mut Encoder::new(&mut body, ENDIAN));
    let (kind, misc) = record.kind_and_misc();
    let raw = RawRecord {
        kind,
        misc,
        body: &body,
    };
    builder.push(order, &raw).expect("a whole record");
}

/// The time and position of step `index`. Three successive steps have the same time, so that their positions order them.
fn order(index: usize) -> Order {
    Order {
        time: index as u64 / 3,
        position: index as u64,
    }
}

proptest! {
    #[test]
    fn namespaces_are_those_of_the_last_record_and_cgroups_of_the_first(steps in steps()) {
        let mut builder = WorldBuilder::new(ENDIAN);
        for (index, step) in steps.iter().enumerate() {
            let order = order(index);
            match step {
                Step::Enter { tid, inode } => {
                    let namespaces = Namespaces { pid: *tid, tid: *tid, links: links(*inode) };
                    push(&mut builder, order, &Record::Namespaces(namespaces));
                }
                Step::Fork { tid } => {
                    let task = Task { pid: *tid, ppid: 9, tid: *tid, ptid: 9, time: order.time };
                    push(&mut builder, order, &Record::Fork(task));
                }
                Step::Cgroup { id, name } => {
                    let path = format!("/{name}");
                    push(&mut builder, order, &Record::Cgroup(Cgroup { id: *id, path: path.as_bytes() }));
                }
            }
        }
        let world = builder.finish();
        for index in 0..=steps.len() {
            for queried in 0..4 {
                let past = steps.iter().take(index).rev();
                let last = past.clone().find_map(|step| match step {
                    Step::Enter { tid, inode } if *tid == queried => Some(links(*inode)),
                    Step::Fork { tid } if *tid == queried => Some(Vec::new()),
                    _ => None,
                });
                // The namespaces just before step `index`, which does not count itself.
                let found = world.namespaces_at(queried, order(index));
                prop_assert_eq!(found, last.unwrap_or_default());
            }
        }
        // As in perf, later records of the same cgroup id are ignored.
        for queried in 0..4 {
            let first = steps.iter().find_map(|step| match step {
                Step::Cgroup { id, name } if *id == queried => Some(format!("/{name}")),
                _ => None,
            });
            prop_assert_eq!(world.cgroup(queried), first.as_deref());
        }
    }
}
