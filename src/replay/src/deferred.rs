//! Deferred user callchains.
//!
//! With `defer_callchain` (Linux 6.19) the kernel does not walk the user stack at the sample: the
//! callchain ends in a marker and a cookie. When the task returns to user space, one
//! CALLCHAIN_DEFERRED record has the user frames of all samples with that cookie:
//!
//! ```text
//! sample  [kernel] 3 frames [deferred] 0x300000002      \
//! sample  [kernel] 5 frames [deferred] 0x300000002       } both continue with main, _start
//! CALLCHAIN_DEFERRED 0x300000002: main, _start          /
//! ```
//!
//! Between sample and record the task may have executed another program, so the sample gets the
//! record's [`Order`]: its frames are looked up in the mappings at the time of the record.

use std::collections::BTreeMap;

use rperf_wire::{
    Encoder, Endian, PERF_CONTEXT_USER, PERF_CONTEXT_USER_DEFERRED, RawRecord, Record, U64s,
};

use crate::{Order, Sample};

/// Identifies a deferred callchain and its samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeferredKey {
    tid: u32,
    cookie: u64,
}

impl DeferredKey {
    /// The key of a CALLCHAIN_DEFERRED record of the thread `tid`; `None` if the record cannot be decoded.
    pub(crate) fn of_record(raw: &RawRecord<'_>, endian: Endian, tid: u32) -> Option<Self> {
        match Record::decode(raw, endian) {
            Ok(Record::CallchainDeferred(chain)) => Some(Self {
                tid,
                cookie: chain.cookie,
            }),
            _ => None,
        }
    }

    /// The key of a sample whose callchain is deferred; `None` if the callchain is complete or missing.
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

/// The deferred callchains of a recording.
#[derive(Debug, Default)]
pub(crate) struct DeferredCallchains {
    /// Keys and [`Order`]s of the records; in ascending order after [`DeferredCallchains::sorted`].
    chains: Vec<(DeferredKey, Order)>,
    /// Whether samples may have deferred callchains.
    awaited: bool,
}

impl DeferredCallchains {
    /// Creates the collection for a recording; `awaited` means that its samples may have deferred callchains.
    pub(crate) fn new(awaited: bool) -> Self {
        Self {
            chains: Vec::new(),
            awaited,
        }
    }

    /// Whether samples may have deferred callchains.
    pub(crate) fn are_awaited(&self) -> bool {
        self.awaited
    }

    pub(crate) fn add(&mut self, key: DeferredKey, order: Order) {
        self.chains.push((key, order));
    }

    /// Sorts the records for lookup.
    pub(crate) fn sorted(mut self) -> Self {
        self.chains.sort_unstable();
        self
    }

    /// The [`Order::position`] of each record with a deferred callchain.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        self.chains.iter().map(|(_, order)| order.position)
    }

    /// The [`Order`] of the record with the user frames of a sample: the first one with its `key` that is not older than `time`.
    fn of(&self, key: DeferredKey, time: u64) -> Option<Order> {
        let from = Order { time, position: 0 };
        let start = self.chains.partition_point(|chain| *chain < (key, from));
        let (found_key, order) = self.chains.get(start)?;
        (*found_key == key).then_some(*order)
    }

    /// Calls `consume` with the sample, or with a copy if its callchain is deferred. The copy has the complete callchain, and the
    /// [`Order`] of the record with the user frames; without such a record, it has only the kernel part of the callchain, and
    /// the sample's own order. `bytes_at` returns the bytes from a position in the file on.
    #[inline]
    pub(crate) fn complete<'s>(
        &self,
        sample: &Sample<'_>,
        bytes_at: impl Fn(u64) -> &'s [u8],
        consume: impl FnOnce(&Sample<'_>),
    ) {
        let key = match self.awaited {
            true => DeferredKey::of_sample(sample),
            false => None,
        };
        match key {
            Some(key) => self.complete_with(key, sample, bytes_at, consume),
            None => consume(sample),
        }
    }

    #[cold]
    fn complete_with<'s>(
        &self,
        key: DeferredKey,
        sample: &Sample<'_>,
        bytes_at: impl Fn(u64) -> &'s [u8],
        consume: impl FnOnce(&Sample<'_>),
    ) {
        let Some(chain) = sample.wire.callchain else {
            return consume(sample);
        };
        let endian = chain.endian();
        // All entries before the marker and the cookie.
        let kernel = chain.as_bytes().get(..(chain.len() - 2) * size_of::<u64>());
        let mut joined = kernel.unwrap_or_default().to_vec();
        let mut sample = sample.clone();
        if let Some(order) = self.of(key, sample.order.time)
            && let Some((raw, _)) = RawRecord::split(bytes_at(order.position), endian)
            && let Ok(Record::CallchainDeferred(user)) = Record::decode(&raw, endian)
        {
            Encoder::new(&mut joined, endian).u64(PERF_CONTEXT_USER);
            joined.extend_from_slice(user.ips.as_bytes());
            sample.order = order;
        }
        sample.wire.callchain = Some(U64s::new(&joined, endian));
        consume(&sample);
    }
}

/// Samples of a stream (a recording from a pipe) that wait for deferred callchains. In a file, all records with callchains are
/// found before the first sample is delivered, and no sample waits.
#[derive(Debug, Default)]
pub(crate) struct WaitingSamples {
    samples: BTreeMap<DeferredKey, Vec<Order>>,
}

impl WaitingSamples {
    /// Adds a sample.
    pub(crate) fn add(&mut self, key: DeferredKey, sample: Order) {
        self.samples.entry(key).or_default().push(sample);
    }

    /// Removes and returns the samples that waited for the callchain with this key.
    pub(crate) fn release(&mut self, key: DeferredKey) -> Vec<Order> {
        self.samples.remove(&key).unwrap_or_default()
    }

    /// Removes and returns all samples in order, at the end of the stream.
    pub(crate) fn release_all(&mut self) -> Vec<Order> {
        let held = std::mem::take(&mut self.samples);
        let mut all: Vec<Order> = held.into_values().flatten().collect();
        all.sort_unstable();
        all
    }

    /// The [`Order::position`] of each waiting sample.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u64> {
        let held = self.samples.values().flatten();
        held.map(|order| order.position)
    }
}
