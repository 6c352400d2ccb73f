//! Resolution of consecutive callchains, reusing their common outer part.

use rperf_replay::Epoch;
use rperf_wire::CpuMode;

/// A callchain and the sites of its frames (functions, with lines or addresses if rows distinguish these), as numbers.
/// Consecutive samples usually share their outer callers, whose sites are reused.
#[derive(Debug, Default)]
pub(crate) struct ChainCache {
    /// Inputs of the site lookups of `frames`: epoch (the state of the mappings of process and kernel) and event (each event has
    /// its own site numbers).
    context: Option<(Epoch, u32)>,
    /// The frames of the resolved chain, outermost first.
    frames: Vec<(CpuMode, u64)>,
    /// The sites of the frames in the same order: none for a hidden frame, several for a frame with inlined functions.
    sites: Vec<u32>,
    /// End index of each frame's sites.
    ends: Vec<usize>,
    /// The frames of the next chain, innermost first.
    next: Vec<(CpuMode, u64)>,
    /// The inputs of site lookups of the next chain.
    next_context: Option<(Epoch, u32)>,
}

impl ChainCache {
    /// Starts the chain of a sample with this epoch and event.
    pub(crate) fn begin(&mut self, epoch: Epoch, event: u32) {
        self.next_context = Some((epoch, event));
        self.next.clear();
    }

    /// Adds a frame: the caller of the frame added before.
    #[inline]
    pub(crate) fn push(&mut self, mode: CpuMode, ip: u64) {
        self.next.push((mode, ip));
    }

    /// Returns the sites of all frames, outermost first. `append` is called for each frame that is not in the outer part common
    /// with the previous chain, and appends the frame's sites, innermost first. Chains of different epochs or events
    /// have no common part.
    pub(crate) fn resolve(
        &mut self,
        mut append: impl FnMut(CpuMode, u64, &mut Vec<u32>),
    ) -> &[u32] {
        if self.context != self.next_context {
            self.frames.clear();
            self.context = self.next_context;
        }
        let both = self.frames.iter().zip(self.next.iter().rev());
        let common = both.take_while(|(old, new)| old == new).count();
        let common_end = common.checked_sub(1).and_then(|last| self.ends.get(last));
        self.sites.truncate(common_end.copied().unwrap_or_default());
        self.frames.truncate(common);
        self.ends.truncate(common);
        for (mode, ip) in self.next.iter().rev().skip(common) {
            let start = self.sites.len();
            append(*mode, *ip, &mut self.sites);
            self.sites[start..].reverse();
            self.frames.push((*mode, *ip));
            self.ends.push(self.sites.len());
        }
        &self.sites
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_frames_are_resolved() {
        let mut cache = ChainCache::default();
        let mut resolve = |epoch, ips: &[u64]| {
            let epoch = Epoch {
                user: epoch,
                kernel: 0,
            };
            cache.begin(epoch, 0);
            ips.iter().for_each(|ip| cache.push(CpuMode::User, *ip));
            let mut looked_up = Vec::new();
            let sites = cache.resolve(|_, ip, sites| {
                looked_up.push(ip);
                // The frame at 2 has an inlined function, which is a site of its own.
                sites.extend((ip == 2).then_some(2));
                sites.push(ip as u32 + 100);
            });
            (sites.to_vec(), looked_up)
        };
        assert_eq!(
            resolve(1, &[3, 2, 1]),
            (vec![101, 102, 2, 103], vec![1, 2, 3])
        );
        assert_eq!(resolve(1, &[4, 2, 1]), (vec![101, 102, 2, 104], vec![4]));
        assert_eq!(resolve(1, &[2, 1]), (vec![101, 102, 2], vec![]));
        assert_eq!(resolve(1, &[5, 2, 1]), (vec![101, 102, 2, 105], vec![5]));
        assert_eq!(resolve(1, &[1]), (vec![101], vec![]));
        assert_eq!(resolve(2, &[2, 1]), (vec![101, 102, 2], vec![1, 2]));
        assert_eq!(resolve(2, &[]), (vec![], vec![]));
    }
}
