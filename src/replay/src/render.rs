//! Blocks of samples, rendered on all cores and taken in order.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use rperf_wire::{RawRecord, RecordKind};

use crate::ahead::fetch;
use crate::deferred::Deferred;
use crate::diagnostics::Bad;
use crate::events::EventTable;
use crate::shares::Shares;
use crate::{Flow, Order, Render, Sample, Take, World};

/// Where samples are found again by their order.
pub(crate) trait Recorded: Sync {
    /// Processes and mappings, as far as the samples of a block need them.
    fn world(&self) -> &World;

    /// The bytes from a position on.
    fn from(&self, position: u64) -> &[u8];

    /// How records are decoded.
    fn events(&self) -> &EventTable;

    /// The samples that stand for several events.
    fn shares(&self) -> &Shares;

    /// User callchains that came by themselves.
    fn deferred(&self) -> &Deferred;

    /// Calls `each` with the samples that `sample` stands for, their callchains whole.
    #[inline]
    fn deliver(&self, sample: &Sample<'_>, mut each: impl FnMut(&Sample<'_>)) {
        let bytes_at = |position| self.from(position);
        self.shares().deliver(sample, |sample| {
            self.deferred().complete(sample, bytes_at, &mut each);
        });
    }

    /// Where samples are counted that cannot be decoded.
    fn bad(&self) -> MutexGuard<'_, Bad>;
}

/// A block of samples on its way to a worker, and where its output goes.
struct Job<Out> {
    block: Vec<Order>,
    reply: SyncSender<Out>,
}

/// What workers and the one who feeds them share.
struct Shared<Out> {
    jobs: Mutex<Receiver<Job<Out>>>,
    /// Empty outputs with the memory of earlier blocks: as many as were under way at one time.
    spare: Mutex<Vec<Out>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Blocks in the air for each worker: enough that none waits, few enough to bound memory.
const LOOK_AHEAD: usize = 4;

/// Renders all blocks, on as many workers as there are scratches and threads can be started; their outputs are taken in
/// order by the caller's thread. With one scratch nothing is spawned.
///
/// # Panics
/// With the payload of the first worker that panics.
pub(crate) fn render_blocks<S: Recorded, R: Render, T: Take<R::Out>>(
    recorded: &S,
    mut blocks: impl Iterator<Item = Vec<Order>>,
    render: &R,
    scratches: &mut [R::Scratch],
    take: &mut T,
) {
    let Some((own, others)) = scratches.split_first_mut() else {
        return;
    };
    if others.is_empty() {
        return render_alone(recorded, blocks, render, own, take);
    }
    let (jobs, queue) = channel();
    let shared = Shared {
        jobs: Mutex::new(queue),
        spare: Mutex::default(),
    };
    let shared = &shared;
    thread::scope(|scope| {
        let mut workers = Vec::with_capacity(others.len() + 1);
        let mut start = |scratch| {
            let work = move || work(recorded, render, scratch, shared);
            // A thread that cannot be started leaves its share to the others.
            workers.extend(thread::Builder::new().spawn_scoped(scope, work));
            workers.len()
        };
        let started = others.iter_mut().map(&mut start).last();
        if started.unwrap_or_default() == 0 {
            return render_alone(recorded, blocks, render, own, take);
        }
        start(own);
        let feeder = Feeder {
            jobs,
            look_ahead: LOOK_AHEAD * workers.len(),
            spare: &shared.spare,
        };
        feeder.feed(&mut blocks, render, take);
        for worker in workers {
            worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        }
    });
}

/// The same without any worker.
fn render_alone<S: Recorded, R: Render, T: Take<R::Out>>(
    recorded: &S,
    blocks: impl Iterator<Item = Vec<Order>>,
    render: &R,
    scratch: &mut R::Scratch,
    take: &mut T,
) {
    let mut out = R::Out::default();
    for block in blocks {
        render_block(recorded, render, &block, scratch, &mut out);
        if take.take(&mut out) == Flow::Stop {
            break;
        }
        render.reuse(&mut out);
    }
}

/// Bytes of a record that are worth reading ahead of it: with its first fields most often all of it.
const RECORD_START: usize = 128;

/// Hands out blocks and takes what comes back. With it the workers' jobs end.
struct Feeder<'s, Out> {
    jobs: Sender<Job<Out>>,
    /// Blocks in the air.
    look_ahead: usize,
    spare: &'s Mutex<Vec<Out>>,
}

impl<Out> Feeder<'_, Out> {
    /// All blocks, in order.
    fn feed<R: Render<Out = Out>, T: Take<Out>>(
        self,
        blocks: &mut impl Iterator<Item = Vec<Order>>,
        render: &R,
        take: &mut T,
    ) {
        let mut in_the_air: VecDeque<Receiver<Out>> = VecDeque::new();
        loop {
            while in_the_air.len() < self.look_ahead {
                let Some(block) = blocks.next() else { break };
                let (reply, output) = sync_channel(1);
                if self.jobs.send(Job { block, reply }).is_err() {
                    return;
                }
                in_the_air.push_back(output);
            }
            // A worker that panicked drops its end; the scope hands the panic on.
            let Some(Ok(mut out)) = in_the_air.pop_front().map(|output| output.recv()) else {
                return;
            };
            if take.take(&mut out) == Flow::Stop {
                return;
            }
            render.reuse(&mut out);
            locked(self.spare).push(out);
        }
    }
}

fn work<S: Recorded, R: Render>(
    recorded: &S,
    render: &R,
    scratch: &mut R::Scratch,
    shared: &Shared<R::Out>,
) {
    loop {
        let job = locked(&shared.jobs).recv();
        let Ok(Job { block, reply }) = job else {
            return;
        };
        let spare = locked(&shared.spare).pop();
        let mut out = spare.unwrap_or_default();
        render_block(recorded, render, &block, scratch, &mut out);
        // Nobody may be waiting any more: the consumer has stopped.
        let _gone = reply.send(out);
    }
}

fn render_block<S: Recorded, R: Render>(
    recorded: &S,
    render: &R,
    block: &[Order],
    scratch: &mut R::Scratch,
    out: &mut R::Out,
) {
    let mut bad = Bad::default();
    let mut sample = Sample::default();
    let (world, events) = (recorded.world(), recorded.events());
    // Records come from memory side by side here, and one after the other below.
    for order in block {
        let start = recorded.from(order.position);
        fetch(start.get(..RECORD_START).unwrap_or(start));
    }
    for order in block {
        let bytes = recorded.from(order.position);
        let Some((raw, _)) = RawRecord::split(bytes, events.endian()) else {
            continue;
        };
        if raw.kind != RecordKind::SAMPLE {
            render.record(world, &events.side(raw, *order), scratch, out);
            continue;
        }
        match events.sample_into(&raw, |_| *order, &mut sample) {
            Ok(true) => recorded.deliver(&sample, |sample| {
                render.render(world, sample, scratch, out);
            }),
            // Of an event that the header does not know.
            Ok(false) => {}
            Err(error) => bad.add(order.position, error),
        }
    }
    if bad.count > 0 {
        recorded.bad().merge(bad);
    }
}
