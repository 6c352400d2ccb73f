//! Records that are changed between the rings and the file, by a thread beside the one that drains.
//!
//! ```text
//! rings --chunks, copied--> round --+--> waiting --Rewriter--> rewritten --> file
//!        the draining thread        |    the other thread      the draining thread
//!                                   at most MOST_HELD bytes from here to the file
//! ```
//!
//! The order of records stays: rounds come back in the order in which they were handed over, and each keeps its records in
//! theirs. The last round waits for the next, which may tell of its time.

use std::collections::VecDeque;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rperf_perfdata::{EventDesc, WriteError};

use crate::Error;
use crate::sink::Sink;

/// Begins to change the records of recordings.
pub trait Rewriting: fmt::Debug + Send + Sync {
    /// Changes what the file says of the events to what their samples will be.
    fn describe(&self, events: &mut [EventDesc]);
    /// For a recording of these events, as [`Rewriting::describe`] left them.
    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter>;
}

/// Changes the records of one recording. [`Rewriter::note`] and
/// [`Rewriter::rewrite`] get the same whole records in the same order, in pieces of any length.
pub trait Rewriter: Send {
    /// Takes note of records as they come out of the rings.
    fn note(&mut self, records: &[u8]);
    /// Nothing follows that is older than what was noted.
    fn note_end(&mut self);
    /// Appends `records`, all of rounds before the last one that was noted, as they are to be written; with `haste` only what
    /// takes no longer than copying them.
    fn rewrite(&mut self, records: &[u8], haste: bool, to: &mut Vec<u8>);
    /// Appends what was held back when all that was noted is rewritten: the end of a file, which another may follow.
    fn end(&mut self, _to: &mut Vec<u8>) {}
}

/// Bytes that may be under way between the rings and the file, unless a single pass over the rings brings more. Then the rings
/// have to wait.
const MOST_HELD: usize = 64 << 20;
/// Bytes under way from which on the rewriter hastens.
const HASTE_FROM: usize = MOST_HELD / 2;
/// Bytes that are gathered for a busy thread before they are handed over.
const GATHERED: usize = 1 << 20;
/// Milliseconds after which a busy thread is looked after.
const LOOK_AFTER: i32 = 50;
/// Empty buffers of each kind that are kept.
const SPARE: usize = 4;

/// What the other thread is to do.
enum Job {
    /// Records, and an empty buffer for what becomes of them.
    Round(Vec<u8>, Vec<u8>),
    End,
}

/// What the other thread has done.
enum Done {
    /// A round as it is to be written, and the emptied buffer in which it came.
    Round(Vec<u8>, Vec<u8>),
    /// All of them; with what was held back.
    End(Vec<u8>),
}

/// The other thread, seen from the draining one.
pub(crate) struct Beside {
    /// Records that were not handed over yet.
    round: Vec<u8>,
    /// `None` when it is to end.
    jobs: Option<Sender<Job>>,
    done: Receiver<Done>,
    thread: Option<JoinHandle<()>>,
    /// Bytes that were handed over and are not written.
    held: Arc<AtomicUsize>,
    /// Rounds of those.
    rounds: usize,
    /// Buffers for rounds.
    spare: Spare,
    /// Buffers for what becomes of rounds: apart, since a stack's copy is fifty times as long as its callchain.
    spare_rewritten: Spare,
}

/// Empty buffers, kept so that memory is not asked of the kernel for each round.
#[derive(Default)]
struct Spare(Vec<Vec<u8>>);

impl Spare {
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if self.0.len() < SPARE {
            self.0.push(buffer);
        }
    }
}

impl Beside {
    pub(crate) fn begin(rewriter: Box<dyn Rewriter>) -> Result<Self, Error> {
        let (jobs, todo) = channel();
        let (finished, done) = channel();
        let held = Arc::new(AtomicUsize::new(0));
        let work = Work {
            rewriter,
            waiting: VecDeque::new(),
            finished,
            held: Arc::clone(&held),
        };
        let thread = thread::Builder::new().name("rewrite".to_owned());
        let thread = thread.spawn(move || work.run(&todo));
        Ok(Self {
            round: Vec::new(),
            jobs: Some(jobs),
            done,
            thread: Some(thread.map_err(Error::Thread)?),
            held,
            rounds: 0,
            spare: Spare::default(),
            spare_rewritten: Spare::default(),
        })
    }

    /// Takes whole records over.
    pub(crate) fn take(&mut self, records: &[u8]) {
        self.round.extend_from_slice(records);
    }

    /// Writes what is done and hands over what was taken, if a round has ended.
    pub(crate) fn keep(&mut self, sink: &mut Sink) -> Result<(), WriteError> {
        while let Ok(done) = self.done.try_recv() {
            self.write(done, sink)?;
        }
        let is_idle = self.rounds <= 1;
        if self.round.is_empty() || !is_idle && self.round.len() < GATHERED {
            return Ok(());
        }
        while self.rounds > 1 && self.held() + self.round.len() > MOST_HELD {
            let Ok(done) = self.done.recv() else { break };
            self.write(done, sink)?;
        }
        self.hand_over();
        Ok(())
    }

    /// Has everything rewritten and written.
    pub(crate) fn flush(&mut self, sink: &mut Sink) -> Result<(), WriteError> {
        self.hand_over();
        self.send(Job::End);
        while let Ok(done) = self.done.recv() {
            if !self.write(done, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// Milliseconds until there may be something to write; -1 where nothing is under way.
    pub(crate) fn timeout(&self) -> i32 {
        match self.rounds > 1 {
            true => LOOK_AFTER,
            false => -1,
        }
    }

    fn held(&self) -> usize {
        self.held.load(Ordering::Acquire)
    }

    fn hand_over(&mut self) {
        if self.round.is_empty() {
            return;
        }
        let round = std::mem::replace(&mut self.round, self.spare.take());
        self.held.fetch_add(round.len(), Ordering::AcqRel);
        self.rounds += 1;
        let rewritten = self.spare_rewritten.take();
        self.send(Job::Round(round, rewritten));
    }

    /// A thread that is gone has panicked, which is told when it is joined.
    fn send(&self, job: Job) {
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Writes a round; false for the end.
    fn write(&mut self, done: Done, sink: &mut Sink) -> Result<bool, WriteError> {
        let (records, round) = match done {
            Done::Round(records, round) => (records, round),
            Done::End(rest) => return sink.write(&rest).map(|()| false),
        };
        self.rounds -= 1;
        self.held.fetch_sub(records.len(), Ordering::AcqRel);
        sink.write(&records)?;
        self.spare.keep(round);
        self.spare_rewritten.keep(records);
        Ok(true)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.jobs = None;
        let joined = self.thread.take().map(JoinHandle::join);
        if let Some(Err(panic)) = joined
            && !thread::panicking()
        {
            resume_unwind(panic);
        }
    }
}

/// The other thread.
struct Work {
    rewriter: Box<dyn Rewriter>,
    /// Rounds that were noted, and empty buffers for what becomes of them.
    waiting: VecDeque<(Vec<u8>, Vec<u8>)>,
    finished: Sender<Done>,
    held: Arc<AtomicUsize>,
}

impl Work {
    fn run(mut self, todo: &Receiver<Job>) {
        while let Ok(job) = todo.recv() {
            match job {
                Job::Round(round, rewritten) => {
                    self.rewriter.note(&round);
                    self.waiting.push_back((round, rewritten));
                    self.rewrite_up_to(1);
                }
                Job::End => {
                    self.rewriter.note_end();
                    self.rewrite_up_to(0);
                    let mut rest = Vec::new();
                    self.rewriter.end(&mut rest);
                    let _ = self.finished.send(Done::End(rest));
                }
            }
        }
    }

    /// Rewrites all but the last so many rounds.
    fn rewrite_up_to(&mut self, last: usize) {
        while self.waiting.len() > last
            && let Some((round, mut rewritten)) = self.waiting.pop_front()
        {
            let haste = self.held.load(Ordering::Acquire) > HASTE_FROM;
            self.rewriter.rewrite(&round, haste, &mut rewritten);
            self.held.fetch_add(rewritten.len(), Ordering::AcqRel);
            self.held.fetch_sub(round.len(), Ordering::AcqRel);
            // Whoever recorded has failed to write, if nobody takes it.
            let _ = self.finished.send(Done::Round(rewritten, round));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::medium::Medium;
    use crate::output::Replacement;
    use crate::tally::Tally;
    use rperf_perfdata::PerfData;
    use rperf_wire::{Attr, RecordKind, SampleType};

    use crate::synthesize::Records;

    /// Leaves records as they are, after some time; notes whether each came to `rewrite` after a later one was noted.
    struct Slow {
        noted: usize,
        rewritten: usize,
        ended: bool,
        late: Arc<AtomicUsize>,
        hasty: Arc<AtomicUsize>,
    }

    impl Rewriter for Slow {
        fn note(&mut self, records: &[u8]) {
            self.noted += records.len();
            self.ended = false;
        }

        fn note_end(&mut self) {
            self.ended = true;
        }

        fn rewrite(&mut self, records: &[u8], haste: bool, to: &mut Vec<u8>) {
            self.rewritten += records.len();
            let is_known = self.ended || self.rewritten < self.noted;
            self.late
                .fetch_add(usize::from(!is_known), Ordering::AcqRel);
            self.hasty.fetch_add(usize::from(haste), Ordering::AcqRel);
            if !haste {
                thread::sleep(std::time::Duration::from_millis(2));
            }
            to.extend_from_slice(records);
        }
    }

    fn sink(path: &std::path::Path) -> (Sink, Replacement) {
        let event = EventDesc {
            attr: Attr::default(),
            ids: vec![1],
            name: "cycles".to_owned(),
        };
        let (replacement, file) = Replacement::create(path, rperf_safefs::Naming::Default).unwrap();
        let medium = Medium::file(file, &[event]).unwrap();
        let tally = Tally::new(SampleType::default());
        (Sink::new(medium, tally, false), replacement)
    }

    /// Leaves the heads of pieces.
    struct Short;

    impl Rewriter for Short {
        fn note(&mut self, _: &[u8]) {}

        fn note_end(&mut self) {}

        fn rewrite(&mut self, records: &[u8], _: bool, to: &mut Vec<u8>) {
            to.extend(numbered(records.len() as u64, 8));
        }
    }

    #[test]
    fn rounds_and_what_becomes_of_them_keep_their_buffers() {
        let path = std::env::temp_dir().join(format!("rperf-buffers-{}", std::process::id()));
        let (mut sink, _replacement) = sink(&path);
        let mut beside = Beside::begin(Box::new(Short)).unwrap();
        for _ in 0..100 {
            beside.take(&numbered(0, 60_000));
            beside.keep(&mut sink).unwrap();
            beside.flush(&mut sink).unwrap();
        }
        let capacities = |spare: &Spare| spare.0.iter().map(Vec::capacity).collect::<Vec<_>>();
        let (rounds, rewritten) = (
            capacities(&beside.spare),
            capacities(&beside.spare_rewritten),
        );
        assert!(!rounds.is_empty() && rounds.iter().all(|kept| *kept >= 60_000));
        assert!(!rewritten.is_empty() && rewritten.iter().all(|kept| *kept < 60_000));
    }

    /// A record with a number and some bytes behind it.
    fn numbered(number: u64, size: usize) -> Vec<u8> {
        let mut records = Records::new(0);
        records.user(RecordKind(90), |to| {
            to.u64(number);
            to.zeros(size);
        });
        records.take()
    }

    #[test]
    fn records_come_in_their_order_and_within_bounds() {
        let path = std::env::temp_dir().join(format!("rperf-beside-{}", std::process::id()));
        let (mut sink, mut replacement) = sink(&path);
        let (late, hasty) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let slow = Slow {
            noted: 0,
            rewritten: 0,
            ended: false,
            late: Arc::clone(&late),
            hasty: Arc::clone(&hasty),
        };
        let mut beside = Beside::begin(Box::new(slow)).unwrap();
        let mut count = 0;
        let mut most = 0;
        for _ in 0..120 {
            for _ in 0..20 {
                beside.take(&numbered(count, 65_000));
                count += 1;
            }
            beside.keep(&mut sink).unwrap();
            most = most.max(beside.held());
        }
        beside.flush(&mut sink).unwrap();
        beside.take(&numbered(count, 8));
        beside.flush(&mut sink).unwrap();
        assert_eq!((beside.held(), beside.rounds, beside.timeout()), (0, 0, -1));
        drop(beside);
        assert_eq!(late.load(Ordering::Acquire), 0, "the last round waits");
        assert!(most <= MOST_HELD, "{most} bytes were under way");
        replacement.commit().unwrap();
        drop(sink);
        let bytes = std::fs::read(&path).unwrap();
        let file = PerfData::parse(&bytes).unwrap();
        let numbers = file.records().map(|record| {
            let body = record.unwrap().raw.body;
            u64::from_ne_bytes(body[..8].try_into().unwrap())
        });
        assert!(numbers.eq(0..=count));
        std::fs::remove_file(path).unwrap();
    }
}
