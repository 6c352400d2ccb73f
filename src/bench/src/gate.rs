//! Starts the workers of a benchmark at the same time.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;

use rperf_sys::poll;

use crate::BenchError;
use crate::workers::Workers;

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

    /// Waits until `count` of `workers` are ready, then starts them all.
    ///
    /// # Errors
    ///
    /// [`BenchError::Ended`] for a worker that ended before all were ready. The others wait for the start until they are killed, or until
    /// the gate is dropped.
    pub(crate) fn open(self, count: u64, workers: &mut Workers) -> Result<(), BenchError> {
        let Self {
            mut ready,
            mut start,
            worker,
        } = self;
        // Without this writer, a read finds the end of the pipe once all workers have ended.
        drop(worker.ready);
        let mut missing = count;
        while missing > 0 {
            let arrived = arrived(&mut ready, missing).map_err(BenchError::of("pipe"))?;
            match arrived {
                Some(number) if number > 0 => missing -= number,
                // A worker that was killed cannot report that, and the others keep the pipe open.
                _ => workers.check_running()?,
            }
        }
        // Workers only poll, so that the byte stays in the pipe for all of them.
        start.write_all(b"s").map_err(BenchError::of("pipe"))
    }
}

/// How long a worker may take before it is checked that all still run, in milliseconds.
const PATIENCE: i32 = 100;

/// Waits for workers to be ready, of which at most `most` are missing. Returns their number; 0 if all workers have ended, `None` if no worker
/// became ready in time.
fn arrived(ready: &mut PipeReader, most: u64) -> io::Result<Option<u64>> {
    let state = poll(&[ready.as_fd()], PATIENCE)?;
    if !state.iter().any(|state| state.readable || state.closed) {
        return Ok(None);
    }
    let mut bytes = [0; 256];
    let most = usize::try_from(most).unwrap_or(bytes.len());
    let end = most.min(bytes.len());
    match ready.read(bytes.get_mut(..end).unwrap_or_default()) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
        read => Ok(Some(read? as u64)),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Opens a gate for two workers, of which the second one runs `second` instead of passing.
    fn open(threads: bool, second: fn() -> io::Result<()>) -> String {
        let gate = Gate::new().unwrap();
        let mut workers = Workers::new(threads);
        let worker = gate.worker();
        workers
            .start("worker 1".to_owned(), move || worker.pass())
            .unwrap();
        let worker = gate.worker();
        workers
            .start("worker 2".to_owned(), move || {
                let _open = worker;
                second()
            })
            .unwrap();
        let error = gate.open(2, &mut workers).unwrap_err().to_string();
        let (name, reason) = error.split_once(" ended before the start: ").unwrap();
        assert!(name.starts_with("worker 2"), "{error}");
        assert_eq!(name.contains("(process "), !threads, "{error}");
        reason.to_owned()
    }

    #[test]
    fn a_worker_that_ends_before_the_start_is_named() {
        let killed = open(false, || std::process::abort());
        assert!(killed.starts_with("signal: 6"), "{killed}");
        let failed: fn() -> _ = || Err(io::ErrorKind::NotFound.into());
        assert_eq!(open(false, failed), "exit status: 1");
        assert_eq!(open(true, failed), "entity not found");
    }
}
