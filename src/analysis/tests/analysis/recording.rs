//! A generated recording of scheduler tracepoints.

use rperf_perfdata::{EventDesc, PerfData};
use rperf_replay::Replay;
use rperf_testkit::PerfFile;
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::{
    Attr, AttrFlags, Comm, Endian, EventType, Lost, LostSamples, Misc, Record, RecordKind,
    SampleId, SampleRecord, SampleType, Switch, Task,
};

use crate::file::FileBuilder;

/// `attr.config` and id of `sched:sched_switch`.
pub(crate) const SWITCH: u64 = 316;
/// `attr.config` and id of `sched:sched_wakeup`.
pub(crate) const WAKEUP: u64 = 318;
/// `attr.config` and id of `sched:sched_migrate_task`.
pub(crate) const MIGRATE: u64 = 319;
/// The id of `cycles`, an event without a tracepoint format.
pub(crate) const CYCLES: u64 = 1;
/// The ids of all events, in the order of the recording.
const EVENT_IDS: [u64; 4] = [SWITCH, WAKEUP, CYCLES, MIGRATE];
/// The index of `cycles` in [`EVENT_IDS`].
pub(crate) const CYCLES_INDEX: usize = 2;

const SWITCH_FORMAT: &str = "name: sched_switch\nID: 316\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
    \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"prev_state=%s%s\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", { 0x01, \"S\" }, \
    { 0x02, \"D\" }, { 0x04, \"T\" }, { 0x08, \"t\" }, { 0x10, \"X\" }, { 0x20, \"Z\" }, { 0x40, \"P\" }, { 0x80, \"I\" }) : \"R\", \
    REC->prev_state & 0x100 ? \"+\" : \"\"\n";
const WAKEUP_FORMAT: &str = "name: sched_wakeup\nID: 318\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->pid\n";

const MIGRATE_FORMAT: &str = "name: sched_migrate_task\nID: 319\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
    \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int orig_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\
    \tfield:int dest_cpu;\toffset:36;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->pid\n";

/// A recording under construction.
pub(crate) struct Recording {
    endian: Endian,
    file: FileBuilder,
    /// Time and position of each record for [`Recording::times_and_positions`].
    records: Vec<(u64, u64)>,
}

fn attr(kind: EventType, config: u64) -> Attr {
    Attr {
        kind,
        config,
        sample_period: 1,
        sample_type: SampleType::IDENTIFIER
            | SampleType::TID
            | SampleType::TIME
            | SampleType::CPU
            | SampleType::RAW,
        flags: AttrFlags::SAMPLE_ID_ALL | AttrFlags::CONTEXT_SWITCH,
        ..Attr::default()
    }
}

impl Recording {
    pub(crate) fn new(endian: Endian) -> Self {
        // In the order of `EVENT_IDS`.
        let events = [
            (attr(EventType::TRACEPOINT, SWITCH), vec![SWITCH]),
            (attr(EventType::TRACEPOINT, WAKEUP), vec![WAKEUP]),
            (attr(EventType::HARDWARE, 0), vec![CYCLES]),
            (attr(EventType::TRACEPOINT, MIGRATE), vec![MIGRATE]),
        ];
        // A kernel with longs of 8 bytes and pages of 4096 bytes.
        let mut tracing = TracingDataBuilder::new(endian, 8, 4096);
        tracing.event("sched", SWITCH_FORMAT.as_bytes());
        tracing.event("sched", WAKEUP_FORMAT.as_bytes());
        tracing.event("sched", MIGRATE_FORMAT.as_bytes());
        let features = [(PerfFile::TRACING_DATA, tracing.encode())].into();
        let file = FileBuilder::with_features(endian, &events, features);
        let records = Vec::new();
        Self {
            endian,
            file,
            records,
        }
    }

    /// Returns the times and positions of all added records except FINISHED_ROUND records and truncated READ records.
    pub(crate) fn times_and_positions(&self) -> &[(u64, u64)] {
        &self.records
    }

    /// Adds a sample of the event with this id, taken while `tid` runs on `cpu`.
    pub(crate) fn sample(&mut self, id: u64, (time, cpu, tid): (u64, u32, u32), raw: &[u8]) {
        let index = EVENT_IDS.iter().position(|event| *event == id);
        let sample = SampleRecord {
            id: Some(id),
            pid_tid: Some((tid, tid)),
            time: Some(time),
            cpu: Some(cpu),
            raw: Some(raw),
            ..SampleRecord::default()
        };
        let position = self
            .file
            .sample(index.expect("an event"), Misc(PerfFile::KERNEL), &sample);
        self.records.push((time, position));
    }

    /// Adds a `sched:sched_switch` sample. For a SWITCH record see `switch_record`.
    pub(crate) fn switch(&mut self, time: u64, cpu: u32, (prev, state): (u32, u64), next: u32) {
        let mut raw = vec![0; 64];
        self.put(&mut raw, 24, &prev.to_le_bytes());
        self.put(&mut raw, 32, &state.to_le_bytes());
        self.put(&mut raw, 56, &next.to_le_bytes());
        self.sample(SWITCH, (time, cpu, prev), &raw);
    }

    /// Adds a `sched:sched_wakeup` sample by `waker`, which runs on `cpu` and wakes `woken` for this CPU.
    pub(crate) fn wakeup(&mut self, time: u64, cpu: u32, waker: u32, woken: u32) {
        self.wakeup_for((time, cpu, waker), woken, cpu);
    }

    /// Adds a `sched:sched_wakeup` sample for the CPU `target`. `at` is the time, the waker's CPU, and the waker.
    pub(crate) fn wakeup_for(&mut self, at: (u64, u32, u32), woken: u32, target: u32) {
        let mut raw = vec![0; 40];
        self.put(&mut raw, 24, &woken.to_le_bytes());
        self.put(&mut raw, 32, &target.to_le_bytes());
        self.sample(WAKEUP, at, &raw);
    }

    /// Adds a `sched:sched_migrate_task` sample. `at` is the time, the CPU, and the thread that runs there, as in the
    /// following functions.
    pub(crate) fn migrate(&mut self, at: (u64, u32, u32), task: u32, target: u32) {
        let mut raw = vec![0; 40];
        self.put(&mut raw, 24, &task.to_le_bytes());
        self.put(&mut raw, 36, &target.to_le_bytes());
        self.sample(MIGRATE, at, &raw);
    }

    /// Writes the number with the little-endian bytes `little` at `offset`, in the byte order of the recording.
    fn put(&self, raw: &mut [u8], offset: usize, little: &[u8]) {
        let place = &mut raw[offset..offset + little.len()];
        place.copy_from_slice(little);
        if self.endian == Endian::Big {
            place.reverse();
        }
    }

    /// Adds a record of the event `cycles` other than a sample, written while `tid` runs on `cpu`.
    pub(crate) fn record(
        &mut self,
        (time, cpu, tid): (u64, u32, u32),
        misc: Misc,
        record: &Record<'_>,
    ) {
        let id = SampleId {
            pid_tid: Some((tid, tid)),
            time: Some(time),
            cpu: Some(cpu),
            id: Some(CYCLES),
            ..SampleId::default()
        };
        let position = self.file.record(CYCLES_INDEX, misc, record, &id);
        self.records.push((time, position));
    }

    /// Adds a READ record that lacks its fields, so that it cannot be decoded. Returns its position.
    pub(crate) fn truncated_read(&mut self) -> u64 {
        self.file.raw(RecordKind::READ, Misc(0), &[])
    }

    pub(crate) fn lost(&mut self, at: (u64, u32, u32), lost: u64) {
        let id = CYCLES;
        self.record(at, Misc(0), &Record::Lost(Lost { id, lost }));
    }

    /// Adds a LOST_SAMPLES record. If `time` is not 0, it is one of the kernel: `lost` is the number of samples lost since the
    /// previous one. If `time` is 0, it is one that the recorder writes at the end: `lost` is the number of samples that one
    /// counter lost in the whole recording (PERF_FORMAT_LOST).
    pub(crate) fn lost_samples(&mut self, time: u64, cpu: u32, lost: u64) {
        let record = Record::LostSamples(LostSamples { lost });
        self.record((time, cpu, 0), Misc(0), &record);
    }

    pub(crate) fn fork(&mut self, at: (u64, u32, u32), child: u32) {
        let task = Task {
            pid: child,
            ppid: at.2,
            tid: child,
            ptid: at.2,
            time: at.0,
        };
        self.record(at, Misc(0), &Record::Fork(task));
    }

    pub(crate) fn exit(&mut self, at: (u64, u32, u32)) {
        let task = Task {
            pid: at.2,
            ppid: 1,
            tid: at.2,
            ptid: 1,
            time: at.0,
        };
        self.record(at, Misc(0), &Record::Exit(task));
    }

    /// Adds a COMM record, as written by exec.
    pub(crate) fn comm(&mut self, at: (u64, u32, u32), name: &[u8]) {
        let (pid, tid, comm) = (at.2, at.2, name);
        let record = Record::Comm(Comm { pid, tid, comm });
        self.record(at, Misc::COMM_EXEC, &record);
    }

    pub(crate) fn switch_record(&mut self, at: (u64, u32, u32), misc: Misc) {
        let next_prev = None;
        self.record(at, misc, &Record::Switch(Switch { next_prev }));
    }

    /// Adds a FINISHED_ROUND record.
    pub(crate) fn round(&mut self) {
        self.file.round();
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.file.finish()
    }
}

/// Opens a recording and passes it to `with`.
pub(crate) fn with_replay<R>(file: &[u8], with: impl FnOnce(&PerfData<'_>, &Replay<'_>) -> R) -> R {
    let data = PerfData::parse(file).expect("a recording");
    let replay = Replay::open(&data).expect("records");
    with(&data, &replay)
}

/// The bytes of all records but FINISHED_ROUND, by round.
pub(crate) fn rounds(data: &PerfData<'_>) -> Vec<Vec<u8>> {
    let mut rounds = vec![Vec::new()];
    for record in data.records().map(|record| record.expect("whole records")) {
        if record.raw.kind == RecordKind::FINISHED_ROUND {
            rounds.push(Vec::new());
        } else {
            let round = rounds.last_mut().expect("a round");
            record.raw.encode(data.endian(), round);
        }
    }
    rounds
}

/// Returns the events of the file, for a reader that gets only its records, such as `LiveWorld`.
pub(crate) fn events(data: &PerfData<'_>) -> Vec<EventDesc> {
    data.events().to_vec()
}
