//! `perf.evlist`: events that are opened, mapped and read together.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rperf_events::parse;
use rperf_sys::Counter;
use rperf_wire::{AttrFlags, EventType, SampleType};

use crate::error::{or_value_error, system_error, value_error};
use crate::evsel::Evsel;
use crate::live::LiveRings;
use crate::local_events::LocalEvents;
use crate::maps::{PyCpuMap, PyThreadMap, item};

/// Samples per second of an event that is no tracepoint and has neither a rate nor a period.
const DEFAULT_FREQUENCY: u64 = 4000;
/// Data pages of a ring, unless given.
const DEFAULT_PAGES: usize = 128;

/// A list of events, with CPUs and threads for the events that are not open when they are added.
#[pyclass(frozen, name = "evlist", module = "perf")]
pub(crate) struct Evlist {
    cpus: Py<PyCpuMap>,
    threads: Py<PyThreadMap>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    evsels: Vec<Py<Evsel>>,
    rings: Option<LiveRings>,
}

#[pymethods]
impl Evlist {
    /// An empty list for these CPUs and threads.
    #[new]
    fn new(cpus: Py<PyCpuMap>, threads: Py<PyThreadMap>) -> Self {
        Self {
            cpus,
            threads,
            inner: Mutex::default(),
        }
    }

    /// Appends an event and returns the number of events. An event that is not open yet gets the CPUs and threads of the
    /// list.
    fn add(&self, evsel: Py<Evsel>) -> PyResult<usize> {
        let mut inner = self.inner();
        if inner.rings.is_some() {
            return Err(value_error(
                "the events are mapped already: add events before mmap()",
            ));
        }
        if inner.evsels.iter().any(|known| known.is(&evsel)) {
            return Err(value_error("the event is in the list already"));
        }
        let mut state = evsel.get().state();
        if state.counters.is_empty() {
            state.cpus.clone_from(&self.cpus.get().cpus);
            state.threads.clone_from(&self.threads.get().threads);
        }
        drop(state);
        inner.evsels.push(evsel);
        Ok(inner.evsels.len())
    }

    /// Opens each event on its CPUs and threads, and groups of `parse_events` (`{a,b}`) as groups; with `group`, all events as
    /// one group.
    #[pyo3(signature = (group = 0))]
    fn open(&self, py: Python<'_>, group: i32) -> PyResult<()> {
        let evsels = self.evsels(py);
        py.detach(|| {
            let mut leader: Option<&Evsel> = None;
            for evsel in &evsels {
                let evsel = evsel.get();
                let is_member = evsel.is_member() || group != 0;
                evsel.open_all(leader.filter(|_| is_member))?;
                if leader.is_none() || !is_member {
                    leader = Some(evsel);
                }
            }
            Ok(())
        })
    }

    /// Closes the events and their rings.
    fn close(&self, py: Python<'_>) {
        self.inner().rings = None;
        for evsel in self.evsels(py) {
            evsel.get().state().counters.clear();
        }
    }

    /// Maps ring buffers of `pages` pages, a power of two. `overwrite` is not supported.
    #[pyo3(signature = (pages = DEFAULT_PAGES, overwrite = 0))]
    fn mmap(&self, py: Python<'_>, pages: usize, overwrite: i32) -> PyResult<()> {
        if overwrite != 0 {
            return Err(value_error(
                "mmap(overwrite=1) is not supported\nhint: rperf record --overwrite",
            ));
        }
        let evsels = self.evsels(py);
        if evsels
            .iter()
            .all(|evsel| evsel.get().state().counters.is_empty())
        {
            return Err(value_error(
                "no event of the list is open: call open() before mmap()",
            ));
        }
        let rings = LiveRings::map(py, &evsels, pages);
        let rings =
            rings.map_err(|error| system_error(&format!("mmap of {pages} pages"), &error))?;
        self.inner().rings = Some(rings);
        Ok(())
    }

    /// Waits until a ring has records, the thread of a ring has ended, a signal arrives, or `timeout` milliseconds have passed
    /// (-1: no limit); returns the number of rings that have records or whose thread has ended.
    #[pyo3(signature = (timeout = -1))]
    fn poll(&self, py: Python<'_>, timeout: i32) -> PyResult<usize> {
        let counters = {
            let inner = self.inner();
            let rings = inner.rings.as_ref();
            rings.map(LiveRings::counters_to_poll).transpose()
        };
        let ready = counters
            .map(Option::unwrap_or_default)
            .and_then(|counters| py.detach(|| wait(&counters, timeout)))
            .map_err(|error| system_error("poll", &error))?;
        py.check_signals()?;
        Ok(ready)
    }

    /// File objects of the rings, for `select` and `asyncio`; they do not close the descriptors.
    fn get_pollfd<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let fdopen = py.import("os")?.getattr("fdopen")?;
        let keywords = PyDict::new(py);
        keywords.set_item("closefd", false)?;
        let inner = self.inner();
        let rings = inner.rings.as_ref();
        let descriptors = rings.map(LiveRings::descriptors).unwrap_or_default();
        let files = descriptors
            .into_iter()
            .map(|fd| fdopen.call((fd, "r"), Some(&keywords)));
        files.collect()
    }

    /// The next event of a CPU; `None` if there is none. `sample_id_all` is ignored, as by Linux perf: the events' setting
    /// applies.
    #[pyo3(signature = (cpu, sample_id_all = 1))]
    fn read_on_cpu(
        &self,
        py: Python<'_>,
        cpu: i32,
        #[expect(unused_variables, reason = "part of the interface")] sample_id_all: i32,
    ) -> PyResult<Option<Py<PyAny>>> {
        loop {
            // The list is not locked while Python objects are created, which may run code that uses it.
            let (record, decoder) = match &mut self.inner().rings {
                Some(rings) if rings.has_cpu(cpu) => {
                    (rings.next_record(cpu), Arc::clone(&rings.decoder))
                }
                _ => return Err(PyTypeError::new_err(format!("Unknown CPU '{cpu}'"))),
            };
            let Some(record) = record else {
                return Ok(None);
            };
            // `None` for a record that cannot be decoded, or a sample of an event not in the list: it is skipped.
            if let Some(event) = decoder.event(py, &record)? {
                return Ok(Some(event));
            }
        }
    }

    /// Starts counting.
    fn enable(&self, py: Python<'_>) -> PyResult<()> {
        self.each_counter(py, Counter::enable)
    }

    /// Stops counting.
    fn disable(&self, py: Python<'_>) -> PyResult<()> {
        self.each_counter(py, Counter::disable)
    }

    /// Applies settings like those of `record`: samples have instruction pointer, thread, time, CPU and period, and samples of
    /// tracepoints also the tracepoint's fields. An event with neither a rate nor a period is sampled 4000 times per second, or
    /// each time it occurs if it is a tracepoint. The first event records mappings, names, and the start and end of threads.
    /// Events are opened disabled: call `enable`.
    fn config(&self, py: Python<'_>) {
        let evsels = self.evsels(py);
        let several = evsels.len() > 1;
        for (index, evsel) in evsels.iter().enumerate() {
            let mut state = evsel.get().state();
            let attr = &mut state.attr;
            let is_tracepoint = attr.kind == EventType::TRACEPOINT;
            attr.sample_type |= SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::PERIOD;
            if several {
                attr.sample_type |= SampleType::IDENTIFIER;
            }
            if is_tracepoint {
                attr.sample_type |= SampleType::RAW;
            }
            if attr.sample_period == 0 {
                attr.sample_period = if is_tracepoint { 1 } else { DEFAULT_FREQUENCY };
                attr.flags = attr.flags.with(AttrFlags::FREQ, !is_tracepoint);
            }
            attr.flags |= AttrFlags::SAMPLE_ID_ALL | AttrFlags::DISABLED;
            if index == 0 {
                attr.flags |= AttrFlags::MMAP | AttrFlags::COMM | AttrFlags::TASK;
            }
        }
    }

    /// The CPUs of all events.
    fn all_cpus(&self, py: Python<'_>) -> PyCpuMap {
        let evsels = self.evsels(py);
        let cpus = evsels.iter().flat_map(|evsel| {
            let state = evsel.get().state();
            state.cpus.clone()
        });
        let mut cpus: Vec<i32> = cpus.collect();
        cpus.sort_unstable();
        cpus.dedup();
        PyCpuMap::of(cpus)
    }

    fn __len__(&self) -> usize {
        self.inner().evsels.len()
    }

    fn __getitem__(&self, py: Python<'_>, index: isize) -> PyResult<Py<Evsel>> {
        let inner = self.inner();
        item(&inner.evsels, index).map(|evsel| evsel.clone_ref(py))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let evsels = self.evsels(py);
        let names: Vec<String> = evsels
            .iter()
            .map(|evsel| evsel.get().event_name())
            .collect();
        format!("evlist([{}])", names.join(","))
    }
}

/// Waits as [`Evlist::poll`] does, for the rings of `counters`, and returns the same number.
fn wait(counters: &[Counter], timeout: i32) -> io::Result<usize> {
    let fds: Vec<_> = counters.iter().map(|counter| counter.as_fd()).collect();
    let states = rperf_sys::poll(&fds, timeout)?;
    let ready = states.iter().filter(|state| state.readable || state.closed);
    Ok(ready.count())
}

impl Evlist {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn evsels(&self, py: Python<'_>) -> Vec<Py<Evsel>> {
        let inner = self.inner();
        inner
            .evsels
            .iter()
            .map(|evsel| evsel.clone_ref(py))
            .collect()
    }

    fn each_counter(
        &self,
        py: Python<'_>,
        act: impl Fn(&Counter) -> io::Result<()>,
    ) -> PyResult<()> {
        for evsel in self.evsels(py) {
            let evsel = evsel.get();
            let state = evsel.state();
            for open in &state.counters {
                act(&open.counter).map_err(|error| system_error(&state.name, &error))?;
            }
        }
        Ok(())
    }
}

/// The events of `event_string`, a list as for `-e`, on these CPUs and threads: by default all online CPUs and all threads.
#[pyfunction]
#[pyo3(signature = (event_string, cpus = None, threads = None))]
pub(crate) fn parse_events(
    py: Python<'_>,
    event_string: &str,
    cpus: Option<Py<PyCpuMap>>,
    threads: Option<Py<PyThreadMap>>,
) -> PyResult<Evlist> {
    let machine = LocalEvents::find();
    let specs = or_value_error(parse(event_string, &machine.catalogue()))?;
    let cpus = match cpus {
        Some(cpus) => cpus,
        // `cpu_map()`: all online CPUs.
        None => py.get_type::<PyCpuMap>().call0()?.extract()?,
    };
    let threads = match threads {
        Some(threads) => threads,
        None => Py::new(py, PyThreadMap::of([-1]))?,
    };
    let list = Evlist::new(cpus, threads);
    for spec in specs {
        if spec.tool.is_some() {
            return Err(value_error(format!(
                "event {} can only be counted, by 'rperf stat'",
                spec.name
            )));
        }
        list.add(Py::new(py, Evsel::parsed(spec))?)?;
    }
    Ok(list)
}

/// The id of the tracepoint `name` of `sys`, which is the `config` of its event.
#[pyfunction]
pub(crate) fn tracepoint(sys: &str, name: &str) -> PyResult<u64> {
    use rperf_events::Tracepoints as _;

    let machine = LocalEvents::find();
    let id = machine.tracepoints.id(sys, name);
    id.map_err(|error| system_error(&format!("tracepoint {sys}:{name}"), &error))
}
