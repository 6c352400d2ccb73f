//! The tree of threads.

use rperf_analysis::task_tree;
use rperf_wire::{Endian, Misc, Mmap, Record, Task};

use crate::recording::{Recording, with_replay};

/// `PERF_RECORD_MISC_USER`.
const USER: Misc = Misc::USER;

#[test]
fn threads_follow_their_creators() {
    for endian in [Endian::Little, Endian::Big] {
        let mut recording = Recording::new(endian);
        // The tuples are (time, CPU, pid); each process has only its main thread. A fork also has the child's pid.
        recording.comm((1, 0, 10), b"sh");
        recording.fork((2, 0, 10), 12);
        recording.fork((3, 0, 12), 11);
        // Threads 30 and 31 are each other's parents: neither is in the tree.
        recording.fork((4, 0, 31), 30);
        recording.fork((5, 0, 30), 31);
        let file = recording.finish();
        let with_mappings = false;
        let tree = with_replay(&file, |_, replay| task_tree(replay.world(), with_mappings));
        let rows: Vec<_> = tree
            .iter()
            .map(|task| (task.tid, task.level, &*task.comm, task.parent))
            .collect();
        let expected = [
            (0, 0, "swapper", None),
            (10, 0, "sh", None),
            (12, 1, "sh", Some(10)),
            (11, 2, "sh", Some(12)),
        ];
        assert_eq!(rows, expected, "{endian:?}");
    }
}

fn add_mapping(
    recording: &mut Recording,
    time: u64,
    pid: u32,
    (start, len): (u64, u64),
    name: &[u8],
) {
    let mmap = Mmap {
        pid: pid.cast_signed(),
        tid: pid,
        start,
        len,
        pgoff: 0x100,
        filename: name,
    };
    recording.record((time, 0, pid), USER, &Record::Mmap(mmap));
}

#[test]
fn mappings_are_inherited_and_overridden_ones_are_not_listed() {
    let mut recording = Recording::new(Endian::NATIVE);
    add_mapping(&mut recording, 1, 10, (0x1000, 0x1000), b"/bin/a");
    add_mapping(&mut recording, 2, 10, (0x1400, 0x400), b"/bin/b");
    recording.fork((3, 0, 10), 11);
    add_mapping(&mut recording, 4, 10, (0x1000, 0x1000), b"/bin/c");
    // The synthetic fork of a process that started before the recording: it doesn't inherit mappings.
    let (pid, ppid, time) = (12, 10, 5);
    let task = Task {
        pid,
        ppid,
        tid: pid,
        ptid: ppid,
        time,
    };
    recording.record((5, 0, 10), Misc::FORK_EXEC, &Record::Fork(task));
    let file = recording.finish();
    let with_mappings = true;
    let tree = with_replay(&file, |_, replay| task_tree(replay.world(), with_mappings));
    let rows: Vec<_> = tree
        .iter()
        .flat_map(|task| task.mappings.iter().map(|mapping| (task.tid, mapping)))
        .map(|(tid, mapping)| {
            (
                tid,
                mapping.start,
                mapping.end,
                mapping.offset,
                &*mapping.name,
            )
        })
        .collect();
    let expected = [
        (10, 0x1000, 0x2000, 0x100, "/bin/c"),
        (11, 0x1000, 0x1400, 0x100, "/bin/a"),
        (11, 0x1400, 0x1800, 0x100, "/bin/b"),
        (11, 0x1800, 0x2000, 0x900, "/bin/a"),
    ];
    assert_eq!(rows, expected);
}

/// Thread 20 has a mapping, but no FORK or COMM record.
#[test]
fn a_thread_known_from_a_mapping_is_listed_only_with_mappings() {
    let mut recording = Recording::new(Endian::NATIVE);
    add_mapping(&mut recording, 1, 20, (0x1000, 0x1000), b"/bin/a");
    let file = recording.finish();
    let count = |with_mappings| {
        with_replay(&file, |_, replay| {
            task_tree(replay.world(), with_mappings).len()
        })
    };
    assert_eq!([count(false), count(true)], [1, 2], "with the idle task");
}
