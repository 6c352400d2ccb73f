//! What runs already: FORK, COMM and MMAP2 for processes and threads found in `/proc`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

use rperf_sys::{MapEntry, Proc, map_entries};
use rperf_wire::{Comm, Misc, Mmap, Mmap2, MmapId, Namespace, Namespaces, Record, Task};

use super::Records;

/// `PERF_RECORD_MISC_USER`.
const USER: Misc = Misc(2);
/// What perf calls memory without a name.
const ANONYMOUS: &[u8] = b"//anon";
/// Processes that a thread reads in one go, some tenths of a millisecond each: for fewer none is started.
const TOLD_AT_ONCE: usize = 16;
/// Bits of mmap(2).
const PROT_READ: u32 = 1;
const PROT_WRITE: u32 = 2;
const PROT_EXEC: u32 = 4;
const MAP_SHARED: u32 = 1;
const MAP_PRIVATE: u32 = 2;

/// Which mappings are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mapped {
    /// None.
    Nothing,
    /// Executable ones.
    Code,
    /// Readable data too, as the kernel does where an attr says `mmap_data`.
    Data,
}

/// What is told of each task beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) mapped: Mapped,
    /// How long those of one process may take to be read.
    pub(crate) within: Duration,
    /// How many threads read, where there are many processes.
    pub(crate) threads: usize,
    /// Which namespaces it is in.
    pub(crate) namespaces: bool,
}

/// Every process and thread: FORK and COMM each, MMAP2 after the leaders'.
///
/// The forks are marked as synthesized: their children share nothing with the parents they name.
/// What ends while this reads is skipped.
pub(crate) fn all_tasks(to: &mut Records, proc: &Proc, told: Told) -> std::io::Result<()> {
    let processes = proc.processes()?;
    shared_out(to, &processes, told.threads, &|to, pid| {
        a_process(to, proc, *pid, told);
    });
    Ok(())
}

fn a_process(to: &mut Records, proc: &Proc, pid: u32, told: Told) {
    for tid in proc.threads(pid).unwrap_or_default() {
        let Ok(status) = proc.status(pid, tid) else {
            continue;
        };
        // As perf assumes: the leader has started all other threads.
        let parent = if tid == status.tgid {
            status.ppid
        } else {
            status.tgid
        };
        let task = Task {
            pid: status.tgid,
            ppid: parent,
            tid,
            ptid: parent,
            time: 0,
        };
        to.kernel(&Record::Fork(task), Misc::FORK_EXEC);
        if told.namespaces {
            namespaces(to, proc, status.tgid, tid);
        }
        comm(to, status.tgid, tid, &status.name);
        if tid == pid && !status.is_kernel {
            mappings(to, proc, pid, told);
        }
    }
}

/// COMM of these threads, and MMAP2 of the processes they belong to.
pub(crate) fn some_tasks(to: &mut Records, proc: &Proc, tids: &[i32], told: Told) {
    let leaders: HashSet<i32> = tids.iter().copied().collect();
    shared_out(to, tids, told.threads, &|to, tid| {
        let tid = tid.unsigned_abs();
        let Ok(pid) = proc.process_of(tid) else {
            return;
        };
        one_task(to, proc, (pid, tid), told);
        // Maps hang on the leader, so it comes along where it was not asked for.
        if pid != tid && !leaders.contains(&pid.cast_signed()) {
            one_task(to, proc, (pid, pid), told);
        }
    });
}

/// Makes the records of each item, in their order, in several threads where there are many.
fn shared_out<T: Sync>(
    to: &mut Records,
    items: &[T],
    threads: usize,
    make: &(dyn Fn(&mut Records, &T) + Sync),
) {
    let parts: Vec<&[T]> = items.chunks(TOLD_AT_ONCE).collect();
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let trailer = to.trailer;
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(part) = parts.get(index) else { return };
            let mut records = Records::new(trailer);
            for item in *part {
                make(&mut records, item);
            }
            if let Ok(mut made) = made.lock() {
                made.push((index, records));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(parts.len()) {
            // One that cannot be started leaves its share to the others.
            let _ = Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_unstable_by_key(|(index, _)| *index);
    for (_, records) in made {
        to.append_all(records);
    }
}

/// COMM of a workload that waits for its start.
pub(crate) fn workload_comm(to: &mut Records, proc: &Proc, pid: u32) {
    if let Ok(status) = proc.status(pid, pid) {
        comm(to, pid, pid, &status.name);
    }
}

fn one_task(to: &mut Records, proc: &Proc, (pid, tid): (u32, u32), told: Told) {
    let Ok(status) = proc.status(pid, tid) else {
        return;
    };
    if told.namespaces {
        namespaces(to, proc, pid, tid);
    }
    comm(to, pid, tid, &status.name);
    if pid == tid {
        mappings(to, proc, pid, told);
    }
}

/// NAMESPACES of a thread, in the kernel's order; none where they can't be seen.
fn namespaces(to: &mut Records, proc: &Proc, pid: u32, tid: u32) {
    let kinds = ["net", "uts", "ipc", "pid", "user", "mnt", "cgroup"];
    let link = |kind| {
        let metadata = fs::metadata(proc.path(format!("{pid}/task/{tid}/ns/{kind}")));
        metadata.map(|metadata| Namespace {
            dev: metadata.dev(),
            inode: metadata.ino(),
        })
    };
    if let Ok(links) = kinds.into_iter().map(link).collect() {
        let record = Record::Namespaces(Namespaces { pid, tid, links });
        to.kernel(&record, Misc(0));
    }
}

fn comm(to: &mut Records, pid: u32, tid: u32, name: &[u8]) {
    to.kernel(
        &Record::Comm(Comm {
            pid,
            tid,
            comm: name,
        }),
        Misc(0),
    );
}

/// MMAP2 of a process's mappings; none when its maps can't be read. Where that takes too long, the last says that more
/// are missing.
fn mappings(to: &mut Records, proc: &Proc, pid: u32, told: Told) {
    if told.mapped == Mapped::Nothing {
        return;
    }
    let (text, whole) = proc.maps(pid, told.within).unwrap_or((Vec::new(), true));
    let wanted = |entry: &MapEntry<'_>| match (entry.permissions, told.mapped) {
        ([_, _, b'x', _], _) => Some(USER),
        ([b'r', ..], Mapped::Data) => Some(Misc(USER.0 | Misc::MMAP_DATA.0)),
        _ => None,
    };
    let entries = map_entries(&text).filter_map(|entry| Some((wanted(&entry)?, entry)));
    let mut entries = entries.peekable();
    while let Some((misc, entry)) = entries.next() {
        let cut = !whole && entries.peek().is_none();
        let misc = if cut {
            Misc(misc.0 | Misc::MAPS_CUT.0)
        } else {
            misc
        };
        to.kernel(&Record::Mmap2(mmap2(pid, &entry)), misc);
    }
    to.cut_maps += u64::from(!whole);
}

fn mmap2<'a>(pid: u32, entry: &MapEntry<'a>) -> Mmap2<'a> {
    let [read, write, execute, shared] = entry.permissions;
    let bit = |letter: u8, expected: u8, bit: u32| if letter == expected { bit } else { 0 };
    let name = if entry.name.is_empty() {
        ANONYMOUS
    } else {
        entry.name
    };
    Mmap2 {
        mmap: Mmap {
            pid: pid.cast_signed(),
            tid: pid,
            start: entry.start,
            len: entry.end.saturating_sub(entry.start),
            pgoff: entry.offset,
            filename: name,
        },
        id: MmapId::Inode {
            major: entry.device.0,
            minor: entry.device.1,
            inode: entry.inode,
            generation: 0,
        },
        prot: bit(read, b'r', PROT_READ)
            | bit(write, b'w', PROT_WRITE)
            | bit(execute, b'x', PROT_EXEC),
        flags: if shared == b's' {
            MAP_SHARED
        } else {
            MAP_PRIVATE
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::split;
    use super::*;
    use rperf_wire::Endian;

    /// A process with two threads, one mapping of code and one of data.
    fn fake_proc() -> (Proc, std::path::PathBuf) {
        let root = std::env::temp_dir().join(format!(
            "rperf-tasks-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        for (tid, name) in [(7, "leader"), (9, "worker")] {
            let directory = root.join(format!("7/task/{tid}"));
            fs::create_dir_all(&directory).unwrap();
            let status = format!("Name:\t{name}\nTgid:\t7\nPPid:\t3\nVmPeak:\t1 kB\n");
            fs::write(directory.join("status"), &status).unwrap();
            fs::create_dir_all(root.join(tid.to_string())).unwrap();
            fs::write(root.join(format!("{tid}/status")), &status).unwrap();
        }
        let maps = "1000-3000 r-xp 00002000 fe:01 55 /bin/x\n3000-4000 rw-p 00000000 00:00 0 \n5000-6000 r-xs 00000000 00:00 0 \n";
        fs::write(root.join("7/task/7/maps"), maps).unwrap();
        (Proc::new(&root), root)
    }

    fn told(mapped: Mapped) -> Told {
        Told {
            mapped,
            within: Duration::from_secs(60),
            threads: 1,
            namespaces: false,
        }
    }

    fn decoded(bytes: &[u8]) -> Vec<(Misc, Record<'_>)> {
        let records = split(bytes).into_iter();
        records
            .map(|raw| (raw.misc, Record::decode(&raw, Endian::NATIVE).unwrap()))
            .collect()
    }

    #[test]
    fn a_process_is_fork_comm_maps_and_its_threads_hang_on_it() {
        let (proc, root) = fake_proc();
        fs::remove_dir_all(root.join("9")).unwrap();
        let mut records = Records::new(8);
        all_tasks(&mut records, &proc, told(Mapped::Code)).unwrap();
        let bytes = records.take();
        let records = decoded(&bytes);
        assert_eq!(records.len(), 6);
        let fork = |tid, parent| {
            Record::Fork(Task {
                pid: 7,
                ppid: parent,
                tid,
                ptid: parent,
                time: 0,
            })
        };
        assert_eq!(records[0], (Misc::FORK_EXEC, fork(7, 3)));
        assert_eq!(
            records[1].1,
            Record::Comm(Comm {
                pid: 7,
                tid: 7,
                comm: b"leader"
            })
        );
        let (misc, Record::Mmap2(code)) = &records[2] else {
            panic!()
        };
        assert_eq!(
            (*misc, code.prot, code.flags),
            (USER, PROT_READ | PROT_EXEC, MAP_PRIVATE)
        );
        assert_eq!(
            (code.mmap.start, code.mmap.len, code.mmap.pgoff),
            (0x1000, 0x2000, 0x2000)
        );
        assert_eq!(
            code.id,
            MmapId::Inode {
                major: 0xfe,
                minor: 1,
                inode: 55,
                generation: 0
            }
        );
        let (_, Record::Mmap2(anonymous)) = &records[3] else {
            panic!()
        };
        assert_eq!(
            (anonymous.mmap.filename, anonymous.flags),
            (ANONYMOUS, MAP_SHARED)
        );
        assert_eq!(records[4].1, fork(9, 7));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn many_threads_tell_the_same_in_the_same_order() {
        let root = std::env::temp_dir().join(format!("rperf-told-{}", std::process::id()));
        // One that has ended, others with and without mappings: more than one share for each thread.
        for pid in 1..=100_u32 {
            let directory = root.join(format!("{pid}/task/{pid}"));
            fs::create_dir_all(&directory).unwrap();
            let status = format!("Name:\tp{pid}\nTgid:\t{pid}\nPPid:\t1\nVmPeak:\t1 kB\n");
            fs::write(root.join(format!("{pid}/status")), &status).unwrap();
            if pid != 40 {
                fs::write(directory.join("status"), &status).unwrap();
            }
            let map = format!("{pid:x}000-ffff000 r-xp 00000000 fe:01 {pid} /bin/x\n");
            fs::write(directory.join("maps"), map.repeat(pid as usize % 3)).unwrap();
        }
        let proc = Proc::new(&root);
        let by = |threads, within| {
            let told = Told {
                threads,
                within,
                ..told(Mapped::Code)
            };
            let (mut all, mut some) = (Records::new(8), Records::new(8));
            all_tasks(&mut all, &proc, told).unwrap();
            some_tasks(&mut some, &proc, &Vec::from_iter(1..=100), told);
            (all.take(), all.cut_maps, some.take(), some.cut_maps)
        };
        let minute = Duration::from_secs(60);
        let alone = by(1, minute);
        let kinds = |kind| {
            split(&alone.0)
                .iter()
                .filter(|raw| raw.kind == kind)
                .count()
        };
        assert_eq!(kinds(rperf_wire::RecordKind::COMM), 99);
        assert_eq!(kinds(rperf_wire::RecordKind::MMAP2), 99);
        assert!(by(3, minute) == alone && by(usize::MAX, minute) == alone);
        assert_eq!([1, 4].map(|threads| by(threads, Duration::ZERO).1), [99; 2]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn data_that_can_be_read_is_told_where_it_is_wanted() {
        let (proc, root) = fake_proc();
        let hidden = "6000-7000 ---p 00000000 00:00 0 \n";
        let maps = fs::read_to_string(root.join("7/task/7/maps")).unwrap();
        fs::write(root.join("7/task/7/maps"), maps + hidden).unwrap();
        let mut records = Records::new(0);
        some_tasks(&mut records, &proc, &[7], told(Mapped::Data));
        let bytes = records.take();
        let mapped: Vec<_> = decoded(&bytes)
            .iter()
            .filter_map(|(misc, record)| match record {
                Record::Mmap2(mapped) => Some((mapped.mmap.start, *misc)),
                _ => None,
            })
            .collect();
        let data = Misc(USER.0 | Misc::MMAP_DATA.0);
        assert_eq!(mapped, [(0x1000, USER), (0x3000, data), (0x5000, USER)]);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn mappings_that_take_too_long_are_counted() {
        let (proc, root) = fake_proc();
        let mut records = Records::new(0);
        let told = Told {
            within: Duration::ZERO,
            ..told(Mapped::Code)
        };
        some_tasks(&mut records, &proc, &[7], told);
        assert_eq!((decoded(&records.take()).len(), records.cut_maps), (1, 1));
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_thread_brings_its_leader_and_the_maps() {
        let (proc, root) = fake_proc();
        let mut records = Records::new(0);
        some_tasks(&mut records, &proc, &[9], told(Mapped::Code));
        let bytes = records.take();
        let records = decoded(&bytes);
        assert_eq!(records.len(), 4);
        assert!(matches!(
            records[0].1,
            Record::Comm(Comm { pid: 7, tid: 9, .. })
        ));
        assert!(matches!(
            records[1].1,
            Record::Comm(Comm { pid: 7, tid: 7, .. })
        ));
        assert!(matches!(records[2].1, Record::Mmap2(_)));
        fs::remove_dir_all(root).unwrap();
    }
}
