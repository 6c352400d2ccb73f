//! Maps, and the programs that use them.

use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};

use rperf_sys::{
    BpfLink, BpfLoadError, BpfMap, BpfMapKind, BpfMapShape, CpuState, RawTracepointProgram, Sysfs,
    TracedBpfProgram, TracedPlace,
};

use crate::tasks::{self, slot};
use crate::{BuildError, Error, MapId, ProgramBuilder, TaskSet};

/// The target of `/proc/self/ns/pid` in the initial PID namespace, whose inode number is `PROC_PID_INIT_INO`.
const INITIAL_NAMESPACE: &str = "pid:[4026531836]";

/// The shape of a map, and its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedShape {
    pub(crate) name: &'static str,
    pub(crate) shape: BpfMapShape,
}

/// The counters of [`tasks::LOSSES`] by index, each summed over all CPUs.
#[derive(Debug)]
pub(crate) struct LossCounts(Vec<u64>);

impl NamedShape {
    /// Describes a map with keys of `key_size` bytes and at most `max_entries` values of `value_size` bytes.
    pub(crate) fn new(
        name: &'static str,
        kind: BpfMapKind,
        [key_size, value_size, max_entries]: [u32; 3],
    ) -> Self {
        let shape = BpfMapShape {
            kind,
            key_size,
            value_size,
            max_entries,
        };
        Self { name, shape }
    }
}

/// Maps by their [`MapId`], and the attached programs. Dropping this detaches the programs and frees all.
#[derive(Debug)]
pub(crate) struct LoadedPrograms {
    maps: Vec<NamedMap>,
    links: Vec<BpfLink>,
}

#[derive(Debug)]
struct NamedMap {
    name: &'static str,
    map: BpfMap,
}

/// An entry of a map.
#[derive(Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl LoadedPrograms {
    /// Creates the maps. Fails outside of the initial PID namespace: the programs see the thread ids of the initial one.
    ///
    /// # Errors
    /// [`Error::KernelFile`], [`Error::PidNamespace`], [`Error::Map`], [`Error::NoBpf`] and [`Error::NotPermitted`].
    pub(crate) fn new(shapes: &[NamedShape]) -> Result<Self, Error> {
        let file = "/proc/self/ns/pid";
        let namespace = rperf_sys::link_target(file);
        let namespace = namespace.map_err(|error| Error::KernelFile { file, error })?;
        if namespace.to_str() != Some(INITIAL_NAMESPACE) {
            return Err(Error::PidNamespace);
        }
        let possible = possible_cpus()?;
        let created = shapes.iter().map(|NamedShape { name, shape }| {
            let map = BpfMap::create(*shape, possible);
            let map = map
                .map_err(|error| Error::classify(error, |error| Error::Map { map: name, error }))?;
            Ok(NamedMap { name, map })
        });
        Ok(Self {
            maps: created.collect::<Result<_, Error>>()?,
            links: Vec::new(),
        })
    }

    /// Sets the value of a key. An unknown map is ignored.
    pub(crate) fn set(&self, map: MapId, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let Some(NamedMap { name, map }) = self.maps.get(map.0) else {
            return Ok(());
        };
        let set = map.set(key, value);
        set.map_err(|error| Error::Map { map: name, error })
    }

    /// Sets the value of an index to a file descriptor, such as that of the event that receives the records of a CPU.
    pub(crate) fn set_descriptor(
        &self,
        map: MapId,
        index: u32,
        descriptor: BorrowedFd<'_>,
    ) -> Result<(), Error> {
        let descriptor = descriptor.as_raw_fd().to_ne_bytes();
        self.set(map, &index.to_ne_bytes(), &descriptor)
    }

    /// Adds threads to the map of tasks. With `from_exec`, each is observed from its next successful exec on.
    pub(crate) fn add_threads(&self, threads: &[u32], from_exec: bool) -> Result<(), Error> {
        for thread in threads {
            let mut value = [0; slot::SIZE];
            let (words, _) = value.as_chunks_mut::<4>();
            // The times, two words each, remain 0; no system call is in progress.
            if let [_, _, _, _, call, awaits_exec] = words {
                *call = slot::NONE.to_ne_bytes();
                *awaits_exec = u32::from(from_exec).to_ne_bytes();
            }
            self.set(tasks::TASKS, &thread.to_ne_bytes(), &value)?;
        }
        Ok(())
    }

    /// Adds the threads of a task set; none of [`TaskSet::All`], which needs no entries.
    pub(crate) fn add_tasks(&self, tasks: &TaskSet) -> Result<(), Error> {
        match tasks {
            TaskSet::All => Ok(()),
            TaskSet::Threads {
                threads, from_exec, ..
            } => self.add_threads(threads, *from_exec),
        }
    }

    /// Sets the only value of `map`, a template: the programs copy it as the first value of each new key of another map. It has
    /// `size` bytes, all 0 except for the minimum at the offset `min`, which is `u64::MAX`.
    pub(crate) fn set_template(&self, map: MapId, size: usize, min: i16) -> Result<(), Error> {
        let mut template = vec![0; size];
        let min = usize::try_from(min).unwrap_or_default();
        if let Some(minimum) = template.get_mut(min..min + 8) {
            minimum.fill(0xff);
        }
        self.set(map, &0_u32.to_ne_bytes(), &template)
    }

    /// Loads a program and runs it at each hit of a tracepoint.
    pub(crate) fn attach(
        &mut self,
        name: &'static str,
        tracepoint: &'static str,
        program: &ProgramBuilder,
    ) -> Result<(), Error> {
        let program = self.load(name, program)?;
        self.run_at(&program, tracepoint)
    }

    /// Loads a program.
    pub(crate) fn load(
        &self,
        name: &'static str,
        program: &ProgramBuilder,
    ) -> Result<RawTracepointProgram, Error> {
        let encoded = self.encode(program)?;
        let full_name = format!("rperf_{name}");
        RawTracepointProgram::load(&full_name, &encoded)
            .map_err(|failure| Error::load(name, failure))
    }

    /// Runs a program at each hit of a tracepoint.
    pub(crate) fn run_at(
        &mut self,
        program: &RawTracepointProgram,
        tracepoint: &'static str,
    ) -> Result<(), Error> {
        let link = program.attach(tracepoint);
        let link = link
            .map_err(|error| Error::classify(error, |error| Error::Attach { tracepoint, error }))?;
        self.links.push(link);
        Ok(())
    }

    /// Checks that a program can be attached to a tracepoint: attaches it, and detaches it at once. The program may run in
    /// between.
    pub(crate) fn check_attachment(
        &self,
        program: &RawTracepointProgram,
        tracepoint: &'static str,
    ) -> Result<(), Error> {
        let link = program.attach(tracepoint);
        let link = link
            .map_err(|error| Error::classify(error, |error| Error::Attach { tracepoint, error }));
        link.map(drop)
    }

    /// Detaches all programs. The maps remain.
    pub(crate) fn detach(&mut self) {
        self.links.clear();
    }

    /// Loads a program, and runs it each time `target`, another program, is entered or left, depending on `place`.
    pub(crate) fn attach_to(
        &mut self,
        target: &TracedBpfProgram,
        place: TracedPlace,
        name: &'static str,
        program: &ProgramBuilder,
    ) -> Result<(), BpfLoadError> {
        let encoded = self.encode(program).map_err(|error| BpfLoadError {
            error: std::io::Error::other(error),
            log: String::new(),
        })?;
        self.links
            .push(target.attach(place, &format!("rperf_{name}"), &encoded)?);
        Ok(())
    }

    /// Returns a program's encoded instructions, with the file descriptors of the maps.
    pub(crate) fn encode(&self, program: &ProgramBuilder) -> Result<Vec<[u8; 8]>, BuildError> {
        let maps = self.maps.iter();
        let maps: Vec<i32> = maps.map(|map| map.map.as_fd().as_raw_fd()).collect();
        program.encode(&maps)
    }

    /// Loads a program and runs it once on each CPU that is online. CPUs on which the kernel cannot run it are skipped.
    pub(crate) fn run_on_all_cpus(
        &self,
        name: &'static str,
        program: &ProgramBuilder,
    ) -> Result<(), Error> {
        let loaded = self.load(name, program)?;
        for cpu in 0..u32::try_from(possible_cpus()?).unwrap_or(u32::MAX) {
            // This fails before Linux 5.10, and for CPUs that are offline.
            drop(loaded.run_on(cpu));
        }
        Ok(())
    }

    /// Returns all entries of a map; none if the map is unknown.
    pub(crate) fn entries(&self, map: MapId) -> Result<Vec<MapEntry>, Error> {
        let mut entries = Vec::new();
        let Some(NamedMap { name, map }) = self.maps.get(map.0) else {
            return Ok(entries);
        };
        let failed = |error| Error::Map { map: name, error };
        for key in map.keys().map_err(failed)? {
            if let Some(value) = map.get(&key).map_err(failed)? {
                entries.push(MapEntry { key, value });
            }
        }
        Ok(entries)
    }

    /// Returns the value of a key; `None` if the map or the key is unknown.
    pub(crate) fn get(&self, map: MapId, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let Some(NamedMap { name, map }) = self.maps.get(map.0) else {
            return Ok(None);
        };
        map.get(key)
            .map_err(|error| Error::Map { map: name, error })
    }

    /// Removes a key. An unknown map or key is ignored.
    pub(crate) fn remove(&self, map: MapId, key: &[u8]) -> Result<(), Error> {
        let Some(NamedMap { name, map }) = self.maps.get(map.0) else {
            return Ok(());
        };
        let removed = map.remove(key);
        removed.map_err(|error| Error::Map { map: name, error })
    }

    /// Returns the counters of [`tasks::LOSSES`].
    pub(crate) fn losses(&self) -> Result<LossCounts, Error> {
        // The map is an array, whose keys are returned in ascending order.
        let entries = self.entries(tasks::LOSSES)?;
        let sums = entries.iter().map(|entry| {
            let (per_cpu, _) = entry.value.as_chunks();
            per_cpu.iter().map(|cpu| u64::from_ne_bytes(*cpu)).sum()
        });
        Ok(LossCounts(sums.collect()))
    }
}

impl LossCounts {
    /// Returns the counter at an index; 0 if there is none.
    pub(crate) fn of(&self, index: i32) -> u64 {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        self.0.get(index).copied().unwrap_or_default()
    }
}

/// Returns the number of the last possible CPU, plus 1. A key of a per-CPU map has at most this many values: one for
/// each possible CPU.
pub(crate) fn possible_cpus() -> Result<usize, Error> {
    let cpus = Sysfs::new("/sys").cpus(CpuState::Possible);
    let cpus = cpus.map_err(|error| Error::KernelFile {
        file: "/sys/devices/system/cpu/possible",
        error,
    })?;
    Ok(cpus.numbers().last().map_or(1, |last| *last as usize + 1))
}
