//! `perf.pmus()` and `perf.metrics()`: the events and metrics of this machine, as `list` shows them.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use rperf_events::list::{EventKind, EventList, EventSelection, ListSources, ListedEvent};
use rperf_events::vendor::UnitScale;
use rperf_events::{EventSources as _, Tracepoints as _};
use rperf_wire::EventType;

use crate::local_events::LocalEvents;

/// The PMU of events that `stat` measures itself.
const TOOL: &str = "tool";
/// The PMU of metrics that do not name one: the processor's cores.
const CORE: &str = "default_core";

/// A source of events: a PMU of the processor, software, tracepoints.
#[pyclass(frozen, name = "pmu", module = "perf")]
#[derive(Debug)]
pub(crate) struct Pmu {
    name: String,
}

#[pymethods]
impl Pmu {
    /// The name: that in sysfs, or `tool`.
    fn name(&self) -> &str {
        &self.name
    }

    /// The events, each as a dict: its `name` and `event_type_desc`, and `alias`, `desc`, `long_desc`, `topic`, `scale_unit`,
    /// `encoding_desc`, `str` and `deprecated` if known.
    fn events<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let machine = LocalEvents::find();
        let rows = py.detach(|| self.rows(&machine));
        let list = PyList::empty(py);
        for row in &rows {
            list.append(self.event_dict(py, row, &machine)?)?;
        }
        Ok(list)
    }

    fn __str__(&self) -> &str {
        &self.name
    }

    fn __repr__(&self) -> String {
        format!("pmu({})", self.name)
    }
}

impl Pmu {
    /// The rows of `list` for the events of this PMU.
    fn rows(&self, machine: &LocalEvents) -> Vec<ListedEvent> {
        let kinds: &[EventKind] = match &*self.name {
            "software" => &[EventKind::Software],
            TOOL => &[EventKind::Tool],
            "tracepoint" => &[EventKind::Tracepoint],
            name if machine.pmus.is_core(name) => {
                &[EventKind::Hardware, EventKind::Cache, EventKind::Pmu]
            }
            _ => &[EventKind::Pmu],
        };
        let catalogue = machine.catalogue();
        let sources = ListSources {
            catalogue: &catalogue,
            // Events are listed without a test whether the kernel can open them.
            opens: &|_| true,
            // Without SDT markers, which belong to no PMU.
            markers: &Vec::new,
        };
        let mut rows = EventList::new(&EventSelection::All, sources).rows;
        rows.retain(|row| {
            kinds.contains(&row.kind) && (row.kind != EventKind::Pmu || self.has(row))
        });
        rows
    }

    /// Whether a row of the kind `EventKind::Pmu` belongs to this PMU. A name without slashes is an event of a vendor's table,
    /// whose description has the PMU, or an event in sysfs of the PMU `cpu`, which has no description.
    fn has(&self, row: &ListedEvent) -> bool {
        match (&row.description, row.name.split_once('/')) {
            (_, Some((pmu, _))) => pmu == self.name,
            (Some(description), None) => self.is_instance(&description.pmu),
            (None, None) => self.name == "cpu",
        }
    }

    /// Whether this PMU is `name`, or one of several of this name, which are numbered, such as `uncore_imc_0`.
    fn is_instance(&self, name: &str) -> bool {
        let rest = self.name.strip_prefix(name);
        rest.is_some_and(|rest| {
            let number = rest.strip_prefix('_').unwrap_or(rest);
            number.bytes().all(|byte| byte.is_ascii_digit())
        })
    }

    fn event_dict<'py>(
        &self,
        py: Python<'py>,
        row: &ListedEvent,
        machine: &LocalEvents,
    ) -> PyResult<Bound<'py, PyDict>> {
        let item = PyDict::new(py);
        item.set_item("name", &row.name)?;
        item.set_item("event_type_desc", row.kind.to_string())?;
        if let Some(alias) = &row.alias {
            item.set_item("alias", alias)?;
        }
        if let Some(terms) = self.terms(row, machine) {
            item.set_item("encoding_desc", format!("{}/{terms}/", self.name))?;
            item.set_item("str", terms)?;
        }
        if let Some((system, name)) = row.tracepoint()
            && let Ok(format) = machine.tracepoints.tracefs.format(system, name)
        {
            item.set_item("long_desc", String::from_utf8_lossy(&format))?;
        }
        let Some(description) = &row.description else {
            return Ok(item);
        };
        item.set_item("topic", &description.topic)?;
        let texts = [
            ("desc", &description.brief),
            ("long_desc", &description.long),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                item.set_item(key, text)?;
            }
        }
        if let Some(scale) = &description.scale {
            item.set_item("scale_unit", scale_text(scale))?;
        }
        if description.deprecated {
            // As in perf, the value is the word itself, not a boolean.
            item.set_item("deprecated", "deprecated")?;
        }
        Ok(item)
    }

    /// The terms that select an event of this PMU; `None` if there are none.
    fn terms(&self, row: &ListedEvent, machine: &LocalEvents) -> Option<String> {
        if row.terms.is_some() {
            return row.terms.clone();
        }
        let config = match (row.tracepoint(), row.config) {
            (Some((system, name)), _) => machine.tracepoints.id(system, name).ok()?,
            (None, Some((EventType::SOFTWARE, config))) => config,
            _ => return None,
        };
        // As in perf's event tables, numbers up to 9 have no `0x`.
        Some(match config {
            0..=9 => format!("config={config}"),
            _ => format!("config={config:#x}"),
        })
    }
}

fn scale_text(scale: &UnitScale) -> String {
    format!("{}{}", scale.factor, scale.unit)
}

/// The sources of events of this machine.
#[pyfunction]
pub(crate) fn pmus() -> Vec<Pmu> {
    let machine = LocalEvents::find();
    let catalogue = machine.catalogue();
    let mut names: Vec<String> = catalogue
        .pmus
        .iter()
        .map(|(name, _)| name.clone())
        .collect();
    names.push(TOOL.to_owned());
    // PMUs of the processor's cores first.
    names.sort_by_key(|name| (!machine.pmus.is_core(name), name.clone()));
    names.into_iter().map(|name| Pmu { name }).collect()
}

/// The metrics of this machine's processor, each as a dict: `MetricName`, `MetricExpr`, `MetricGroup` (a list), `PMU`, and
/// `ScaleUnit`, `BriefDescription`, `PublicDescription` and `MetricThreshold` if known.
#[pyfunction]
pub(crate) fn metrics(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let machine = LocalEvents::find();
    let list = PyList::empty(py);
    for metric in machine.pmus.tables.get().metrics() {
        let item = PyDict::new(py);
        item.set_item("MetricName", &metric.name)?;
        item.set_item("MetricExpr", &metric.formula)?;
        item.set_item("MetricGroup", &metric.groups)?;
        item.set_item("PMU", metric.pmu.as_deref().unwrap_or(CORE))?;
        let texts = [
            ("BriefDescription", &metric.brief),
            ("PublicDescription", &metric.long),
            ("MetricThreshold", &metric.threshold),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                item.set_item(key, text)?;
            }
        }
        if let Some(scale) = &metric.scale {
            item.set_item("ScaleUnit", scale_text(scale))?;
        }
        list.append(item)?;
    }
    Ok(list)
}
