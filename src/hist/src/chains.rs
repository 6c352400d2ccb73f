//! Resolves callchains to sites: functions, with lines or addresses if rows distinguish these.

use rperf_resolve::chain;
use rperf_wire::{Endian, U64s};

use crate::branch_chain::{self, ChainBranch};
use crate::chain_cache::ChainCache;
use crate::options::{Direction, HistogramOptions};
use crate::sample_key::SampleKey;
use crate::sites::SiteFinder;

/// Resolves callchains.
pub(crate) struct ChainResolver {
    endian: Endian,
    max_stack: usize,
    direction: Direction,
    /// Whether the sample's branches precede its callchain.
    leads_with_branches: bool,
    cache: ChainCache,
    /// Buffer for the result of [`ChainResolver::resolve`]: site numbers.
    result: Vec<u32>,
}

impl ChainResolver {
    /// Creates the resolver for a recording in this byte order.
    pub(crate) fn new(options: &HistogramOptions, endian: Endian) -> Self {
        Self {
            endian,
            max_stack: options.max_stack,
            direction: options.direction,
            leads_with_branches: options.leads_with_branches(),
            cache: ChainCache::default(),
            result: Vec::new(),
        }
    }

    /// The site numbers of `chain` in call graph order: outermost first for [`Direction::Caller`], otherwise innermost first.
    /// If the sample's branches precede its callchain, `chain` is the output of [`branch_chain::encode`], and the sites of the
    /// branches are first in the result in both directions, as in perf. The frames of a corrupted callchain are dropped, but not
    /// those of the branches.
    pub(crate) fn resolve(
        &mut self,
        sample_key: &SampleKey,
        chain: &[u8],
        finder: &mut SiteFinder<'_, '_, '_>,
    ) -> &mut Vec<u32> {
        let cache = &mut self.cache;
        // The epoch is the state of the mappings, which determines the sites.
        cache.begin(sample_key.epoch, sample_key.event);
        // If call graphs start with the outermost caller, perf counts `max_stack` from there: all frames are walked here, and
        // the sites are truncated below.
        let max_frames = match self.direction {
            Direction::Caller => usize::MAX,
            Direction::Callee => self.max_stack,
        };
        let (branches, chain) = match self.leads_with_branches {
            true => branch_chain::decode(chain),
            false => (Vec::new(), chain),
        };
        let chain = U64s::new(chain, self.endian);
        let mut covered = match self.direction {
            Direction::Callee => branch_chain::overlap(&branches, self.max_stack, chain),
            // As in perf, callers shown by branches are not skipped in this order.
            Direction::Caller => 0,
        };
        // The branches already show the first `covered` frames of the callchain, so these are skipped and not counted.
        let max_frames = max_frames.saturating_add(covered);
        let push = |mode, ip| match covered {
            0 => cache.push(mode, ip),
            _ => covered -= 1,
        };
        if !chain::walk(chain, max_frames, push) {
            // The callchain is corrupted: drops the frames pushed so far.
            cache.begin(sample_key.epoch, sample_key.event);
        }
        // The outermost site is the first.
        let sites = cache.resolve(|mode, ip, sites| finder.append(mode, ip, sites));
        self.result.clear();
        self.result.extend_from_slice(sites);
        match self.direction {
            Direction::Caller => self.result.truncate(self.max_stack),
            Direction::Callee => self.result.reverse(),
        }
        if !branches.is_empty() {
            let steps = branch_chain::steps(&branches, self.direction, self.max_stack);
            // The frames at both ends of each branch: its target and its source.
            let ends = steps.iter().flat_map(ChainBranch::frames);
            let ends = ends.filter_map(|(ip, mark)| finder.branch_end(ip, mark));
            self.result.splice(..0, ends.collect::<Vec<_>>());
        }
        &mut self.result
    }
}
