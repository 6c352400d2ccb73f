//! `--filter` and `--exclude-perf` for events that the kernel cannot filter: samples that don't match are dropped before they are written.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rperf_events::{EventSpec, SampleFilter};
use rperf_perfdata::{BuildRewriter, EventDesc, Rewriter};
use rperf_replay::EventIndex;
use rperf_rewrite::FilterRewriter;
use rperf_session::RecordRequest;
use rperf_wire::{AttrFlags, SampleRecord};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Drops samples that don't match the filters of their events, and counts them.
#[derive(Debug)]
pub(super) struct SampleFilters {
    /// The filter of each event.
    filters: Vec<Option<SampleFilter>>,
    counts: Arc<FilterCounts>,
}

/// Counts of samples of events with filters.
#[derive(Debug, Default)]
struct FilterCounts {
    samples: AtomicU64,
    dropped: AtomicU64,
}

impl SampleFilters {
    /// The filters of the events of `request`, if any; adds the fields they compare to the samples.
    pub(super) fn requested(request: &mut RecordRequest) -> Result<Option<Arc<Self>>, CliError> {
        let filters = request
            .observe
            .events
            .iter()
            .map(|event| event.sample_filter.clone());
        let filters: Vec<_> = filters.collect();
        if filters.iter().all(Option::is_none) {
            return Ok(None);
        }
        let is_trace = |event: &&EventSpec| event.tracer().is_some();
        if let Some(trace) = request.observe.events.iter().find(is_trace) {
            return Err(CliError::usage(format!(
                "event {} is a hardware trace: it has no samples to filter",
                trace.name
            )));
        }
        let others = [
            (request.observe.details.overwrite, "--overwrite"),
            (request.synthesis.at_end, "--tail-synthesize"),
            (request.rings.threads.is_some(), "--threads"),
            (request.observe.details.no_samples, "--no-samples"),
        ];
        if let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) {
            let error =
                format!("filters of events other than tracepoints cannot be combined with {other}");
            return Err(CliError::usage(error).hint(format!("omit {other}")));
        }
        for filter in filters.iter().flatten() {
            filter.enable_fields(&mut request.observe.details);
        }
        Ok(Some(Arc::new(Self {
            filters,
            counts: Arc::default(),
        })))
    }

    /// Prints how many samples were dropped.
    pub(super) fn report(&self, context: &Context) {
        let [dropped, samples] = [&self.counts.dropped, &self.counts.samples];
        context.note(format_args!(
            "{} of {} samples did not match the filter of their event",
            dropped.load(Ordering::Relaxed),
            samples.load(Ordering::Relaxed)
        ));
    }
}

impl BuildRewriter for SampleFilters {
    fn describe(&self, _events: &mut [EventDesc]) {}

    fn build(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        // Events keep their order; an event that only carries side-band records follows them.
        let filters = self.filters.iter().zip(events);
        let filters: Vec<_> = filters
            .map(|(filter, event)| Some((filter.clone()?, fixed_period(event))))
            .collect();
        let counts = Arc::clone(&self.counts);
        let is_kept = move |event: EventIndex, sample: &SampleRecord<'_>| {
            let filter = filters.get(event.0 as usize).and_then(Option::as_ref);
            let Some((filter, period)) = filter else {
                return true;
            };
            counts.samples.fetch_add(1, Ordering::Relaxed);
            let matches = filter.matches(sample, *period);
            counts
                .dropped
                .fetch_add(u64::from(!matches), Ordering::Relaxed);
            matches
        };
        Box::new(FilterRewriter::new(events, is_kept))
    }
}

/// Returns the period of samples in which it is not recorded; 1 if the period varies.
fn fixed_period(event: &EventDesc) -> u64 {
    match event.attr.flags.contains(AttrFlags::FREQ) {
        true => 1,
        false => event.attr.sample_period,
    }
}
