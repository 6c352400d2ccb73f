//! `--filter` and `--exclude-perf` of events whose fields the kernel does not compare: samples that don't fit are left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rperf_events::{EventSpec, SampleFilter};
use rperf_perfdata::EventDesc;
use rperf_replay::{EventIndex, Sieve};
use rperf_session::{Request, Rewriter, Rewriting};
use rperf_wire::{AttrFlags, Sample};

use crate::cli::context::Context;
use crate::cli::error::CliError;

/// Leaves out samples, and counts them.
#[derive(Debug)]
pub(super) struct Sifting {
    /// For each event its filter.
    filters: Vec<Option<SampleFilter>>,
    counts: Arc<Counts>,
}

/// Of the events with filters.
#[derive(Debug, Default)]
struct Counts {
    samples: AtomicU64,
    left_out: AtomicU64,
}

impl Sifting {
    /// Who sifts the samples of `request`, where an event has such a filter; what it compares is recorded then.
    pub(super) fn wanted(request: &mut Request) -> Result<Option<Arc<Self>>, CliError> {
        let filters = request
            .events
            .iter()
            .map(|event| event.sample_filter.clone());
        let filters: Vec<_> = filters.collect();
        if filters.iter().all(Option::is_none) {
            return Ok(None);
        }
        let is_trace = |event: &&EventSpec| event.tracer().is_some();
        if let Some(trace) = request.events.iter().find(is_trace) {
            return Err(CliError::usage(format!(
                "event {} is a hardware trace, which has no samples to be filtered",
                trace.name
            )));
        }
        let others = [
            (request.details.overwrite, "--overwrite"),
            (request.tail_synthesize, "--tail-synthesize"),
            (request.threads.is_some(), "--threads"),
            (request.details.no_samples, "--no-samples"),
        ];
        if let Some((_, other)) = others.iter().find(|(is_given, _)| *is_given) {
            let error = format!("filters of other events than tracepoints do not go with {other}");
            return Err(CliError::usage(error).hint(format!("leave {other} out")));
        }
        for filter in filters.iter().flatten() {
            filter.ask_for(&mut request.details);
        }
        Ok(Some(Arc::new(Self {
            filters,
            counts: Arc::default(),
        })))
    }

    /// Says how many samples were left out.
    pub(super) fn tell(&self, context: &Context) {
        let [left_out, samples] = [&self.counts.left_out, &self.counts.samples];
        context.note(format_args!(
            "{} of {} samples did not fit their event's filter and were left out",
            left_out.load(Ordering::Relaxed),
            samples.load(Ordering::Relaxed)
        ));
    }
}

impl Rewriting for Sifting {
    fn describe(&self, _events: &mut [EventDesc]) {}

    fn begin(&self, events: &[EventDesc]) -> Box<dyn Rewriter> {
        // Events keep their order; what carries the side-band alone comes behind them.
        let filters = self.filters.iter().zip(events);
        let filters: Vec<_> = filters
            .map(|(filter, event)| Some((filter.clone()?, fixed_period(event))))
            .collect();
        let counts = Arc::clone(&self.counts);
        let keeps = move |event: EventIndex, sample: &Sample<'_>| {
            let filter = filters.get(event.0 as usize).and_then(Option::as_ref);
            let Some((filter, period)) = filter else {
                return true;
            };
            counts.samples.fetch_add(1, Ordering::Relaxed);
            let fits = filter.keeps(sample, *period);
            counts
                .left_out
                .fetch_add(u64::from(!fits), Ordering::Relaxed);
            fits
        };
        Box::new(Sifter(Sieve::new(events, keeps)))
    }
}

/// What samples stand for that do not tell; 1 where nothing is known.
fn fixed_period(event: &EventDesc) -> u64 {
    match event.attr.flags.contains(AttrFlags::FREQ) {
        true => 1,
        false => event.attr.sample_period,
    }
}

/// The samples of one recording.
struct Sifter<K>(Sieve<K>);

impl<K: FnMut(EventIndex, &Sample<'_>) -> bool + Send> Rewriter for Sifter<K> {
    fn note(&mut self, _records: &[u8]) {}

    fn note_end(&mut self) {}

    fn rewrite(&mut self, records: &[u8], _haste: bool, to: &mut Vec<u8>) {
        self.0.rewrite(records, to);
    }
}
