//! Samples in order of time, rendered on all cores.

use std::num::NonZeroUsize;
use std::sync::MutexGuard;

use crate::deferred::Deferred;
use crate::diagnostics::Bad;
use crate::events::EventTable;
use crate::render::{Recorded, render_blocks};
use crate::shares::Shares;
use crate::timeline::Timeline;
use crate::{Error, Render, Replay, Take, World};

impl Replay<'_> {
    /// Renders all samples, and the other records that are wanted, in order of time: blocks of them on `threads` workers, their outputs
    /// taken in order by the caller's thread. With one thread nothing is spawned.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the places of the samples, after those before were taken. Samples that cannot be
    /// decoded are counted in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn ordered<R: Render, T: Take<R::Out>>(
        &self,
        threads: NonZeroUsize,
        render: &R,
        take: &mut T,
    ) -> Result<(), Error> {
        *self.bad() = Bad::default();
        let mut scratches = Vec::new();
        scratches.resize_with(threads.get(), R::Scratch::default);
        let mut timeline = Timeline::new(self, render.wanted());
        render_blocks(self, &mut timeline, render, &mut scratches, take);
        timeline.finish()
    }
}

impl Recorded for Replay<'_> {
    fn world(&self) -> &World {
        Replay::world(self)
    }

    fn from(&self, position: u64) -> &[u8] {
        Replay::from(self, position)
    }

    fn events(&self) -> &EventTable {
        &self.events
    }

    fn shares(&self) -> &Shares {
        &self.scan.shares
    }

    fn deferred(&self) -> &Deferred {
        &self.scan.deferred
    }

    fn bad(&self) -> MutexGuard<'_, Bad> {
        Replay::bad(self)
    }
}
