//! Durations between two events with the same key.

use std::num::NonZeroUsize;

use rperf_replay::{Error, EventIndex, Replay, Sample, World};
use rperf_tracepoint::FieldReader;
use rperf_tracepoint::typed::TypedEvent;

use crate::{
    EventContext, EventLayouts, FilteredSamples, Loss, Observer, ObserverPass, PrepareSamples,
    SpanCounts, Spans,
};

/// The events that start and end a span. If both are the same event, each sample ends the span that the previous sample with
/// the same key started; the key is that of `from`.
#[derive(Debug)]
pub struct EventPair {
    /// The event that starts a span.
    pub from: KeyedEvent,
    /// The event that ends the span.
    pub to: KeyedEvent,
}

/// An event, and the key that a start and its end have in common.
#[derive(Debug)]
pub struct KeyedEvent {
    /// The event.
    pub event: EventIndex,
    /// The fields of its raw data that are the key, all numeric. If empty, the key is the thread.
    pub key: Vec<FieldReader>,
}

/// Spans between the events of a pair.
#[derive(Debug, Default)]
pub struct Durations {
    /// The spans, sorted by their end times.
    pub spans: Vec<TimedSpan>,
    /// How starts and ends were matched.
    pub counts: SpanCounts,
}

/// A span, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedSpan {
    /// When it ended.
    pub end: u64,
    /// How long it took.
    pub nanos: u64,
}

impl Durations {
    /// Measures the spans between those samples of a recording that `filter` accepts, decoded on `threads` threads. Samples
    /// without a time or a key are skipped; a start replaces an unfinished one with the same key.
    ///
    /// # Errors
    /// Those of [`Replay::ordered`].
    pub fn measure(
        replay: &Replay<'_>,
        pair: &EventPair,
        filter: FilteredSamples<'_>,
        threads: NonZeroUsize,
    ) -> Result<Self, Error> {
        // Keys are read from the raw data by `FieldReader`s: no event needs a layout.
        let layouts = EventLayouts::empty(replay.data().endian());
        let mut observer = DurationObserver::default();
        ObserverPass::new(&layouts, SpanEdges { pair, filter }).run(
            replay,
            threads,
            &mut observer,
        )?;
        Ok(Self {
            spans: observer.finished,
            counts: observer.matcher.counts(),
        })
    }
}

impl KeyedEvent {
    /// Returns the key of a sample; `None` if its raw data lack a field of the key.
    fn key(&self, sample: &Sample<'_>) -> Option<DurationKey> {
        if self.key.is_empty() {
            return Some(DurationKey::Thread(sample.tid));
        }
        let raw = sample.wire.raw?;
        let fields = self.key.iter();
        let numbers = fields.map(|field| field.i64(raw));
        numbers.collect::<Option<_>>().map(DurationKey::Fields)
    }
}

/// The key shared by start and end.
#[derive(Debug, PartialEq, Eq, Hash)]
enum DurationKey {
    Thread(u32),
    Fields(Box<[i64]>),
}

/// A sample that ends a span, starts one, or both.
struct SpanEdge {
    time: u64,
    begins: bool,
    ends: bool,
    key: DurationKey,
}

/// Finds the samples of both events, and their keys.
struct SpanEdges<'m> {
    pair: &'m EventPair,
    filter: FilteredSamples<'m>,
}

impl PrepareSamples for SpanEdges<'_> {
    type Detail = SpanEdge;

    fn prepare(
        &self,
        world: &World,
        sample: &Sample<'_>,
        event: Option<&TypedEvent<'_>>,
    ) -> Option<SpanEdge> {
        let EventPair { from, to } = self.pair;
        let begins = sample.event == from.event;
        let ends = sample.event == to.event;
        if !begins && !ends {
            return None;
        }
        let time = sample.wire.time?;
        // `None` if the filter rejects the sample.
        self.filter.prepare(world, sample, event)?;
        let keyed = if begins { from } else { to };
        let key = keyed.key(sample)?;
        Some(SpanEdge {
            time,
            begins,
            ends,
            key,
        })
    }
}

#[derive(Default)]
struct DurationObserver {
    /// Matches starts and ends.
    matcher: Spans<DurationKey>,
    /// The spans that have ended, by end time.
    finished: Vec<TimedSpan>,
}

impl Observer<SpanEdge> for DurationObserver {
    fn sample(&mut self, _: &EventContext, edge: SpanEdge) {
        let time = edge.time;
        // If both events are the same, a sample ends a span before it starts the next.
        if edge.ends
            && let Some(span) = self.matcher.end(&edge.key, time)
        {
            let nanos = span.duration();
            self.finished.push(TimedSpan { end: time, nanos });
        }
        if edge.begins {
            self.matcher.begin(edge.key, time, ());
        }
    }

    fn lost(&mut self, _: &EventContext, _: Loss) {
        self.matcher.lost();
    }
}
