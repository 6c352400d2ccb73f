//! Namespaces of threads, and cgroups.

use rperf_wire::Namespace;
use rustc_hash::FxHashMap;

use crate::Order;

/// NAMESPACES records by thread id, oldest first. As in perf, a new thread has none until its first
/// record.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    threads: FxHashMap<u32, Vec<NamespaceChange>>,
}

/// The position of a record, and the namespaces that its thread has from then on: those of a NAMESPACES record, or none after a
/// FORK record. They are called links because a NAMESPACES record has device and inode of each `/proc/PID/ns` link.
type NamespaceChange = (Order, Box<[Namespace]>);

impl Namespaces {
    /// Handles a NAMESPACES record.
    pub(crate) fn entered(&mut self, order: Order, tid: u32, links: Vec<Namespace>) {
        let changes = self.threads.entry(tid).or_default();
        changes.push((order, links.into()));
    }

    /// Handles the start of a thread with this id: it does not have the namespaces of an earlier thread with this id.
    pub(crate) fn started(&mut self, order: Order, tid: u32) {
        if let Some(changes) = self.threads.get_mut(&tid) {
            changes.push((order, Box::default()));
        }
    }

    /// Removes the namespaces of an exited thread, when the World is pruned.
    pub(crate) fn ended(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// Keeps only the last namespaces of each thread, when the World is pruned: they then apply from the beginning. Removes
    /// threads that have none.
    pub(crate) fn keep_last(&mut self) {
        self.threads.retain(|_, changes| {
            let last = changes.drain(..).next_back();
            let last = last.filter(|(_, links)| !links.is_empty());
            changes.extend(last.map(|(_, links)| (Order::default(), links)));
            !changes.is_empty()
        });
    }

    /// Number of changes of all threads.
    pub(crate) fn len(&self) -> usize {
        self.threads.values().map(Vec::len).sum()
    }

    /// The namespaces of the thread with this id just before `order`; empty if not recorded.
    pub(crate) fn at(&self, tid: u32, order: Order) -> &[Namespace] {
        let changes = self.threads.get(&tid).map_or(&[][..], Vec::as_slice);
        let before = changes.partition_point(|(at, _)| *at < order);
        let last = before.checked_sub(1).and_then(|index| changes.get(index));
        last.map_or(&[], |(_, links)| links)
    }
}

/// Number of the lowest cgroup ids that [`Cgroups::prune`] keeps.
const OLDEST: usize = 1 << 12;
/// Number of the highest cgroup ids that it keeps.
const NEWEST: usize = 3 << 12;

/// Paths of cgroups by id. Ids are not reused.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    paths: FxHashMap<u64, Box<str>>,
}

impl Cgroups {
    /// Handles a CGROUP record; perf keeps the first path.
    pub(crate) fn appeared(&mut self, id: u64, path: &str) {
        self.paths.entry(id).or_insert_with(|| path.into());
    }

    /// Removes the paths of the ids in the middle if there are very many: no record tells that a cgroup was deleted. Ids
    /// grow, so that the lowest are those of the system's services, and the highest those of the newest containers and sessions.
    pub(crate) fn prune(&mut self) {
        let excess = self.paths.len().saturating_sub(OLDEST + NEWEST);
        if excess == 0 {
            return;
        }
        let mut ids: Vec<u64> = self.paths.keys().copied().collect();
        ids.sort_unstable();
        for id in ids.iter().skip(OLDEST).take(excess) {
            self.paths.remove(id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.paths.len()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (u64, &str)> {
        self.paths.iter().map(|(id, path)| (*id, &**path))
    }

    pub(crate) fn path(&self, id: u64) -> Option<&str> {
        self.paths.get(&id).map(AsRef::as_ref)
    }
}
