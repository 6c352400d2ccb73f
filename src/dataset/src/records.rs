//! Rows made from the records of mappings, threads and losses.

use rperf_replay::{NonSampleRecord, Replay};
use rperf_wire::{Endian, Mmap, MmapId, PROT_EXEC, Record, RecordKind, Task, name_text};
use rustc_hash::FxHashMap;

/// The mappings, threads and losses of a recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordRows {
    /// Mappings, in order of time.
    pub mappings: Vec<MappingRow>,
    /// Threads, in the order in which they first appear.
    pub tasks: Vec<TaskRow>,
    /// Losses, in order of time.
    pub losses: Vec<LossRow>,
}

/// A mapping: MMAP or MMAP2.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappingRow {
    /// Nanoseconds of the recording's clock; `None` if the mapping precedes the recording or times are not recorded.
    pub time: Option<u64>,
    /// Process, `u32::MAX` for the kernel.
    pub pid: u32,
    /// First address.
    pub start: u64,
    /// Size in bytes.
    pub size: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The mapped file, or another name such as `[vdso]`.
    pub path: String,
    /// The file's build-id, if the record has it.
    pub build_id: Option<Vec<u8>>,
    /// Whether it may be executed, by the protection in the record; `None` for MMAP records, which have none.
    pub is_executable: Option<bool>,
}

/// A thread from its first to its last record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRow {
    /// Process.
    pub pid: u32,
    /// Thread.
    pub tid: u32,
    /// The process of the thread that created it; `None` without a FORK record.
    pub parent_pid: Option<u32>,
    /// Its last recorded name; if there is none, that of its parent at the FORK. Empty if neither is recorded.
    pub comm: String,
    /// Its creation, in nanoseconds of the recording's clock; `None` if it existed before the recording, or
    /// if there is no FORK record with a time in its trailer (`sample_id`).
    pub started: Option<u64>,
    /// Its exit, in nanoseconds of the recording's clock; `None` without an EXIT record.
    pub ended: Option<u64>,
}

/// A kind of lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LossKind {
    /// Records of any type that found the ring full (`PERF_RECORD_LOST`).
    Records,
    /// Samples of one event (`PERF_RECORD_LOST_SAMPLES`). Usually a total that the recorder writes at the end of the recording;
    /// it often includes losses that are also counted as lost records.
    Samples,
}

/// A loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LossRow {
    /// Nanoseconds of the recording's clock at the end of the loss; `None` if not recorded.
    pub time: Option<u64>,
    /// The CPU; `u32::MAX` if not recorded.
    pub cpu: u32,
    /// Index of the event; `None` if unknown.
    pub event: Option<u32>,
    /// The kind of the lost data.
    pub kind: LossKind,
    /// Number of lost records or samples.
    pub count: u64,
}

impl RecordRows {
    /// The rows of a recording; `endian` is its byte order.
    #[must_use]
    pub fn of(replay: &Replay<'_>, endian: Endian) -> Self {
        let mut collector = RowCollector::default();
        for record in replay.non_samples(&[
            RecordKind::MMAP,
            RecordKind::MMAP2,
            RecordKind::COMM,
            RecordKind::FORK,
            RecordKind::EXIT,
            RecordKind::LOST,
            RecordKind::LOST_SAMPLES,
        ]) {
            collector.add(&record, endian);
        }
        collector.rows
    }
}

#[derive(Default)]
struct RowCollector {
    rows: RecordRows,
    /// By thread id: the index of the row of the thread that has this id now.
    current: FxHashMap<u32, usize>,
}

impl RowCollector {
    fn add(&mut self, non_sample: &NonSampleRecord<'_>, endian: Endian) {
        // Records that can't be decoded were counted in `Diagnostics::bad_records` by the first pass over the file.
        let Ok(record) = Record::decode(&non_sample.raw, endian) else {
            return;
        };
        // `id` is the trailer. Synthesized records have the time 0 in it: no time.
        let time = non_sample.id.time.filter(|time| *time > 0);
        match record {
            Record::Mmap(mapped) => {
                // MMAP has no build-id and no protection.
                let (build_id, is_executable) = (None, None);
                self.mapping(time, &mapped, build_id, is_executable);
            }
            Record::Mmap2(mapped) => {
                let build_id = match &mapped.id {
                    MmapId::BuildId { size, bytes } => bytes.get(..usize::from(*size)),
                    MmapId::Inode { .. } => None,
                };
                let is_executable = mapped.prot & PROT_EXEC != 0;
                self.mapping(time, &mapped.mmap, build_id, Some(is_executable));
            }
            Record::Comm(comm) => {
                let row = self.task(comm.pid, comm.tid);
                name_text(comm.comm).as_ref().clone_into(&mut row.comm);
            }
            Record::Fork(task) => self.fork(&task, time),
            Record::Exit(task) => {
                self.task(task.pid, task.tid).ended = Some(task.time);
                self.current.remove(&task.tid);
            }
            Record::Lost(lost) => self.loss(non_sample, LossKind::Records, lost.lost),
            Record::LostSamples(lost) => self.loss(non_sample, LossKind::Samples, lost.lost),
            _ => {}
        }
    }

    fn mapping(
        &mut self,
        time: Option<u64>,
        mapped: &Mmap<'_>,
        build_id: Option<&[u8]>,
        is_executable: Option<bool>,
    ) {
        self.rows.mappings.push(MappingRow {
            time,
            pid: mapped.pid.cast_unsigned(),
            start: mapped.start,
            size: mapped.len,
            offset: mapped.pgoff,
            path: name_text(mapped.filename).into_owned(),
            build_id: build_id.map(<[u8]>::to_vec),
            is_executable,
        });
    }

    /// The row of the thread that has this id now, created if there is none.
    fn task(&mut self, pid: u32, tid: u32) -> &mut TaskRow {
        let tasks = &mut self.rows.tasks;
        let index = *self.current.entry(tid).or_insert_with(|| {
            tasks.push(TaskRow {
                pid,
                tid,
                ..TaskRow::default()
            });
            tasks.len() - 1
        });
        &mut tasks[index]
    }

    fn fork(&mut self, task: &Task, time: Option<u64>) {
        // Synthesized FORK records, of threads that existed before the recording, have no time in their trailer. If times are not
        // recorded, no record has one.
        let started = time.map(|_| task.time);
        if started.is_some() {
            // If another thread had this id, its EXIT record was lost.
            self.current.remove(&task.tid);
        }
        let parent = self.current.get(&task.ptid);
        let parent = parent.and_then(|index| self.rows.tasks.get(*index));
        let parent_comm = parent.map(|parent| parent.comm.clone());
        let row = self.task(task.pid, task.tid);
        row.started = started;
        row.parent_pid = Some(task.ppid);
        if row.comm.is_empty() {
            row.comm = parent_comm.unwrap_or_default();
        }
    }

    fn loss(&mut self, non_sample: &NonSampleRecord<'_>, kind: LossKind, count: u64) {
        self.rows.losses.push(LossRow {
            time: non_sample.id.time.filter(|time| *time > 0),
            cpu: non_sample.id.cpu.unwrap_or(u32::MAX),
            event: non_sample.event.map(|event| event.0),
            kind,
            count,
        });
    }
}
