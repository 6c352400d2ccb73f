//! A generated recording of the events that `timechart` draws.

use rperf_testkit::{Bytes, FileAttr, PerfFile};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

/// `PERF_TYPE_TRACEPOINT`.
const TRACEPOINT: u32 = 2;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// The `sample_type` of [`ChartFile::new`]: TID, TIME, CPU, RAW and IDENTIFIER.
pub(super) const FIELDS: u64 = 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10 | 1 << 16;

/// The id of each event's tracepoint, also used as the id in its samples.
const SWITCH: u64 = 316;
const WAKEUP: u64 = 318;
const IDLE: u64 = 320;
const FREQUENCY: u64 = 321;
const ENTER_READ: u64 = 330;
const EXIT_READ: u64 = 331;
const ENTER_POLL: u64 = 332;
const EXIT_POLL: u64 = 333;

const SWITCH_FIELDS: &str = "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
    \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"prev_state=%s%s\", (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, \"|\", \
    { 0x01, \"S\" }, { 0x02, \"D\" }, { 0x10, \"X\" }, { 0x80, \"I\" }) : \"R\", REC->prev_state & 0x100 ? \"+\" : \"\"\n";
const WAKEUP_FIELDS: &str = "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
    \tfield:pid_t pid;\toffset:24;\tsize:4;\tsigned:1;\n\
    \tfield:int prio;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int target_cpu;\toffset:32;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->pid\n";
const POWER_FIELDS: &str = "\tfield:u32 state;\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:u32 cpu_id;\toffset:12;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"%d\", REC->state\n";
const ENTER_FIELDS: &str = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\n\
    print fmt: \"%d\", REC->__syscall_nr\n";
const EXIT_FIELDS: &str = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\n\
    print fmt: \"0x%lx\", REC->ret\n";

/// Id, system, name and fields of each event.
const EVENTS: [(u64, &str, &str, &str); 8] = [
    (SWITCH, "sched", "sched_switch", SWITCH_FIELDS),
    (WAKEUP, "sched", "sched_wakeup", WAKEUP_FIELDS),
    (IDLE, "power", "cpu_idle", POWER_FIELDS),
    (FREQUENCY, "power", "cpu_frequency", POWER_FIELDS),
    (ENTER_READ, "syscalls", "sys_enter_read", ENTER_FIELDS),
    (EXIT_READ, "syscalls", "sys_exit_read", EXIT_FIELDS),
    (ENTER_POLL, "syscalls", "sys_enter_poll", ENTER_FIELDS),
    (EXIT_POLL, "syscalls", "sys_exit_poll", EXIT_FIELDS),
];

/// A recording under construction. Times are microseconds.
pub(super) struct ChartFile {
    file: PerfFile,
}

impl ChartFile {
    /// Creates a recording with all events.
    pub(super) fn new(endian: Endian) -> Self {
        let all_systems = |_: &str| true;
        Self::with(endian, FIELDS, all_systems)
    }

    /// Creates a recording with the events of the wanted systems, and `fields` as their `sample_type`.
    pub(super) fn with(endian: Endian, fields: u64, is_wanted: impl Fn(&str) -> bool) -> Self {
        let mut file = match endian {
            Endian::Little => PerfFile::new(),
            Endian::Big => PerfFile::big_endian(),
        };
        // Longs of 8 bytes, pages of 4096.
        let mut tracing = TracingDataBuilder::new(endian, 8, 4096);
        for (id, system, name, format) in EVENTS {
            if !is_wanted(system) {
                continue;
            }
            let attr = FileAttr {
                kind: TRACEPOINT,
                config: id,
                period: 1,
                sample_type: fields,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[id]);
            let format = format!(
                "name: {name}\nID: {id}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n{format}"
            );
            tracing.event(system, format.as_bytes());
        }
        file.feature(PerfFile::TRACING_DATA, tracing.encode());
        Self { file }
    }

    /// [`FIELDS`] without the CPU, only for recordings that rperf refuses: the samples and records added here have a CPU, so they
    /// do not match these fields.
    pub(super) const WITHOUT_CPU: u64 = FIELDS & !(1 << 7);

    /// An empty byte string in the file's byte order.
    fn bytes(&self) -> Bytes {
        self.file.bytes()
    }

    /// Adds a sample. `raw` is the event's data. Before it is its size (u32), which includes 4 bytes of padding after it, so that
    /// the record's length is a multiple of 8 if the length of `raw` is. Wakeups and entries of calls have other lengths, which
    /// rperf accepts.
    fn sample(&mut self, id: u64, micros: u64, cpu: u32, tid: u32, raw: Bytes) {
        let raw = raw.raw([0; 4]).done();
        let size = u32::try_from(raw.len()).expect("a short event");
        let body = self.bytes().u64(id).u32(tid).u32(tid).u64(micros * 1000);
        let body = body.u32(cpu).u32(0).u32(size).raw(raw);
        self.file
            .record(PerfFile::SAMPLE, PerfFile::KERNEL, body.done());
    }

    /// Adds a switch from the thread `prev`, in this state, to the thread `next`.
    pub(super) fn switch(&mut self, micros: u64, cpu: u32, (prev, state): (u32, u64), next: u32) {
        let name = |tid: u32| {
            let mut name = [0_u8; 16];
            let text = match tid {
                0 => "swapper/0".to_owned(),
                tid => format!("task<{tid}>"),
            };
            name[..text.len()].copy_from_slice(text.as_bytes());
            name
        };
        let raw = self.bytes().raw([0; 8]).raw(name(prev)).u32(prev).u32(120);
        let raw = raw.u64(state).raw(name(next)).u32(next).u32(120);
        self.sample(SWITCH, micros, cpu, prev, raw);
    }

    /// Adds a wakeup of `woken` by `waker`.
    pub(super) fn wakeup(&mut self, micros: u64, waker: u32, woken: u32) {
        let raw = self.bytes().raw([0; 24]).u32(woken).u32(120).u32(0);
        self.sample(WAKEUP, micros, 0, waker, raw);
    }

    /// Adds the start of an idle state, or with `u32::MAX` its end.
    pub(super) fn idle(&mut self, micros: u64, cpu: u32, state: u32) {
        let raw = self.bytes().raw([0; 8]).u32(state).u32(cpu);
        self.sample(IDLE, micros, cpu, 0, raw);
    }

    pub(super) fn frequency(&mut self, micros: u64, cpu: u32, khz: u32) {
        let raw = self.bytes().raw([0; 8]).u32(khz).u32(cpu);
        self.sample(FREQUENCY, micros, cpu, 0, raw);
    }

    /// Adds a call of read(2) between these times, which returns `ret`, or with `None` does not return.
    pub(super) fn read(&mut self, tid: u32, (from, to): (u64, u64), ret: Option<i64>) {
        self.call([ENTER_READ, EXIT_READ], tid, (from, to), ret);
    }

    /// Adds a call of poll(2), as [`ChartFile::read`].
    pub(super) fn poll(&mut self, tid: u32, (from, to): (u64, u64), ret: Option<i64>) {
        self.call([ENTER_POLL, EXIT_POLL], tid, (from, to), ret);
    }

    fn call(&mut self, ids: [u64; 2], tid: u32, (from, to): (u64, u64), ret: Option<i64>) {
        let raw = self.bytes().raw([0; 8]).u32(0);
        self.sample(ids[0], from, 0, tid, raw);
        if let Some(ret) = ret {
            let raw = self.bytes().raw([0; 16]).u64(ret.cast_unsigned());
            self.sample(ids[1], to, 0, tid, raw);
        }
    }

    pub(super) fn comm(&mut self, tid: u32, name: &str) {
        let body = self.bytes().u32(tid).u32(tid).text(name, 8);
        // `struct sample_id` with the fields of `FIELDS`: pid, tid, time, CPU and id.
        let body = body.u32(0).u32(0).u64(0).u32(0).u32(0).u64(SWITCH);
        self.file.record(PerfFile::COMM, 0, body.done());
    }

    pub(super) fn lost(&mut self, micros: u64, cpu: u32, records: u64) {
        let body = self.bytes().u64(SWITCH).u64(records);
        // `struct sample_id`, as in `comm`.
        let body = body
            .u32(0)
            .u32(0)
            .u64(micros * 1000)
            .u32(cpu)
            .u32(0)
            .u64(SWITCH);
        self.file.record(LOST, 0, body.done());
    }

    pub(super) fn finish(&self) -> Vec<u8> {
        self.file.finish()
    }

    /// The offset in the file at which the records end.
    pub(super) fn end_of_records(&self) -> usize {
        // `record` returns the offset of the record that it adds, here to a copy of the file.
        let end = self.file.clone().record(PerfFile::SAMPLE, 0, []);
        usize::try_from(end).expect("a short file")
    }
}
