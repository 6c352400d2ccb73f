//! The two ways through a recording: what a consumer implements.

use rperf_wire::RecordKind;

use crate::{Sample, SideRecord, World};

/// Order-free: every worker owns one, stretches of the file are folded in parallel, then merged in
/// file order.
pub trait Fold: Send {
    /// Takes in one sample. Called in file order within a stretch.
    fn sample(&mut self, world: &World, sample: &Sample<'_>);

    /// Takes in what `later`, which saw a later stretch of the file, has folded.
    fn merge(&mut self, later: Self);
}

/// Time-ordered, first stage: runs in parallel over blocks of consecutive samples.
///
/// One `Out` holds what a whole block renders to, so that a thousand lines of text cost one
/// allocation and one hand-over between threads.
pub trait Render: Sync {
    /// What a block of samples renders to.
    type Out: Default + Send;
    /// What a worker keeps between samples: buffers, caches.
    type Scratch: Default + Send;

    /// Appends one sample to the block's output.
    fn render(
        &self,
        world: &World,
        sample: &Sample<'_>,
        scratch: &mut Self::Scratch,
        out: &mut Self::Out,
    );

    /// Empties a block's output that was taken, for the next block. To be overridden where memory can be kept.
    fn reuse(&self, out: &mut Self::Out) {
        *out = Self::Out::default();
    }

    /// Kinds of records beside samples that are to be rendered in their place. With FINISHED_ROUND among them
    /// everything comes in the order of the file: what a round holds is to be seen.
    fn wanted(&self) -> &[RecordKind] {
        &[]
    }

    /// Appends one record of a wanted kind to the block's output.
    fn record(
        &self,
        _world: &World,
        _record: &SideRecord<'_>,
        _scratch: &mut Self::Scratch,
        _out: &mut Self::Out,
    ) {
    }
}

/// Time-ordered, second stage: serial, blocks come in order. It should only concatenate or fold.
pub trait Take<Out> {
    /// Takes the next block. What is left of it is given back to [`Render::reuse`].
    fn take(&mut self, out: &mut Out) -> Flow;
}

impl<Out, F: FnMut(&mut Out) -> Flow> Take<Out> for F {
    fn take(&mut self, out: &mut Out) -> Flow {
        self(out)
    }
}

/// Whether more is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Go on.
    Continue,
    /// No more, please: the reader of the output has gone.
    Stop,
}
