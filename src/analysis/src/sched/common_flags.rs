//! `common_flags` of tracepoints: whether an event is in an interrupt.

use rperf_perfdata::Metadata;
use rperf_replay::{Sample, World};
use rperf_tracepoint::FieldReader;
use rperf_tracepoint::typed::TypedEvent;

use crate::PrepareSamples;

/// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ` and `TRACE_FLAG_NMI` of the kernel's `include/linux/trace_events.h`.
const INTERRUPT_FLAGS: u32 = 0x08 | 0x10 | 0x40;

/// Reads `common_flags` of samples.
#[derive(Debug)]
pub struct CommonFlags {
    /// By event; `None` for events without the field.
    readers: Vec<Option<FieldReader>>,
}

impl CommonFlags {
    /// Creates a reader for the events of a recording.
    ///
    /// # Errors
    ///
    /// Those of [`Metadata::formats`].
    pub fn new(recording: Metadata<'_>) -> Result<Self, rperf_perfdata::Error> {
        let formats = recording.formats()?;
        let readers = recording.events.iter().map(|event| {
            let tracepoint = formats.of_event(&event.attr).ok()?;
            tracepoint.reader("common_flags")
        });
        Ok(Self {
            readers: readers.collect(),
        })
    }

    /// Returns the flags of a sample, if recorded.
    #[must_use]
    pub fn of(&self, sample: &Sample<'_>) -> Option<u32> {
        let reader = (*self.readers.get(sample.event.0 as usize)?)?;
        let flags = reader.u64(sample.wire.raw?)?;
        u32::try_from(flags).ok()
    }

    /// Whether a sample is in an interrupt; `false` if its flags are not recorded.
    #[must_use]
    pub fn is_interrupt(&self, sample: &Sample<'_>) -> bool {
        self.of(sample)
            .is_some_and(|flags| flags & INTERRUPT_FLAGS != 0)
    }
}

/// Selects samples of typed events (tracepoints that are decoded as a [`TypedEvent`]); the detail,
/// which an analysis gets with each sample, is their flags, if recorded.
impl PrepareSamples for CommonFlags {
    type Detail = Option<u32>;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<Option<u32>> {
        event.map(|_| self.of(sample))
    }
}
