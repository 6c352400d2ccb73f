//! Processing of samples in order of time, rendered on several threads.

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
    /// Renders the samples and the other records that `render` selects, in order of time; in file order if it selects
    /// FINISHED_ROUND, to show the records of each round. `threads` workers render blocks (up to about a thousand records each),
    /// and further threads find the positions of the records in the file; the calling thread passes the outputs of the blocks to
    /// `take` in order. If `threads` is 1, the calling thread does everything.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`] if the positions of samples need too much memory; earlier samples were
    /// delivered by then.
    ///
    /// Samples that cannot be decoded are not an error; they are counted in [`Replay::diagnostics`].
    ///
    /// # Panics
    /// If a worker panics, with the payload of the first one.
    pub fn ordered<R: Render, T: Take<R::Out>>(
        &self,
        threads: NonZeroUsize,
        render: &R,
        take: &mut T,
    ) -> Result<(), Error> {
        // An earlier call may have counted the same samples.
        *self.bad_samples() = DecodeErrors::default();
        let mut scratches = Vec::new();
        scratches.resize_with(threads.get(), R::Scratch::default);
        let skipped = self.skipped(render);
        let reader = SliceReader::new(self, render.wanted(), &skipped);
        thread::scope(|scope| {
            let receivers = match threads.get() {
                // Without receivers, the Timeline finds the positions on this thread.
                1 => Vec::new(),
                threads => reader.start(scope, threads),
            };
            let mut timeline = Timeline::new(reader, receivers);
            render_blocks(self, &mut timeline, render, &mut scratches, take);
            timeline.finish()
        })
    }
}

impl Replay<'_> {
    /// For each event, whether its samples are skipped because `render` does not read them. Empty, which skips none, if any event
    /// has `:S`: its samples contain the values of a group's counters, so a sample may belong to several events.
    fn skipped<R: Render>(&self, render: &R) -> Vec<bool> {
        if self.events.any_holds_values() {
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
        Replay::data_from(self, position)
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

    fn bad_samples(&self) -> MutexGuard<'_, DecodeErrors> {
        Replay::bad_samples(self)
    }
}
