//! Selection of samples: by [`SampleCriteria`], or by other types for which crates that use this one implement
//! [`SelectSamples`].

use rperf_replay::{Sample, World};
use rperf_resolve::{Frame, Resolver, SampleCriteria};

/// How a histogram treats a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SampleTreatment {
    /// It is counted in a row.
    Counted,
    /// It only counts for the total.
    Filtered,
    /// It is ignored.
    Ignored,
}

/// Selects samples. The `world` has the processes and mappings at each time of the recording.
pub trait SelectSamples: Sync {
    /// Returns how a sample is treated according to its record. Called for every sample, so it should be fast. Of the recorded
    /// fields, only address, task, time, CPU and period are always decoded.
    fn sample(&self, world: &World, sample: &Sample<'_>) -> SampleTreatment;

    /// Returns how a sample is treated according to `frame`, its location; if the histogram counts branches, how a branch is
    /// treated according to its target. Only called for samples that [`SelectSamples::sample`] counts. The result must depend
    /// only on the frame, since it is cached.
    fn frame(&self, resolver: &Resolver<'_>, frame: &Frame) -> SampleTreatment;
}

/// Samples whose time or CPU is not accepted are ignored; samples whose task or location is not accepted only count for the
/// total.
impl SelectSamples for SampleCriteria {
    fn sample(&self, world: &World, sample: &Sample<'_>) -> SampleTreatment {
        if !self.accepts_time_and_cpu(sample) {
            return SampleTreatment::Ignored;
        }
        match self.accepts_task(sample, world) {
            true => SampleTreatment::Counted,
            false => SampleTreatment::Filtered,
        }
    }

    fn frame(&self, resolver: &Resolver<'_>, frame: &Frame) -> SampleTreatment {
        match self.accepts_frame(frame, resolver) {
            true => SampleTreatment::Counted,
            false => SampleTreatment::Filtered,
        }
    }
}

#[cfg(test)]
mod tests;
