//! Samples whose user stacks are unwound while they are recorded: registers and copies of stacks become callchains.
//!
//! The frames are those that [`UserStacks`] finds when the file is read: it is asked, in the World as it is known when all
//! is there that came before the sample.

use std::thread;

use rperf_replay::{Growing, Machine};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_wire::{Endian, RawRecord, RecordHeader, RecordKind, Regs, RegsAbi, U64s};

use crate::resolver::{Known, Resolver};
use crate::user_stacks::{StackOptions, StackScratch, StackSummary, UserStacks};

/// Bytes of records that are worth a worker of their own.
const WORTH_A_WORKER: usize = 512 << 10;

/// What unwinding needs besides the records.
pub struct LiveOptions {
    /// Objects and their debug files.
    pub files: &'static dyn Files,
    /// Where these are.
    pub paths: SearchPaths,
    /// The running kernel's `[vdso]`.
    pub vdso: Option<FileBytes>,
    /// Architecture, byte order, and the frames that are kept.
    pub stacks: StackOptions,
    /// Workers for what has piled up, at least one.
    pub jobs: usize,
}

/// Unwinds the stacks of a recording that is being made, round by round.
pub struct LiveStacks {
    growing: Growing,
    files: &'static dyn Files,
    known: Option<Known>,
    options: StackOptions,
    workers: Vec<Worker>,
    /// Bytes of records that were rewritten or stored.
    position: u64,
    summary: StackSummary,
    stored: u64,
}

#[derive(Default)]
struct Worker {
    scratch: StackScratch,
    out: Vec<u8>,
}

impl LiveStacks {
    /// For a recording of which nothing was noted yet.
    #[must_use]
    pub fn new(growing: Growing, options: LiveOptions) -> Self {
        let resolver = Resolver::new(growing.world(), options.files, options.paths);
        let known = resolver.with_vdso(options.vdso).into_known();
        let mut workers = Vec::new();
        workers.resize_with(options.jobs.max(1), Worker::default);
        Self {
            growing,
            files: options.files,
            known: Some(known),
            options: options.stacks,
            workers,
            position: 0,
            summary: StackSummary::default(),
            stored: 0,
        }
    }

    /// Takes note of whole records, which [`LiveStacks::rewrite`] or [`LiveStacks::store`] gets later, in the same order.
    pub fn note(&mut self, records: &[u8]) {
        self.growing.note(records);
    }

    /// No record that was not noted is older than those that were.
    pub fn note_end(&mut self) {
        self.growing.complete_all();
    }

    /// Appends `records`, of rounds before the last one that was noted, with callchains in place of copies. A sample that
    /// cannot be decoded, or is of a guest, stays as it is.
    pub fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        self.growing.complete();
        let Some(known) = self.known.take() else {
            return to.extend_from_slice(records);
        };
        let resolver = Resolver::resume(self.growing.world(), self.files, known);
        let rewriting = Rewriting {
            growing: &self.growing,
            stacks: UserStacks::new(&resolver, self.options.clone()),
        };
        let wanted = self.workers.len().min(records.len() / WORTH_A_WORKER + 1);
        let stretches = stretches(records, wanted, self.growing.endian());
        thread::scope(|scope| {
            let mut position = self.position;
            let mut own = None;
            for (worker, stretch) in self.workers.iter_mut().zip(&stretches) {
                let from = position;
                position += stretch.len() as u64;
                if own.is_none() {
                    own = Some((worker, *stretch, from));
                    continue;
                }
                let rewriting = &rewriting;
                let work = move || rewriting.stretch(stretch, from, worker);
                // Without a thread its stretch stays as it is.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            if let Some((worker, stretch, from)) = own {
                rewriting.stretch(stretch, from, worker);
            }
        });
        self.summary.merge(rewriting.stacks.summary());
        let mut known = resolver.into_known();
        if self.growing.forget() {
            known.forget_mappings();
        }
        self.known = Some(known);
        self.position += records.len() as u64;
        for (worker, stretch) in self.workers.iter_mut().zip(stretches) {
            match worker.out.is_empty() {
                true => to.extend_from_slice(stretch),
                false => to.append(&mut worker.out),
            }
        }
    }

    /// Appends `records` as they are, for want of time.
    pub fn store(&mut self, records: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(records);
        self.position += records.len() as u64;
        let samples = RawRecord::all(records, self.growing.endian());
        let copies = samples.filter(|(raw, _)| raw.kind == RecordKind::SAMPLE);
        self.stored += copies.count() as u64;
    }

    /// What became of the stacks that were unwound so far.
    #[must_use]
    pub fn summary(&self) -> &StackSummary {
        &self.summary
    }

    /// Samples that were stored as they were.
    #[must_use]
    pub fn stored(&self) -> u64 {
        self.stored
    }
}

/// Cuts `records` into at most `count` stretches of about equal length, at record borders.
fn stretches(records: &[u8], count: usize, endian: Endian) -> Vec<&[u8]> {
    let enough = records.len().div_ceil(count.max(1));
    let mut stretches = Vec::with_capacity(count);
    let mut rest = records;
    let mut length = 0;
    for (_, record) in RawRecord::all(records, endian) {
        length += record.len();
        if length >= enough {
            let (stretch, behind) = rest.split_at(length);
            stretches.push(stretch);
            (rest, length) = (behind, 0);
        }
    }
    if !rest.is_empty() {
        stretches.push(rest);
    }
    stretches
}

/// What all workers look at.
struct Rewriting<'g, 'r> {
    growing: &'g Growing,
    stacks: UserStacks<'r, 'g>,
}

impl Rewriting<'_, '_> {
    /// Rewrites records that begin at `position`.
    fn stretch(&self, records: &[u8], mut position: u64, worker: &mut Worker) {
        let Worker { scratch, out } = worker;
        for (raw, record) in RawRecord::all(records, self.growing.endian()) {
            let is_rewritten =
                raw.kind == RecordKind::SAMPLE && self.sample(&raw, position, (scratch, out));
            if !is_rewritten {
                out.extend_from_slice(record);
            }
            position += record.len() as u64;
        }
    }

    /// Appends a sample with its whole callchain; false, with nothing appended, for one that is to stay as it is.
    fn sample(
        &self,
        raw: &RawRecord<'_>,
        position: u64,
        (scratch, out): (&mut StackScratch, &mut Vec<u8>),
    ) -> bool {
        let Ok(Some(sample)) = self.growing.sample(raw, position) else {
            return false;
        };
        let Some(layout) = self.growing.layout(sample.event) else {
            return false;
        };
        let has_copy = sample
            .wire
            .stack_user
            .is_some_and(|stack| stack.reserved > 0);
        if !has_copy || sample.wire.callchain.is_none() || sample.machine() != Machine::Host {
            return false;
        }
        let endian = self.growing.endian();
        let mut wire = sample.wire.clone();
        wire.callchain = self.stacks.chain(&sample, scratch).or(wire.callchain);
        // By these two, readers know that there is nothing left to unwind.
        wire.stack_user = None;
        wire.regs_user = Some(Regs {
            abi: RegsAbi::None,
            mask: 0,
            values: U64s::new(&[], endian),
        });
        RecordHeader::encode_record(raw.kind, raw.misc, (out, endian), |to| {
            layout.encode(&wire, to);
        })
    }
}
