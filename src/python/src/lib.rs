//! The Python module `perf`: recordings and live events for programs in Python.
//!
//! It is a second front end beside `cli`: the crates that both use do the work. Its main parts are the interface of Linux
//! perf's module (`evlist`, `evsel`, `cpu_map`, `thread_map` and the classes of events), `session` with functions that
//! are called for the events of a recording, and tables whose columns NumPy and pandas take without copying.
//!
//! Bad input and bad arguments raise exceptions; nothing here panics on them.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod analysis;
mod columns;
mod constants;
mod counts;
mod error;
mod evlist;
mod evsel;
mod live;
mod local_events;
mod maps;
mod names;
mod pmus;
mod recent_frames;
mod recording;
mod records;
mod render;
mod sample;
mod session;
mod session_tables;
mod table;
mod thread_names;

/// The native part of the package `perf`.
#[pyo3::pymodule(name = "_perf")]
mod native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use crate::counts::{StatEvent, StatRoundEvent};
    #[pymodule_export]
    use crate::evlist::{Evlist, parse_events, tracepoint};
    #[pymodule_export]
    use crate::evsel::{CountsValues, Evsel};
    #[pymodule_export]
    use crate::maps::{PyCpuMap, PyThreadMap};
    #[pymodule_export]
    use crate::pmus::{Pmu, metrics, pmus};
    #[pymodule_export]
    use crate::recording::Data;
    #[pymodule_export]
    use crate::records::{
        CommEvent, Event, LostEvent, MmapEvent, ReadEvent, SwitchEvent, TaskEvent, ThrottleEvent,
    };
    #[pymodule_export]
    use crate::sample::{CallchainNode, PyBranchEntry, SampleEvent};
    #[pymodule_export]
    use crate::session::PySession;
    #[pymodule_export]
    use crate::table::PyTable;
    #[pymodule_export]
    use crate::thread_names::PyThread;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::constants::add(module)
    }
}
