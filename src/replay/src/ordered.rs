//! Processing of samples in order of time, rendered on all cores.

use std::num::NonZeroUsize;
use std::sync::MutexGuard;
use std::thread;

use crate::deferred::DeferredCallchains;
use crate::diagnostics::DecodeErrors;
use crate::events::EventTable;
use crate::group_samples::GroupSamples;
use crate::render::{OrderedSamples, render_blocks};
use crate::timeline::{SliceReader, Timeline};
use crate::{Error, EventIndex, Render, Replay, Take, World};

impl Replay<'_> {
    /// Renders all samples, and other records selected by the consumer, in order of time: blocks
    /// are rendered by `threads` workers, their outputs processed in order by the calling thread.
    /// With one thread nothing is spawned.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] for the positions of samples, after earlier ones were delivered.
    /// Samples that cannot be decoded are counted in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// With the payload of the first worker that panics.
    pub fn ordered<R: Render, T: Take<R::Out>>(
        &self,
        threads: NonZeroUsize,
        render: &R,
        take: &mut T,
    ) -> Result<(), Error> {
        *self.bad() = DecodeErrors::default();
        let mut scratches = Vec::new();
        scratches.resize_with(threads.get(), R::Scratch::default);
        let skipped = self.skipped(render);
        let reader = SliceReader::new(self, render.wanted(), &skipped);
        thread::scope(|scope| {
            let readers = match threads.get() {
                1 => Vec::new(),
                threads => reader.start(scope, threads),
            };
            let mut timeline = Timeline::new(reader, readers);
            render_blocks(self, &mut timeline, render, &mut scratches, take);
            timeline.finish()
        })
    }
}

impl Replay<'_> {
    /// Whether samples are skipped, by event; empty if none are. With `:S` a sample belongs to several events, so none is skipped.
    fn skipped<R: Render>(&self, render: &R) -> Vec<bool> {
        if self.events.hold_values() {
            return Vec::new();
        }
        let events = (0..).map(EventIndex).take(self.events.len());
        events.map(|event| !render.reads(event)).collect()
    }
}

impl OrderedSamples for Replay<'_> {
    fn world(&self) -> &World {
        Replay::world(self)
    }

    fn bytes_from(&self, position: u64) -> &[u8] {
        Replay::from(self, position)
    }

    fn events(&self) -> &EventTable {
        &self.events
    }

    fn group_samples(&self) -> &GroupSamples {
        &self.scan.shares
    }

    fn deferred(&self) -> &DeferredCallchains {
        &self.scan.deferred
    }

    fn bad(&self) -> MutexGuard<'_, DecodeErrors> {
        Replay::bad(self)
    }
}
