//! Unwinds user stacks while a recording is written or copied: registers and stack copies become callchains.
//!
//! As for reports, [`UserStacks`] finds the frames. The World (the processes and mappings at a time) must then contain all
//! records up to the sample's time. Some of them may be in the next round (a pass over all ring buffers), so a round is
//! rewritten only after the next one has been noted ([`Rewriter::note`]).

use std::thread;

use rperf_perfdata::Rewriter;
use rperf_replay::{LiveWorld, Machine};
use rperf_resolve::{
    LoadedObjects, Resolver, StackOptions, StackScratch, StackSummary, UserStacks,
};
use rperf_symbol::{FileBytes, Files, SearchPaths};
use rperf_wire::{Endian, RawRecord, RecordHeader, RecordKind, Regs, RegsAbi, U64s};

use crate::pipeline::Transform;

/// A round is rewritten by one worker, and one more for each `BYTES_PER_WORKER` bytes, up to the number of workers.
const BYTES_PER_WORKER: usize = 512 << 10;

/// The parameters of unwinding.
pub struct UnwindOptions {
    /// File access for objects and debug files.
    pub files: &'static dyn Files,
    /// Where objects and debug files are searched.
    pub paths: SearchPaths,
    /// The running kernel's `[vdso]`.
    pub vdso: Option<FileBytes>,
    /// Architecture, byte order, and frame limits.
    pub stacks: StackOptions,
    /// The maximum number of workers; 0 counts as 1.
    pub jobs: usize,
}

/// Unwinds the stacks of a recording, round by round.
pub struct LiveUnwinder {
    live: LiveWorld,
    files: &'static dyn Files,
    /// The objects loaded so far; `None` only while stacks are unwound.
    known: Option<LoadedObjects>,
    options: StackOptions,
    workers: Vec<UnwindWorker>,
    /// Size in bytes of the records rewritten or appended unchanged so far.
    position: u64,
    summary: StackSummary,
    /// Number of samples that were appended unchanged because unwinding fell behind.
    not_unwound: u64,
}

#[derive(Default)]
struct UnwindWorker {
    scratch: StackScratch,
    /// The records of its part of a round, with callchains if they were unwound.
    out: Vec<u8>,
}

impl LiveUnwinder {
    /// Creates an unwinder for a recording that has no records yet.
    #[must_use]
    pub fn new(live: LiveWorld, options: UnwindOptions) -> Self {
        let resolver = Resolver::new(live.world(), options.files, options.paths);
        let known = resolver.with_vdso(options.vdso).into_loaded();
        let mut workers = Vec::new();
        workers.resize_with(options.jobs.max(1), UnwindWorker::default);
        Self {
            live,
            files: options.files,
            known: Some(known),
            options: options.stacks,
            workers,
            position: 0,
            summary: StackSummary::default(),
            not_unwound: 0,
        }
    }

    /// Replaces stack copies by callchains. Samples without a stack copy or without a callchain, those of guests, those that
    /// cannot be decoded, and those that would be too large for a record are kept unchanged.
    fn unwind(&mut self, records: &[u8], to: &mut Vec<u8>) {
        self.live.apply_complete();
        // Not reached unless an earlier call panicked.
        let Some(known) = self.known.take() else {
            return to.extend_from_slice(records);
        };
        let resolver = Resolver::resume(self.live.world(), self.files, known);
        let shared = SharedState {
            live: &self.live,
            stacks: UserStacks::new(&resolver, self.options.clone()),
        };
        let count = self.workers.len().min(records.len() / BYTES_PER_WORKER + 1);
        let parts = split_records(records, count, self.live.endian());
        thread::scope(|scope| {
            let mut next = self.position;
            let mut assignments = self.workers.iter_mut().zip(&parts).map(|(worker, part)| {
                let position = next;
                next += part.len() as u64;
                (worker, *part, position)
            });
            // The first part is rewritten by this thread, the others by threads of their own.
            let first = assignments.next();
            for (worker, part, position) in assignments {
                let shared = &shared;
                let work = move || shared.rewrite_part(part, position, worker);
                // If a thread cannot be started, its part is kept unchanged.
                let _ = thread::Builder::new().spawn_scoped(scope, work);
            }
            if let Some((worker, part, position)) = first {
                shared.rewrite_part(part, position, worker);
            }
        });
        self.summary.merge(shared.stacks.summary());
        let mut known = resolver.into_loaded();
        // True if the World was pruned.
        if self.live.forget() {
            known.discard_after_prune(self.live.world());
            // The scratches refer to objects by number; the numbers may be those of removed objects.
            let scratches = self.workers.iter_mut().map(|worker| &mut worker.scratch);
            scratches.for_each(|scratch| *scratch = StackScratch::default());
        }
        self.known = Some(known);
        self.position += records.len() as u64;
        for (worker, part) in self.workers.iter_mut().zip(parts) {
            // A part whose thread could not be started has no output.
            match worker.out.is_empty() {
                true => to.extend_from_slice(part),
                false => to.append(&mut worker.out),
            }
        }
    }

    /// Appends `records` unchanged, and counts their samples.
    fn append_unchanged(&mut self, records: &[u8], to: &mut Vec<u8>) {
        to.extend_from_slice(records);
        self.position += records.len() as u64;
        let records = RawRecord::all(records, self.live.endian());
        let samples = records.filter(|(raw, _)| raw.kind == RecordKind::SAMPLE);
        self.not_unwound += samples.count() as u64;
    }

    /// Returns statistics on the stacks unwound so far.
    #[must_use]
    pub fn summary(&self) -> &StackSummary {
        &self.summary
    }

    /// Returns the number of samples that were appended unchanged because unwinding fell behind.
    #[must_use]
    pub fn samples_not_unwound(&self) -> u64 {
        self.not_unwound
    }
}

/// For a recording that is written.
impl Rewriter for LiveUnwinder {
    fn note(&mut self, records: &[u8]) {
        self.live.add(records);
    }

    fn note_end(&mut self) {
        self.live.apply_all();
    }

    fn rewrite(&mut self, records: &[u8], is_behind: bool, to: &mut Vec<u8>) {
        match is_behind {
            true => self.append_unchanged(records, to),
            false => self.unwind(records, to),
        }
    }
}

/// For a recording that is copied.
impl Transform for LiveUnwinder {
    fn is_ordered(&self) -> bool {
        true
    }

    fn note(&mut self, records: &[u8]) {
        self.live.add(records);
    }

    fn note_end(&mut self) {
        self.live.apply_all();
    }

    fn rewrite(&mut self, records: &[u8], to: &mut Vec<u8>) {
        self.unwind(records, to);
    }
}

/// Splits `records` at record boundaries into at most `count` parts of similar length.
fn split_records(records: &[u8], count: usize, endian: Endian) -> Vec<&[u8]> {
    let part_len = records.len().div_ceil(count.max(1));
    let mut parts = Vec::with_capacity(count);
    let mut rest = records;
    let mut length = 0;
    for (_, record) in RawRecord::all(records, endian) {
        length += record.len();
        if length >= part_len {
            let (part, after) = rest.split_at(length);
            parts.push(part);
            (rest, length) = (after, 0);
        }
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// What all workers read.
struct SharedState<'g, 'r> {
    live: &'g LiveWorld,
    stacks: UserStacks<'r, 'g>,
}

impl SharedState<'_, '_> {
    /// Rewrites records that start at `position`.
    fn rewrite_part(&self, records: &[u8], mut position: u64, worker: &mut UnwindWorker) {
        let UnwindWorker { scratch, out } = worker;
        for (raw, record) in RawRecord::all(records, self.live.endian()) {
            let is_rewritten =
                raw.kind == RecordKind::SAMPLE && self.rewrite_sample(&raw, position, scratch, out);
            if !is_rewritten {
                out.extend_from_slice(record);
            }
            position += record.len() as u64;
        }
    }

    /// Appends a sample with its unwound callchain. Returns false, and appends nothing, if the sample stays unchanged.
    fn rewrite_sample(
        &self,
        raw: &RawRecord<'_>,
        position: u64,
        scratch: &mut StackScratch,
        out: &mut Vec<u8>,
    ) -> bool {
        let Ok(Some(sample)) = self.live.sample(raw, position) else {
            return false;
        };
        let Some(layout) = self.live.layout(sample.event) else {
            return false;
        };
        let has_copy = sample
            .wire
            .stack_user
            .is_some_and(|stack| stack.reserved > 0);
        if !has_copy || sample.wire.callchain.is_none() || sample.machine() != Machine::Host {
            return false;
        }
        let endian = self.live.endian();
        let mut wire = sample.wire.clone();
        wire.callchain = self.stacks.chain(&sample, scratch).or(wire.callchain);
        // Without a stack copy and registers, readers do not unwind again.
        wire.stack_user = None;
        wire.regs_user = Some(Regs {
            abi: RegsAbi::None,
            mask: 0,
            values: U64s::new(&[], endian),
        });
        RecordHeader::encode_record(raw.kind, raw.misc, out, endian, |to| {
            layout.encode(&wire, to);
        })
    }
}
