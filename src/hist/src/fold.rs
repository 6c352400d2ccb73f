//! The fold over all samples: equal stacks become one before anything is looked up.

use rperf_replay::{CommId, Epoch, Fold, Sample, World};
use rperf_wire::{Endian, Misc};
use rustc_hash::FxHashMap;

use crate::histogram::Sum;
use crate::keys::{Key, Reads, Thread};
use crate::options::Options;
use crate::select::{Choice, Select};
use crate::stacks::Weight;

/// Samples folded by what they hold. Made for each worker of [`rperf_replay::Replay::fold`].
pub struct Samples<'s> {
    wanted: Wanted,
    pub(crate) select: Option<&'s dyn Select>,
    scratch: Vec<u8>,
    /// By event, the samples that belong to no row but to what shares are of.
    pub(crate) filtered: Vec<Sum>,
    pub(crate) stacks: FxHashMap<RawKey, Weight>,
}

/// A [`Head`], what a tracepoint tells if that is wanted, and the callchain, both as they stand in the file.
pub(crate) type RawKey = Box<[u8]>;

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
            scratch: Vec::new(),
            stacks: FxHashMap::default(),
        }
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
        self.scratch.clear();
        let payload = sample.wire.raw.filter(|_| self.wanted.payload);
        let payload = payload.unwrap_or_default();
        let head = Head {
            payload: payload.len() as u32,
            ..Head::new(self.wanted, world, sample)
        };
        head.write(&mut self.scratch);
        self.scratch.extend_from_slice(payload);
        if self.wanted.chain
            && let Some(chain) = sample.wire.callchain
        {
            self.scratch.extend_from_slice(chain.as_bytes());
        }
        let weight = Weight {
            period: sample.period,
            samples: 1,
            first: sample.order,
            thread: Thread {
                pid: sample.pid,
                tid: sample.tid,
            },
        };
        match self.stacks.get_mut(&self.scratch[..]) {
            Some(sum) => sum.add(&weight),
            None => {
                self.stacks.insert(self.scratch.as_slice().into(), weight);
            }
        }
    }

    fn merge(&mut self, later: Self) {
        let most = self.filtered.len().max(later.filtered.len());
        self.filtered.resize(most, Sum::default());
        for (sum, more) in self.filtered.iter_mut().zip(&later.filtered) {
            sum.add(*more);
        }
        if self.stacks.is_empty() {
            self.stacks = later.stacks;
            return;
        }
        for (key, weight) in later.stacks {
            self.stacks
                .entry(key)
                .and_modify(|sum| sum.add(&weight))
                .or_insert(weight);
        }
    }
}

/// Everything besides the callchain that makes a difference; the rest is left at one value for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) event: u32,
    pub(crate) misc: Misc,
    pub(crate) epoch: Epoch,
    pub(crate) ip: u64,
    pub(crate) comm: Option<CommId>,
    pub(crate) thread: Thread,
    pub(crate) cpu: u32,
    /// Bytes of raw data that follow.
    pub(crate) payload: u32,
}

impl Head {
    /// Bytes of a written head.
    const SIZE: usize = 48;

    fn new(wanted: Wanted, world: &World, sample: &Sample<'_>) -> Self {
        let (pid, tid, order) = (sample.pid, sample.tid, sample.order);
        let thread = Thread { pid, tid };
        Self {
            event: sample.event.0,
            misc: Misc(sample.misc.0 & MISC as u16),
            epoch: world.epoch(sample.machine(), pid, order),
            ip: sample.wire.ip.unwrap_or_default(),
            comm: wanted.comm.then(|| world.comm_final(pid, tid, order)),
            thread: if wanted.thread {
                thread
            } else {
                Thread::default()
            },
            cpu: if wanted.cpu { sample.cpu } else { 0 },
            payload: 0,
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let named = if self.comm.is_some() { NAMED } else { 0 };
        let comm = self.comm.map_or(0, |comm| comm.0);
        let words = [
            pair(
                self.event,
                named | self.payload << MISC_BITS | u32::from(self.misc.0),
            ),
            self.epoch.user,
            self.epoch.kernel,
            self.ip,
            pair(comm, self.cpu),
            pair(self.thread.pid, self.thread.tid),
        ];
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Reads back what was written, and what stands behind it.
    pub(crate) fn read(key: &[u8]) -> (Self, &[u8]) {
        let (head, chain) = key.split_at_checked(Self::SIZE).unwrap_or_default();
        let word = |index: usize| Endian::Little.u64_at(head, index * 8).unwrap_or_default();
        let (event, misc) = unpair(word(0));
        let (comm, cpu) = unpair(word(4));
        let (pid, tid) = unpair(word(5));
        let head = Self {
            event,
            misc: Misc((misc & MISC) as u16),
            epoch: Epoch {
                user: word(1),
                kernel: word(2),
            },
            ip: word(3),
            comm: (misc & NAMED != 0).then_some(CommId(comm)),
            thread: Thread { pid, tid },
            cpu,
            payload: (misc & !NAMED) >> MISC_BITS,
        };
        (head, chain)
    }
}

/// The CPU mode, all that counts of a record's flags.
const MISC: u32 = (1 << MISC_BITS) - 1;
const MISC_BITS: u32 = 3;
/// Marks a head that holds a name.
const NAMED: u32 = 1 << 31;

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn unpair(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = Head {
            event: 3,
            misc: Misc(2),
            epoch: Epoch {
                user: u64::MAX,
                kernel: 5 << 32,
            },
            ip: 0xffff_ffff_8100_0000,
            comm: Some(CommId(u32::MAX)),
            thread: Thread {
                pid: 1,
                tid: u32::MAX,
            },
            cpu: u32::MAX,
            payload: 65_535,
        };
        for head in [head, Head { comm: None, ..head }] {
            let mut key = Vec::new();
            head.write(&mut key);
            assert_eq!(key.len(), Head::SIZE);
            key.extend_from_slice(&[1, 2, 3]);
            assert_eq!(Head::read(&key), (head, &[1, 2, 3][..]));
        }
    }
}
