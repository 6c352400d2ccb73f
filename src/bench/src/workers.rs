//! The processes or threads of a benchmark.

use std::collections::HashMap;
use std::io;
use std::thread::{Builder, JoinHandle};

use rperf_sys::Children;

use crate::BenchError;

/// Stack of a worker thread, in bytes.
const STACK: usize = 128 << 10;

/// Workers that run at the same time, with their names; the names of processes are stored by process id.
#[derive(Debug)]
pub(crate) enum Workers {
    Processes(Children, HashMap<u32, String>),
    Threads(Vec<(String, JoinHandle<io::Result<()>>)>),
}

impl Workers {
    /// Creates an empty set, of threads if `threads`, otherwise of processes.
    pub(crate) fn new(threads: bool) -> Self {
        match threads {
            true => Self::Threads(Vec::new()),
            false => Self::Processes(Children::default(), HashMap::new()),
        }
    }

    /// Starts a worker; `name` is its name in errors.
    pub(crate) fn start(
        &mut self,
        name: String,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), BenchError> {
        match self {
            Self::Processes(children, names) => {
                // The child exits with this status; its error is not passed on.
                let run = || u8::from(work().is_err());
                let pid = children.fork(run).map_err(BenchError::of("fork"))?;
                names.insert(pid, name);
            }
            Self::Threads(threads) => {
                let thread = Builder::new().stack_size(STACK).spawn(work);
                let thread = thread.map_err(BenchError::of("cannot start a thread"))?;
                threads.push((name, thread));
            }
        }
        Ok(())
    }

    /// Checks without waiting that no worker has ended.
    ///
    /// # Errors
    /// [`BenchError::Ended`] for a worker that has ended, [`BenchError::System`] if waiting for a process fails.
    pub(crate) fn check_running(&mut self) -> Result<(), BenchError> {
        match self {
            Self::Processes(children, names) => {
                let ended = children.reap_exited().map_err(BenchError::of("wait"))?;
                let Some((pid, status)) = ended else {
                    return Ok(());
                };
                let name = names.remove(&pid).unwrap_or_default();
                Err(BenchError::Ended {
                    worker: format!("{name} (process {pid})"),
                    reason: status.to_string(),
                })
            }
            Self::Threads(threads) => {
                let ended = threads.iter().position(|(_, thread)| thread.is_finished());
                let Some(index) = ended else {
                    return Ok(());
                };
                let (worker, thread) = threads.swap_remove(index);
                let reason = match thread.join() {
                    Ok(Ok(())) => "it returned".to_owned(),
                    Ok(Err(error)) => error.to_string(),
                    Err(_) => "it panicked".to_owned(),
                };
                Err(BenchError::Ended { worker, reason })
            }
        }
    }

    /// Waits until all workers have ended: threads in the order of their start, processes in any order. If one fails, returns its
    /// error: the remaining processes are killed, the remaining threads are not waited for.
    pub(crate) fn wait(self) -> Result<(), BenchError> {
        match self {
            Self::Processes(children, _) => {
                match children.wait().map_err(BenchError::of("wait"))? {
                    None => Ok(()),
                    Some(status) => Err(BenchError::Child(status)),
                }
            }
            Self::Threads(threads) => threads.into_iter().try_for_each(|(_, thread)| {
                let ended = thread.join().map_err(|_| BenchError::Thread)?;
                ended.map_err(BenchError::of("a thread of the benchmark failed"))
            }),
        }
    }
}
