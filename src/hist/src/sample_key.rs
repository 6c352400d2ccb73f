//! The key of a sample, and the parts of samples that a report uses.

use rperf_replay::{CommId, Epoch, OrderRange, Sample, ThreadState, World};
use rperf_wire::Misc;

use crate::keys::{Key, KeyDependency, Thread};
use crate::options::{CountedItems, HistogramOptions};

/// The parts of a sample that a report uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UsedParts {
    pub(crate) comm: bool,
    pub(crate) thread: bool,
    pub(crate) cpu: bool,
    /// The data of a tracepoint, as one text or single fields.
    pub(crate) payload: bool,
    pub(crate) chain: bool,
    /// Sampled branches, shown as the first frames of the callchain.
    pub(crate) branches: bool,
}

impl UsedParts {
    pub(crate) fn new(options: &HistogramOptions) -> Self {
        let keys = options.keys();
        let reads = |part| keys.iter().any(|key: &&Key| key.reads == part);
        Self {
            comm: reads(KeyDependency::Comm),
            thread: reads(KeyDependency::Thread),
            cpu: reads(KeyDependency::Cpu),
            payload: keys
                .iter()
                .any(|key| key.shows_payload() || key.shows_field()),
            chain: options.counted != CountedItems::Branches && options.reads_chains(),
            branches: options.leads_with_branches(),
        }
    }
}

/// What distinguishes a sample, besides address, payload and callchain. Unused parts have a constant value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SampleKey {
    pub(crate) event: u32,
    /// The CPU mode, without other flags.
    pub(crate) misc: Misc,
    /// The state of the mappings: samples with equal epochs see the same mappings.
    pub(crate) epoch: Epoch,
    pub(crate) comm: Option<CommId>,
    pub(crate) thread: Thread,
    pub(crate) cpu: u32,
    /// Index of its [`RawProperties`](crate::properties::RawProperties), if any are used.
    pub(crate) properties: Option<u32>,
}

impl SampleKey {
    /// The key, without properties, of a sample whose thread is in this state. The comm is the one at the sample, or the thread's
    /// first later one.
    pub(crate) fn new(used: UsedParts, state: ThreadState, sample: &Sample<'_>) -> Self {
        let (pid, tid) = (sample.pid, sample.tid);
        let thread = Thread { pid, tid };
        Self {
            event: sample.event.0,
            misc: mode_of(sample),
            epoch: state.epoch,
            comm: used.comm.then_some(state.comm_at_or_later),
            thread: if used.thread {
                thread
            } else {
                Thread::default()
            },
            cpu: if used.cpu { sample.cpu } else { 0 },
            properties: None,
        }
    }
}

/// The mode of a sample, without other flags.
#[inline]
fn mode_of(sample: &Sample<'_>) -> Misc {
    sample.misc.mode_bits()
}

/// Number of last keys that are kept. Threads whose ids are equal modulo this number share an index.
pub(crate) const LAST_KEYS: usize = 64;

/// The key of a thread's last sample.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastKey {
    pub(crate) thread: Thread,
    /// The version of the World (the processes and mappings of the recording) for which `span` is valid.
    pub(crate) version: u64,
    /// The range of the recording's order (time, then position) in which the thread's mappings and comm do not change.
    pub(crate) span: OrderRange,
    pub(crate) key: SampleKey,
    /// The index of `key` among all sample keys.
    pub(crate) number: u32,
    /// The address of the sample and the index of the weight to which it was added; only for reports that use neither callchains
    /// nor other parts of variable size (`SampleFold::is_flat`).
    pub(crate) flat: Option<(u64, usize)>,
}

impl LastKey {
    /// Whether a sample has this key, apart from its properties. Machine, address space and comm follow from thread, mode
    /// and order.
    #[inline(always)]
    pub(crate) fn matches(&self, used: UsedParts, world: &World, sample: &Sample<'_>) -> bool {
        let thread = Thread {
            pid: sample.pid,
            tid: sample.tid,
        };
        self.thread == thread
            && self.key.event == sample.event.0
            && self.key.misc == mode_of(sample)
            && (!used.cpu || self.key.cpu == sample.cpu)
            && self.version == world.version()
            && self.span.contains(sample.order)
    }
}

/// The index of a sample's thread among the last keys.
#[inline]
pub(crate) fn slot_of(sample: &Sample<'_>) -> usize {
    sample.tid as usize % LAST_KEYS
}
