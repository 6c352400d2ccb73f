//! Threads by their ids in their PID namespaces, and the processes that map the memory of a futex: the holder of a lock in
//! shared memory may be a thread of any of these processes.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use rperf_sys::{MapEntry, Proc, map_entries};

/// The maximum time for which the mappings of a process are read.
const MAPS_LIMIT: Duration = Duration::from_secs(1);

/// A thread of the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundThread {
    pub(super) pid: u32,
    pub(super) tid: u32,
}

/// The threads of the machine except kernel threads, listed at the first query.
pub(super) struct MachineThreads {
    proc: Proc,
    /// By thread id in the thread's own PID namespace.
    by_own_tid: OnceCell<BTreeMap<u32, Vec<FoundThread>>>,
}

/// A place in a mapped file; shared memory is a file with an inode, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SharedPlace {
    device: (u32, u32),
    inode: u64,
    offset: u64,
}

impl SharedPlace {
    /// Returns the place at `address`; `None` if the mapping does not contain the address, or is not shared.
    fn of(entry: &MapEntry<'_>, address: u64) -> Option<Self> {
        let is_within = (entry.start..entry.end).contains(&address);
        let is_shared = entry.permissions[3] == b's' && entry.inode != 0;
        (is_within && is_shared).then(|| Self {
            device: entry.device,
            inode: entry.inode,
            offset: (address - entry.start).wrapping_add(entry.offset),
        })
    }

    fn is_in(self, entry: &MapEntry<'_>) -> bool {
        let end = entry.offset.wrapping_add(entry.end - entry.start);
        entry.permissions[3] == b's'
            && (entry.device, entry.inode) == (self.device, self.inode)
            && (entry.offset..end).contains(&self.offset)
    }
}

impl MachineThreads {
    pub(super) fn new(proc: &Proc) -> Self {
        Self {
            proc: proc.clone(),
            by_own_tid: OnceCell::new(),
        }
    }

    /// Returns the place in shared memory at `address` of process `pid`; `None` if the memory is not shared or the mappings
    /// cannot be read.
    pub(super) fn place(&self, pid: u32, address: u64) -> Option<SharedPlace> {
        let maps = mappings(&self.proc, pid).ok()?;
        map_entries(&maps).find_map(|entry| SharedPlace::of(&entry, address))
    }

    /// Returns the thread whose process maps `place` and whose id in its own PID namespace is `own_tid`. `pid` is a process that
    /// maps `place`.
    ///
    /// If there are several such threads, returns `None`: a lock stores only the id, not its namespace.
    ///
    /// If there is none, but exactly one thread with this id has mappings that this user is not allowed to read, returns that
    /// thread: its process is assumed to map `place`. This requires that its process and `pid` are both in the PID namespace of
    /// the proc file system (the initial one outside of containers); otherwise returns `None`.
    pub(super) fn thread_sharing(
        &self,
        place: SharedPlace,
        pid: u32,
        own_tid: u32,
    ) -> Option<FoundThread> {
        let candidates = self.by_own_tid().get(&own_tid)?;
        let (mut sharing, mut hidden) = (Vec::new(), Vec::new());
        for thread in candidates {
            match mappings(&self.proc, thread.pid) {
                Ok(maps) if map_entries(&maps).any(|entry| place.is_in(&entry)) => {
                    sharing.push(*thread);
                }
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    hidden.push(*thread);
                }
                Err(_) => {}
            }
        }
        match (&sharing[..], &hidden[..]) {
            ([thread], _) => Some(*thread),
            // In one namespace, no two threads have the same id.
            ([], [thread]) if self.are_in_proc_namespace([pid, thread.pid]) => Some(*thread),
            _ => None,
        }
    }

    /// Whether both processes are in the PID namespace of the proc file system, the outermost that is visible here.
    fn are_in_proc_namespace(&self, pids: [u32; 2]) -> bool {
        let statuses = pids.map(|pid| self.proc.status(pid, pid));
        let mut statuses = statuses.iter();
        statuses.all(|status| {
            status
                .as_ref()
                .is_ok_and(|status| status.pid_namespace_depth == 1)
        })
    }

    fn by_own_tid(&self) -> &BTreeMap<u32, Vec<FoundThread>> {
        self.by_own_tid.get_or_init(|| {
            let mut threads: BTreeMap<u32, Vec<FoundThread>> = BTreeMap::new();
            for pid in self.proc.processes().unwrap_or_default() {
                for tid in self.proc.threads(pid).unwrap_or_default() {
                    let status = self.proc.status(pid, tid).ok();
                    if let Some(status) = status.filter(|status| !status.is_kernel) {
                        let same_id = threads.entry(status.own_tid).or_default();
                        same_id.push(FoundThread { pid, tid });
                    }
                }
            }
            threads
        })
    }
}

/// Returns the text of the mappings of a process, as far as it can be read within [`MAPS_LIMIT`].
fn mappings(proc: &Proc, pid: u32) -> io::Result<Vec<u8>> {
    proc.maps(pid, MAPS_LIMIT).map(|(text, _)| text)
}

/// Whether a process is a Java virtual machine: it maps `libjvm.so`.
pub(super) fn is_java(proc: &Proc, pid: u32) -> bool {
    let maps = mappings(proc, pid).unwrap_or_default();
    let mut names = map_entries(&maps).map(|entry| entry.name);
    names.any(|name| {
        let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
        name.ends_with(b"/libjvm.so")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_places_are_equal_by_file_and_offset() {
        let text = b"\
7f0000000000-7f0000002000 rw-s 00001000 00:05 77 /dev/shm/locks
7f0000010000-7f0000012000 rw-p 00001000 00:05 77 /dev/shm/locks
7f0000020000-7f0000022000 rw-s 00000000 00:00 0
7f0000030000-7f0000031000 rw-s 00002000 00:05 77 /dev/shm/locks
7f0000040000-7f0000049000 rw-s 00000000 00:05 78 /dev/shm/others
";
        let entries: Vec<MapEntry<'_>> = map_entries(text).collect();
        let at = |address| {
            entries
                .iter()
                .find_map(|entry| SharedPlace::of(entry, address))
        };
        let place = at(0x7f00_0000_1040).unwrap();
        assert_eq!((place.inode, place.offset), (77, 0x2040));
        assert_eq!([at(0x7f00_0001_0000), at(0x7f00_0002_0000)], [None; 2]);
        let within: Vec<bool> = entries.iter().map(|entry| place.is_in(entry)).collect();
        assert_eq!(within, [true, false, false, true, false]);
    }
}
