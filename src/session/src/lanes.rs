//! Threads that drain rings, each ring into a separate file (`--threads`).
//!
//! A lane owns its rings and their files. All lanes share two pipes and two atomic numbers: of bytes written, and of lanes
//! whose tasks still run. Closing the first pipe ends all lanes; through the second, lanes notify the main thread.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Builder, ScopedJoinHandle};

use rperf_perfdata::PartWriter;
use rperf_sys::{AffinityGuard, CpuList};

use crate::Error;
use crate::counted_output::{CountedOutput, write_error};
use crate::drain::{RingSet, counters_to_poll};
use crate::open::{OpenCounter, OpenEvent};
use crate::output_stream::OutputStream;
use crate::poll_set::PollSet;
use crate::record_stats::RecordStats;
use crate::thread_layout::ThreadShare;

/// The rings of one thread.
pub(crate) struct Lane {
    /// The CPU affinity of the thread.
    runs_on: CpuList,
    /// The rings with their files, the parts of the recording.
    parts: Vec<LaneRing>,
}

/// A ring and its file.
struct LaneRing {
    cpu: i32,
    /// A set that contains only this ring.
    rings: RingSet,
    sink: CountedOutput,
}

/// Creates the lanes of a recording, each with the rings of its share. The n-th ring is written to the n-th of
/// `files`; `stats` creates the empty statistics of a file. Without shares, `rings` is unchanged; otherwise it is empty until
/// [`Lane::merge`].
pub(crate) fn lanes(
    shares: Vec<ThreadShare>,
    rings: &mut RingSet,
    files: Vec<File>,
    stats: impl Fn() -> RecordStats,
    compress: bool,
) -> Vec<Lane> {
    if shares.is_empty() {
        return Vec::new();
    }
    let parts = rings.split().into_iter().zip(files);
    let mut parts: Vec<LaneRing> = parts
        .map(|((cpu, rings), file)| {
            let output_sink = OutputStream::Part(PartWriter::new(file));
            let sink = CountedOutput::new(output_sink, stats(), compress);
            LaneRing { cpu, rings, sink }
        })
        .collect();
    let lane = |share: ThreadShare| {
        // The shares together contain the CPUs of all rings, so that each ring is in a lane.
        let is_in_share = |part: &mut LaneRing| {
            u32::try_from(part.cpu).is_ok_and(|cpu| share.drains.contains(cpu))
        };
        Lane {
            runs_on: share.runs_on,
            parts: parts.extract_if(.., is_in_share).collect(),
        }
    };
    shares.into_iter().map(lane).collect()
}

impl Lane {
    /// Gives the rings back to `rings`, closes the lane's files, and adds their statistics to `sink`.
    pub(crate) fn merge(self, rings: &mut RingSet, sink: &mut CountedOutput) -> Result<(), Error> {
        for part in self.parts {
            rings.absorb(part.rings);
            sink.absorb(part.sink).map_err(write_error)?;
        }
        Ok(())
    }

    /// Drains the rings until the recording ends, and then the remaining data; returns the number
    /// of wake-ups.
    fn run(&mut self, shared: &LaneShared<'_>) -> Result<u64, Error> {
        let _wake = shared.wake_on_drop();
        // An error is ignored: the same affinity was set successfully before the recording started.
        let _bound = AffinityGuard::to(&self.runs_on);
        let is_of_lane =
            |counter: &&OpenCounter| self.parts.iter().any(|part| part.cpu == counter.cpu);
        let mut watched: Vec<&OpenCounter> = counters_to_poll(shared.events)
            .into_iter()
            .filter(is_of_lane)
            .collect();
        if watched.is_empty() {
            shared.tasks_ended();
        }
        let mut woken = 0;
        let mut written = 0;
        loop {
            let mut waiting = PollSet::default();
            let over = waiting.add([shared.over.as_fd()]);
            let counters = waiting.add_counters(&watched);
            let states = waiting.wait(-1)?;
            woken += 1;
            for LaneRing { rings, sink, .. } in &mut self.parts {
                rings.drain_filled(sink).map_err(write_error)?;
            }
            let bytes = self.parts.iter().map(|part| part.sink.bytes()).sum();
            shared.add(bytes - written);
            written = bytes;
            if states.is_closed(&over) {
                break;
            }
            let had_any = !watched.is_empty();
            states.drop_ended(&counters, &mut watched);
            if had_any && watched.is_empty() {
                shared.tasks_ended();
            }
        }
        for LaneRing { rings, sink, .. } in &mut self.parts {
            rings.drain_all(sink).map_err(write_error)?;
        }
        Ok(woken)
    }
}

/// Notifications of running lanes.
pub(crate) struct LaneEvents {
    wake_reader: PipeReader,
    bytes: AtomicU64,
}

impl LaneEvents {
    /// Returns a descriptor that becomes readable when a lane has ended, the maximum size is reached, or all observed tasks have
    /// exited, if that ends the recording.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake_reader.as_fd()
    }

    /// Returns the bytes written by all lanes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// The conditions in which lanes notify the main thread.
#[derive(Clone, Copy)]
pub(crate) struct NotifyLimits {
    /// Whether the exit of all observed tasks ends the recording.
    pub(crate) until_tasks_end: bool,
    /// Maximum number of bytes that all lanes together write.
    pub(crate) max_size: Option<u64>,
}

/// State shared by all lanes.
pub(crate) struct LaneShared<'e> {
    events: &'e [OpenEvent],
    limits: NotifyLimits,
    /// Number of lanes with observed tasks that have not exited.
    busy: AtomicUsize,
    /// Closed at the other end when the recording is over.
    over: PipeReader,
    /// Writing to it wakes the main thread.
    wake_writer: PipeWriter,
    pub(crate) lane_events: LaneEvents,
}

impl<'e> LaneShared<'e> {
    /// Creates the state shared by `lanes` lanes; closing the returned pipe ends them.
    pub(crate) fn new(
        events: &'e [OpenEvent],
        lanes: usize,
        limits: NotifyLimits,
    ) -> Result<(Self, PipeWriter), Error> {
        let two = || Ok((pipe()?, pipe()?));
        let ((over, over_writer), (wake_reader, wake_writer)) =
            two().map_err(Error::system("make a pipe"))?;
        let lane_events = LaneEvents {
            wake_reader,
            bytes: AtomicU64::new(0),
        };
        let shared = Self {
            events,
            limits,
            busy: AtomicUsize::new(lanes),
            over,
            wake_writer,
            lane_events,
        };
        Ok((shared, over_writer))
    }

    /// Wakes the main thread. Errors are ignored: the pipe has room for all notifications, and its reader outlives the lanes.
    fn wake(&self) {
        let _ = (&self.wake_writer).write(&[0]);
    }

    /// Adds bytes written by a lane, and wakes the main thread if the total thereby reaches the maximum size.
    fn add(&self, bytes: u64) {
        let before = self.lane_events.bytes.fetch_add(bytes, Ordering::Relaxed);
        // `before` is never less than a maximum of 0, so it is compared with 1 instead: each call then wakes the main thread
        // until bytes have been added.
        let reached_now = |most: u64| before < most.max(1) && before + bytes >= most;
        if self.limits.max_size.is_some_and(reached_now) {
            self.wake();
        }
    }

    /// Called once by each lane, when its tasks have exited. The last lane wakes the main thread, if that ends the recording.
    fn tasks_ended(&self) {
        let was = self.busy.fetch_sub(1, Ordering::Relaxed);
        if was == 1 && self.limits.until_tasks_end {
            self.wake();
        }
    }

    fn wake_on_drop(&self) -> WakeOnDrop<'_, 'e> {
        WakeOnDrop(self)
    }
}

/// Wakes the main thread when a lane ends, even by a panic.
struct WakeOnDrop<'s, 'e>(&'s LaneShared<'e>);

impl Drop for WakeOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.wake();
    }
}

/// Runs `work` while each lane runs in a thread, and adds the lanes' numbers of wake-ups to its second
/// result. Without lanes, `work` gets no notifications.
///
/// # Errors
/// Errors of starting threads and of the lanes, otherwise errors of `work`.
pub(crate) fn with_lanes<T>(
    lanes: &mut [Lane],
    events: &[OpenEvent],
    limits: NotifyLimits,
    work: impl FnOnce(Option<&LaneEvents>) -> Result<(T, u64), Error>,
) -> Result<(T, u64), Error> {
    if lanes.is_empty() {
        return work(None);
    }
    let (shared, over_writer) = LaneShared::new(events, lanes.len(), limits)?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            let thread = Builder::new().name(format!("rings-{number}"));
            let thread = thread.spawn_scoped(scope, || lane.run(&shared));
            // An error returns from this closure, which drops `over_writer` and so ends the threads started before.
            threads.push(thread.map_err(Error::Thread)?);
        }
        let done = work(Some(&shared.lane_events));
        // Ends the lanes.
        drop(over_writer);
        // All threads are joined before an error is returned: `scope` panics if a thread panicked that was not joined.
        let woken = threads.into_iter().map(ended).collect::<Vec<_>>();
        let woken: u64 = woken.into_iter().sum::<Result<_, _>>()?;
        done.map(|(done, woken_here)| (done, woken_here + woken))
    })
}

/// Waits for the thread of a lane; returns its result.
fn ended(thread: ScopedJoinHandle<'_, Result<u64, Error>>) -> Result<u64, Error> {
    thread.join().unwrap_or_else(|_| {
        let cause = std::io::Error::other("it panicked");
        Err(Error::system("run a thread")(cause))
    })
}
