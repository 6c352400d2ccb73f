//! `perf.session`: the events of a recording, passed to functions or collected in tables.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::available_parallelism;

use pyo3::exceptions::PyTypeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use rperf_perfdata::EventDesc;
use rperf_replay::{FoldControl, Order, Replay};
use rperf_resolve::Resolver;
use rperf_tracepoint::{Formats, Tracepoint};
use rperf_wire::{Endian, RawRecord, RecordKind};

use crate::analysis::{AnalysisOptions, conclude};
use crate::counts::event_from_stat_record;
use crate::error::value_error;
use crate::evsel::Evsel;
use crate::names::PythonNames;
use crate::recording::{Data, RecordingFile};
use crate::records::{derived_event, event_from_record};
use crate::render::{DecodedSample, EventRenderer, RecordBytes, RenderedEvent};
use crate::sample::{SampleEvent, SampleNames};
use crate::session_tables::{DEFAULT_ROWS, TableRequest};
use crate::table::PyTable;
use crate::thread_names::{PyThread, ThreadNames};

/// The keywords for functions of a session, with the types of the records that each function is called with.
const CALLBACKS: &[(&str, &[RecordKind])] = &[
    ("sample", &[RecordKind::SAMPLE]),
    ("mmap", &[RecordKind::MMAP, RecordKind::MMAP2]),
    ("comm", &[RecordKind::COMM]),
    ("task", &[RecordKind::FORK, RecordKind::EXIT]),
    ("lost", &[RecordKind::LOST, RecordKind::LOST_SAMPLES]),
    ("throttle", &[RecordKind::THROTTLE, RecordKind::UNTHROTTLE]),
    ("read", &[RecordKind::READ]),
    (
        "context_switch",
        &[RecordKind::SWITCH, RecordKind::SWITCH_CPU_WIDE],
    ),
    ("stat", &COUNTS),
];
/// Records of `stat record`: a count, and the end of an interval. Their function also gets the name of the counted event.
const COUNTS: [RecordKind; 2] = [RecordKind::STAT, RecordKind::STAT_ROUND];

/// A function, and the types of the records that it is called with.
struct Callback {
    kinds: &'static [RecordKind],
    function: Py<PyAny>,
}

/// A recording with the functions that `process_events` calls.
#[pyclass(name = "session", module = "perf")]
pub(crate) struct PySession {
    recording: Arc<RecordingFile>,
    options: AnalysisOptions,
    /// The events of the recording as in `perf record -e`. Elsewhere, an event is a record that a function gets.
    evsels: Vec<Py<Evsel>>,
    callbacks: Vec<Callback>,
    threads: Mutex<CurrentThreads>,
}

/// What [`PySession::find_thread`] uses.
#[derive(Default)]
struct CurrentThreads {
    /// The names of threads; `None` until they are first needed.
    names: Option<Arc<ThreadNames>>,
    /// The position of the event that is being processed, if any.
    now: Option<Order>,
}

#[pymethods]
impl PySession {
    /// Reads the events of the recording `data`. Keyword arguments include the functions that `process_events` calls, each
    /// with one event: `sample`, `mmap`, `comm`, `task`, `lost`, `throttle`, `read`, `context_switch`; `stat` is called
    /// with a count of `stat record` and the name of its event, or with the end of an interval and `None`. `vmlinux`,
    /// `kallsyms` and `symfs` are the options of `report`, `jobs` is the number of threads, and `itrace="b"` adds a sample for
    /// each branch of an `intel_bts` trace.
    #[new]
    #[pyo3(signature = (data, sample = None, *, vmlinux = None, kallsyms = None, symfs = None, jobs = None, itrace = None, **callbacks))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
    fn new(
        data: &Bound<'_, Data>,
        sample: Option<Py<PyAny>>,
        vmlinux: Option<PathBuf>,
        kallsyms: Option<PathBuf>,
        symfs: Option<PathBuf>,
        jobs: Option<usize>,
        itrace: Option<&str>,
        callbacks: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let py = data.py();
        let os_path = py.import("os")?.getattr("path")?;
        let cache = os_path
            .call_method1("expanduser", ("~/.debug",))?
            .extract()?;
        let options = AnalysisOptions {
            jobs: jobs_of(jobs)?,
            branches: wants_branches(itrace)?,
            cache,
            vmlinux,
            kallsyms,
            symfs,
        };
        let recording = Arc::clone(&data.get().recording);
        let events = py.detach(|| -> PyResult<Vec<EventDesc>> {
            options.with_data(&recording, |data| Ok(data.events().to_vec()))
        })?;
        let evsel = |event: EventDesc| Py::new(py, Evsel::named(event.name, event.attr));
        Ok(Self {
            evsels: events.into_iter().map(evsel).collect::<PyResult<_>>()?,
            recording,
            options,
            callbacks: callbacks_of(sample, callbacks)?,
            threads: Mutex::default(),
        })
    }

    /// The events of the recording.
    #[getter]
    fn evsels(&self, py: Python<'_>) -> Vec<Py<Evsel>> {
        self.evsels
            .iter()
            .map(|evsel| evsel.clone_ref(py))
            .collect()
    }

    /// Passes the events of the recording to the functions, in order of time. An exception in a function ends the processing.
    fn process_events(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let (recording, options) = slf.borrow().inputs();
        let unbound: Py<Self> = slf.clone().unbind();
        let diagnostics = py.detach(|| {
            options.run(&recording, |analysis| {
                let (stacks, max_stack) = analysis.stacks();
                let names = Arc::new(ThreadNames::of(analysis.replay.world()));
                let mut delivery = Python::attach(|py| {
                    let session = unbound.borrow(py);
                    session.lock_threads().names = Some(names);
                    Delivery::new(
                        py,
                        &session,
                        analysis.replay,
                        analysis.resolver,
                        &analysis.formats,
                    )
                });
                let renderer = EventRenderer {
                    resolver: analysis.resolver,
                    stacks,
                    max_stack,
                    inlines: analysis.inlines(),
                    samples: delivery.wants(RecordKind::SAMPLE),
                    record_kinds: delivery.record_kinds(),
                };
                let mut take = |block: &mut Vec<RenderedEvent>| {
                    Python::attach(|py| delivery.deliver(py, &unbound.borrow(py), block))
                };
                let ordered = analysis.replay.ordered(analysis.jobs, &renderer, &mut take);
                if let Some(error) = delivery.error.take() {
                    return Err(error);
                }
                crate::error::or_value_error(ordered)?;
                Ok(analysis.replay.diagnostics())
            })
        });
        slf.borrow().lock_threads().now = None;
        conclude(py, &recording, &diagnostics?)
    }

    /// The thread `tid` of process `pid`, with its name at the time of the event that is being processed, or with its last
    /// name if none is being processed; `None` if the recording does not name the thread. `tid` is `pid` by default, and alone
    /// selects the thread: `pid` is not checked.
    #[pyo3(signature = (pid, tid = None))]
    fn find_thread(
        &self,
        py: Python<'_>,
        pid: i32,
        tid: Option<i32>,
    ) -> PyResult<Option<PyThread>> {
        let tid = tid.unwrap_or(pid);
        let known = self.lock_threads().names.clone();
        let names = match known {
            Some(names) => names,
            None => {
                let names = Arc::new(py.detach(|| self.read_names())?);
                self.lock_threads().names = Some(Arc::clone(&names));
                names
            }
        };
        let now = self.lock_threads().now.unwrap_or(Order::MAX);
        let name = names.at(tid.cast_unsigned(), now);
        Ok(name.map(|name| PyThread {
            pid,
            tid,
            comm: name.to_owned(),
        }))
    }

    /// The samples of the recording in order of time, as one table. `columns` are names of columns or fields of
    /// tracepoints; `event` selects the samples of the events of this name, given with or without modifiers.
    #[pyo3(signature = (columns = None, event = None))]
    fn table(
        slf: &Bound<'_, Self>,
        columns: Option<Vec<String>>,
        event: Option<String>,
    ) -> PyResult<PyTable> {
        TableRequest { columns, event }.whole(slf)
    }

    /// Passes the samples in order of time to `function`, in tables of at least `rows` rows (blocks of samples are not divided);
    /// the last may have fewer. `columns` and `event` are those of `table`. Columns of texts hold codes, whose texts
    /// (`categories`) differ between tables.
    #[pyo3(signature = (function, columns = None, event = None, *, rows = DEFAULT_ROWS))]
    fn process_tables(
        slf: &Bound<'_, Self>,
        function: Py<PyAny>,
        columns: Option<Vec<String>>,
        event: Option<String>,
        rows: usize,
    ) -> PyResult<()> {
        TableRequest { columns, event }.parts(slf, &function, rows)
    }

    fn __repr__(&self) -> String {
        format!(
            "perf.session({:?})",
            self.recording.path.display().to_string()
        )
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        let mut functions = self.callbacks.iter();
        functions.try_for_each(|callback| visit.call(&callback.function))
    }

    fn __clear__(&mut self) {
        self.callbacks.clear();
    }
}

impl PySession {
    /// The recording, and the options for reading it.
    pub(crate) fn inputs(&self) -> (Arc<RecordingFile>, AnalysisOptions) {
        (Arc::clone(&self.recording), self.options.clone())
    }

    fn lock_threads(&self) -> std::sync::MutexGuard<'_, CurrentThreads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_names(&self) -> PyResult<ThreadNames> {
        let options = &self.options;
        options.with_data(&self.recording, |data| {
            Ok(ThreadNames::of(options.replay(data)?.world()))
        })
    }
}

/// The number of threads: by default, the number of CPUs that this process may use.
fn jobs_of(given: Option<usize>) -> PyResult<NonZeroUsize> {
    let Some(given) = given else {
        return Ok(available_parallelism().unwrap_or(NonZeroUsize::MIN));
    };
    NonZeroUsize::new(given).ok_or_else(|| value_error("jobs must be at least 1"))
}

/// Whether `itrace` requests samples of branches: it is empty or contains `b`. The letter `e` (errors) has no effect; other
/// letters are refused.
fn wants_branches(itrace: Option<&str>) -> PyResult<bool> {
    let Some(letters) = itrace else {
        return Ok(false);
    };
    if let Some(letter) = letters.chars().find(|letter| !"be".contains(*letter)) {
        return Err(value_error(format!(
            "itrace: unknown letter '{letter}' in '{letters}': b is for branches"
        )));
    }
    Ok(letters.is_empty() || letters.contains('b'))
}

/// Checks the keywords and their functions, and returns the functions with their types of records. Ignores keywords with `None`.
fn callbacks_of(
    sample: Option<Py<PyAny>>,
    others: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<Callback>> {
    let mut callbacks = Vec::new();
    let mut add = |name: &str, function: Bound<'_, PyAny>| {
        let Some((_, kinds)) = CALLBACKS.iter().find(|(known, _)| *known == name) else {
            let known: Vec<&str> = CALLBACKS.iter().map(|(name, _)| *name).collect();
            return Err(PyTypeError::new_err(format!(
                "perf.session has no keyword '{name}'\nhint: functions for events: {}; further keywords: vmlinux, kallsyms, symfs, jobs, itrace",
                known.join(", ")
            )));
        };
        if function.is_none() {
            return Ok(());
        }
        if !function.is_callable() {
            return Err(PyTypeError::new_err(format!("{name}: not a function")));
        }
        callbacks.push(Callback {
            kinds,
            function: function.unbind(),
        });
        Ok(())
    };
    Python::attach(|py| -> PyResult<()> {
        if let Some(sample) = sample {
            add("sample", sample.into_bound(py))?;
        }
        for (name, function) in others.into_iter().flatten() {
            add(&name.extract::<String>()?, function)?;
        }
        Ok(())
    })?;
    Ok(callbacks)
}

/// Creates a Python object for each record, and passes it to the functions for records of its type.
struct Delivery<'a> {
    resolver: &'a Resolver<'a>,
    endian: Endian,
    /// The symbols, objects and comms of samples as Python strings, each created once.
    names: PythonNames,
    /// By index of the event in the recording: its Python object and its tracepoint.
    events: Vec<(Py<Evsel>, Option<Arc<Tracepoint>>)>,
    /// Names of these events by event id, for records of `stat record`.
    names_by_id: HashMap<u64, String>,
    /// Types of records with their functions.
    functions: Vec<(RecordKind, Py<PyAny>)>,
    /// The exception that ended the processing.
    error: Option<PyErr>,
}

impl<'a> Delivery<'a> {
    fn new(
        py: Python<'_>,
        session: &PySession,
        replay: &'a Replay<'a>,
        resolver: &'a Resolver<'a>,
        formats: &Formats,
    ) -> Self {
        let events = replay.data().events().iter();
        let tracepoints = events.map(|event| formats.of_event(&event.attr).ok().cloned());
        let evsels = session.evsels.iter().map(|evsel| evsel.clone_ref(py));
        let functions = session.callbacks.iter().flat_map(|callback| {
            let kinds = callback.kinds.iter();
            kinds.map(|kind| (*kind, callback.function.clone_ref(py)))
        });
        Self {
            resolver,
            endian: replay.data().endian(),
            names: PythonNames::default(),
            events: evsels.zip(tracepoints).collect(),
            names_by_id: replay
                .data()
                .events()
                .iter()
                .flat_map(|event| event.ids.iter().map(|id| (*id, event.name.clone())))
                .collect(),
            functions: functions.collect(),
            error: None,
        }
    }

    fn wants(&self, kind: RecordKind) -> bool {
        self.functions.iter().any(|(taken, _)| *taken == kind)
    }

    /// The types of records other than samples that have a function.
    fn record_kinds(&self) -> Vec<RecordKind> {
        let kinds = self.functions.iter().map(|(kind, _)| *kind);
        kinds.filter(|kind| *kind != RecordKind::SAMPLE).collect()
    }

    /// Calls the functions for a block of events (those of consecutive records, rendered by one thread); an exception in a
    /// function or a signal handler stops the processing.
    fn deliver(
        &mut self,
        py: Python<'_>,
        session: &PySession,
        block: &mut Vec<RenderedEvent>,
    ) -> FoldControl {
        for event in block.drain(..) {
            if let Err(error) = self.call(py, session, event) {
                self.error = Some(error);
                return FoldControl::Stop;
            }
        }
        match py.check_signals() {
            Ok(()) => FoldControl::Continue,
            Err(error) => {
                self.error = Some(error);
                FoldControl::Stop
            }
        }
    }

    fn call(&mut self, py: Python<'_>, session: &PySession, event: RenderedEvent) -> PyResult<()> {
        let (kind, order) = match &event {
            RenderedEvent::Sample(sample) => (RecordKind::SAMPLE, sample.order),
            RenderedEvent::Record(record) => (record.kind, record.order),
        };
        session.lock_threads().now = Some(order);
        let created = match event {
            RenderedEvent::Sample(sample) => Some(self.sample(py, *sample)?),
            RenderedEvent::Record(record) if COUNTS.contains(&kind) => {
                return self.count(py, &record);
            }
            RenderedEvent::Record(record) => {
                let raw = RawRecord {
                    kind: record.kind,
                    misc: record.misc,
                    body: &record.body,
                };
                event_from_record(py, &raw, &record.id, self.endian)?
            }
        };
        let Some(created) = created else {
            return Ok(());
        };
        let mut functions = self.functions.iter().filter(|(taken, _)| *taken == kind);
        functions
            .try_for_each(|(_, function)| function.call1(py, (created.clone_ref(py),)).map(drop))
    }

    /// Calls the functions for a record of `stat record`.
    fn count(&self, py: Python<'_>, record: &RecordBytes) -> PyResult<()> {
        let raw = RawRecord {
            kind: record.kind,
            misc: record.misc,
            body: &record.body,
        };
        let Some((created, id)) = event_from_stat_record(py, &raw, &record.id, self.endian)? else {
            return Ok(());
        };
        let name = id.and_then(|id| self.names_by_id.get(&id));
        let mut functions = self.functions.iter();
        functions.try_for_each(|(taken, function)| match *taken == record.kind {
            true => function.call1(py, (created.clone_ref(py), name)).map(drop),
            false => Ok(()),
        })
    }

    /// The Python object of a sample.
    fn sample(&mut self, py: Python<'_>, sample: DecodedSample) -> PyResult<Py<PyAny>> {
        let resolver = self.resolver;
        let names = &mut self.names;
        let comm = names.comm(py, resolver.world(), sample.comm);
        let mut named = |frame| names.named_address(py, resolver, &frame);
        let sample_names = SampleNames {
            ip: sample.ip.map(&mut named),
            addr: sample.addr.map(&mut named),
            chain: sample
                .chain
                .map(|chain| chain.into_iter().map(named).collect()),
            comm: Some(comm),
        };
        let event = self.events.get(sample.index.0 as usize);
        let sample_event = SampleEvent {
            evsel: event.map(|(evsel, _)| evsel.clone_ref(py)),
            tracepoint: event.and_then(|(_, tracepoint)| tracepoint.clone()),
            sample_fields: sample.fields,
            names: sample_names,
        };
        derived_event(py, PyClassInitializer::from(sample.event), sample_event)
    }
}
