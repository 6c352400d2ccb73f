//! Samples in order of time, rendered on all cores.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use rperf_wire::RawRecord;

use crate::diagnostics::Bad;
use crate::timeline::Timeline;
use crate::{Error, Flow, Order, Render, Replay, Take};

/// A block of samples on its way to a worker, and where its output goes.
struct Job<Out> {
    block: Vec<Order>,
    reply: SyncSender<Out>,
}

/// Blocks in the air for each worker: enough that none waits, few enough to bound memory.
const LOOK_AHEAD: usize = 4;

impl<'a> Replay<'a> {
    /// Renders all samples in order of time: blocks of them on `threads` workers, their outputs
    /// taken in order by the caller's thread. With one thread nothing is spawned.
    ///
    /// # Errors
    /// [`Error::Spawn`] when a thread cannot be started. Samples that cannot be decoded are counted
    /// in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn ordered<R: Render, T: Take<R::Out>>(
        &self,
        threads: NonZeroUsize,
        render: &R,
        take: &mut T,
    ) -> Result<(), Error> {
        *self.bad() = Bad::default();
        if threads.get() > 1 {
            return self.ordered_parallel(threads, render, take);
        }
        let mut scratch = R::Scratch::default();
        for block in Timeline::new(self) {
            if take.take(self.render_block(render, &block, &mut scratch)) == Flow::Stop {
                break;
            }
        }
        Ok(())
    }

    fn ordered_parallel<R: Render, T: Take<R::Out>>(
        &self,
        threads: NonZeroUsize,
        render: &R,
        take: &mut T,
    ) -> Result<(), Error> {
        let (jobs, queue) = channel();
        let queue = Mutex::new(queue);
        thread::scope(|scope| {
            let mut workers = Vec::with_capacity(threads.get());
            for _ in 0..threads.get() {
                let work = || self.work(render, &queue);
                let worker = thread::Builder::new().spawn_scoped(scope, work);
                workers.push(worker.map_err(Error::Spawn)?);
            }
            self.feed(jobs, LOOK_AHEAD * threads.get(), take);
            for worker in workers {
                worker.join().unwrap_or_else(|panic| resume_unwind(panic));
            }
            Ok(())
        })
    }

    /// Hands out blocks and takes what comes back, in order. Dropping `jobs` ends the workers.
    fn feed<Out, T: Take<Out>>(&self, jobs: Sender<Job<Out>>, look_ahead: usize, take: &mut T) {
        let mut in_the_air: VecDeque<Receiver<Out>> = VecDeque::new();
        let mut timeline = Timeline::new(self);
        loop {
            while in_the_air.len() < look_ahead {
                let Some(block) = timeline.next() else { break };
                let (reply, output) = sync_channel(1);
                if jobs.send(Job { block, reply }).is_err() {
                    return;
                }
                in_the_air.push_back(output);
            }
            // A worker that panicked drops its end; the scope hands the panic on.
            let Some(Ok(out)) = in_the_air.pop_front().map(|output| output.recv()) else {
                return;
            };
            if take.take(out) == Flow::Stop {
                return;
            }
        }
    }

    fn work<R: Render>(&self, render: &R, queue: &Mutex<Receiver<Job<R::Out>>>) {
        let mut scratch = R::Scratch::default();
        loop {
            let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { block, reply }) = job else {
                return;
            };
            // Nobody may be waiting any more: the consumer has stopped.
            let _gone = reply.send(self.render_block(render, &block, &mut scratch));
        }
    }

    fn render_block<R: Render>(
        &self,
        render: &R,
        block: &[Order],
        scratch: &mut R::Scratch,
    ) -> R::Out {
        let mut out = R::Out::default();
        let mut bad = Bad::default();
        for order in block {
            let record = RawRecord::split(self.from(order.position), self.endian());
            let Some((raw, _)) = record else { continue };
            match self.sample(&raw, order.position) {
                Ok(Some(sample)) => render.render(self.world(), &sample, scratch, &mut out),
                Ok(None) => {}
                Err(error) => bad.add(order.position, error),
            }
        }
        if bad.count > 0 {
            self.bad().merge(bad);
        }
        out
    }
}
