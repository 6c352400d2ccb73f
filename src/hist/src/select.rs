//! Which samples count: the joint to whoever knows what was asked for.

use rperf_replay::{Sample, World};
use rperf_resolve::{Frame, Resolver};

/// What becomes of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// It belongs to a row.
    Counted,
    /// It belongs to none, but to what shares are of.
    Filtered,
    /// It is as if it were not there.
    Ignored,
}

/// Chooses samples.
pub trait Select: Sync {
    /// By what the record tells. Called for every sample, so it should be quick.
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice;

    /// By the code that the sample fell on.
    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice;
}
