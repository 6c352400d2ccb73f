//! `perf.sample_event`: a sample with the names of its thread and addresses, and the fields of its tracepoint.

use std::sync::Arc;

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyString};
use rperf_tracepoint::{FieldReader, Tracepoint, Value};
use rperf_wire::{RecordKind, SampleRecord, name_text};

use crate::evsel::Evsel;
use crate::names::NamedAddress;
use crate::records::Event;

/// perf's `PERF_MEM_DATA_SRC_NONE`: the data source of samples that don't record it.
const NO_DATA_SOURCE: u64 = 0x0508_0021;

/// Copies of fields of a sample that [`Event`] does not have.
#[derive(Debug, Clone, Default)]
pub(crate) struct OwnedFields {
    pub(crate) raw: Option<Box<[u8]>>,
    pub(crate) weight: u64,
    pub(crate) data_src: u64,
    pub(crate) transaction: u64,
    pub(crate) phys_addr: u64,
    pub(crate) cgroup: u64,
    pub(crate) data_page_size: u64,
    pub(crate) code_page_size: u64,
    /// Source, target and flags of each taken branch, newest first.
    pub(crate) branches: Option<Vec<[u64; 3]>>,
    /// Id and value of each counter that was read with the sample; the id is 0 if not recorded.
    pub(crate) values: Vec<(u64, u64)>,
    /// The callchain of a live event (read from a ring by `evlist.read_on_cpu`) as recorded, with context markers; `None` for
    /// samples of a recording.
    pub(crate) chain: Option<Vec<u64>>,
}

impl OwnedFields {
    /// Copies these fields of a decoded sample, except the callchain.
    pub(crate) fn of(wire: &SampleRecord<'_>) -> Self {
        let values = wire.read.as_ref().map(|read| read.values());
        let values = values.unwrap_or_default();
        Self {
            raw: wire.raw.map(Box::from),
            weight: wire.weight.unwrap_or_default(),
            data_src: wire.data_src.unwrap_or(NO_DATA_SOURCE),
            transaction: wire.transaction.unwrap_or_default(),
            phys_addr: wire.phys_addr.unwrap_or_default(),
            cgroup: wire.cgroup.unwrap_or_default(),
            data_page_size: wire.data_page_size.unwrap_or_default(),
            code_page_size: wire.code_page_size.unwrap_or_default(),
            branches: wire.branch_stack.as_ref().map(|stack| {
                let entries = stack.iter();
                entries
                    .map(|entry| [entry.from, entry.to, entry.flags])
                    .collect()
            }),
            values: values
                .iter()
                .map(|value| (value.id.unwrap_or(0), value.value))
                .collect(),
            chain: None,
        }
    }
}

impl Event {
    /// The base class of a [`SampleEvent`], with the attributes that all events have. `period` is the recorded one, or the
    /// event's fixed period if not recorded. Other fields that are not recorded are -1 or 0, as in perf.
    pub(crate) fn of_sample(wire: &SampleRecord<'_>, misc: u16, period: u64) -> Self {
        let (pid, tid) = wire.pid_tid.unwrap_or((u32::MAX, u32::MAX));
        Self {
            kind: RecordKind::SAMPLE.0,
            misc,
            sample_ip: wire.ip.unwrap_or_default(),
            sample_pid: pid.cast_signed(),
            sample_tid: tid.cast_signed(),
            sample_time: wire.time.unwrap_or(u64::MAX),
            sample_addr: wire.addr.unwrap_or_default(),
            sample_id: wire.id.unwrap_or(u64::MAX),
            sample_stream_id: wire.stream_id.unwrap_or(u64::MAX),
            sample_cpu: wire.cpu.unwrap_or(u32::MAX).cast_signed(),
            sample_period: period,
        }
    }
}

/// The resolved addresses of a sample, and the name of its thread; all `None` for live events.
#[derive(Debug, Default)]
pub(crate) struct SampleNames {
    pub(crate) ip: Option<NamedAddress>,
    pub(crate) addr: Option<NamedAddress>,
    /// The frames of the callchain, innermost first; `None` if not recorded.
    pub(crate) chain: Option<Vec<NamedAddress>>,
    pub(crate) comm: Option<Py<PyString>>,
}

/// A sample. The fields of its tracepoint are attributes, too, unless another attribute has the name; `fields()` has all
/// except those that all tracepoints have in common, such as `common_pid`.
#[pyclass(extends = Event, frozen, name = "sample_event", module = "perf")]
pub(crate) struct SampleEvent {
    pub(crate) evsel: Option<Py<Evsel>>,
    pub(crate) tracepoint: Option<Arc<Tracepoint>>,
    /// Fields of the sample; the method `fields` returns those of its tracepoint.
    pub(crate) sample_fields: OwnedFields,
    pub(crate) names: SampleNames,
}

#[pymethods]
impl SampleEvent {
    fn __repr__(&self) -> &'static str {
        "{ type: sample }"
    }

    /// The event that was sampled.
    #[getter]
    fn evsel(&self, py: Python<'_>) -> Option<Py<Evsel>> {
        self.evsel.as_ref().map(|evsel| evsel.clone_ref(py))
    }

    /// The value of the tracepoint's field `name`, which may be a common one.
    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let tracepoint = self.tracepoint.as_ref();
        let reader = tracepoint.and_then(|tracepoint| tracepoint.reader(name));
        let raw = self.sample_fields.raw.as_deref();
        match reader.zip(raw) {
            Some((reader, raw)) => field_value(py, &reader, raw),
            None => Err(PyAttributeError::new_err(format!(
                "'perf.sample_event' object has no attribute '{name}'"
            ))),
        }
    }

    /// The fields of the tracepoint, without the common ones, as a dict; empty for other events.
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        let raw = self.sample_fields.raw.as_deref().unwrap_or_default();
        let fields = self
            .tracepoint
            .iter()
            .flat_map(|tracepoint| tracepoint.fields());
        for (field, reader) in fields {
            dict.set_item(&field.name, field_value(py, reader, raw)?)?;
        }
        Ok(dict)
    }

    /// The raw data; `None` if not recorded.
    #[getter]
    fn raw_buf<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let raw = self.sample_fields.raw.as_deref()?;
        Some(PyBytes::new(py, raw))
    }

    /// The frames of the callchain, innermost first; those of live events are the recorded addresses, with context markers.
    /// `None` if not recorded.
    #[getter]
    fn callchain<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        if let Some(chain) = &self.names.chain {
            let nodes = chain.iter().map(|frame| CallchainNode(frame.clone()));
            let nodes: Vec<CallchainNode> = nodes.collect();
            return PyList::new(py, nodes).map(Some);
        }
        let Some(chain) = &self.sample_fields.chain else {
            return Ok(None);
        };
        let unresolved = |ip: &u64| NamedAddress {
            ip: *ip,
            address: *ip,
            symbol: None,
            dso: None,
        };
        let frames = chain.iter().map(unresolved);
        let nodes: Vec<CallchainNode> = frames.map(CallchainNode).collect();
        PyList::new(py, nodes).map(Some)
    }

    /// Source, target and flags of the taken branches, newest first; `None` if not recorded.
    #[getter]
    fn brstack(&self) -> Option<Vec<PyBranchEntry>> {
        let branches = self.sample_fields.branches.as_ref()?;
        let entry = |[from, to, flags]: &[u64; 3]| PyBranchEntry {
            from_ip: *from,
            to_ip: *to,
            flags: *flags,
        };
        Some(branches.iter().map(entry).collect())
    }

    /// Id and value of each counter that was read with the sample; the id is 0 if not recorded.
    #[getter]
    fn values(&self) -> Vec<(u64, u64)> {
        self.sample_fields.values.clone()
    }

    /// The name of the thread at the time of the sample; `None` for live events.
    #[getter]
    fn sample_comm(&self, py: Python<'_>) -> Option<Py<PyString>> {
        self.names.comm.as_ref().map(|comm| comm.clone_ref(py))
    }

    /// The function at `sample_ip`; `None` if unknown.
    #[getter]
    fn symbol(&self, py: Python<'_>) -> Option<Py<PyString>> {
        symbol_of(self.names.ip.as_ref(), py)
    }

    /// The first address of the function at `sample_ip`. Like `address` of a callchain's frame, it is an address in the object's
    /// file if the function is in user space.
    #[getter]
    fn sym_start(&self) -> Option<u64> {
        Some(self.names.ip.as_ref()?.symbol.as_ref()?.start)
    }

    /// The end of the function at `sample_ip`, exclusive; the same kind of address as `sym_start`.
    #[getter]
    fn sym_end(&self) -> Option<u64> {
        Some(self.names.ip.as_ref()?.symbol.as_ref()?.end)
    }

    /// Bytes from the start of the function at `sample_ip` to `sample_ip`.
    #[getter]
    fn sym_offset(&self) -> Option<u64> {
        offset_of(self.names.ip.as_ref())
    }

    /// The object at `sample_ip`; `None` if unknown.
    #[getter]
    fn dso(&self, py: Python<'_>) -> Option<Py<PyString>> {
        dso_of(self.names.ip.as_ref(), py)
    }

    /// The path of the object at `sample_ip`; its name if it has no file.
    #[getter]
    fn dso_long_name(&self, py: Python<'_>) -> Option<Py<PyString>> {
        let dso = self.names.ip.as_ref()?.dso.as_ref()?;
        Some(dso.long_name.clone_ref(py))
    }

    /// The build-id of the object at `sample_ip`, in hexadecimal digits; empty if not recorded.
    #[getter]
    fn dso_bid(&self, py: Python<'_>) -> Option<Py<PyString>> {
        let dso = self.names.ip.as_ref()?.dso.as_ref()?;
        Some(dso.build_id.clone_ref(py))
    }

    /// The symbol at `sample_addr`; `None` if unknown.
    #[getter]
    fn addr_symbol(&self, py: Python<'_>) -> Option<Py<PyString>> {
        symbol_of(self.names.addr.as_ref(), py)
    }

    /// Bytes from the start of the symbol at `sample_addr` to `sample_addr`.
    #[getter]
    fn addr_sym_offset(&self) -> Option<u64> {
        offset_of(self.names.addr.as_ref())
    }

    /// The object at `sample_addr`; `None` if unknown.
    #[getter]
    fn addr_dso(&self, py: Python<'_>) -> Option<Py<PyString>> {
        dso_of(self.names.addr.as_ref(), py)
    }

    #[getter]
    fn sample_weight(&self) -> u64 {
        self.sample_fields.weight
    }

    #[getter]
    fn sample_data_src(&self) -> u64 {
        self.sample_fields.data_src
    }

    #[getter]
    fn sample_phys_addr(&self) -> u64 {
        self.sample_fields.phys_addr
    }

    #[getter]
    fn sample_cgroup(&self) -> u64 {
        self.sample_fields.cgroup
    }

    #[getter]
    fn sample_data_page_size(&self) -> u64 {
        self.sample_fields.data_page_size
    }

    #[getter]
    fn sample_code_page_size(&self) -> u64 {
        self.sample_fields.code_page_size
    }

    #[getter]
    fn transaction(&self) -> u64 {
        self.sample_fields.transaction
    }
}

fn symbol_of(address: Option<&NamedAddress>, py: Python<'_>) -> Option<Py<PyString>> {
    Some(address?.symbol.as_ref()?.name.clone_ref(py))
}

fn dso_of(address: Option<&NamedAddress>, py: Python<'_>) -> Option<Py<PyString>> {
    Some(address?.dso.as_ref()?.name.clone_ref(py))
}

/// Bytes from the start of the symbol.
fn offset_of(named: Option<&NamedAddress>) -> Option<u64> {
    let named = named?;
    Some(named.address.wrapping_sub(named.symbol.as_ref()?.start))
}

/// A frame of a callchain.
#[pyclass(frozen, name = "callchain_node", module = "perf")]
pub(crate) struct CallchainNode(NamedAddress);

#[pymethods]
impl CallchainNode {
    /// The address in memory.
    #[getter]
    fn ip(&self) -> u64 {
        self.0.ip
    }

    /// The address that `script` shows for a frame: in user space the address in the object's file, in the kernel usually
    /// `ip`. Equal to `ip` for live events.
    #[getter]
    fn address(&self) -> u64 {
        self.0.address
    }

    /// The function, which may be an inlined one; `None` if unknown.
    #[getter]
    fn symbol(&self, py: Python<'_>) -> Option<Py<PyString>> {
        symbol_of(Some(&self.0), py)
    }

    /// Bytes from the start of the function.
    #[getter]
    fn sym_offset(&self) -> Option<u64> {
        offset_of(Some(&self.0))
    }

    /// The object; `None` if unknown.
    #[getter]
    fn dso(&self, py: Python<'_>) -> Option<Py<PyString>> {
        dso_of(Some(&self.0), py)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let symbol = self.symbol(py).map(|name| name.to_string());
        let dso = self.dso(py).map(|name| name.to_string());
        let or_unknown = |name: Option<String>| name.unwrap_or_else(|| "[unknown]".to_owned());
        let (symbol, dso) = (or_unknown(symbol), or_unknown(dso));
        format!("{:#x} {symbol} ({dso})", self.0.ip)
    }
}

/// A taken branch.
#[pyclass(frozen, get_all, name = "branch_entry", module = "perf")]
pub(crate) struct PyBranchEntry {
    from_ip: u64,
    to_ip: u64,
    /// The bit-fields of `struct perf_branch_entry`, in little-endian layout.
    flags: u64,
}

#[pymethods]
impl PyBranchEntry {
    fn __repr__(&self) -> String {
        format!("{:#x} -> {:#x}", self.from_ip, self.to_ip)
    }

    /// Whether the branch was mispredicted.
    #[getter]
    fn mispred(&self) -> bool {
        self.flags & 1 != 0
    }

    /// Whether the branch was predicted.
    #[getter]
    fn predicted(&self) -> bool {
        self.flags >> 1 & 1 != 0
    }
}

/// The value of a tracepoint's field; arrays, structs and masks are bytearrays. `None` if the data is too short for it.
fn field_value<'py>(
    py: Python<'py>,
    reader: &FieldReader,
    raw: &[u8],
) -> PyResult<Bound<'py, PyAny>> {
    let bytes = |bytes: &[u8]| PyByteArray::new(py, bytes).into_any();
    Ok(match reader.value(raw) {
        Some(Value::Unsigned(number)) => number.into_pyobject(py)?.into_any(),
        Some(Value::Signed(number)) => number.into_pyobject(py)?.into_any(),
        Some(Value::Str(text)) => PyString::new(py, &name_text(text)).into_any(),
        Some(Value::Array(_)) => bytes(reader.bytes(raw).unwrap_or_default()),
        Some(Value::Bytes(data)) => bytes(data),
        None => py.None().into_bound(py),
    })
}
