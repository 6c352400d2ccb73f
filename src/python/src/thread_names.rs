//! The names of the threads of a recording, by time.

use std::collections::hash_map::Entry;

use pyo3::prelude::*;
use rperf_replay::{CommId, Order, World};
use rustc_hash::FxHashMap;

/// The names of the host's threads.
#[derive(Debug, Default)]
pub(crate) struct ThreadNames {
    /// By thread id, the changes of the thread's name in order: the position in the recording after which a name applies, and the
    /// index of the name in `texts`; `None` from the start of a new thread until it has a name.
    changes: FxHashMap<u32, Vec<(Order, Option<usize>)>>,
    texts: Vec<String>,
}

impl ThreadNames {
    /// Copies the thread names of a recording from its `World` (the threads, processes and mappings over time).
    pub(crate) fn of(world: &World) -> Self {
        let mut known: FxHashMap<CommId, usize> = FxHashMap::default();
        let mut names = Self::default();
        for change in world.comm_changes() {
            let name = change.comm.map(|comm| match known.entry(comm) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(free) => {
                    names.texts.push(world.comm(comm).to_owned());
                    *free.insert(names.texts.len() - 1)
                }
            });
            let of_thread = names.changes.entry(change.tid).or_default();
            of_thread.push((change.order, name));
        }
        names
    }

    /// The name of a thread just before `order`; `None` if it has no recorded name then.
    pub(crate) fn at(&self, tid: u32, order: Order) -> Option<&str> {
        let changes = self.changes.get(&tid)?;
        let before = changes.partition_point(|(at, _)| *at < order);
        let (_, name) = changes.get(before.checked_sub(1)?)?;
        self.texts.get((*name)?).map(String::as_str)
    }
}

/// A thread of a recording.
#[pyclass(frozen, name = "thread", module = "perf")]
#[derive(Debug)]
pub(crate) struct PyThread {
    #[pyo3(get)]
    pub(crate) pid: i32,
    #[pyo3(get)]
    pub(crate) tid: i32,
    /// The name at the time for which the thread was looked up.
    pub(crate) comm: String,
}

#[pymethods]
impl PyThread {
    /// The name of the thread at the time for which it was looked up.
    fn comm(&self) -> &str {
        &self.comm
    }

    fn __repr__(&self) -> String {
        format!("perf.thread({}, {}, {:?})", self.pid, self.tid, self.comm)
    }
}
