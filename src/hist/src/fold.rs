//! The fold over all samples: equal stacks become one before anything is looked up.

use rperf_replay::{CommId, Epoch, Fold, Recent, Sample, World, hash};
use rperf_wire::{Endian, Misc};

use crate::histogram::Sum;
use crate::keys::{Key, Reads, Thread};
use crate::options::Options;
use crate::select::{Choice, Select};
use crate::slices::SliceMap;
use crate::stacks::{Interner, Weight};

/// Samples folded by what they hold. Made for each worker of [`rperf_replay::Replay::fold`].
///
/// What several workers have folded stays apart until their stacks have names: these are fewer, and each worker can
/// name its own.
pub struct Samples<'s> {
    wanted: Wanted,
    pub(crate) select: Option<&'s dyn Select>,
    /// By event, the samples that belong to no row but to what shares are of.
    pub(crate) filtered: Vec<Sum>,
    recent: Recent,
    /// The head of the last sample, and its number.
    last: Option<(Head, u32)>,
    scratch: Vec<u8>,
    own: RawStacks,
    /// What other workers have folded.
    later: Vec<RawStacks>,
}

/// Unique stacks as they stand in the file.
#[derive(Debug, Default)]
pub(crate) struct RawStacks {
    heads: Interner<Head>,
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
}

impl Wanted {
    fn new(options: &Options) -> Self {
        let keys = options.keys();
        let reads = |part| keys.iter().any(|key: &&Key| key.reads == part);
        Self {
            comm: reads(Reads::Comm),
            thread: reads(Reads::Thread),
            cpu: reads(Reads::Cpu),
            payload: reads(Reads::Payload),
            chain: options.children || options.graph.is_some(),
        }
    }
}

impl<'s> Samples<'s> {
    /// Nothing yet, for a report with these options of the samples that `select` chooses, or of all.
    #[must_use]
    pub fn new(options: &Options, select: Option<&'s dyn Select>) -> Self {
        Self {
            wanted: Wanted::new(options),
            select,
            filtered: Vec::new(),
            recent: Recent::default(),
            last: None,
            scratch: Vec::new(),
            own: RawStacks::default(),
            later: Vec::new(),
        }
    }

    /// What each worker has folded.
    pub(crate) fn into_parts(self) -> Vec<RawStacks> {
        let mut parts = self.later;
        parts.insert(0, self.own);
        parts
    }

    fn filter(&mut self, sample: &Sample<'_>) {
        let event = sample.event.0 as usize;
        if self.filtered.len() <= event {
            self.filtered.resize(event + 1, Sum::default());
        }
        self.filtered[event].add(Sum {
            period: sample.period,
            samples: 1,
        });
    }

    fn head(&mut self, world: &World, sample: &Sample<'_>) -> u32 {
        let head = Head::new(self.wanted, &mut self.recent, world, sample);
        match self.last {
            Some((last, number)) if last == head => number,
            _ => {
                let number = self.own.heads.number(head);
                self.last = Some((head, number));
                number
            }
        }
    }
}

impl Fold for Samples<'_> {
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        if let Some(select) = self.select {
            match select.sample(world, sample) {
                Choice::Counted => {}
                Choice::Filtered => return self.filter(sample),
                Choice::Ignored => return,
            }
        }
        let payload = sample.wire.raw.filter(|_| self.wanted.payload);
        let chain = sample.wire.callchain.filter(|_| self.wanted.chain);
        let key = RawKey {
            head: self.head(world, sample),
            ip: sample.wire.ip.unwrap_or_default(),
            payload: payload.unwrap_or_default(),
            chain: chain.map_or(&[], |chain| chain.as_bytes()),
        };
        self.scratch.clear();
        key.write(&mut self.scratch);
        let weight = Weight {
            period: sample.period,
            samples: 1,
            first: sample.order,
            thread: Thread {
                pid: sample.pid,
                tid: sample.tid,
            },
        };
        let hash = hash(0, &self.scratch);
        let weights = &mut self.own.weights;
        weights.upsert(hash, &self.scratch, weight, Weight::add);
    }

    fn merge(&mut self, later: Self) {
        let most = self.filtered.len().max(later.filtered.len());
        self.filtered.resize(most, Sum::default());
        for (sum, more) in self.filtered.iter_mut().zip(&later.filtered) {
            sum.add(*more);
        }
        self.later.extend(later.into_parts());
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

impl<'a> RawKey<'a> {
    /// Where the payload begins.
    const FIXED: usize = 16;

    fn write(&self, out: &mut Vec<u8>) {
        let payload = self.payload.len() as u32;
        out.extend_from_slice(&self.head.to_le_bytes());
        out.extend_from_slice(&payload.to_le_bytes());
        out.extend_from_slice(&self.ip.to_le_bytes());
        out.extend_from_slice(self.payload);
        out.extend_from_slice(self.chain);
    }

    /// Reads back what was written.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let payload = Endian::Little.u32_at(bytes, 4)?;
        let (payload, chain) = bytes
            .get(Self::FIXED..)?
            .split_at_checked(payload as usize)?;
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
