//! The processes or threads of a benchmark.

use std::io;
use std::thread::{Builder, JoinHandle};

use rperf_sys::Children;

use crate::BenchError;

/// Stack of a worker thread, in bytes.
const STACK: usize = 128 << 10;

/// Workers that run at the same time.
#[derive(Debug)]
pub(crate) enum Workers {
    Processes(Children),
    Threads(Vec<JoinHandle<io::Result<()>>>),
}

impl Workers {
    /// Creates an empty set of threads, or of processes if not `threads`.
    pub(crate) fn new(threads: bool) -> Self {
        match threads {
            true => Self::Threads(Vec::new()),
            false => Self::Processes(Children::default()),
        }
    }

    /// Starts a worker.
    pub(crate) fn start(
        &mut self,
        work: impl FnOnce() -> io::Result<()> + Send + 'static,
    ) -> Result<(), BenchError> {
        match self {
            Self::Processes(children) => {
                let status = || u8::from(work().is_err());
                children.fork(status).map_err(BenchError::of("fork"))?;
            }
            Self::Threads(threads) => {
                let thread = Builder::new().stack_size(STACK).spawn(work);
                threads.push(thread.map_err(BenchError::of("cannot start a thread"))?);
            }
        }
        Ok(())
    }

    /// Waits until all have ended.
    pub(crate) fn wait(self) -> Result<(), BenchError> {
        match self {
            Self::Processes(children) => match children.wait().map_err(BenchError::of("wait"))? {
                None => Ok(()),
                Some(status) => Err(BenchError::Child(status)),
            },
            Self::Threads(threads) => threads.into_iter().try_for_each(|thread| {
                let ended = thread.join().map_err(|_| BenchError::Thread)?;
                ended.map_err(BenchError::of("a thread of the benchmark failed"))
            }),
        }
    }
}
