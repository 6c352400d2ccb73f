//! The fold over all samples: equal stacks become one before anything is looked up.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use rperf_replay::{CommId, DsoId, Epoch, Fold, Recent, Sample, World, hash};
use rperf_wire::{BranchEntry, Endian, Misc};

use crate::branch_chain;
use crate::branch_counts::BranchCounts;
use crate::facts::{self, RawFacts};
use crate::histogram::Sum;
use crate::keys::{Key, Reads, Thread};
use crate::namer::Namer;
use crate::options::{Counted, Options};
use crate::parallel;
use crate::preload::objects;
use crate::select::{Choice, Select};
use crate::slices::SliceMap;
use crate::stacks::{Extras, Interner, Stacks, Weight};

/// Samples folded by what they hold. Made for each worker of [`rperf_replay::Replay::fold`] by [`Naming::samples`].
///
/// Now and then a worker gives its unique stacks names: these are fewer, and equal names of different processes are one
/// stack, so that memory does not grow with the recording. What several workers have folded stays apart until it has
/// names.
///
/// [`Naming::samples`]: crate::Naming::samples
pub struct Samples<'n, 'w> {
    wanted: Wanted,
    counted: Counted,
    facts: facts::Wanted,
    branch_counts: BranchCounts,
    select: Option<&'n dyn Select>,
    /// By event, the samples that belong to no row but to what shares are of.
    filtered: Vec<Sum>,
    recent: Recent,
    /// The head of the last sample, and its number.
    last: Option<(Head, u32)>,
    /// The last key without payload and callchain, and the place of its weight.
    last_short: Option<([u8; FIXED], usize)>,
    scratch: Vec<u8>,
    /// A callchain with branches before it.
    led: Vec<u8>,
    own: Part<'n, 'w>,
    /// Bytes of raw stacks that wait for names.
    room: usize,
    /// What other workers have folded.
    later: Vec<Part<'n, 'w>>,
}

/// What one worker has folded.
struct Part<'n, 'w> {
    raw: RawStacks,
    namer: Namer<'n, 'w>,
}

impl Part<'_, '_> {
    /// Names what has none yet.
    fn name(&mut self) {
        for (head, key, weight) in self.raw.iter() {
            self.namer.add(head, self.raw.facts(head), &key, weight);
        }
        self.raw.clear();
        self.namer.trim();
    }
}

/// Samples whose stacks have names.
pub struct Folded {
    /// The branches by kind, where branches are counted.
    pub branch_counts: BranchCounts,
    /// By event, the samples that belong to no row but to what shares are of.
    pub(crate) filtered: Vec<Sum>,
    /// By worker and event.
    pub(crate) parts: Vec<Vec<Stacks>>,
}

/// Unique stacks as they stand in the file.
#[derive(Debug, Default)]
pub(crate) struct RawStacks {
    heads: Interner<Head>,
    facts: Interner<RawFacts>,
    /// By [`RawKey`].
    weights: SliceMap<u8, Weight>,
}

/// The parts of a sample that make a difference.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    comm: bool,
    thread: bool,
    cpu: bool,
    payload: bool,
    chain: bool,
    /// Branches before the callchain.
    branches: bool,
}

impl Wanted {
    fn new(options: &Options) -> Self {
        let keys = options.keys();
        let reads = |part| keys.iter().any(|key: &&Key| key.reads == part);
        Self {
            comm: reads(Reads::Comm),
            thread: reads(Reads::Thread),
            cpu: reads(Reads::Cpu),
            payload: keys
                .iter()
                .any(|key| key.shows_payload() || key.shows_field()),
            chain: options.counted != Counted::Branches && options.reads_chains(),
            branches: options.leads_with_branches(),
        }
    }
}

impl<'n, 'w> Samples<'n, 'w> {
    /// Nothing yet, for a report with these options of the samples that `select` chooses, or of all. With more than `room`
    /// bytes of unique stacks, these get names.
    pub(crate) fn new(
        options: &Options,
        namer: Namer<'n, 'w>,
        select: Option<&'n dyn Select>,
        room: usize,
    ) -> Self {
        Self {
            wanted: Wanted::new(options),
            counted: options.counted,
            facts: facts::Wanted::new(options, &options.keys()),
            branch_counts: BranchCounts::default(),
            select,
            filtered: Vec::new(),
            recent: Recent::default(),
            last: None,
            last_short: None,
            scratch: Vec::new(),
            led: Vec::new(),
            own: Part {
                raw: RawStacks::default(),
                namer,
            },
            room,
            later: Vec::new(),
        }
    }

    /// All samples, when there will be no more.
    #[must_use]
    pub fn finish(self, threads: NonZeroUsize) -> Folded {
        let mut parts = self.later;
        parts.insert(0, self.own);
        let resolver = parts.first().map(|part| part.namer.resolver());
        if let Some(resolver) = resolver {
            let raw = parts.iter().map(|part| &part.raw).collect();
            let objects = parallel::map(raw, threads, |raw| objects(raw, resolver.world()));
            let objects: BTreeSet<DsoId> = objects.into_iter().flatten().collect();
            let objects = objects.into_iter().collect();
            parallel::map(objects, threads, |dso| resolver.read(dso));
        }
        let parts = parallel::map(parts, threads, |mut part| {
            part.name();
            part.namer.events
        });
        Folded {
            branch_counts: self.branch_counts,
            filtered: self.filtered,
            parts,
        }
    }

    fn filter(&mut self, sample: &Sample<'_>) {
        let event = sample.event.0 as usize;
        if self.filtered.len() <= event {
            self.filtered.resize(event + 1, Sum::default());
        }
        let sum = match self.counted {
            Counted::Branches => {
                let branches = sample.wire.branch_stack;
                let count = branches.map_or(0, |branches| branches.len() as u64);
                Sum {
                    period: count,
                    samples: count,
                    latency: self.latency(sample, count),
                }
            }
            _ => Sum {
                period: self.period(sample),
                samples: 1,
                latency: self.latency(sample, self.period(sample)),
            },
        };
        self.filtered[event].add(sum);
    }

    /// The events that a sample stands for, or what its access cost.
    fn period(&self, sample: &Sample<'_>) -> u64 {
        match self.counted {
            Counted::Accesses => self.facts.weight(sample).whole.max(1),
            _ => sample.period,
        }
    }

    /// A sample's part of the time that passed, 0 where nobody asks.
    fn latency(&self, sample: &Sample<'_>, period: u64) -> u64 {
        let threads = self.facts.parallelism(sample);
        threads.map_or(0, |threads| period / u64::from(threads.max(1)))
    }

    /// What few reports ask for.
    #[inline]
    fn extras(&self, sample: &Sample<'_>, period: u64) -> Option<Box<Extras>> {
        if !self.facts.any_extra() {
            return None;
        }
        Some(Box::new(Extras {
            latency: self.latency(sample, period),
            costs: self.facts.costs(sample),
        }))
    }

    /// Counts each branch of a sample. The newest first.
    fn branches(&mut self, world: &World, sample: &Sample<'_>) {
        let Some(branches) = sample.wire.branch_stack else {
            return;
        };
        for branch in branches.iter() {
            self.branch_counts.add(&branch, 1);
            let hit = Hit {
                ip: branch.to,
                period: 1,
                branch: Some(branch),
            };
            self.count(world, sample, hit);
        }
    }

    fn count(&mut self, world: &World, sample: &Sample<'_>, hit: Hit) {
        let payload = sample.wire.raw.filter(|_| self.wanted.payload);
        let chain = sample.wire.callchain.filter(|_| self.wanted.chain);
        let mut chain = chain.map_or(&[][..], |chain| chain.as_bytes());
        let mut led = std::mem::take(&mut self.led);
        if self.wanted.branches {
            led.clear();
            branch_chain::write(sample.wire.branch_stack, chain, &mut led);
            chain = &led;
        }
        let key = RawKey {
            head: self.head(world, sample, hit.branch),
            ip: hit.ip,
            payload: payload.unwrap_or_default(),
            chain,
        };
        let weight = Weight {
            period: hit.period,
            samples: 1,
            first: sample.order,
            thread: Thread {
                pid: sample.pid,
                tid: sample.tid,
            },
            extras: self.extras(sample, hit.period),
        };
        self.add(&key, weight);
        self.led = led;
    }

    /// Adds a sample to those of its key.
    #[inline]
    fn add(&mut self, key: &RawKey<'_>, weight: Weight) {
        let weights = &mut self.own.raw.weights;
        let fixed = key.fixed();
        let is_short = key.payload.is_empty() && key.chain.is_empty();
        // Samples of one tracepoint, or of a short loop, follow each other.
        if let Some((last, place)) = self.last_short
            && is_short
            && last == fixed
            && let Some(sum) = weights.at_mut(place)
        {
            return sum.add(&weight);
        }
        let bytes = if is_short {
            &fixed[..]
        } else {
            self.scratch.clear();
            key.write(&mut self.scratch);
            &self.scratch
        };
        let place = weights.upsert(hash(0, bytes), bytes, weight, Weight::add);
        if is_short {
            self.last_short = Some((fixed, place));
        }
        if weights.size() > self.room {
            self.name();
        }
    }

    #[cold]
    fn name(&mut self) {
        self.own.name();
        self.last = None;
        self.last_short = None;
    }

    fn head(&mut self, world: &World, sample: &Sample<'_>, branch: Option<BranchEntry>) -> u32 {
        let mut head = Head::new(self.wanted, &mut self.recent, world, sample);
        if self.facts.any() {
            let facts = self.facts.facts(world, sample, branch);
            head.facts = Some(self.own.raw.facts.number(facts));
        }
        match self.last {
            Some((last, number)) if last == head => number,
            _ => {
                let number = self.own.raw.heads.number(head);
                self.last = Some((head, number));
                number
            }
        }
    }
}

/// What is counted of a sample.
struct Hit {
    ip: u64,
    period: u64,
    branch: Option<BranchEntry>,
}

impl Fold for Samples<'_, '_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        if let Some(select) = self.select {
            match select.sample(world, sample) {
                Choice::Counted => {}
                Choice::Filtered => return self.filter(sample),
                Choice::Ignored => return,
            }
        }
        if self.counted == Counted::Branches {
            return self.branches(world, sample);
        }
        let hit = Hit {
            ip: sample.wire.ip.unwrap_or_default(),
            period: self.period(sample),
            branch: None,
        };
        self.count(world, sample, hit);
    }

    fn merge(&mut self, later: Self) {
        let most = self.filtered.len().max(later.filtered.len());
        self.filtered.resize(most, Sum::default());
        for (sum, more) in self.filtered.iter_mut().zip(&later.filtered) {
            sum.add(*more);
        }
        self.branch_counts.merge(&later.branch_counts);
        self.later.push(later.own);
        self.later.extend(later.later);
    }
}

impl RawStacks {
    /// All stacks, each with its head.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Head, RawKey<'_>, &Weight)> {
        self.weights.iter().filter_map(|(key, weight)| {
            let key = RawKey::read(key)?;
            Some((self.heads.get(key.head)?, key, weight))
        })
    }

    /// Leaves none, and keeps the room.
    fn clear(&mut self) {
        self.heads.clear();
        self.facts.clear();
        self.weights.clear();
    }

    /// What keys read besides of samples with that head.
    pub(crate) fn facts(&self, head: &Head) -> Option<&RawFacts> {
        self.facts.get(head.facts?)
    }
}

/// Everything besides addresses and payload that makes a difference; the rest is left at one value for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Head {
    pub(crate) event: u32,
    /// The CPU mode, all that counts of a record's flags.
    pub(crate) misc: Misc,
    pub(crate) epoch: Epoch,
    pub(crate) comm: Option<CommId>,
    pub(crate) thread: Thread,
    pub(crate) cpu: u32,
    /// Number of the facts, where any are read.
    facts: Option<u32>,
}

impl Head {
    fn new(wanted: Wanted, recent: &mut Recent, world: &World, sample: &Sample<'_>) -> Self {
        let (pid, tid) = (sample.pid, sample.tid);
        let moment = recent.moment(world, sample.who(), sample.order);
        let thread = Thread { pid, tid };
        Self {
            event: sample.event.0,
            misc: Misc(sample.misc.0 & CPU_MODE),
            epoch: moment.epoch,
            comm: wanted.comm.then_some(moment.comm_final),
            thread: if wanted.thread {
                thread
            } else {
                Thread::default()
            },
            cpu: if wanted.cpu { sample.cpu } else { 0 },
            facts: None,
        }
    }
}

/// `PERF_RECORD_MISC_CPUMODE_MASK`.
const CPU_MODE: u16 = 7;

/// A unique stack: in memory the fields one after the other, the payload's length before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawKey<'a> {
    /// Number of the [`Head`].
    head: u32,
    /// Where the sample fell.
    pub(crate) ip: u64,
    /// What a tracepoint tells, if that is wanted.
    pub(crate) payload: &'a [u8],
    /// The callchain, if that is wanted.
    pub(crate) chain: &'a [u8],
}

/// Where a key's payload begins.
const FIXED: usize = 16;

impl<'a> RawKey<'a> {
    /// The part of fixed length: all of it, where neither a payload nor a callchain is wanted.
    #[inline]
    fn fixed(&self) -> [u8; FIXED] {
        let payload = self.payload.len() as u128;
        let words = u128::from(self.head) | payload << 32 | u128::from(self.ip) << 64;
        words.to_le_bytes()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fixed());
        out.extend_from_slice(self.payload);
        out.extend_from_slice(self.chain);
    }

    /// Reads back what was written.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let payload = Endian::Little.u32_at(bytes, 4)?;
        let (payload, chain) = bytes.get(FIXED..)?.split_at_checked(payload as usize)?;
        Some(Self {
            head: Endian::Little.u32_at(bytes, 0)?,
            ip: Endian::Little.u64_at(bytes, 8)?,
            payload,
            chain,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_as_it_was_written() {
        for payload in [&[][..], &[1, 2, 3]] {
            let key = RawKey {
                head: u32::MAX,
                ip: 0xffff_ffff_8100_0000,
                payload,
                chain: &[4; 16],
            };
            let mut bytes = Vec::new();
            key.write(&mut bytes);
            assert_eq!(RawKey::read(&bytes), Some(key));
        }
        assert_eq!(RawKey::read(&[0; 15]), None);
    }
}
