//! Which samples count: the joint to whoever knows what was asked for.

use rperf_replay::{Sample, World};
use rperf_resolve::{Filter, Frame, Resolver};

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

/// What isn't of the chosen time or CPU is ignored; other tasks and places are what shares are of.
impl Select for Filter {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> Choice {
        if !self.accepts_moment(sample) {
            return Choice::Ignored;
        }
        match self.accepts_task(sample, world) {
            true => Choice::Counted,
            false => Choice::Filtered,
        }
    }

    fn place(&self, resolver: &Resolver<'_>, frame: &Frame) -> Choice {
        match self.accepts_frame(frame, resolver) {
            true => Choice::Counted,
            false => Choice::Filtered,
        }
    }
}

#[cfg(test)]
mod tests;
