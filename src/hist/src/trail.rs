//! One callchain after the other, each with what it has in common with the one before.

use rperf_replay::Epoch;
use rperf_wire::CpuMode;

/// A callchain and the sites of its frames. Samples that follow each other mostly share their outer callers, whose sites
/// then needn't be looked up again.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    /// All that the sites depend on besides the frames.
    of: Option<(Epoch, u32)>,
    /// Outermost first once named, and so are the sites.
    frames: Vec<(CpuMode, u64)>,
    /// One or more for each frame.
    sites: Vec<u32>,
    /// For each frame where its sites end.
    ends: Vec<usize>,
    /// The frames to come, innermost first.
    next: Vec<(CpuMode, u64)>,
    next_of: Option<(Epoch, u32)>,
}

impl Trail {
    /// A new chain of samples of one event that were taken in one epoch.
    pub(crate) fn begin(&mut self, epoch: Epoch, event: u32) {
        self.next_of = Some((epoch, event));
        self.next.clear();
    }

    /// Its next frame outwards.
    #[inline]
    pub(crate) fn push(&mut self, mode: CpuMode, ip: u64) {
        self.next.push((mode, ip));
    }

    /// Finds the sites of all its frames, outermost first. `append` adds those of a frame, innermost first, where the chain
    /// before doesn't tell.
    pub(crate) fn name(&mut self, mut append: impl FnMut(CpuMode, u64, &mut Vec<u32>)) -> &[u32] {
        if self.of != self.next_of {
            self.frames.clear();
            self.of = self.next_of;
        }
        let both = self.frames.iter().zip(self.next.iter().rev());
        let common = both.take_while(|(old, new)| old == new).count();
        let known = common.checked_sub(1).and_then(|last| self.ends.get(last));
        self.sites.truncate(known.copied().unwrap_or_default());
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
    fn only_what_differs_is_asked_for() {
        let mut trail = Trail::default();
        let mut name = |epoch, ips: &[u64]| {
            let epoch = Epoch {
                user: epoch,
                kernel: 0,
            };
            trail.begin(epoch, 0);
            ips.iter().for_each(|ip| trail.push(CpuMode::User, *ip));
            let mut asked = Vec::new();
            let sites = trail.name(|_, ip, sites| {
                asked.push(ip);
                // Functions that are inlined into others are frames, too.
                sites.extend((ip == 2).then_some(2));
                sites.push(ip as u32 + 100);
            });
            (sites.to_vec(), asked)
        };
        assert_eq!(name(1, &[3, 2, 1]), (vec![101, 102, 2, 103], vec![1, 2, 3]));
        assert_eq!(name(1, &[4, 2, 1]), (vec![101, 102, 2, 104], vec![4]));
        assert_eq!(name(1, &[2, 1]), (vec![101, 102, 2], vec![]));
        assert_eq!(name(1, &[5, 2, 1]), (vec![101, 102, 2, 105], vec![5]));
        assert_eq!(name(1, &[1]), (vec![101], vec![]));
        assert_eq!(name(2, &[2, 1]), (vec![101, 102, 2], vec![1, 2]));
        assert_eq!(name(2, &[]), (vec![], vec![]));
    }
}
