//! Namespaces of threads, and cgroups.

use rperf_wire::Namespace;
use rustc_hash::FxHashMap;

use crate::Order;

/// What NAMESPACES records said of thread ids, oldest first. As in perf a new thread has none until a record
/// says so.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    threads: FxHashMap<u32, Vec<Change>>,
}

/// From when on a thread has which namespaces.
type Change = (Order, Box<[Namespace]>);

impl Namespaces {
    /// A NAMESPACES record.
    pub(crate) fn entered(&mut self, order: Order, tid: u32, links: Vec<Namespace>) {
        let changes = self.threads.entry(tid).or_default();
        changes.push((order, links.into()));
    }

    /// A new thread has this id from now on.
    pub(crate) fn started(&mut self, order: Order, tid: u32) {
        if let Some(changes) = self.threads.get_mut(&tid) {
            changes.push((order, Box::default()));
        }
    }

    /// Nobody asks for those of this thread any more.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// Those of the thread that had the id just before `order`; none if that was not said.
    pub(crate) fn at(&self, tid: u32, order: Order) -> &[Namespace] {
        let changes = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let before = changes.partition_point(|(at, _)| *at < order);
        let last = before.checked_sub(1).and_then(|last| changes.get(last));
        last.map_or(&[], |(_, links)| links)
    }
}

/// Paths of cgroups by id. An id is never given out twice.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    paths: FxHashMap<u64, Box<str>>,
}

impl Cgroups {
    /// A CGROUP record; perf keeps the first path.
    pub(crate) fn appeared(&mut self, id: u64, path: &str) {
        self.paths.entry(id).or_insert_with(|| path.into());
    }

    pub(crate) fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(AsRef::as_ref)
    }
}
