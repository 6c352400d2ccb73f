//! Running tasks: FORK, NAMESPACES, COMM and MMAP2 for processes and threads in `/proc`.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::Duration;

use rperf_sys::{MapEntry, Proc, map_entries};
use rperf_wire::{
    Comm, MAP_PRIVATE, MAP_SHARED, Misc, Mmap, Mmap2, MmapId, Namespace, Namespaces, PROT_EXEC,
    PROT_READ, PROT_WRITE, Record, Task,
};

use super::RecordBuffer;

/// perf's name of anonymous memory.
const ANONYMOUS: &[u8] = b"//anon";
/// Number of processes or threads per batch. If there is only one batch, the calling thread processes it.
const BATCH_SIZE: usize = 16;

/// The mappings to synthesize.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SynthesizedMappings {
    /// No mappings.
    Nothing,
    /// Executable mappings.
    Code,
    /// Executable mappings, and other readable ones. Only the latter are flagged with `PERF_RECORD_MISC_MMAP_DATA`, as the
    /// kernel does for `attr.mmap_data`.
    Data,
}

/// Options for synthesizing tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TaskRecordOptions {
    pub(crate) mappings: SynthesizedMappings,
    /// Time limit for reading the mappings of one process; mappings read until then are kept.
    pub(crate) maps_timeout: Duration,
    /// Maximum number of threads that read procfs.
    pub(crate) threads: usize,
    /// Whether to include namespaces.
    pub(crate) namespaces: bool,
}

/// Appends FORK, NAMESPACES (if requested) and COMM of every thread, and MMAP2 of each process (if requested) after the COMM of
/// its leader.
///
/// `PERF_RECORD_MISC_FORK_EXEC` in the FORK records tells readers that children inherit no mappings from their parents.
/// Tasks that exit meanwhile are skipped.
///
/// # Errors
/// The processes can't be listed.
pub(crate) fn all_tasks(
    to: &mut RecordBuffer,
    proc: &Proc,
    options: TaskRecordOptions,
) -> std::io::Result<()> {
    let processes = proc.processes()?;
    in_threads(to, &processes, options.threads, &|to, pid| {
        process_records(to, proc, *pid, options);
    });
    Ok(())
}

/// Appends the records of a process and its threads.
fn process_records(to: &mut RecordBuffer, proc: &Proc, pid: u32, options: TaskRecordOptions) {
    for tid in proc.threads(pid).unwrap_or_default() {
        let Ok(status) = proc.status(pid, tid) else {
            continue;
        };
        // As in perf: the leader is the parent of all other threads.
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
        if options.namespaces {
            namespaces(to, proc, status.tgid, tid);
        }
        comm(to, status.tgid, tid, &status.name);
        // The maps of kernel threads are empty; skipping them only saves the reading.
        if tid == pid && !status.is_kernel {
            mappings(to, proc, pid, options);
        }
    }
}

/// Appends NAMESPACES (if requested) and COMM of these threads and of their leaders, and MMAP2 of the leaders (if requested).
/// Unlike [`all_tasks`], appends no FORK.
pub(crate) fn some_tasks(
    to: &mut RecordBuffer,
    proc: &Proc,
    tids: &[i32],
    options: TaskRecordOptions,
) {
    let requested: HashSet<i32> = tids.iter().copied().collect();
    in_threads(to, tids, options.threads, &|to, tid| {
        let tid = tid.unsigned_abs();
        let Ok(pid) = proc.process_of(tid) else {
            return;
        };
        one_task(to, proc, pid, tid, options);
        // Only the leader gets MMAP2 records, so the leader is included even if not requested; as in perf, once for each of its
        // requested threads.
        if pid != tid && !requested.contains(&pid.cast_signed()) {
            one_task(to, proc, pid, pid, options);
        }
    });
}

/// Calls `make` for each item, in at most `threads` threads, each of which takes one batch after the other. Appends the records
/// in the order of items.
fn in_threads<T: Sync>(
    to: &mut RecordBuffer,
    items: &[T],
    threads: usize,
    make: &(dyn Fn(&mut RecordBuffer, &T) + Sync),
) {
    let batches: Vec<&[T]> = items.chunks(BATCH_SIZE).collect();
    let (next, buffers) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let trailer_size = to.trailer;
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = batches.get(index) else {
                return;
            };
            let mut records = RecordBuffer::new(trailer_size);
            for item in *batch {
                make(&mut records, item);
            }
            if let Ok(mut buffers) = buffers.lock() {
                buffers.push((index, records));
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(batches.len()) {
            // If a thread cannot be started, the others process its share.
            let _ = Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    let mut buffers = buffers.into_inner().unwrap_or_default();
    buffers.sort_unstable_by_key(|(index, _)| *index);
    for (_, records) in buffers {
        to.append_all(records);
    }
}

/// Appends COMM of a workload's process that has not called exec(2) yet, with its present name.
pub(crate) fn workload_comm(to: &mut RecordBuffer, proc: &Proc, pid: u32) {
    if let Ok(status) = proc.status(pid, pid) {
        comm(to, pid, pid, &status.name);
    }
}

/// Appends the records of a thread; if the thread is the leader, also those of the mappings of its process.
fn one_task(to: &mut RecordBuffer, proc: &Proc, pid: u32, tid: u32, options: TaskRecordOptions) {
    let Ok(status) = proc.status(pid, tid) else {
        return;
    };
    if options.namespaces {
        namespaces(to, proc, pid, tid);
    }
    comm(to, pid, tid, &status.name);
    if pid == tid {
        mappings(to, proc, pid, options);
    }
}

/// Appends NAMESPACES of a thread, with the namespaces in the kernel's order; nothing if any can't be read.
fn namespaces(to: &mut RecordBuffer, proc: &Proc, pid: u32, tid: u32) {
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

fn comm(to: &mut RecordBuffer, pid: u32, tid: u32, name: &[u8]) {
    to.kernel(
        &Record::Comm(Comm {
            pid,
            tid,
            comm: name,
        }),
        Misc(0),
    );
}

/// Appends MMAP2 of the mappings of a process, as requested; nothing if they can't be read. If reading takes longer than
/// `options.maps_timeout`, the last record is flagged as truncated (`PERF_RECORD_MISC_PROC_MAP_PARSE_TIMEOUT`).
fn mappings(to: &mut RecordBuffer, proc: &Proc, pid: u32, options: TaskRecordOptions) {
    if options.mappings == SynthesizedMappings::Nothing {
        return;
    }
    // Maps that can't be read count as complete: `truncated_maps` only counts timeouts.
    let (text, is_complete) = proc
        .maps(pid, options.maps_timeout)
        .unwrap_or((Vec::new(), true));
    // The misc flags of the record; `None` if the mapping is not requested.
    let requested_misc = |entry: &MapEntry<'_>| match (entry.permissions, options.mappings) {
        ([_, _, b'x', _], _) => Some(Misc::USER),
        ([b'r', ..], SynthesizedMappings::Data) => Some(Misc(Misc::USER.0 | Misc::MMAP_DATA.0)),
        _ => None,
    };
    let entries = map_entries(&text).filter_map(|entry| Some((requested_misc(&entry)?, entry)));
    let mut entries = entries.peekable();
    while let Some((misc, entry)) = entries.next() {
        let is_last_of_truncated = !is_complete && entries.peek().is_none();
        let misc = if is_last_of_truncated {
            Misc(misc.0 | Misc::PROC_MAP_PARSE_TIMEOUT.0)
        } else {
            misc
        };
        to.kernel(&Record::Mmap2(mmap2(pid, &entry)), misc);
    }
    to.truncated_maps += u64::from(!is_complete);
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

    /// Creates a `/proc` with one process (two threads, two mappings of code and one of data); also returns its directory.
    fn fake_proc() -> (Proc, std::path::PathBuf) {
        let root = std::env::temp_dir().join(format!(
            "rperf-tasks-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        for (tid, name) in [(7, "leader"), (9, "worker")] {
            let directory = root.join(format!("7/task/{tid}"));
            fs::create_dir_all(&directory).unwrap();
            // A status without `VmPeak` is that of a kernel thread.
            let status = format!("Name:\t{name}\nTgid:\t7\nPPid:\t3\nVmPeak:\t1 kB\n");
            fs::write(directory.join("status"), &status).unwrap();
            fs::create_dir_all(root.join(tid.to_string())).unwrap();
            fs::write(root.join(format!("{tid}/status")), &status).unwrap();
        }
        let maps = "1000-3000 r-xp 00002000 fe:01 55 /bin/x\n3000-4000 rw-p 00000000 00:00 0 \n5000-6000 r-xs 00000000 00:00 0 \n";
        fs::write(root.join("7/task/7/maps"), maps).unwrap();
        (Proc::new(&root), root)
    }

    fn options(mapped: SynthesizedMappings) -> TaskRecordOptions {
        TaskRecordOptions {
            mappings: mapped,
            maps_timeout: Duration::from_secs(60),
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
    fn a_process_has_fork_comm_and_mmap2_and_is_the_parent_of_its_threads() {
        let (proc, root) = fake_proc();
        // `/proc` does not list a thread other than the leader, although its directory can be opened.
        fs::remove_dir_all(root.join("9")).unwrap();
        let sample_id_size = 8;
        let mut records = RecordBuffer::new(sample_id_size);
        all_tasks(&mut records, &proc, options(SynthesizedMappings::Code)).unwrap();
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
            (Misc::USER, PROT_READ | PROT_EXEC, MAP_PRIVATE)
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
    fn the_order_of_records_does_not_depend_on_the_number_of_threads() {
        let root = std::env::temp_dir().join(format!("rperf-tasks-{}", std::process::id()));
        // An exited process, and others with and without mappings, in several batches.
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
        let records_with = |threads, maps_timeout| {
            let options = TaskRecordOptions {
                threads,
                maps_timeout,
                ..options(SynthesizedMappings::Code)
            };
            let sample_id_size = 8;
            let mut all = RecordBuffer::new(sample_id_size);
            let mut some = RecordBuffer::new(sample_id_size);
            all_tasks(&mut all, &proc, options).unwrap();
            some_tasks(&mut some, &proc, &Vec::from_iter(1..=100), options);
            (
                all.take(),
                all.truncated_maps,
                some.take(),
                some.truncated_maps,
            )
        };
        let minute = Duration::from_secs(60);
        let single_threaded = records_with(1, minute);
        let count_of = |kind| {
            split(&single_threaded.0)
                .iter()
                .filter(|raw| raw.kind == kind)
                .count()
        };
        assert_eq!(count_of(rperf_wire::RecordKind::COMM), 99);
        // `pid % 3` mappings for each process: 100, less that of process 40, which has exited.
        assert_eq!(count_of(rperf_wire::RecordKind::MMAP2), 99);
        assert!(
            records_with(3, minute) == single_threaded
                && records_with(usize::MAX, minute) == single_threaded
        );
        // The second value is the number of processes of [`all_tasks`] whose mappings took too long to read.
        assert_eq!(
            [1, 4].map(|threads| records_with(threads, Duration::ZERO).1),
            [99; 2]
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn data_mappings_are_synthesized_on_request() {
        let (proc, root) = fake_proc();
        let hidden = "6000-7000 ---p 00000000 00:00 0 \n";
        let maps = fs::read_to_string(root.join("7/task/7/maps")).unwrap();
        fs::write(root.join("7/task/7/maps"), maps + hidden).unwrap();
        let no_sample_id = 0;
        let mut records = RecordBuffer::new(no_sample_id);
        some_tasks(
            &mut records,
            &proc,
            &[7],
            options(SynthesizedMappings::Data),
        );
        let bytes = records.take();
        let mapped: Vec<_> = decoded(&bytes)
            .iter()
            .filter_map(|(misc, record)| match record {
                Record::Mmap2(mapped) => Some((mapped.mmap.start, *misc)),
                _ => None,
            })
            .collect();
        let data = Misc(Misc::USER.0 | Misc::MMAP_DATA.0);
        assert_eq!(
            mapped,
            [(0x1000, Misc::USER), (0x3000, data), (0x5000, Misc::USER)]
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn slowly_read_mappings_are_counted() {
        let (proc, root) = fake_proc();
        let no_sample_id = 0;
        let mut records = RecordBuffer::new(no_sample_id);
        let options = TaskRecordOptions {
            maps_timeout: Duration::ZERO,
            ..options(SynthesizedMappings::Code)
        };
        some_tasks(&mut records, &proc, &[7], options);
        // Only COMM: the time is over before the first mapping.
        assert_eq!(
            (decoded(&records.take()).len(), records.truncated_maps),
            (1, 1)
        );
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn a_requested_thread_adds_its_leader_with_mappings() {
        let (proc, root) = fake_proc();
        let no_sample_id = 0;
        let mut records = RecordBuffer::new(no_sample_id);
        some_tasks(
            &mut records,
            &proc,
            &[9],
            options(SynthesizedMappings::Code),
        );
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
