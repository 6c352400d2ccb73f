//! Parallel preparation of samples before they are observed in order.

use rperf_replay::{Sample, World};
use rperf_resolve::{Resolver, SampleCriteria};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::SampleType;

/// Selects samples, and computes an analysis's data for each. The samples of a recording are prepared on several threads, in no
/// particular order; those of live ring buffers on one thread, in order of time.
pub trait PrepareSamples: Sync {
    /// The data passed with a sample to the [`Observer`](crate::Observer): a symbol, the key of a stack; `()` if not needed.
    type Detail: Send;

    /// The fields of samples that [`PrepareSamples::prepare`] reads. Task, time, period, CPU and raw data are always decoded,
    /// even if they are not among these fields.
    fn fields(&self) -> SampleType {
        SampleType::ALL
    }

    /// Returns the data of a sample; `None` skips the sample. `world` contains the processes and mappings at its time. `event` is
    /// its decoded raw data; `None` unless its event has a layout in the [`EventLayouts`](crate::EventLayouts) of the pass.
    fn prepare(
        &self,
        world: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Self::Detail>;
}

/// Selects all samples, without details.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllSamples;

impl PrepareSamples for AllSamples {
    type Detail = ();

    fn fields(&self) -> SampleType {
        SampleType(0)
    }

    #[inline]
    fn prepare(&self, _: &World, _: &Sample<'_>, _: Option<&TypedEvent<'_>>) -> Option<()> {
        Some(())
    }
}

/// Selects the samples that a filter accepts, without details.
#[derive(Clone, Copy)]
pub struct FilteredSamples<'f> {
    /// The filter.
    pub filter: &'f SampleCriteria,
    /// Resolves the symbols and objects that the filter compares.
    pub resolver: &'f Resolver<'f>,
}

impl PrepareSamples for FilteredSamples<'_> {
    type Detail = ();

    #[inline]
    fn prepare(&self, _: &World, sample: &Sample<'_>, _: Option<&TypedEvent<'_>>) -> Option<()> {
        let is_accepted = self.filter.accepts(sample, self.resolver);
        is_accepted.then_some(())
    }
}
