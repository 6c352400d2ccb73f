//! Samples in order of time, rendered on all cores.

use std::num::NonZeroUsize;
use std::sync::MutexGuard;

use rperf_wire::{DecodeError, RawRecord};

use crate::diagnostics::Bad;
use crate::render::{Recorded, render_blocks};
use crate::timeline::Timeline;
use crate::{Error, Order, Render, Replay, Sample, Take, World};

impl Replay<'_> {
    /// Renders all samples in order of time: blocks of them on `threads` workers, their outputs
    /// taken in order by the caller's thread. With one thread nothing is spawned.
    ///
    /// # Errors
    /// [`Error::Spawn`] when a thread cannot be started. Samples that cannot be decoded are counted
    /// in [`Replay::diagnostics`].
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
        render_blocks(self, Timeline::new(self), render, &mut scratches, take)
    }
}

impl Recorded for Replay<'_> {
    fn world(&self) -> &World {
        Replay::world(self)
    }

    fn sample_at(&self, order: Order) -> Result<Option<Sample<'_>>, DecodeError> {
        let record = RawRecord::split(self.from(order.position), self.endian());
        let Some((raw, _)) = record else {
            return Ok(None);
        };
        self.events.sample(&raw, |_| order)
    }

    fn bad(&self) -> MutexGuard<'_, Bad> {
        Replay::bad(self)
    }
}
