//! Generated recordings of scheduler events.

use rperf_testkit::{Bytes, FileAttr, PerfFile};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

const TRACEPOINT: u32 = 2;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// The header's feature of the number of CPUs.
const NRCPUS: u32 = 7;
/// `sample_type`: IDENTIFIER, TID, TIME and RAW. Most recordings also have [`CPU`].
const FIELDS: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 10;
/// `PERF_SAMPLE_CPU`.
const CPU: u64 = 1 << 7;

/// The numbers of the events: both the sample ids in the file, and the tracepoint ids (`config`).
const SWITCH: u64 = 316;
const WAKING: u64 = 318;
const RUNTIME: u64 = 320;
/// Events of Linux 3.10: other state letters, and `sched_wakeup` in place of `sched_waking`.
const OLD_SWITCH: u64 = 416;
const OLD_WAKEUP: u64 = 418;
/// The number, the name, and the fields and print format of each event.
const FORMATS: [(u64, &str, &str); 5] = [
    (
        OLD_SWITCH,
        "sched_switch",
        "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"prev_state=%s%s\", REC->prev_state & (1024-1) ? __print_flags(REC->prev_state & (1024-1), \"|\", \
        { 1, \"S\"} , { 2, \"D\" }, { 4, \"T\" }, { 16, \"Z\" }, { 128, \"K\" }, { 512, \"P\" }) : \"R\", \
        REC->prev_state & 1024 ? \"+\" : \"\"\n",
    ),
    (
        OLD_WAKEUP,
        "sched_wakeup",
        "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:int success;\toffset:32;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:36;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"%d\", REC->pid\n",
    ),
    (
        SWITCH,
        "sched_switch",
        "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
        \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
        \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"prev_state=%s%s\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", \
        { 0x01, \"S\" }, { 0x02, \"D\" }, { 0x10, \"X\" }, { 0x80, \"I\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"\n",
    ),
    (
        WAKING,
        "sched_waking",
        "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
        \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
        print fmt: \"%d\", REC->pid\n",
    ),
    (
        RUNTIME,
        "sched_stat_runtime",
        "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:u64 runtime;\toffset:32;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"%d\", REC->pid\n",
    ),
];

/// A recording under construction. Events are of CPU 0, except those of [`SchedFile::switch_on`].
pub(super) struct SchedFile {
    file: PerfFile,
    /// The id of the event that records other than samples belong to.
    non_sample: u64,
    /// The ids of the events of switches and wakeups.
    switch: u64,
    waking: u64,
}

impl SchedFile {
    pub(super) fn new() -> Self {
        Self::with(
            PerfFile::new(),
            Endian::Little,
            &[SWITCH, WAKING, RUNTIME],
            CPU,
        )
    }

    pub(super) fn big_endian() -> Self {
        Self::with(
            PerfFile::big_endian(),
            Endian::Big,
            &[SWITCH, WAKING, RUNTIME],
            CPU,
        )
    }

    /// A recording of Linux 3.10.
    pub(super) fn of_old_kernel() -> Self {
        let events = [OLD_SWITCH, OLD_WAKEUP, RUNTIME];
        Self::with(PerfFile::new(), Endian::Little, &events, CPU)
    }

    pub(super) fn without_switches() -> Self {
        Self::with(PerfFile::new(), Endian::Little, &[WAKING], CPU)
    }

    /// A recording whose `sample_type` has no CPU. It must get no samples and no records with a time, since
    /// [`SchedFile::sample`] and [`SchedFile::record`] always write a CPU. In [`SchedFile::comm`], the CPU does no harm: it is
    /// read as the time, and both are 0.
    pub(super) fn without_cpu() -> Self {
        Self::with(PerfFile::new(), Endian::Little, &[SWITCH], 0)
    }

    /// Creates a recording of these events of [`FORMATS`]. `extra_fields` are added to `sample_type`.
    fn with(mut file: PerfFile, endian: Endian, events: &[u64], extra_fields: u64) -> Self {
        let mut tracing = TracingDataBuilder::new(endian, 8, 4096);
        for (id, name, fields) in FORMATS {
            if !events.contains(&id) {
                continue;
            }
            let attr = FileAttr {
                kind: TRACEPOINT,
                config: id,
                period: 1,
                sample_type: FIELDS | extra_fields,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[id]);
            let format = format!(
                "name: {name}\nID: {id}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n{fields}"
            );
            tracing.event("sched", format.as_bytes());
        }
        file.feature(PerfFile::TRACING_DATA, tracing.encode());
        let is_old = events.contains(&OLD_SWITCH);
        Self {
            file,
            non_sample: events[0],
            switch: if is_old { OLD_SWITCH } else { SWITCH },
            waking: if is_old { OLD_WAKEUP } else { WAKING },
        }
    }

    fn bytes(&self) -> Bytes {
        self.file.bytes()
    }

    /// Adds a sample of CPU 0. `raw` is the event's data, padded by the caller: with its size (u32) it ends at a multiple of 8.
    fn sample(&mut self, id: u64, time: u64, tid: u32, raw: Vec<u8>) {
        let size = u32::try_from(raw.len()).expect("a short event");
        let body = self.bytes().u64(id).u32(tid).u32(tid).u64(time);
        let body = body.u32(0).u32(0).u32(size).raw(raw).done();
        self.file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body);
    }

    /// Adds a record other than a sample: `body` and the sample id fields after it.
    fn record(&mut self, kind: u32, time: u64, body: Bytes) {
        let body = body
            .u32(0)
            .u32(0)
            .u64(time)
            .u32(0)
            .u32(0)
            .u64(self.non_sample);
        self.file.record(kind, 0, body.done());
    }

    /// Adds the name of a thread. The record has no time, so it is sorted before all that have one.
    pub(super) fn comm(&mut self, tid: u32, name: &str) {
        let body = self.bytes().u32(tid).u32(tid).text(name, 8);
        let no_time = 0;
        self.record(PerfFile::COMM, no_time, body);
    }

    /// Adds a LOST record that counts `records` lost records.
    pub(super) fn lost(&mut self, time: u64, records: u64) {
        let body = self.bytes().u64(self.non_sample).u64(records);
        self.record(LOST, time, body);
    }

    /// Adds a switch from task `prev`, now in `state`, to task `next`.
    pub(super) fn switch(&mut self, time: u64, (prev, state): (u32, u64), next: u32) {
        let raw = self.bytes().raw([0; 24]).u32(prev).u32(120).u64(state);
        let raw = raw.raw([0; 16]).u32(next).u32(120).raw([0; 4]);
        self.sample(self.switch, time, prev, raw.done());
    }

    /// Adds a wakeup of `woken` by `waker`.
    pub(super) fn waking(&mut self, time: u64, waker: u32, woken: u32) {
        let raw = self.bytes().raw([0; 24]).u32(woken).u32(120);
        let raw = match self.waking {
            OLD_WAKEUP => raw.u32(1).u32(0).raw([0; 4]),
            _ => raw.u32(0),
        };
        self.sample(self.waking, time, waker, raw.done());
    }

    /// Sets the number of CPUs, online and available.
    pub(super) fn nr_cpus(&mut self, count: u32) {
        let counts = self.bytes().u32(count).u32(count).done();
        self.file.feature(NRCPUS, counts);
    }

    /// Adds a switch on CPU `cpu`, from task 7 to the idle task. Not for [`SchedFile::of_old_kernel`].
    pub(super) fn switch_on(&mut self, time: u64, cpu: u32) {
        let raw = self.bytes().raw([0; 24]).u32(7).u32(120).u64(1);
        let raw = raw.raw([0; 16]).u32(0).u32(120).raw([0; 4]).done();
        let size = u32::try_from(raw.len()).expect("a short event");
        let body = self.bytes().u64(SWITCH).u32(7).u32(7).u64(time);
        let body = body.u32(cpu).u32(0).u32(size).raw(raw).done();
        self.file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body);
    }

    /// Adds `sched_stat_runtime`: the task ran for `runtime` ns.
    pub(super) fn runtime(&mut self, time: u64, tid: u32, runtime: u64) {
        let raw = self
            .bytes()
            .raw([0; 24])
            .u32(tid)
            .u32(0)
            .u64(runtime)
            .raw([0; 4]);
        self.sample(RUNTIME, time, tid, raw.done());
    }

    pub(super) fn finish(&self) -> Vec<u8> {
        self.file.finish()
    }

    /// The offset of the end of the records, at which the next record would be.
    pub(super) fn end_of_records(&self) -> usize {
        let end = self.file.clone().record(PerfFile::SAMPLE, 0, []);
        usize::try_from(end).expect("a short file")
    }
}
