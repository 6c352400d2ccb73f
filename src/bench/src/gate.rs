//! Starts the workers of a benchmark at the same time.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rperf_sys::poll;

/// The end of the main task, which waits until all workers are ready and then starts them.
#[derive(Debug)]
pub(crate) struct Gate {
    ready: PipeReader,
    start: PipeWriter,
    worker: WorkerGate,
}

/// The end of a worker, which is a thread or a forked process.
#[derive(Debug, Clone)]
pub(crate) struct WorkerGate {
    ready: Arc<PipeWriter>,
    start: Arc<PipeReader>,
}

impl Gate {
    pub(crate) fn new() -> io::Result<Self> {
        let (ready, worker_ready) = io::pipe()?;
        let (worker_start, start) = io::pipe()?;
        let worker = WorkerGate {
            ready: Arc::new(worker_ready),
            start: Arc::new(worker_start),
        };
        Ok(Self {
            ready,
            start,
            worker,
        })
    }

    /// Returns the end of a worker.
    pub(crate) fn worker(&self) -> WorkerGate {
        self.worker.clone()
    }

    /// Waits until `workers` workers are ready, then starts them all.
    ///
    /// # Errors
    ///
    /// The pipes fail; `UnexpectedEof` if all workers ended before that many were ready.
    pub(crate) fn open(self, workers: u64) -> io::Result<()> {
        let Self {
            ready,
            mut start,
            worker,
        } = self;
        // Without this writer, a read finds the end of the pipe once all workers have ended.
        drop(worker.ready);
        let arrived = io::copy(&mut ready.take(workers), &mut io::sink())?;
        if arrived < workers {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        // Workers only poll, so that the byte stays in the pipe for all of them.
        start.write_all(b"s")
    }
}

impl WorkerGate {
    /// Reports this worker as ready and waits for the start. In a thread, fails if the [`Gate`] is dropped without being opened.
    pub(crate) fn pass(&self) -> io::Result<()> {
        (&*self.ready).write_all(b"r")?;
        loop {
            let state = poll(&[self.start.as_fd()], -1)?;
            match state.first() {
                Some(state) if state.readable => return Ok(()),
                Some(state) if state.closed => return Err(io::ErrorKind::BrokenPipe.into()),
                _ => {}
            }
        }
    }
}
