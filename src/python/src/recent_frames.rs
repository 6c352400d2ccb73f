//! A direct-mapped cache of resolved addresses: samples have many addresses in common.

use rperf_replay::Epoch;
use rperf_resolve::{AddressContext, Frame, Resolver};
use rperf_wire::CpuMode;

/// Number of addresses that each worker (thread) keeps; a power of two.
const SLOTS: usize = 1 << 13;
/// An odd multiplier that spreads addresses over the slots: 2^64 divided by the golden ratio.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// An address with its frame, valid for one state of the mappings.
#[derive(Debug, Clone, Copy)]
struct CachedFrame {
    ip: u64,
    mode: CpuMode,
    /// The number of that state: the part of an [`Epoch`] for the process or, in kernel mode, for the kernel. It is unique among
    /// all known processes and kernels.
    epoch: u64,
    frame: Frame,
}

/// The frames of recent addresses. Programs execute the same code over and over: most look-ups are saved.
#[derive(Debug, Default)]
pub(crate) struct RecentFrames {
    slots: Vec<Option<CachedFrame>>,
}

impl RecentFrames {
    /// The frame of `address`, as [`Resolver::locate`] finds it. `epoch` is the state of the mappings of the sample's process and
    /// of its kernel, at the time of the sample.
    pub(crate) fn locate(
        &mut self,
        resolver: &Resolver<'_>,
        at: AddressContext,
        epoch: Epoch,
        address: ModeAddress,
    ) -> Frame {
        let ModeAddress { mode, ip } = address;
        let epoch = epoch.of_mode(mode);
        // An unknown process or kernel has no mappings, so a cache would save nothing.
        if epoch == Epoch::UNKNOWN {
            return resolver.locate(at, mode, ip);
        }
        if self.slots.is_empty() {
            self.slots.resize(SLOTS, None);
        }
        let hash = (ip ^ epoch.rotate_left(32)).wrapping_mul(SPREAD);
        let index = hash >> (u64::BITS - SLOTS.ilog2());
        let slot = self.slots.get_mut(index as usize);
        if let Some(Some(known)) = &slot
            && (known.ip, known.mode, known.epoch) == (ip, mode, epoch)
        {
            return known.frame;
        }
        let frame = resolver.locate(at, mode, ip);
        if let Some(slot) = slot {
            *slot = Some(CachedFrame {
                ip,
                mode,
                epoch,
                frame,
            });
        }
        frame
    }
}

/// An address in a mode of the processor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModeAddress {
    pub(crate) mode: CpuMode,
    pub(crate) ip: u64,
}
