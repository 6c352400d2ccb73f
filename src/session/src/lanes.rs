//! Threads that empty the rings, each ring into a file of its own (`--threads`).
//!
//! A lane owns its rings and their files, and shares nothing with the others but two pipes: when the recording is over
//! its end of one is closed, which all lanes see; through the other a lane tells that there is nothing more for it to do.

use std::fs::File;
use std::io::{PipeReader, PipeWriter, Write as _, pipe};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, Builder, ScopedJoinHandle};

use rperf_perfdata::PartWriter;
use rperf_sys::{Bound, CpuList};
use rperf_wire::SampleType;

use crate::Error;
use crate::drain::{Rings, watched};
use crate::layout::Share;
use crate::medium::Medium;
use crate::open::{OpenEvent, Placed};
use crate::sink::{Sink, write_error};
use crate::tally::Tally;
use crate::waiting::Waiting;

/// What one thread empties.
pub(crate) struct Lane {
    runs_on: CpuList,
    parts: Vec<Part>,
}

/// A ring and its file.
struct Part {
    cpu: i32,
    rings: Rings,
    sink: Sink,
}

/// The lanes of a recording: each takes its share of the rings, the first of which goes into the first of `files`. Where
/// there are no shares, `rings` stay whole.
pub(crate) fn lanes(
    shares: Vec<Share>,
    rings: &mut Rings,
    files: Vec<File>,
    (sample_type, compress): (SampleType, bool),
) -> Vec<Lane> {
    if shares.is_empty() {
        return Vec::new();
    }
    let parts = rings.split().into_iter().zip(files);
    let mut parts: Vec<Part> = parts
        .map(|((cpu, rings), file)| {
            let medium = Medium::Part(PartWriter::new(file));
            let sink = Sink::new(medium, Tally::new(sample_type), compress);
            Part { cpu, rings, sink }
        })
        .collect();
    let lane = |share: Share| {
        let own =
            |part: &mut Part| u32::try_from(part.cpu).is_ok_and(|cpu| share.empties.contains(cpu));
        Lane {
            runs_on: share.runs_on,
            parts: parts.extract_if(.., own).collect(),
        }
    };
    shares.into_iter().map(lane).collect()
}

impl Lane {
    /// Puts what was recorded to the rest of the recording.
    pub(crate) fn merge(self, rings: &mut Rings, sink: &mut Sink) -> Result<(), Error> {
        for part in self.parts {
            rings.absorb(part.rings);
            sink.absorb(part.sink).map_err(write_error)?;
        }
        Ok(())
    }

    /// Empties the rings until the recording is over, and then what is left; returns how often it woke up.
    fn run(&mut self, shared: &Shared<'_>) -> Result<u64, Error> {
        let _said = shared.said_at_end();
        // That it may was tried before the recording began.
        let _bound = Bound::to(&self.runs_on);
        let own = |placed: &&Placed| self.parts.iter().any(|part| part.cpu == placed.cpu);
        let mut watched: Vec<&Placed> = watched(shared.events).into_iter().filter(own).collect();
        let mut woken = 0;
        let mut written = 0;
        loop {
            let mut waiting = Waiting::default();
            let over = waiting.add([shared.over.as_fd()]);
            let counters = waiting.counters(&watched);
            let states = waiting.wait(-1)?;
            woken += 1;
            for Part { rings, sink, .. } in &mut self.parts {
                rings.pass(sink).map_err(write_error)?;
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
        for Part { rings, sink, .. } in &mut self.parts {
            rings.empty(sink).map_err(write_error)?;
        }
        Ok(woken)
    }
}

/// What lanes tell while they run.
pub(crate) struct News {
    told: PipeReader,
    bytes: AtomicU64,
}

impl News {
    /// Becomes readable when all tasks have ended, a lane has failed, or there are bytes enough.
    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.told.as_fd()
    }

    /// Bytes that all lanes have written.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

/// When lanes have something to tell.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Whether the end of all observed tasks ends the recording.
    pub(crate) until_tasks_end: bool,
    /// Bytes that are enough from all lanes.
    pub(crate) max_size: Option<u64>,
}

/// What all lanes see.
pub(crate) struct Shared<'e> {
    events: &'e [OpenEvent],
    limits: Limits,
    /// Lanes whose tasks have not all ended.
    busy: AtomicUsize,
    over: PipeReader,
    tell: PipeWriter,
    pub(crate) news: News,
}

impl<'e> Shared<'e> {
    /// For so many lanes; closing the pipe that is returned ends them.
    pub(crate) fn new(
        events: &'e [OpenEvent],
        lanes: usize,
        limits: Limits,
    ) -> Result<(Self, PipeWriter), Error> {
        let two = || Ok((pipe()?, pipe()?));
        let ((over, open), (told, tell)) = two().map_err(Error::system("make a pipe"))?;
        let news = News {
            told,
            bytes: AtomicU64::new(0),
        };
        let shared = Self {
            events,
            limits,
            busy: AtomicUsize::new(lanes),
            over,
            tell,
            news,
        };
        Ok((shared, open))
    }

    /// Wakes the thread that waits for news. The pipe holds more words than are ever said, and its reader outlives the
    /// lanes.
    fn say(&self) {
        let _ = (&self.tell).write(&[0]);
    }

    fn add(&self, bytes: u64) {
        let before = self.news.bytes.fetch_add(bytes, Ordering::Relaxed);
        let enough = |most: u64| before < most.max(1) && before + bytes >= most;
        if self.limits.max_size.is_some_and(enough) {
            self.say();
        }
    }

    fn tasks_ended(&self) {
        let was = self.busy.fetch_sub(1, Ordering::Relaxed);
        if was == 1 && self.limits.until_tasks_end {
            self.say();
        }
    }

    fn said_at_end(&self) -> SaidAtEnd<'_, 'e> {
        SaidAtEnd(self)
    }
}

/// Says that a lane is at its end, however it came there.
struct SaidAtEnd<'s, 'e>(&'s Shared<'e>);

impl Drop for SaidAtEnd<'_, '_> {
    fn drop(&mut self) {
        self.0.say();
    }
}

/// Does `work` while each lane has a thread of its own, which ends with it, and adds to its second number how often
/// these woke up. Without lanes there is no news.
///
/// # Errors
/// Those of the lanes, else those of `work`.
pub(crate) fn with_lanes<T>(
    lanes: &mut [Lane],
    (events, limits): (&[OpenEvent], Limits),
    work: impl FnOnce(Option<&News>) -> Result<(T, u64), Error>,
) -> Result<(T, u64), Error> {
    if lanes.is_empty() {
        return work(None);
    }
    let (shared, open) = Shared::new(events, lanes.len(), limits)?;
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for (number, lane) in lanes.iter_mut().enumerate() {
            let thread = Builder::new().name(format!("rings-{number}"));
            let thread = thread.spawn_scoped(scope, || lane.run(&shared));
            threads.push(thread.map_err(Error::Thread)?);
        }
        let done = work(Some(&shared.news));
        drop(open);
        let woken = threads.into_iter().map(ended).collect::<Vec<_>>();
        let woken: u64 = woken.into_iter().sum::<Result<_, _>>()?;
        done.map(|(done, own)| (done, own + woken))
    })
}

/// Waits for a thread.
fn ended(thread: ScopedJoinHandle<'_, Result<u64, Error>>) -> Result<u64, Error> {
    thread.join().unwrap_or_else(|_| {
        let cause = std::io::Error::other("it panicked");
        Err(Error::system("run a thread")(cause))
    })
}
