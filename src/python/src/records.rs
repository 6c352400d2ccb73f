//! Events other than samples: the records of the kernel as Python objects.

use pyo3::PyClass;
use pyo3::prelude::*;
use rperf_wire::{
    Comm, Endian, Lost, Misc, Mmap, Mmap2, RawRecord, Read, Record, RecordKind, SampleId, Task,
    Throttle, name_text,
};

/// The attributes of all events: their type, and the fields of the sample or of the trailer (`sample_id_all`). Fields that are
/// not recorded are -1 (processes, threads, CPUs), 2^64 - 1 (times, event ids) or 0 (all others); only a sample without a
/// recorded period has the fixed period of its event.
#[pyclass(subclass, frozen, name = "event", module = "perf")]
#[derive(Debug, Clone)]
pub(crate) struct Event {
    #[pyo3(get, name = "type")]
    pub(crate) kind: u32,
    /// The flags of the record header.
    #[pyo3(get)]
    pub(crate) misc: u16,
    #[pyo3(get)]
    pub(crate) sample_ip: u64,
    #[pyo3(get)]
    pub(crate) sample_pid: i32,
    #[pyo3(get)]
    pub(crate) sample_tid: i32,
    #[pyo3(get)]
    pub(crate) sample_time: u64,
    #[pyo3(get)]
    pub(crate) sample_addr: u64,
    #[pyo3(get)]
    pub(crate) sample_id: u64,
    #[pyo3(get)]
    pub(crate) sample_stream_id: u64,
    #[pyo3(get)]
    pub(crate) sample_cpu: i32,
    #[pyo3(get)]
    pub(crate) sample_period: u64,
}

impl Event {
    /// The common attributes of a record other than a sample.
    pub(crate) fn of_record(raw: &RawRecord<'_>, trailer: &SampleId) -> Self {
        let (pid, tid) = trailer.pid_tid.unwrap_or((u32::MAX, u32::MAX));
        Self {
            kind: raw.kind.0,
            misc: raw.misc.0,
            sample_ip: 0,
            sample_pid: pid.cast_signed(),
            sample_tid: tid.cast_signed(),
            sample_time: trailer.time.unwrap_or(u64::MAX),
            sample_addr: 0,
            sample_id: trailer.id.unwrap_or(u64::MAX),
            sample_stream_id: trailer.stream_id.unwrap_or(u64::MAX),
            sample_cpu: trailer.cpu.unwrap_or(u32::MAX).cast_signed(),
            sample_period: 0,
        }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        format!("{{ type: {} }}", RecordKind(self.kind))
    }
}

/// Formats a number as C's `%#lx` does: hexadecimal with the prefix `0x`; zero has no prefix.
fn hex(number: u64) -> String {
    match number {
        0 => "0".to_owned(),
        _ => format!("{number:#x}"),
    }
}

/// A mapping: MMAP or MMAP2.
#[pyclass(extends = Event, frozen, get_all, name = "mmap_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct MmapEvent {
    pid: i32,
    tid: i32,
    start: u64,
    len: u64,
    pgoff: u64,
    filename: String,
}

#[pymethods]
impl MmapEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: mmap, pid: {}, tid: {}, start: {}, length: {}, offset: {}, filename: {} }}",
            self.pid,
            self.tid,
            hex(self.start),
            hex(self.len),
            hex(self.pgoff),
            self.filename
        )
    }
}

/// A thread's new name: COMM.
#[pyclass(extends = Event, frozen, get_all, name = "comm_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct CommEvent {
    pid: i32,
    tid: i32,
    comm: String,
}

#[pymethods]
impl CommEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: comm, pid: {}, tid: {}, comm: {} }}",
            self.pid, self.tid, self.comm
        )
    }
}

/// The start or the end of a thread: FORK or EXIT.
#[pyclass(extends = Event, frozen, get_all, name = "task_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct TaskEvent {
    pid: i32,
    tid: i32,
    ppid: i32,
    ptid: i32,
    time: u64,
}

#[pymethods]
impl TaskEvent {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let task = slf.get();
        let name = match RecordKind(slf.as_super().get().kind) {
            RecordKind::EXIT => "exit",
            _ => "fork",
        };
        // As in perf, without a blank before the last brace.
        format!(
            "{{ type: {name}, pid: {}, ppid: {}, tid: {}, ptid: {}, time: {}}}",
            task.pid, task.ppid, task.tid, task.ptid, task.time
        )
    }
}

/// The start or the end of throttling: THROTTLE or UNTHROTTLE.
#[pyclass(extends = Event, frozen, get_all, name = "throttle_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct ThrottleEvent {
    time: u64,
    id: u64,
    stream_id: u64,
}

#[pymethods]
impl ThrottleEvent {
    fn __repr__(slf: &Bound<'_, Self>) -> String {
        let throttle = slf.get();
        let prefix = match RecordKind(slf.as_super().get().kind) {
            RecordKind::THROTTLE => "",
            _ => "un",
        };
        format!(
            "{{ type: {prefix}throttle, time: {}, id: {}, stream_id: {} }}",
            throttle.time, throttle.id, throttle.stream_id
        )
    }
}

/// Lost records (LOST) or lost samples (LOST_SAMPLES).
#[pyclass(extends = Event, frozen, get_all, name = "lost_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct LostEvent {
    id: u64,
    lost: u64,
}

#[pymethods]
impl LostEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: lost, id: {}, lost: {} }}",
            hex(self.id),
            hex(self.lost)
        )
    }
}

/// A task with an inherited counter ended: READ. As in perf's module, the count is not an attribute.
#[pyclass(extends = Event, frozen, get_all, name = "read_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct ReadEvent {
    pid: i32,
    tid: i32,
}

#[pymethods]
impl ReadEvent {
    fn __repr__(&self) -> String {
        format!("{{ type: read, pid: {}, tid: {} }}", self.pid, self.tid)
    }
}

/// A context switch: SWITCH or SWITCH_CPU_WIDE.
#[pyclass(extends = Event, frozen, get_all, name = "switch_event", module = "perf")]
#[derive(Debug)]
pub(crate) struct SwitchEvent {
    /// The process that runs next, or ran before; -1 for SWITCH.
    next_prev_pid: i32,
    /// Its thread; -1 for SWITCH.
    next_prev_tid: i32,
    /// Whether the task leaves the CPU.
    switch_out: bool,
}

#[pymethods]
impl SwitchEvent {
    fn __repr__(&self) -> String {
        format!(
            "{{ type: context_switch, next_prev_pid: {}, next_prev_tid: {}, switch_out: {} }}",
            self.next_prev_pid,
            self.next_prev_tid,
            u8::from(self.switch_out)
        )
    }
}

/// A record other than a sample as a Python object; if its type has no class, a `perf.event`. `None` for a record that cannot
/// be decoded.
pub(crate) fn event_from_record(
    py: Python<'_>,
    raw: &RawRecord<'_>,
    trailer: &SampleId,
    endian: Endian,
) -> PyResult<Option<Py<PyAny>>> {
    let Ok(record) = Record::decode(raw, endian) else {
        return Ok(None);
    };
    let base = PyClassInitializer::from(Event::of_record(raw, trailer));
    let event = match record {
        Record::Mmap(map) | Record::Mmap2(Mmap2 { mmap: map, .. }) => {
            derived_event(py, base, MmapEvent::from(map))
        }
        Record::Comm(comm) => derived_event(py, base, CommEvent::from(comm)),
        Record::Fork(task) | Record::Exit(task) => derived_event(py, base, TaskEvent::from(task)),
        Record::Throttle(throttle) | Record::Unthrottle(throttle) => {
            derived_event(py, base, ThrottleEvent::from(throttle))
        }
        Record::Lost(Lost { id, lost }) => derived_event(py, base, LostEvent { id, lost }),
        Record::LostSamples(samples) => {
            let id = trailer.id.unwrap_or(u64::MAX);
            let lost = samples.lost;
            derived_event(py, base, LostEvent { id, lost })
        }
        Record::Read(read) => derived_event(py, base, ReadEvent::from(read)),
        Record::Switch(switch) => {
            let (pid, tid) = switch.next_prev.unwrap_or((u32::MAX, u32::MAX));
            let switch = SwitchEvent {
                next_prev_pid: pid.cast_signed(),
                next_prev_tid: tid.cast_signed(),
                switch_out: raw.misc.contains(Misc::SWITCH_OUT),
            };
            derived_event(py, base, switch)
        }
        _ => Ok(Py::new(py, base)?.into_any()),
    };
    event.map(Some)
}

/// Creates an event of a class derived from `perf.event`, from the common attributes `base` and the `own` ones of that class.
pub(crate) fn derived_event<T: PyClass<BaseType = Event>>(
    py: Python<'_>,
    base: PyClassInitializer<Event>,
    own: T,
) -> PyResult<Py<PyAny>> {
    Ok(Py::new(py, base.add_subclass(own))?.into_any())
}

impl From<Mmap<'_>> for MmapEvent {
    fn from(map: Mmap<'_>) -> Self {
        Self {
            pid: map.pid,
            tid: map.tid.cast_signed(),
            start: map.start,
            len: map.len,
            pgoff: map.pgoff,
            filename: name_text(map.filename).into_owned(),
        }
    }
}

impl From<Comm<'_>> for CommEvent {
    fn from(comm: Comm<'_>) -> Self {
        Self {
            pid: comm.pid.cast_signed(),
            tid: comm.tid.cast_signed(),
            comm: name_text(comm.comm).into_owned(),
        }
    }
}

impl From<Task> for TaskEvent {
    fn from(task: Task) -> Self {
        Self {
            pid: task.pid.cast_signed(),
            tid: task.tid.cast_signed(),
            ppid: task.ppid.cast_signed(),
            ptid: task.ptid.cast_signed(),
            time: task.time,
        }
    }
}

impl From<Throttle> for ThrottleEvent {
    fn from(throttle: Throttle) -> Self {
        Self {
            time: throttle.time,
            id: throttle.id,
            stream_id: throttle.stream_id,
        }
    }
}

impl From<Read<'_>> for ReadEvent {
    fn from(read: Read<'_>) -> Self {
        Self {
            pid: read.pid.cast_signed(),
            tid: read.tid.cast_signed(),
        }
    }
}
