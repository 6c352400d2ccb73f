//! Starts the workers of a benchmark at the same time.

use std::io::{self, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::time::Instant;

use rperf_sys::poll;

use crate::BenchError;
use crate::workers::Workers;

/// The main task's side of the gate: waits until all workers are ready, then starts them.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Has a byte for each worker that has become ready.
    ready: PipeReader,
    /// Starts all workers with one byte.
    start: PipeWriter,
    /// Cloned for each worker.
    worker: WorkerGate,
}

/// A worker's side of the gate. The worker is a thread or a forked process.
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

    /// Returns a worker's side.
    pub(crate) fn worker(&self) -> WorkerGate {
        self.worker.clone()
    }

    /// Waits until all `workers`, whose number is `count`, are ready, then starts them. Returns the time of the start.
    ///
    /// # Errors
    ///
    /// [`BenchError::Ended`] for a worker that ended before all were ready. Other workers that are threads then end, as the gate
    /// is dropped. Processes wait until they are killed, as each has a copy of the gate's end of the start pipe.
    pub(crate) fn open(self, count: u64, workers: &mut Workers) -> Result<Instant, BenchError> {
        let Self {
            mut ready,
            mut start,
            worker,
        } = self;
        // With this writer closed, a read finds the end of the pipe once all workers have ended.
        drop(worker.ready);
        let mut missing = count;
        while missing > 0 {
            let newly_ready = arrived(&mut ready, missing).map_err(BenchError::of("pipe"))?;
            match newly_ready {
                Some(number) if number > 0 => missing -= number,
                // No worker became ready: all may have ended, or one of them, while others keep the pipe open.
                _ => workers.check_running()?,
            }
        }
        let begin = Instant::now();
        // Workers only poll, so the byte stays in the pipe for all of them.
        start.write_all(b"s").map_err(BenchError::of("pipe"))?;
        Ok(begin)
    }
}

/// Time in milliseconds after which [`Gate::open`] checks that all workers still run, if none has become ready.
const CHECK_MILLIS: i32 = 100;

/// Waits until workers become ready; returns how many did, at most `most`. Returns 0 if all workers have ended, `None` if none
/// became ready in time or a signal interrupted the wait.
fn arrived(ready: &mut PipeReader, most: u64) -> io::Result<Option<u64>> {
    let state = poll(&[ready.as_fd()], CHECK_MILLIS)?;
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
        let no_timeout = -1;
        loop {
            let state = poll(&[self.start.as_fd()], no_timeout)?;
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

    /// Opens a gate for two workers (threads if `threads`, otherwise processes), of which the second one runs `second` instead of
    /// passing; returns the reason in the error.
    fn failure_of_second(threads: bool, second: fn() -> io::Result<()>) -> String {
        let gate = Gate::new().unwrap();
        let mut workers = Workers::new(threads);
        let worker = gate.worker();
        workers
            .start("worker 1".to_owned(), move || worker.pass())
            .unwrap();
        let worker = gate.worker();
        workers
            .start("worker 2".to_owned(), move || {
                // Dropped only after `second`: the pipe stays open until then.
                let _worker = worker;
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
        let (processes, threads) = (false, true);
        let killed = failure_of_second(processes, || std::process::abort());
        assert!(killed.starts_with("signal: 6"), "{killed}");
        let failed: fn() -> _ = || Err(io::ErrorKind::NotFound.into());
        assert_eq!(failure_of_second(processes, failed), "exit status: 1");
        assert_eq!(failure_of_second(threads, failed), "entity not found");
    }
}
