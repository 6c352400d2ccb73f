//! Blocks of samples, rendered on all cores and taken in order.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rperf_wire::{RawRecord, RecordKind};

use crate::diagnostics::Bad;
use crate::events::EventTable;
use crate::shares::Shares;
use crate::{Error, Flow, Order, Render, Take, World};

/// Where samples are found again by their order.
pub(crate) trait Recorded: Sync {
    /// Processes and mappings, as far as the samples of a block need them.
    fn world(&self) -> &World;

    /// The record that stands at a position.
    fn record_at(&self, position: u64) -> Option<RawRecord<'_>>;

    /// How records are decoded.
    fn events(&self) -> &EventTable;

    /// The samples that stand for several events.
    fn shares(&self) -> &Shares;

    /// Where samples are counted that cannot be decoded.
    fn bad(&self) -> MutexGuard<'_, Bad>;
}

/// A block of samples on its way to a worker, and where its output goes.
struct Job<Out> {
    block: Vec<Order>,
    reply: SyncSender<Out>,
}

/// Blocks in the air for each worker: enough that none waits, few enough to bound memory.
const LOOK_AHEAD: usize = 4;

/// Renders all blocks, on as many workers as there are scratches; their outputs are taken in order by
/// the caller's thread. With one scratch nothing is spawned.
///
/// # Errors
/// [`Error::Spawn`] when a thread cannot be started.
///
/// # Panics
/// With the payload of the first worker that panics.
pub(crate) fn render_blocks<S: Recorded, R: Render, T: Take<R::Out>>(
    recorded: &S,
    mut blocks: impl Iterator<Item = Vec<Order>>,
    render: &R,
    scratches: &mut [R::Scratch],
    take: &mut T,
) -> Result<(), Error> {
    if let [scratch] = scratches {
        for block in blocks {
            if take.take(render_block(recorded, render, &block, scratch)) == Flow::Stop {
                break;
            }
        }
        return Ok(());
    }
    let (jobs, queue) = channel();
    let queue = Mutex::new(queue);
    thread::scope(|scope| {
        let look_ahead = LOOK_AHEAD * scratches.len();
        let mut workers = Vec::with_capacity(scratches.len());
        for scratch in scratches {
            let work = || work(recorded, render, scratch, &queue);
            let worker = thread::Builder::new().spawn_scoped(scope, work);
            workers.push(worker.map_err(Error::Spawn)?);
        }
        feed(&mut blocks, jobs, look_ahead, take);
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
        Ok(())
    })
}

/// Hands out blocks and takes what comes back, in order. Dropping `jobs` ends the workers.
fn feed<Out, T: Take<Out>>(
    blocks: &mut impl Iterator<Item = Vec<Order>>,
    jobs: Sender<Job<Out>>,
    look_ahead: usize,
    take: &mut T,
) {
    let mut in_the_air: VecDeque<Receiver<Out>> = VecDeque::new();
    loop {
        while in_the_air.len() < look_ahead {
            let Some(block) = blocks.next() else { break };
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

fn work<S: Recorded, R: Render>(
    recorded: &S,
    render: &R,
    scratch: &mut R::Scratch,
    queue: &Mutex<Receiver<Job<R::Out>>>,
) {
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { block, reply }) = job else {
            return;
        };
        // Nobody may be waiting any more: the consumer has stopped.
        let _gone = reply.send(render_block(recorded, render, &block, scratch));
    }
}

fn render_block<S: Recorded, R: Render>(
    recorded: &S,
    render: &R,
    block: &[Order],
    scratch: &mut R::Scratch,
) -> R::Out {
    let mut out = R::Out::default();
    let mut bad = Bad::default();
    let (world, events) = (recorded.world(), recorded.events());
    for order in block {
        let Some(raw) = recorded.record_at(order.position) else {
            continue;
        };
        if raw.kind != RecordKind::SAMPLE {
            render.record(world, &events.side(raw, *order), scratch, &mut out);
            continue;
        }
        match events.sample(&raw, |_| *order) {
            Ok(Some(sample)) => recorded.shares().deliver(sample, |sample| {
                render.render(world, sample, scratch, &mut out);
            }),
            // Of an event that the header does not know.
            Ok(None) => {}
            Err(error) => bad.add(order.position, error),
        }
    }
    if bad.count > 0 {
        recorded.bad().merge(bad);
    }
    out
}
