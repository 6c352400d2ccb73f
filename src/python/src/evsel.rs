//! `perf.evsel`: an event, its settings and its open counters.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rperf_events::{EventSpec, GroupPosition};
use rperf_sys::{Counter, ObservedTask};
use rperf_tracepoint::Tracepoint;
use rperf_wire::{Attr, AttrFlags, EventType, ReadFormat, SampleType, event_name};

use crate::error::{system_error, value_error};
use crate::local_events::LocalEvents;
use crate::maps::{PyCpuMap, PyThreadMap};

/// A setting of the constructor.
struct Keyword {
    name: &'static str,
    set: fn(&mut Attr, u64),
}

/// A setting that is one bit of the attr.
macro_rules! bit {
    ($name:literal, $flag:ident) => {
        Keyword {
            name: $name,
            set: |attr, value| attr.flags = attr.flags.with(AttrFlags::$flag, value != 0),
        }
    };
}

/// The settings of the constructor, in the same order as in Linux perf.
const KEYWORDS: [Keyword; 29] = [
    Keyword {
        name: "type",
        set: |attr, value| attr.kind = EventType(value as u32),
    },
    Keyword {
        name: "config",
        set: |attr, value| attr.config = value,
    },
    Keyword {
        name: "sample_freq",
        set: |attr, value| attr.sample_period = value,
    },
    Keyword {
        name: "sample_period",
        set: |attr, value| attr.sample_period = value,
    },
    Keyword {
        name: "sample_type",
        set: |attr, value| attr.sample_type = SampleType(value),
    },
    Keyword {
        name: "read_format",
        set: |attr, value| attr.read_format = ReadFormat(value),
    },
    bit!("disabled", DISABLED),
    bit!("inherit", INHERIT),
    bit!("pinned", PINNED),
    bit!("exclusive", EXCLUSIVE),
    bit!("exclude_user", EXCLUDE_USER),
    bit!("exclude_kernel", EXCLUDE_KERNEL),
    bit!("exclude_hv", EXCLUDE_HV),
    bit!("exclude_idle", EXCLUDE_IDLE),
    bit!("mmap", MMAP),
    bit!("context_switch", CONTEXT_SWITCH),
    bit!("comm", COMM),
    bit!("freq", FREQ),
    bit!("inherit_stat", INHERIT_STAT),
    bit!("enable_on_exec", ENABLE_ON_EXEC),
    bit!("task", TASK),
    bit!("watermark", WATERMARK),
    Keyword {
        name: "precise_ip",
        set: |attr, value| attr.set_precise_ip(value as u8),
    },
    bit!("mmap_data", MMAP_DATA),
    bit!("sample_id_all", SAMPLE_ID_ALL),
    Keyword {
        name: "wakeup_events",
        set: |attr, value| attr.wakeup = value as u32,
    },
    Keyword {
        name: "bp_type",
        set: |attr, value| attr.bp_type = value as u32,
    },
    Keyword {
        name: "bp_addr",
        set: |attr, value| attr.config1 = value,
    },
    Keyword {
        name: "bp_len",
        set: |attr, value| attr.config2 = value,
    },
];

/// An open counter.
#[derive(Debug)]
pub(crate) struct EvselCounter {
    pub(crate) cpu: i32,
    pub(crate) thread: i32,
    pub(crate) counter: Counter,
}

/// The part of an event that changes after its creation.
#[derive(Debug)]
pub(crate) struct EvselState {
    /// As parsed or recorded; derived from the attr if the event was created from settings.
    pub(crate) name: String,
    pub(crate) attr: Attr,
    pub(crate) cpus: Vec<i32>,
    pub(crate) threads: Vec<i32>,
    pub(crate) counters: Vec<EvselCounter>,
}

/// An event that can be counted or sampled. Programs may derive classes from it, whose constructors take other arguments.
#[pyclass(frozen, subclass, name = "evsel", module = "perf")]
#[derive(Debug)]
pub(crate) struct Evsel {
    state: Mutex<EvselState>,
    /// The parsed event, if it was created from an event string. Kept for its group and its tracepoint, and because it owns the
    /// path that the attr of a uprobe refers to by its address.
    spec: Option<EventSpec>,
}

#[pymethods]
impl Evsel {
    /// Creates an event with default settings. The arguments are for `__init__`, which a derived class may override: they are
    /// ignored here.
    #[new]
    #[pyo3(signature = (*_settings, **_keywords))]
    fn new(_settings: &Bound<'_, PyTuple>, _keywords: Option<&Bound<'_, PyDict>>) -> Self {
        let attr = default_attr();
        Self::named(bare_name(&attr), attr)
    }

    /// Sets the event; the settings are those of `struct perf_event_attr`: type, config, sample_freq, sample_period,
    /// sample_type, read_format, disabled, inherit, pinned, exclusive, exclude_user, exclude_kernel, exclude_hv,
    /// exclude_idle, mmap, context_switch, comm, freq, inherit_stat, enable_on_exec, task, watermark, precise_ip,
    /// mmap_data, sample_id_all, wakeup_events, bp_type, bp_addr, bp_len. `sample_freq` and `sample_period` are the same
    /// field: with `freq=0` it is a period.
    #[pyo3(signature = (*settings, **keywords))]
    fn __init__(
        &self,
        settings: &Bound<'_, PyTuple>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let mut attr = default_attr();
        if settings.len() > KEYWORDS.len() {
            let most = KEYWORDS.len();
            return Err(PyTypeError::new_err(format!(
                "perf.evsel takes at most {most} settings"
            )));
        }
        for (keyword, value) in KEYWORDS.iter().zip(settings.iter()) {
            (keyword.set)(&mut attr, number(keyword.name, &value)?);
        }
        for (name, value) in keywords.into_iter().flatten() {
            let name: String = name.extract()?;
            let mut known = KEYWORDS.iter();
            let Some(keyword) = known.find(|keyword| keyword.name == name) else {
                let names = KEYWORDS.iter().map(|keyword| keyword.name);
                return Err(PyTypeError::new_err(format!(
                    "perf.evsel has no setting '{name}'\nhint: its settings: {}",
                    names.collect::<Vec<_>>().join(", ")
                )));
            };
            (keyword.set)(&mut attr, number(keyword.name, &value)?);
        }
        let mut state = self.state();
        if !state.counters.is_empty() {
            return Err(value_error(format!("{} is open", state.name)));
        }
        state.name = bare_name(&attr);
        state.attr = attr;
        Ok(())
    }

    /// Opens the event on `cpus` for `threads`, by default those set before. `inherit` turns the setting `inherit` on: child
    /// tasks are counted, too. `group` is not supported.
    #[pyo3(signature = (cpus = None, threads = None, group = 0, inherit = 0))]
    fn open(
        slf: &Bound<'_, Self>,
        cpus: Option<&Bound<'_, PyCpuMap>>,
        threads: Option<&Bound<'_, PyThreadMap>>,
        group: i32,
        inherit: i32,
    ) -> PyResult<()> {
        if group != 0 {
            return Err(value_error(
                "evsel.open cannot open a group: an event alone has none\nhint: parse_events('{a,b}').open() opens groups",
            ));
        }
        let evsel = slf.get();
        let mut state = evsel.state();
        if let Some(cpus) = cpus {
            state.cpus.clone_from(&cpus.get().cpus);
        }
        if let Some(threads) = threads {
            state.threads.clone_from(&threads.get().threads);
        }
        state.attr.flags = state.attr.flags.with(
            AttrFlags::INHERIT,
            inherit != 0 || state.attr.flags.contains(AttrFlags::INHERIT),
        );
        drop(state);
        slf.py().detach(|| evsel.open_all(None))
    }

    /// The count on CPU `cpu` of thread `thread`; the event must be open for this CPU and thread.
    fn read(&self, cpu: i32, thread: i32) -> PyResult<CountsValues> {
        let state = self.state();
        let mut counters = state.counters.iter();
        let open = counters.find(|open| open.cpu == cpu && open.thread == thread);
        let Some(open) = open else {
            return Err(value_error(format!(
                "{} is not open on CPU {cpu} for thread {thread}",
                state.name
            )));
        };
        let value = open.counter.read(state.attr.read_format);
        let value = value.map_err(|error| system_error(&state.name, &error))?;
        Ok(CountsValues {
            val: value.value,
            ena: value.enabled.unwrap_or_default(),
            run: value.running.unwrap_or_default(),
            id: value.id.unwrap_or_default(),
            lost: value.lost.unwrap_or_default(),
        })
    }

    /// The CPUs on which it is opened.
    fn cpus(&self) -> PyCpuMap {
        PyCpuMap::of(self.state().cpus.iter().copied())
    }

    /// The threads for which it is opened.
    fn threads(&self) -> PyThreadMap {
        PyThreadMap::of(self.state().threads.iter().copied())
    }

    /// The name of the event.
    #[getter]
    fn name(&self) -> String {
        self.event_name()
    }

    #[getter]
    fn get_type(&self) -> u32 {
        self.state().attr.kind.0
    }

    #[setter]
    fn set_type(&self, value: u32) {
        self.state().attr.kind = EventType(value);
    }

    #[getter]
    fn get_config(&self) -> u64 {
        self.state().attr.config
    }

    #[setter]
    fn set_config(&self, value: u64) {
        self.state().attr.config = value;
    }

    #[getter]
    fn get_read_format(&self) -> u64 {
        self.state().attr.read_format.0
    }

    #[setter]
    fn set_read_format(&self, value: u64) {
        self.state().attr.read_format = ReadFormat(value);
    }

    #[getter]
    fn get_sample_period(&self) -> u64 {
        self.state().attr.sample_period
    }

    #[setter]
    fn set_sample_period(&self, value: u64) {
        self.state().attr.sample_period = value;
    }

    #[getter]
    fn get_sample_type(&self) -> u64 {
        self.state().attr.sample_type.0
    }

    #[setter]
    fn set_sample_type(&self, value: u64) {
        self.state().attr.sample_type = SampleType(value);
    }

    #[getter]
    fn get_wakeup_events(&self) -> u32 {
        self.state().attr.wakeup
    }

    #[setter]
    fn set_wakeup_events(&self, value: u32) {
        self.state().attr.wakeup = value;
    }

    /// The size of `struct perf_event_attr` in bytes.
    #[getter]
    fn size(&self) -> usize {
        Attr::SIZE
    }

    /// Whether it records mappings, names and the start and end of threads.
    #[getter]
    fn get_tracking(&self) -> bool {
        let tracking = AttrFlags::MMAP | AttrFlags::COMM | AttrFlags::TASK;
        self.state().attr.flags.contains(tracking)
    }

    #[setter]
    fn set_tracking(&self, value: bool) {
        let mut state = self.state();
        for flag in [AttrFlags::MMAP, AttrFlags::COMM, AttrFlags::TASK] {
            state.attr.flags = state.attr.flags.with(flag, value);
        }
    }

    fn __repr__(&self) -> String {
        format!("evsel({})", self.event_name())
    }
}

/// The attr of an event created without settings.
fn default_attr() -> Attr {
    Attr {
        sample_type: SampleType::PERIOD | SampleType::TID,
        flags: AttrFlags::FREQ | AttrFlags::SAMPLE_ID_ALL,
        ..Attr::default()
    }
}

/// The name that is derived from an attr, without modifiers: they only repeat other settings of the attr.
fn bare_name(attr: &Attr) -> String {
    // This flag is perf's default: `event_name` adds no modifiers if no other flag is set.
    event_name(&Attr {
        flags: AttrFlags::EXCLUDE_GUEST,
        ..attr.clone()
    })
}

/// The value of a setting; booleans are 0 and 1.
fn number(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u64> {
    value.extract::<u64>().map_err(|_| {
        PyTypeError::new_err(format!("perf.evsel: {name} must be a number of 0 or above"))
    })
}

impl Evsel {
    /// An event with this name and these settings.
    pub(crate) fn named(name: String, attr: Attr) -> Self {
        Self::with(name, attr, None)
    }

    /// A parsed event.
    pub(crate) fn parsed(spec: EventSpec) -> Self {
        Self::with(spec.name.clone(), spec.attr.clone(), Some(spec))
    }

    fn with(name: String, attr: Attr, spec: Option<EventSpec>) -> Self {
        Self {
            state: Mutex::new(EvselState {
                name,
                attr,
                // Any CPU, and all threads. The kernel refuses this pair: `open` needs CPUs or threads.
                cpus: vec![-1],
                threads: vec![-1],
                counters: Vec::new(),
            }),
            spec,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, EvselState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn event_name(&self) -> String {
        self.state().name.clone()
    }

    /// Whether it belongs to the group of the event before it.
    pub(crate) fn is_member(&self) -> bool {
        let group = self.spec.as_ref().map(|spec| &spec.group);
        group == Some(&GroupPosition::Member)
    }

    /// The format of its tracepoint; `None` if it is no tracepoint or the format cannot be read.
    pub(crate) fn tracepoint(&self) -> Option<Arc<Tracepoint>> {
        let config = {
            let state = self.state();
            (state.attr.kind == EventType::TRACEPOINT).then_some(state.attr.config)?
        };
        let events = LocalEvents::find();
        match self.spec.as_ref().and_then(|spec| spec.tracepoint.as_ref()) {
            Some(named) => events.tracepoint(&named.system, &named.name),
            None => events.tracepoint_of_id(config),
        }
    }

    /// Opens the event on its CPUs and threads. If `leader` is given, the event joins the group of `leader` on the CPUs and
    /// threads for which `leader` is open.
    pub(crate) fn open_all(&self, leader: Option<&Self>) -> PyResult<()> {
        let leader = leader.map(Self::state);
        let mut state = self.state();
        let mut opened = Vec::new();
        for &cpu in &state.cpus {
            for &thread in &state.threads {
                let group = leader.as_ref().and_then(|leader| {
                    let mut counters = leader.counters.iter();
                    counters.find(|open| open.cpu == cpu && open.thread == thread)
                });
                let group = group.map(|open| &open.counter);
                let task = ObservedTask { pid: thread, cpu };
                let counter = Counter::open(&state.attr, task, group);
                let counter = counter.map_err(|error| not_opened(&state.name, task, &error))?;
                opened.push(EvselCounter {
                    cpu,
                    thread,
                    counter,
                });
            }
        }
        state.counters = opened;
        Ok(())
    }
}

fn not_opened(name: &str, task: ObservedTask, error: &std::io::Error) -> PyErr {
    let ObservedTask { pid, cpu } = task;
    let problem = format!("cannot open {name} on CPU {cpu} for thread {pid}");
    match error.raw_os_error() {
        Some(number @ (libc::EACCES | libc::EPERM)) => {
            pyo3::exceptions::PyPermissionError::new_err((
                number,
                format!(
                    "{problem}: {error}\nhint: observing the system or the kernel needs privileges: see /proc/sys/kernel/perf_event_paranoid"
                ),
            ))
        }
        _ => system_error(&problem, error),
    }
}

/// The count of an event.
#[pyclass(frozen, get_all, name = "counts_values", module = "perf")]
#[derive(Debug)]
pub(crate) struct CountsValues {
    /// The count.
    val: u64,
    /// Nanoseconds that the event was enabled, if its `read_format` has `FORMAT_TOTAL_TIME_ENABLED`.
    ena: u64,
    /// Nanoseconds that it was counted, if its `read_format` has `FORMAT_TOTAL_TIME_RUNNING`.
    run: u64,
    /// Its id, if its `read_format` has `FORMAT_ID`.
    id: u64,
    /// Lost samples, if its `read_format` has `FORMAT_LOST`.
    lost: u64,
}

#[pymethods]
impl CountsValues {
    /// `val`, `ena`, `run`, `id` and `lost`.
    #[getter]
    fn values(&self) -> [u64; 5] {
        [self.val, self.ena, self.run, self.id, self.lost]
    }

    fn __repr__(&self) -> String {
        format!(
            "perf.counts_values(val={}, ena={}, run={}, id={}, lost={})",
            self.val, self.ena, self.run, self.id, self.lost
        )
    }
}
