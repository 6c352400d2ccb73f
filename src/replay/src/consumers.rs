//! The traits implemented by consumers of samples.

use rperf_wire::{RecordKind, SampleType};

use crate::{EventIndex, NonSampleRecord, Sample, World};

/// Processing of samples in any order: ranges of the file are folded in parallel, each into its own accumulator.
/// The accumulators are then merged in file order. A [`World`] gives the processes and mappings at any time of the recording.
pub trait Fold: Send {
    /// The fields of [`Sample::wire`] that [`Fold::sample`] reads. Other fields may be missing. [`Sample::cpu`] may be missing
    /// unless CPU is one of these fields. Process, thread, time and period are decoded in any case, if recorded. Called before
    /// the first sample.
    fn fields(&self) -> SampleType {
        SampleType::ALL
    }

    /// Adds one sample. Called in file order within a range.
    fn sample(&mut self, world: &World, sample: &Sample<'_>);

    /// Merges the accumulator of a later range of the file.
    fn merge(&mut self, later: Self);
}

/// First stage of processing in order of time: runs in parallel on blocks of consecutive samples.
///
/// One `Out` contains the output of a whole block, so that a thousand lines of text cost one
/// allocation and one transfer between threads.
pub trait Render: Sync {
    /// Output of a block of samples.
    type Out: Default + Send;
    /// State that a worker keeps between samples: buffers, caches.
    type Scratch: Default + Send;

    /// Appends one sample to the block's output.
    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Self::Out,
    );

    /// The fields of [`Sample::wire`] that [`Render::render`] reads; the rules of [`Fold::fields`] apply.
    fn fields(&self) -> SampleType {
        SampleType::ALL
    }

    /// Whether samples of an event are needed. [`crate::Replay::ordered`] skips the samples of other events, which saves decoding
    /// and sorting them. It skips none if any event has `:S`, since a sample may then belong to several events.
    /// [`crate::Stream::deliver`] never skips samples.
    fn reads(&self, _event: EventIndex) -> bool {
        true
    }

    /// Clears a block's output for reuse. Override it to keep allocated memory.
    fn reuse(&self, out: &mut Self::Out) {
        *out = Self::Out::default();
    }

    /// Types of records to render besides samples. If FINISHED_ROUND is among them, everything is
    /// rendered in file order, to show which records are in each round, that is, between two FINISHED_ROUND records. For a
    /// [`crate::Stream`] it must not be among them.
    fn wanted(&self) -> &[RecordKind] {
        &[]
    }

    /// Appends one record of a type in [`Render::wanted`] to the block's output.
    fn record(
        &self,
        _world: &World,
        _record: &NonSampleRecord<'_>,
        _scratch: &mut Self::Scratch,
        _out: &mut Self::Out,
    ) {
    }
}

/// Second stage of processing in order of time: gets the blocks in order. It runs on one thread, so it should only
/// concatenate or fold.
pub trait Take<Out> {
    /// Processes the output of the next block. If processing continues, `out` is then passed to [`Render::reuse`].
    fn take(&mut self, out: &mut Out) -> FoldControl;
}

impl<Out, F: FnMut(&mut Out) -> FoldControl> Take<Out> for F {
    fn take(&mut self, out: &mut Out) -> FoldControl {
        self(out)
    }
}

/// Whether processing continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FoldControl {
    /// Continue.
    Continue,
    /// Stop, for example because the output was closed.
    Stop,
}
