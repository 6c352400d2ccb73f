//! Rewriting of records between rings and file, in a separate thread: for example, a [`Rewriter`] unwinds copied user stacks.
//!
//! ```text
//! rings --chunks, copied--> round --+--> waiting --Rewriter--> rewritten --> file
//!        draining thread            |    rewriting thread      draining thread
//!                                   at most MAX_QUEUED bytes from here to the file
//! ```
//!
//! A round is the records of one pass over the rings, or of several passes while the rewriting thread is busy.
//!
//! The order of records is preserved: rounds return in order, and so do the records in a round. The last round is kept
//! until the next one arrives or the file ends: the next round may have records of an earlier time than samples in the last,
//! such as mappings, and the rewriter must have inspected these ([`Rewriter::note`]) before it rewrites the samples.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use rperf_perfdata::{Rewriter, WriteError};

use crate::Error;
use crate::counted_output::CountedOutput;

/// Number of bytes that are passed on to the rewriting thread and not written yet, above which the draining thread waits for
/// results instead of draining. The kept round and the newest one may exceed it: the kept one is not rewritten before the newest
/// is passed on.
const MAX_QUEUED: usize = 64 << 20;
/// Number of queued bytes above which [`Rewriter::rewrite`] is called with `is_behind`, so that it takes no longer than
/// copying the records.
const BEHIND_THRESHOLD: usize = MAX_QUEUED / 2;
/// Number of bytes collected before they are passed on to a busy rewriting thread.
const BATCH_BYTES: usize = 1 << 20;
/// Interval in milliseconds at which the draining thread checks a busy rewriting thread for results.
const BUSY_POLL_MILLIS: i32 = 50;
/// Number of empty buffers of each kind that are kept.
const MAX_SPARE_BUFFERS: usize = 4;

/// Work for the rewriting thread.
enum RewriteJob {
    /// Records, and an empty buffer for the result.
    Round(Vec<u8>, Vec<u8>),
    /// The end of a file: rewrite the waiting round, too.
    End,
}

/// Results of the rewriting thread.
enum RewriteResult {
    /// A rewritten round, and its input buffer, to be reused.
    Round(Vec<u8>, Vec<u8>),
    /// The end of a file, with the records that the rewriter held back until then ([`Rewriter::end`]).
    End(Vec<u8>),
}

/// The rewriting thread.
pub(crate) struct RewriteThread {
    /// Records not passed on to the thread yet: the next round.
    round: Vec<u8>,
    /// `None` to end the thread.
    jobs: Option<Sender<RewriteJob>>,
    results: Receiver<RewriteResult>,
    thread: Option<JoinHandle<()>>,
    /// Number of bytes passed on and not written yet; rounds that are already rewritten count with their new size.
    queued: Arc<AtomicUsize>,
    /// Number of rounds passed on and not written yet.
    rounds: usize,
    spare: SpareBuffers,
    /// Spare buffers for rewritten rounds. Separate from `spare`, since they can be much smaller: a rewriter may replace stack
    /// copies by callchains.
    spare_rewritten: SpareBuffers,
}

/// Empty buffers, kept to avoid allocating memory for each round.
#[derive(Default)]
struct SpareBuffers(Vec<Vec<u8>>);

impl SpareBuffers {
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    fn keep(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        if self.0.len() < MAX_SPARE_BUFFERS {
            self.0.push(buffer);
        }
    }
}

impl RewriteThread {
    /// Starts the thread.
    pub(crate) fn begin(rewriter: Box<dyn Rewriter>) -> Result<Self, Error> {
        let (jobs, job_receiver) = channel();
        let (result_sender, results) = channel();
        let queued = Arc::new(AtomicUsize::new(0));
        let work = RewriteState {
            rewriter,
            waiting: VecDeque::new(),
            results: result_sender,
            queued: Arc::clone(&queued),
        };
        let thread = thread::Builder::new().name("rewrite".to_owned());
        let thread = thread.spawn(move || work.run(&job_receiver));
        Ok(Self {
            round: Vec::new(),
            jobs: Some(jobs),
            results,
            thread: Some(thread.map_err(Error::Thread)?),
            queued,
            rounds: 0,
            spare: SpareBuffers::default(),
            spare_rewritten: SpareBuffers::default(),
        })
    }

    /// Adds complete records to the current round.
    pub(crate) fn add(&mut self, records: &[u8]) {
        self.round.extend_from_slice(records);
    }

    /// Called after each pass over the rings: writes available results, and passes the collected records on to the thread as a
    /// round. If the thread is busy and they are few, they wait for more records instead. Waits if too many bytes are queued.
    pub(crate) fn end_round(&mut self, sink: &mut CountedOutput) -> Result<(), WriteError> {
        while let Ok(result) = self.results.try_recv() {
            self.write(result, sink)?;
        }
        // The thread keeps the last round until the next one.
        let is_idle = self.rounds <= 1;
        if self.round.is_empty() || !is_idle && self.round.len() < BATCH_BYTES {
            return Ok(());
        }
        while self.rounds > 1 && self.queued_bytes() + self.round.len() > MAX_QUEUED {
            let Ok(result) = self.results.recv() else {
                break;
            };
            self.write(result, sink)?;
        }
        self.hand_over();
        Ok(())
    }

    /// Ends a file: waits until all records are rewritten and written, also those that the rewriter held back.
    pub(crate) fn flush(&mut self, sink: &mut CountedOutput) -> Result<(), WriteError> {
        self.hand_over();
        self.send(RewriteJob::End);
        while let Ok(result) = self.results.recv() {
            if !self.write(result, sink)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns the poll timeout: the milliseconds until the next check for results; -1 (no limit) if none is expected, as the
    /// thread keeps the last round until the next one.
    pub(crate) fn timeout(&self) -> i32 {
        match self.rounds > 1 {
            true => BUSY_POLL_MILLIS,
            false => -1,
        }
    }

    fn queued_bytes(&self) -> usize {
        self.queued.load(Ordering::Acquire)
    }

    /// Passes the collected records on to the thread, if there are any.
    fn hand_over(&mut self) {
        if self.round.is_empty() {
            return;
        }
        let round = std::mem::replace(&mut self.round, self.spare.take());
        self.queued.fetch_add(round.len(), Ordering::AcqRel);
        self.rounds += 1;
        let rewritten = self.spare_rewritten.take();
        self.send(RewriteJob::Round(round, rewritten));
    }

    /// Sends a job. Sending fails if the thread panicked, which is reported when the thread is joined.
    fn send(&self, job: RewriteJob) {
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    /// Writes a result; returns false if it is the last one of a file.
    fn write(
        &mut self,
        result: RewriteResult,
        sink: &mut CountedOutput,
    ) -> Result<bool, WriteError> {
        let (records, round) = match result {
            RewriteResult::Round(records, round) => (records, round),
            RewriteResult::End(rest) => return sink.write(&rest).map(|()| false),
        };
        self.rounds -= 1;
        self.queued.fetch_sub(records.len(), Ordering::AcqRel);
        sink.write(&records)?;
        self.spare.keep(round);
        self.spare_rewritten.keep(records);
        Ok(true)
    }
}

impl Drop for RewriteThread {
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

/// State of the rewriting thread.
struct RewriteState {
    rewriter: Box<dyn Rewriter>,
    /// Waiting rounds, with empty buffers for the results.
    waiting: VecDeque<(Vec<u8>, Vec<u8>)>,
    results: Sender<RewriteResult>,
    queued: Arc<AtomicUsize>,
}

impl RewriteState {
    fn run(mut self, jobs: &Receiver<RewriteJob>) {
        while let Ok(job) = jobs.recv() {
            match job {
                RewriteJob::Round(round, rewritten) => {
                    self.rewriter.note(&round);
                    self.waiting.push_back((round, rewritten));
                    self.rewrite_all_but(1);
                }
                RewriteJob::End => {
                    self.rewriter.note_end();
                    self.rewrite_all_but(0);
                    let mut rest = Vec::new();
                    self.rewriter.end(&mut rest);
                    let _ = self.results.send(RewriteResult::End(rest));
                }
            }
        }
    }

    /// Rewrites the waiting rounds except for the `kept` last ones.
    fn rewrite_all_but(&mut self, kept: usize) {
        while self.waiting.len() > kept
            && let Some((round, mut rewritten)) = self.waiting.pop_front()
        {
            let is_behind = self.queued.load(Ordering::Acquire) > BEHIND_THRESHOLD;
            self.rewriter.rewrite(&round, is_behind, &mut rewritten);
            self.queued.fetch_add(rewritten.len(), Ordering::AcqRel);
            self.queued.fetch_sub(round.len(), Ordering::AcqRel);
            // Sending fails only if the recorder stopped after a write error.
            let _ = self.results.send(RewriteResult::Round(rewritten, round));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::Replacement;
    use crate::output_stream::OutputStream;
    use crate::record_stats::RecordStats;
    use rperf_perfdata::{EventDesc, PerfData};
    use rperf_wire::{Attr, RecordKind, SampleType};

    use crate::synthesize::RecordBuffer;

    /// Copies records unchanged, after a delay unless it is behind. Counts the rounds that were rewritten before the next
    /// round was noted.
    struct SlowRewriter {
        /// Bytes noted and bytes rewritten so far.
        noted: usize,
        rewritten: usize,
        /// Whether the file ended, so that the last round may be rewritten.
        ended: bool,
        too_early: Arc<AtomicUsize>,
    }

    impl Rewriter for SlowRewriter {
        fn note(&mut self, records: &[u8]) {
            self.noted += records.len();
            self.ended = false;
        }

        fn note_end(&mut self) {
            self.ended = true;
        }

        fn rewrite(&mut self, records: &[u8], is_behind: bool, to: &mut Vec<u8>) {
            self.rewritten += records.len();
            let is_next_noted = self.ended || self.rewritten < self.noted;
            self.too_early
                .fetch_add(usize::from(!is_next_noted), Ordering::AcqRel);
            if !is_behind {
                thread::sleep(std::time::Duration::from_millis(2));
            }
            to.extend_from_slice(records);
        }
    }

    fn sink(path: &std::path::Path) -> (CountedOutput, Replacement) {
        let event = EventDesc {
            attr: Attr::default(),
            ids: vec![1],
            name: "cycles".to_owned(),
        };
        let (replacement, file) =
            Replacement::create(path, rperf_safefs::PathOrigin::Default).unwrap();
        let output_sink = OutputStream::file(file, &[event]).unwrap();
        let stats = RecordStats::new(SampleType::default());
        let compress = false;
        (
            CountedOutput::new(output_sink, stats, compress),
            replacement,
        )
    }

    /// Replaces each round by one short record.
    struct TruncatingRewriter;

    impl Rewriter for TruncatingRewriter {
        fn rewrite(&mut self, records: &[u8], _: bool, to: &mut Vec<u8>) {
            to.extend(numbered(records.len() as u64, 8));
        }
    }

    #[test]
    fn buffers_of_rounds_are_reused() {
        let path = std::env::temp_dir().join(format!("rperf-buffers-{}", std::process::id()));
        let (mut sink, _replacement) = sink(&path);
        let mut rewrite_thread = RewriteThread::begin(Box::new(TruncatingRewriter)).unwrap();
        for _ in 0..100 {
            rewrite_thread.add(&numbered(0, 60_000));
            rewrite_thread.end_round(&mut sink).unwrap();
            // Waits until the round is written and its buffers are spare.
            rewrite_thread.flush(&mut sink).unwrap();
        }
        let capacities =
            |spare: &SpareBuffers| spare.0.iter().map(Vec::capacity).collect::<Vec<_>>();
        let (rounds, rewritten) = (
            capacities(&rewrite_thread.spare),
            capacities(&rewrite_thread.spare_rewritten),
        );
        assert!(!rounds.is_empty() && rounds.iter().all(|capacity| *capacity >= 60_000));
        assert!(!rewritten.is_empty() && rewritten.iter().all(|capacity| *capacity < 60_000));
    }

    /// Returns a record with a number and `padding` zeros. Its type, 90, is not one of perf's.
    fn numbered(number: u64, padding: usize) -> Vec<u8> {
        let trailer_size = 0;
        let mut records = RecordBuffer::new(trailer_size);
        records.user(RecordKind(90), |to| {
            to.u64(number);
            to.zeros(padding);
        });
        records.take()
    }

    #[test]
    fn records_stay_in_order_and_buffered_memory_is_bounded() {
        let path = std::env::temp_dir().join(format!("rperf-rewriting-{}", std::process::id()));
        let (mut sink, mut replacement) = sink(&path);
        let too_early = Arc::new(AtomicUsize::new(0));
        let slow = SlowRewriter {
            noted: 0,
            rewritten: 0,
            ended: false,
            too_early: Arc::clone(&too_early),
        };
        let mut rewrite_thread = RewriteThread::begin(Box::new(slow)).unwrap();
        let mut count = 0;
        let mut most = 0;
        // More than twice `MAX_QUEUED` in total.
        for _ in 0..120 {
            for _ in 0..20 {
                rewrite_thread.add(&numbered(count, 65_000));
                count += 1;
            }
            rewrite_thread.end_round(&mut sink).unwrap();
            most = most.max(rewrite_thread.queued_bytes());
        }
        rewrite_thread.flush(&mut sink).unwrap();
        rewrite_thread.add(&numbered(count, 8));
        rewrite_thread.flush(&mut sink).unwrap();
        assert_eq!(
            (
                rewrite_thread.queued_bytes(),
                rewrite_thread.rounds,
                rewrite_thread.timeout()
            ),
            (0, 0, -1)
        );
        drop(rewrite_thread);
        assert_eq!(
            too_early.load(Ordering::Acquire),
            0,
            "a round was rewritten before the next one was noted"
        );
        assert!(most <= MAX_QUEUED, "{most} bytes were queued");
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
