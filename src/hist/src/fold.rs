//! The fold over all samples: equal stacks are merged before anything is resolved.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use rperf_replay::{DsoId, Fold, Sample, ThreadCache, World, hash};
use rperf_wire::{BranchEntry, Endian, SampleType};

use crate::branch_chain;
use crate::branch_counts::BranchCounts;
use crate::histogram::ColumnSum;
use crate::keys::Thread;
use crate::namer::FrameNamer;
use crate::options::{CountedItems, HistogramOptions};
use crate::parallel;
use crate::preload::sampled_objects;
use crate::properties::{self, RawProperties};
use crate::sample_key::{LAST_KEYS, LastKey, SampleKey, UsedParts, slot_of};
use crate::select::{SampleTreatment, SelectSamples};
use crate::slices::SliceMap;
use crate::stacks::{Interner, OptionalSums, StackWeight, UniqueStacks};

/// Samples folded by their raw contents. Created for each worker of [`rperf_replay::Replay::fold`]
/// by [`NamingContext::sample_fold`].
///
/// Workers resolve their unique stacks from time to time. The resolved stacks are fewer, because stacks with equal names are
/// merged, even those of different processes, so that memory doesn't grow with the recording. Stacks of several workers are
/// merged after they are resolved.
///
/// [`NamingContext::sample_fold`]: crate::NamingContext::sample_fold
pub struct SampleFold<'n, 'w> {
    /// The parts of a sample that are used. Elsewhere in this file, `parts` are the results of the workers.
    used_parts: UsedParts,
    counted: CountedItems,
    /// Whether samples are counted without callchain, branches, payload, properties and optional sums: only event, mode, address,
    /// period, task and CPU are used.
    is_flat: bool,
    properties: properties::UsedProperties,
    branch_counts: BranchCounts,
    select: Option<&'n dyn SelectSamples>,
    /// By event, the sums of samples that have no row but count for the total.
    filtered: Vec<ColumnSum>,
    /// The state of threads (mappings and comm) at recent samples.
    recent: ThreadCache,
    /// The last keys, by the low bits of the thread id: consecutive samples of a thread are often alike.
    last: Box<[Option<LastKey>; LAST_KEYS]>,
    /// Buffer for an encoded [`RawKey`].
    scratch: Vec<u8>,
    /// Buffer for a callchain preceded by branches.
    branches_and_chain: Vec<u8>,
    /// Samples folded by this worker.
    own: WorkerFold<'n, 'w>,
    /// Size of unresolved stacks, in bytes, above which they are resolved.
    max_bytes: usize,
    /// Samples that other workers folded from later parts of the recording.
    later: Vec<WorkerFold<'n, 'w>>,
}

/// Samples folded by one worker.
struct WorkerFold<'n, 'w> {
    raw: RawStacks,
    namer: FrameNamer<'n, 'w>,
}

impl WorkerFold<'_, '_> {
    /// Resolves the stacks in `raw`, adds them to the resolved ones of `namer`, and clears `raw`.
    fn resolve(&mut self) {
        for (sample_key, key, weight) in self.raw.iter() {
            let properties = self.raw.properties(sample_key);
            self.namer.add(sample_key, properties, &key, weight);
        }
        self.raw.clear();
        self.namer.trim();
    }
}

/// Samples with resolved stacks.
pub struct FoldedSamples {
    /// Branches by type, if counted.
    pub branch_counts: BranchCounts,
    /// By event, the sums of samples that have no row but count for the total.
    pub(crate) filtered: Vec<ColumnSum>,
    /// By worker and event.
    pub(crate) parts: Vec<Vec<UniqueStacks>>,
}

/// Unique stacks with undecoded contents.
#[derive(Debug, Default)]
pub(crate) struct RawStacks {
    sample_keys: Interner<SampleKey>,
    properties: Interner<RawProperties>,
    /// By encoded [`RawKey`], the sums of the samples with that stack.
    weights: SliceMap<u8, StackWeight>,
}

impl<'n, 'w> SampleFold<'n, 'w> {
    /// Creates an empty fold of the samples that `select` does not ignore (all if `None`), for a report with these options.
    /// Stacks are resolved when they exceed `max_bytes` bytes.
    pub(crate) fn new(
        options: &HistogramOptions,
        namer: FrameNamer<'n, 'w>,
        select: Option<&'n dyn SelectSamples>,
        max_bytes: usize,
    ) -> Self {
        let used_parts = UsedParts::new(options);
        let properties = properties::UsedProperties::new(options, &options.keys());
        let counts_samples = !matches!(
            options.counted,
            CountedItems::Branches | CountedItems::Accesses
        );
        let has_variable_part = used_parts.payload || used_parts.chain || used_parts.branches;
        Self {
            used_parts,
            counted: options.counted,
            is_flat: counts_samples
                && !has_variable_part
                && !properties.any_used()
                && !properties.any_optional_sum(),
            properties,
            branch_counts: BranchCounts::default(),
            select,
            filtered: Vec::new(),
            recent: ThreadCache::default(),
            last: Box::new([None; LAST_KEYS]),
            scratch: Vec::new(),
            branches_and_chain: Vec::new(),
            own: WorkerFold {
                raw: RawStacks::default(),
                namer,
            },
            max_bytes,
            later: Vec::new(),
        }
    }

    /// Resolves the remaining stacks of all workers on `threads` threads. The symbols of the objects of sampled addresses are
    /// read first, so that threads do not wait for each other.
    #[must_use]
    pub fn finish(self, threads: NonZeroUsize) -> FoldedSamples {
        let mut parts = self.later;
        parts.insert(0, self.own);
        let resolver = parts.first().map(|part| part.namer.resolver());
        if let Some(resolver) = resolver {
            let raw = parts.iter().map(|part| &part.raw).collect();
            let objects = parallel::map(raw, threads, |raw| sampled_objects(raw, resolver.world()));
            let objects: BTreeSet<DsoId> = objects.into_iter().flatten().collect();
            let objects = objects.into_iter().collect();
            parallel::map(objects, threads, |dso| resolver.load_symbols(dso));
        }
        let parts = parallel::map(parts, threads, |mut part| {
            part.resolve();
            part.namer.stacks_by_event
        });
        FoldedSamples {
            branch_counts: self.branch_counts,
            filtered: self.filtered,
            parts,
        }
    }

    /// Adds a filtered sample to the total of its event.
    fn count_filtered(&mut self, sample: &Sample<'_>) {
        let event = sample.event.0 as usize;
        if self.filtered.len() <= event {
            self.filtered.resize(event + 1, ColumnSum::default());
        }
        let sum = match self.counted {
            CountedItems::Branches => {
                let branches = sample.wire.branch_stack;
                let count = branches.map_or(0, |branches| branches.len() as u64);
                // Each branch has the latency of the sample, as in `count`.
                ColumnSum {
                    period: count,
                    samples: count,
                    latency: self.latency(sample, sample.period).saturating_mul(count),
                }
            }
            _ => ColumnSum {
                period: self.period(sample),
                samples: 1,
                latency: self.latency(sample, self.period(sample)),
            },
        };
        self.filtered[event].add(sum);
    }

    /// The period of a sample; if accesses are counted, the weight of its access, but at least 1.
    fn period(&self, sample: &Sample<'_>) -> u64 {
        match self.counted {
            CountedItems::Accesses => self.properties.weight(sample).total.max(1),
            _ => sample.period,
        }
    }

    /// `period` divided by the number of threads that run at the time of the sample; 0 if not used.
    fn latency(&self, sample: &Sample<'_>, period: u64) -> u64 {
        let threads = self.properties.parallelism(sample);
        threads.map_or(0, |threads| period / u64::from(threads.max(1)))
    }

    /// The optional sums of a sample, latency and costs, if any is used.
    #[inline]
    fn extras(&self, sample: &Sample<'_>, period: u64) -> Option<Box<OptionalSums>> {
        if !self.properties.any_optional_sum() {
            return None;
        }
        Some(Box::new(OptionalSums {
            latency: self.latency(sample, period),
            costs: self.properties.costs(sample),
        }))
    }

    /// Counts a sample if it has the key and the address of its thread's last sample; otherwise returns `false`. Only for
    /// `is_flat`.
    #[inline(always)]
    fn count_again(&mut self, world: &World, sample: &Sample<'_>) -> bool {
        let ip = sample.wire.ip.unwrap_or_default();
        if let Some(last) = &self.last[slot_of(sample)]
            && let Some((last_ip, index)) = last.flat
            && last_ip == ip
            && last.matches(self.used_parts, world, sample)
            && let Some(sum) = self.own.raw.weights.at_mut(index)
        {
            sum.add_sample(sample);
            return true;
        }
        false
    }

    /// Counts a sample of which only key, address and period are used (`is_flat`).
    fn count_flat(&mut self, world: &World, sample: &Sample<'_>) {
        let sample_key = self.sample_key(world, sample, None);
        let ip = sample.wire.ip.unwrap_or_default();
        let slot = slot_of(sample);
        let key = RawKey {
            sample_key,
            ip,
            payload: &[],
            chain: &[],
        };
        let index = self.add(&key, StackWeight::of(sample));
        if let Some(last) = &mut self.last[slot] {
            last.flat = Some((ip, index));
        }
        self.limit_size();
    }

    /// Counts the target of each branch of a sample, newest first.
    fn count_branches(&mut self, world: &World, sample: &Sample<'_>) {
        let Some(branches) = sample.wire.branch_stack else {
            return;
        };
        for branch in branches.iter() {
            self.branch_counts.add(&branch, 1);
            let values = CountedValues {
                ip: branch.to,
                period: 1,
                branch: Some(branch),
            };
            self.count(world, sample, values);
        }
    }

    /// Counts a sample, or one of its branches, with all parts that are used.
    fn count(&mut self, world: &World, sample: &Sample<'_>, values: CountedValues) {
        let payload = sample.wire.raw.filter(|_| self.used_parts.payload);
        let chain = sample.wire.callchain.filter(|_| self.used_parts.chain);
        let mut chain = chain.map_or(&[][..], |chain| chain.as_bytes());
        let mut branches_and_chain = std::mem::take(&mut self.branches_and_chain);
        if self.used_parts.branches {
            branches_and_chain.clear();
            branch_chain::encode(sample.wire.branch_stack, chain, &mut branches_and_chain);
            chain = &branches_and_chain;
        }
        let key = RawKey {
            sample_key: self.sample_key(world, sample, values.branch),
            ip: values.ip,
            payload: payload.unwrap_or_default(),
            chain,
        };
        // A branch counts 1, which cannot be divided: as in perf, it has the latency of the sample.
        let latency_period = match values.branch {
            Some(_) => sample.period,
            None => values.period,
        };
        let weight = StackWeight {
            period: values.period,
            extras: self.extras(sample, latency_period),
            ..StackWeight::of(sample)
        };
        self.add(&key, weight);
        self.branches_and_chain = branches_and_chain;
        self.limit_size();
    }

    /// Adds a sample's sums to those of its stack, and returns their index.
    #[inline]
    fn add(&mut self, key: &RawKey<'_>, weight: StackWeight) -> usize {
        let fixed = key.fixed();
        let bytes = if key.payload.is_empty() && key.chain.is_empty() {
            &fixed[..]
        } else {
            self.scratch.clear();
            key.write(&mut self.scratch);
            &self.scratch
        };
        let weights = &mut self.own.raw.weights;
        let seed = 0;
        weights.upsert(hash(seed, bytes), bytes, weight, StackWeight::add)
    }

    /// Resolves the stacks if they are larger than `max_bytes`.
    #[inline]
    fn limit_size(&mut self) {
        if self.own.raw.weights.byte_size() > self.max_bytes {
            self.resolve();
        }
    }

    #[cold]
    fn resolve(&mut self) {
        self.own.resolve();
        *self.last = [None; LAST_KEYS];
    }

    /// Returns the index of the sample's [`SampleKey`].
    #[inline]
    fn sample_key(
        &mut self,
        world: &World,
        sample: &Sample<'_>,
        branch: Option<BranchEntry>,
    ) -> u32 {
        match &self.last[slot_of(sample)] {
            Some(last)
                if !self.properties.any_used() && last.matches(self.used_parts, world, sample) =>
            {
                last.number
            }
            _ => self.new_sample_key(world, sample, branch),
        }
    }

    /// Like [`SampleFold::sample_key`], for a sample that may differ from the last one of its thread.
    fn new_sample_key(
        &mut self,
        world: &World,
        sample: &Sample<'_>,
        branch: Option<BranchEntry>,
    ) -> u32 {
        let who = sample.who();
        // `span`: the range of the recording's order in which the state of the thread is the same.
        let (state, span) = self.recent.state_span(world, who, sample.order);
        let mut sample_key = SampleKey::new(self.used_parts, state, sample);
        if self.properties.any_used() {
            let properties = self.properties.properties(world, sample, branch);
            sample_key.properties = Some(self.own.raw.properties.intern(properties));
        }
        let last = &mut self.last[slot_of(sample)];
        let (number, flat) = match last {
            Some(last) if last.key == sample_key => (last.number, last.flat),
            _ => (self.own.raw.sample_keys.intern(sample_key), None),
        };
        *last = Some(LastKey {
            thread: Thread {
                pid: sample.pid,
                tid: sample.tid,
            },
            version: world.version(),
            span,
            key: sample_key,
            number,
            flat,
        });
        number
    }
}

/// The counted values of a sample, or of one of its branches.
struct CountedValues {
    /// The sampled address, or the target of the branch.
    ip: u64,
    period: u64,
    /// `None` if samples or accesses are counted.
    branch: Option<BranchEntry>,
}

impl Fold for SampleFold<'_, '_> {
    fn fields(&self) -> SampleType {
        let used_parts = self.used_parts;
        let counts_samples = self.counted != CountedItems::Branches && !self.counts_accesses();
        if !counts_samples || self.properties.any_used() || self.properties.any_optional_sum() {
            return SampleType::ALL;
        }
        // Whether a field is used, and the field: the address always is.
        let used = [
            (true, SampleType::IP),
            // A selection may be by CPU. The other fields that it reads are always decoded.
            (used_parts.cpu || self.select.is_some(), SampleType::CPU),
            (used_parts.payload, SampleType::RAW),
            (used_parts.chain, SampleType::CALLCHAIN),
            (used_parts.branches, SampleType::BRANCH_STACK),
        ];
        let used = used.into_iter().filter(|(is_used, _)| *is_used);
        used.fold(SampleType::default(), |fields, (_, field)| fields | field)
    }

    // Inlined into the loop over samples: calls would take a tenth of the time of a report of tracepoints.
    #[inline(always)]
    fn sample(&mut self, world: &World, sample: &Sample<'_>) {
        if self.is_flat && self.select.is_none() && self.count_again(world, sample) {
            return;
        }
        self.add_sample(world, sample);
    }

    fn merge(&mut self, later: Self) {
        let length = self.filtered.len().max(later.filtered.len());
        self.filtered.resize(length, ColumnSum::default());
        for (sum, more) in self.filtered.iter_mut().zip(&later.filtered) {
            sum.add(*more);
        }
        self.branch_counts.merge(&later.branch_counts);
        self.later.push(later.own);
        self.later.extend(later.later);
    }
}

impl SampleFold<'_, '_> {
    fn counts_accesses(&self) -> bool {
        self.counted == CountedItems::Accesses
    }

    #[inline(never)]
    fn add_sample(&mut self, world: &World, sample: &Sample<'_>) {
        if let Some(select) = self.select {
            match select.sample(world, sample) {
                SampleTreatment::Counted => {}
                SampleTreatment::Filtered => return self.count_filtered(sample),
                SampleTreatment::Ignored => return,
            }
        }
        if self.is_flat {
            return self.count_flat(world, sample);
        }
        if self.counted == CountedItems::Branches {
            return self.count_branches(world, sample);
        }
        let values = CountedValues {
            ip: sample.wire.ip.unwrap_or_default(),
            period: self.period(sample),
            branch: None,
        };
        self.count(world, sample, values);
    }
}

impl RawStacks {
    /// All stacks with their sample keys.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SampleKey, RawKey<'_>, &StackWeight)> {
        self.weights.iter().filter_map(|(key, weight)| {
            let key = RawKey::read(key)?;
            Some((self.sample_keys.get(key.sample_key)?, key, weight))
        })
    }

    /// Removes all stacks but keeps the memory.
    fn clear(&mut self) {
        self.sample_keys.clear();
        self.properties.clear();
        self.weights.clear();
    }

    /// Properties of samples with that key; `None` if no property is used.
    pub(crate) fn properties(&self, key: &SampleKey) -> Option<&RawProperties> {
        self.properties.get(key.properties?)
    }
}

/// A unique stack. It is encoded as the index of the sample key (32 bits), the length of the payload in bytes (32 bits), the
/// address (64 bits), the payload and the callchain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RawKey<'a> {
    /// Index of the [`SampleKey`].
    sample_key: u32,
    /// The sampled address, or the target of a counted branch.
    pub(crate) ip: u64,
    /// The payload of a tracepoint, if used.
    pub(crate) payload: &'a [u8],
    /// The callchain, if used. If branches are used, the output of [`branch_chain::encode`]: the branches, then the callchain.
    pub(crate) chain: &'a [u8],
}

/// Size of the part of a key before the payload, in bytes.
const FIXED_SIZE: usize = 16;

impl<'a> RawKey<'a> {
    /// The encoded fixed-size part; it is the whole encoded key if payload and callchain are empty.
    #[inline]
    fn fixed(&self) -> [u8; FIXED_SIZE] {
        let payload_length = self.payload.len() as u128;
        let packed = u128::from(self.sample_key) | payload_length << 32 | u128::from(self.ip) << 64;
        packed.to_le_bytes()
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.fixed());
        out.extend_from_slice(self.payload);
        out.extend_from_slice(self.chain);
    }

    /// Decodes a key; `None` if it is truncated.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let payload_length = Endian::Little.u32_at(bytes, 4)?;
        let variable = bytes.get(FIXED_SIZE..)?;
        let (payload, chain) = variable.split_at_checked(payload_length as usize)?;
        Some(Self {
            sample_key: Endian::Little.u32_at(bytes, 0)?,
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
                sample_key: u32::MAX,
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
