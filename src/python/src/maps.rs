//! `cpu_map` and `thread_map`: where events are opened.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use rperf_sys::{CpuList, CpuState, Proc, Sysfs};

use crate::error::{or_value_error, system_error, value_error};

/// CPU numbers; -1 is any CPU.
#[pyclass(frozen, name = "cpu_map", module = "perf")]
#[derive(Debug)]
pub(crate) struct PyCpuMap {
    pub(crate) cpus: Vec<i32>,
}

#[pymethods]
impl PyCpuMap {
    /// The CPUs of a list such as `0-3,8`; by default, the online CPUs.
    #[new]
    #[pyo3(signature = (cpustr = None))]
    fn new(cpustr: Option<&str>) -> PyResult<Self> {
        let list = match cpustr {
            Some(text) => or_value_error(CpuList::parse(text))?,
            None => Sysfs::new("/sys")
                .cpus(CpuState::Online)
                .map_err(|error| system_error("the list of CPUs", &error))?,
        };
        if list.numbers().is_empty() {
            return Err(value_error("the list of CPUs is empty"));
        }
        Ok(Self::of(list.numbers().iter().map(|cpu| cpu.cast_signed())))
    }

    fn __len__(&self) -> usize {
        self.cpus.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<i32> {
        item(&self.cpus, index).copied()
    }

    fn __repr__(&self) -> String {
        format!("perf.cpu_map({:?})", self.cpus)
    }
}

impl PyCpuMap {
    pub(crate) fn of(cpus: impl IntoIterator<Item = i32>) -> Self {
        Self {
            cpus: cpus.into_iter().collect(),
        }
    }
}

/// Thread ids; -1 is all threads.
#[pyclass(frozen, name = "thread_map", module = "perf")]
#[derive(Debug)]
pub(crate) struct PyThreadMap {
    pub(crate) threads: Vec<i32>,
}

#[pymethods]
impl PyThreadMap {
    /// All threads of the processes of user `uid`, otherwise all threads of process `pid`, otherwise the thread `tid`; if none
    /// is given, -1 for all threads of the system.
    #[new]
    #[pyo3(signature = (pid = -1, tid = -1, uid = None))]
    fn new(pid: i32, tid: i32, uid: Option<u32>) -> PyResult<Self> {
        let proc = Proc::new("/proc");
        if let Some(uid) = uid {
            return Ok(Self::of(of_user(&proc, uid)?));
        }
        // A negative `pid` or `tid` other than -1 becomes an id that does not exist, which is an error.
        if pid != -1 {
            let process = u32::try_from(pid).unwrap_or(u32::MAX);
            let threads = proc
                .threads(process)
                .map_err(|error| system_error(&format!("process {pid}"), &error))?;
            return Ok(Self::of(threads.into_iter().map(u32::cast_signed)));
        }
        if tid != -1 {
            let thread = u32::try_from(tid).unwrap_or(u32::MAX);
            // Only checks that the thread exists.
            proc.process_of(thread)
                .map_err(|error| system_error(&format!("thread {tid}"), &error))?;
        }
        Ok(Self::of([tid]))
    }

    fn __len__(&self) -> usize {
        self.threads.len()
    }

    fn __getitem__(&self, index: isize) -> PyResult<i32> {
        item(&self.threads, index).copied()
    }

    fn __repr__(&self) -> String {
        format!("perf.thread_map({:?})", self.threads)
    }
}

impl PyThreadMap {
    pub(crate) fn of(threads: impl IntoIterator<Item = i32>) -> Self {
        Self {
            threads: threads.into_iter().collect(),
        }
    }
}

/// The threads of a user's processes; an error if there are none.
fn of_user(proc: &Proc, uid: u32) -> PyResult<Vec<i32>> {
    let processes = proc.processes();
    let processes = processes.map_err(|error| system_error("/proc", &error))?;
    let mut threads = Vec::new();
    // Processes that end meanwhile are skipped.
    for process in processes {
        if proc.owner(process).is_ok_and(|owner| owner == uid) {
            let process_threads = proc.threads(process).unwrap_or_default();
            threads.extend(process_threads.into_iter().map(u32::cast_signed));
        }
    }
    match threads.is_empty() {
        true => Err(value_error(format!("user {uid} has no processes"))),
        false => Ok(threads),
    }
}

/// An item of a sequence; negative indices count from its end.
pub(crate) fn item<T>(items: &[T], index: isize) -> PyResult<&T> {
    let at = match usize::try_from(index) {
        Ok(at) => Some(at),
        Err(_) => items.len().checked_sub(index.unsigned_abs()),
    };
    let item = at.and_then(|at| items.get(at));
    item.ok_or_else(|| PyIndexError::new_err("Index out of range"))
}
