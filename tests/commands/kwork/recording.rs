//! A generated recording of interrupts, softirqs, work items and switches.

use rperf_testkit::{Bytes, FileAttr, PerfFile};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

const TRACEPOINT: u32 = 2;
/// `PERF_RECORD_LOST`.
const LOST: u32 = 2;
/// `sample_type`: IDENTIFIER, TID, TIME, CPU and RAW.
const FIELDS: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 7 | 1 << 10;

/// Ids of the events: each is both the id in the file's samples and the id of the tracepoint.
pub(super) const IRQ_ENTRY: u64 = 225;
pub(super) const IRQ_EXIT: u64 = 224;
pub(super) const SOFTIRQ_RAISE: u64 = 221;
pub(super) const SOFTIRQ_ENTRY: u64 = 223;
pub(super) const SOFTIRQ_EXIT: u64 = 222;
pub(super) const WORK_ACTIVATE: u64 = 336;
pub(super) const WORK_START: u64 = 335;
pub(super) const WORK_END: u64 = 334;
pub(super) const SWITCH: u64 = 316;

/// Every event.
pub(super) const ALL: &[u64] = &[
    IRQ_ENTRY,
    IRQ_EXIT,
    SOFTIRQ_RAISE,
    SOFTIRQ_ENTRY,
    SOFTIRQ_EXIT,
    WORK_ACTIVATE,
    WORK_START,
    WORK_END,
    SWITCH,
];

/// The fields and the print format of the softirq events.
const VECTOR: &str = "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n\n\
    print fmt: \"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 1, \"TIMER\" }, { 9, \"RCU\" })\n";
/// The fields and the print format of the workqueue events.
const WORK: &str = "\tfield:void * work;\toffset:8;\tsize:8;\tsigned:0;\n\
    \tfield:void * function;\toffset:16;\tsize:8;\tsigned:0;\n\n\
    print fmt: \"work struct %p\", REC->work\n";

/// An event, and the text of its tracefs `format` file after the common fields.
struct Format {
    id: u64,
    system: &'static str,
    name: &'static str,
    fields: &'static str,
}

const FORMATS: [Format; 9] = [
    Format {
        id: IRQ_ENTRY,
        system: "irq",
        name: "irq_handler_entry",
        fields: "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"irq=%d\", REC->irq\n",
    },
    Format {
        id: IRQ_EXIT,
        system: "irq",
        name: "irq_handler_exit",
        fields: "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:int ret;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: \"irq=%d\", REC->irq\n",
    },
    Format {
        id: SOFTIRQ_RAISE,
        system: "irq",
        name: "softirq_raise",
        fields: VECTOR,
    },
    Format {
        id: SOFTIRQ_ENTRY,
        system: "irq",
        name: "softirq_entry",
        fields: VECTOR,
    },
    Format {
        id: SOFTIRQ_EXIT,
        system: "irq",
        name: "softirq_exit",
        fields: VECTOR,
    },
    Format {
        id: WORK_ACTIVATE,
        system: "workqueue",
        name: "workqueue_activate_work",
        fields: WORK,
    },
    Format {
        id: WORK_START,
        system: "workqueue",
        name: "workqueue_execute_start",
        fields: WORK,
    },
    Format {
        id: WORK_END,
        system: "workqueue",
        name: "workqueue_execute_end",
        fields: WORK,
    },
    Format {
        id: SWITCH,
        system: "sched",
        name: "sched_switch",
        fields: "\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
            \tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;\n\
            \tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;\n\
            \tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;\n\
            \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n\
            \tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;\n\nprint fmt: \"%d\", REC->prev_pid\n",
    },
];

/// Time and CPU of an event.
#[derive(Debug, Clone, Copy)]
pub(super) struct When {
    /// Microseconds.
    pub(super) time: u64,
    pub(super) cpu: u32,
}

/// Returns the time of an event in microseconds, with its CPU.
pub(super) fn at(time: u64, cpu: u32) -> When {
    When { time, cpu }
}

/// A recording under construction.
pub(super) struct KworkFile {
    file: PerfFile,
    /// The id of the event that LOST records name.
    lost_event: u64,
    /// The running thread of each CPU.
    running: [u32; 2],
}

impl KworkFile {
    /// Creates a little-endian recording with these events.
    pub(super) fn with(events: &[u64]) -> Self {
        Self::of(PerfFile::new(), Endian::Little, events)
    }

    /// Creates a big-endian recording with all events.
    pub(super) fn big_endian() -> Self {
        Self::of(PerfFile::big_endian(), Endian::Big, ALL)
    }

    fn of(mut file: PerfFile, endian: Endian, events: &[u64]) -> Self {
        let mut tracing = TracingDataBuilder::new(endian, 8, 4096);
        for format in FORMATS.iter().filter(|format| events.contains(&format.id)) {
            let attr = FileAttr {
                kind: TRACEPOINT,
                config: format.id,
                period: 1,
                sample_type: FIELDS,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[format.id]);
            let text = format!(
                "name: {}\nID: {}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n{}",
                format.name, format.id, format.fields
            );
            tracing.event(format.system, text.as_bytes());
        }
        file.feature(PerfFile::TRACING_DATA, tracing.encode());
        Self {
            file,
            lost_event: events[0],
            running: [0; 2],
        }
    }

    fn bytes(&self) -> Bytes {
        self.file.bytes()
    }

    fn sample(&mut self, id: u64, at: When, raw: Vec<u8>) {
        let size = u32::try_from(raw.len()).expect("a short event");
        let tid = self.running[at.cpu as usize];
        let body = self.bytes().u64(id).u32(tid).u32(tid).u64(at.time * 1000);
        let body = body.u32(at.cpu).u32(0).u32(size).raw(raw).done();
        self.file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body);
    }

    /// Adds a LOST record.
    pub(super) fn lost(&mut self, at: When, records: u64) {
        let body = self.bytes().u64(self.lost_event).u64(records);
        let body = body.u32(0).u32(0).u64(at.time * 1000);
        let body = body.u32(at.cpu).u32(0).u64(self.lost_event);
        self.file.record(LOST, 0, body.done());
    }

    pub(super) fn irq_entry(&mut self, at: When, irq: u32, name: &str) {
        let size = u32::try_from(name.len() + 1).expect("a short name");
        let raw = self.bytes().raw([0; 8]).u32(irq).u32(size << 16 | 16);
        let raw = raw.raw(name).raw([0]);
        // The raw data and the u32 size before it are together a multiple of 8 bytes.
        let padding = (4 + 8 - (16 + name.len() + 1) % 8) % 8;
        let raw = raw.raw(vec![0; padding]);
        self.sample(IRQ_ENTRY, at, raw.done());
    }

    pub(super) fn irq_exit(&mut self, at: When, irq: u32) {
        let raw = self.bytes().raw([0; 8]).u32(irq).u32(1).raw([0; 4]);
        self.sample(IRQ_EXIT, at, raw.done());
    }

    /// Adds an event of a softirq.
    pub(super) fn softirq(&mut self, event: u64, at: When, vector: u32) {
        let raw = self.bytes().raw([0; 8]).u32(vector);
        self.sample(event, at, raw.done());
    }

    /// Adds an event of the work item at the address `work`. The address of its function is 0x1000 higher, and has no symbol.
    pub(super) fn work(&mut self, event: u64, at: When, work: u64) {
        let raw = self.bytes().raw([0; 8]).u64(work).u64(0x1000 + work);
        let raw = raw.raw([0; 4]);
        self.sample(event, at, raw.done());
    }

    /// Adds a switch of a CPU from its thread to the thread `next`. The thread with id N is named `tN`.
    pub(super) fn switch(&mut self, at: When, next: u32) {
        let comm = |tid: u32| {
            let mut comm = format!("t{tid}").into_bytes();
            comm.resize(16, 0);
            comm
        };
        let prev = self.running[at.cpu as usize];
        let raw = self.bytes().raw([0; 8]).raw(comm(prev)).u32(prev).u32(120);
        let raw = raw.u64(1).raw(comm(next)).u32(next).u32(120).raw([0; 4]);
        self.sample(SWITCH, at, raw.done());
        self.running[at.cpu as usize] = next;
    }

    pub(super) fn finish(&self) -> Vec<u8> {
        self.file.finish()
    }

    /// Returns the offset of the end of the records.
    pub(super) fn end_of_records(&self) -> usize {
        // The offset at which the next record would be.
        let end = self.file.clone().record(PerfFile::SAMPLE, 0, []);
        usize::try_from(end).expect("a short file")
    }
}
