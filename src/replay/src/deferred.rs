//! User callchains that come after the samples they belong to.
//!
//! With `defer_callchain` (Linux 6.19) the kernel does not walk the user's stack at the sample: its callchain ends in a marker
//! and a cookie. When the task returns to user space, one CALLCHAIN_DEFERRED record has the frames for all of its samples with
//! that cookie:
//!
//! ```text
//! sample  [kernel] 3 frames [deferred] 0x300000002      \
//! sample  [kernel] 5 frames [deferred] 0x300000002       } both go on with main, _start
//! CALLCHAIN_DEFERRED 0x300000002: main, _start          /
//! ```
//!
//! In between the task may have become another program: the frames are those of the time of their record.

use std::collections::BTreeMap;

use rperf_wire::{
    Encoder, Endian, PERF_CONTEXT_USER, PERF_CONTEXT_USER_DEFERRED, RawRecord, Record, U64s,
};

use crate::{Order, Sample};

/// What the samples that wait for a callchain have in common with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    tid: u32,
    cookie: u64,
}

impl Key {
    /// What the record of user frames is for; `None` for one that is not whole.
    pub(crate) fn of_record(raw: &RawRecord<'_>, endian: Endian, tid: u32) -> Option<Self> {
        match Record::decode(raw, endian) {
            Ok(Record::CallchainDeferred(chain)) => Some(Self {
                tid,
                cookie: chain.cookie,
            }),
            _ => None,
        }
    }

    /// What a sample waits for; `None` where its callchain is whole.
    pub(crate) fn of_sample(sample: &Sample<'_>) -> Option<Self> {
        let chain = sample.wire.callchain?;
        let marker = chain.len().checked_sub(2)?;
        let is_deferred = chain.get(marker) == Some(PERF_CONTEXT_USER_DEFERRED);
        is_deferred.then_some(Self {
            tid: sample.tid,
            cookie: chain.get(marker + 1)?,
        })
    }
}

/// The user callchains of a recording that came by themselves.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    /// Where each is, in order once they are [`Deferred::sorted`].
    chains: Vec<(Key, Order)>,
    /// Whether there are samples that wait for one.
    awaited: bool,
}

impl Deferred {
    /// Of a recording whose samples may wait for callchains.
    pub(crate) fn new(awaited: bool) -> Self {
        Self {
            chains: Vec::new(),
            awaited,
        }
    }

    pub(crate) fn add(&mut self, key: Key, order: Order) {
        self.chains.push((key, order));
    }

    /// All of them, to be looked up.
    pub(crate) fn sorted(mut self) -> Self {
        self.chains.sort_unstable();
        self
    }

    /// Positions of all records.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        self.chains.iter().map(|(_, order)| order.position)
    }

    /// The callchain for a sample: the first that is not older.
    fn of(&self, key: Key, time: u64) -> Option<Order> {
        let from = Order { time, position: 0 };
        let start = self.chains.partition_point(|chain| *chain < (key, from));
        let (found, order) = self.chains.get(start)?;
        (*found == key).then_some(*order)
    }

    /// Calls `each` with the sample, whose callchain is whole and whose place is that of its user frames; where these never
    /// came, it ends with the kernel's. `bytes_at` gives what is at a position.
    #[inline]
    pub(crate) fn complete<'s>(
        &self,
        sample: &Sample<'_>,
        bytes_at: impl Fn(u64) -> &'s [u8],
        each: impl FnOnce(&Sample<'_>),
    ) {
        let key = match self.awaited {
            true => Key::of_sample(sample),
            false => None,
        };
        match key {
            Some(key) => self.complete_with(key, sample, bytes_at, each),
            None => each(sample),
        }
    }

    #[cold]
    fn complete_with<'s>(
        &self,
        key: Key,
        sample: &Sample<'_>,
        bytes_at: impl Fn(u64) -> &'s [u8],
        each: impl FnOnce(&Sample<'_>),
    ) {
        let Some(chain) = sample.wire.callchain else {
            return each(sample);
        };
        let endian = chain.endian();
        let kernel = chain.as_bytes().get(..(chain.len() - 2) * size_of::<u64>());
        let mut whole = kernel.unwrap_or_default().to_vec();
        let mut sample = sample.clone();
        if let Some(order) = self.of(key, sample.order.time)
            && let Some((raw, _)) = RawRecord::split(bytes_at(order.position), endian)
            && let Ok(Record::CallchainDeferred(user)) = Record::decode(&raw, endian)
        {
            Encoder::new(&mut whole, endian).u64(PERF_CONTEXT_USER);
            whole.extend_from_slice(user.ips.as_bytes());
            sample.order = order;
        }
        sample.wire.callchain = Some(U64s::new(&whole, endian));
        each(&sample);
    }
}

/// Samples of a stream that wait for their callchains.
#[derive(Debug, Default)]
pub(crate) struct Held {
    samples: BTreeMap<Key, Vec<Order>>,
}

impl Held {
    /// Keeps a sample.
    pub(crate) fn hold(&mut self, key: Key, sample: Order) {
        self.samples.entry(key).or_default().push(sample);
    }

    /// Those that a callchain was waited for by.
    pub(crate) fn release(&mut self, key: Key) -> Vec<Order> {
        self.samples.remove(&key).unwrap_or_default()
    }

    /// All of them, in order: no callchains follow.
    pub(crate) fn release_all(&mut self) -> Vec<Order> {
        let held = std::mem::take(&mut self.samples);
        let mut all: Vec<Order> = held.into_values().flatten().collect();
        all.sort_unstable();
        all
    }

    /// Positions of all records.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        let held = self.samples.values().flatten();
        held.map(|order| order.position)
    }
}
