//! Latencies from one event to another.

use std::fmt::{self, Display};
use std::path::Path;

use clap::ArgMatches;
use rperf_analysis::{Durations, TimedSpan};
use rperf_flame::{HeatMap, linear_edges, logarithmic_edges};

use super::{HeatmapInput, HeatmapOptions, text};
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::output_file::write_to;
use crate::cli::shared::event_pair::event_pair;

/// Without `--scale` and `--max-latency`, the scale is logarithmic if the longest latency divided by this exceeds the median.
const OUTLIER_RATIO: u64 = 100;

/// The start and end events of a latency, and the key that matches them.
pub(super) struct LatencyEvents {
    from: String,
    to: String,
    /// Fields in which start and end agree; if empty, both are of one thread.
    key: Vec<String>,
}

impl LatencyEvents {
    /// Reads `--from`, `--to` and `--key`; `None` if none of them is given: then the times of samples are drawn.
    pub(super) fn new(matches: &ArgMatches) -> Result<Option<Self>, CliError> {
        let (Some(from), Some(to)) = (text(matches, "from"), text(matches, "to")) else {
            let mut ids = ["from", "to", "key"].into_iter();
            let incomplete = ids.find(|id| text(matches, id).is_some());
            return match incomplete {
                None => Ok(None),
                Some(id) => Err(CliError::usage(format!(
                    "--{id}: needs a start and an end event: --from EVENT --to EVENT"
                ))),
            };
        };
        if text(matches, "event").is_some() {
            return Err(CliError::usage(
                "--event excludes --from and --to: either samples or latencies are drawn",
            ));
        }
        let key = text(matches, "key").unwrap_or_default().split(',');
        Ok(Some(Self {
            from: from.to_owned(),
            to: to.to_owned(),
            key: key
                .filter(|field| !field.is_empty())
                .map(str::to_owned)
                .collect(),
        }))
    }
}

impl HeatmapInput<'_, '_> {
    /// The latencies of a pair of events, sorted by end time; an error if there are none.
    fn spans(&self, pair: &LatencyEvents, context: &Context) -> Result<Vec<TimedSpan>, CliError> {
        let names = [&*pair.from, &*pair.to];
        let events = event_pair(
            &self.analysis.replay,
            &self.analysis.input.path,
            names,
            &pair.key,
        )?;
        let Durations { spans, counts } = Durations::measure(
            &self.analysis.replay,
            &events,
            self.filtered(),
            self.analysis.jobs,
        )?;
        // The progress line must be gone before anything is printed.
        self.analysis.end_progress();
        if counts.open > 0 {
            context.note(format_args!(
                "{} of {} have no {} and are skipped",
                counts.open, pair.from, pair.to
            ));
        }
        match spans.is_empty() {
            true => Err(self.no_samples_left()),
            false => Ok(spans),
        }
    }

    /// Writes the end times and latencies in microseconds.
    pub(super) fn write_text(
        &self,
        pair: &LatencyEvents,
        context: &Context,
    ) -> Result<(), CliError> {
        let spans = self.spans(pair, context)?;
        let path = self.options.output.as_deref().unwrap_or(Path::new("-"));
        write_to(path, context, |out| {
            spans.iter().try_for_each(|span| {
                let [end, latency] = [span.end, span.nanos].map(Microseconds);
                writeln!(out, "{end} {latency}")
            })
        })?;
        Ok(())
    }

    /// The heat map of the latencies of a pair of events.
    pub(super) fn latency_heat_map(
        &self,
        pair: &LatencyEvents,
        context: &Context,
    ) -> Result<HeatMap, CliError> {
        let spans = self.spans(pair, context)?;
        let title = format!("From {} to {}", pair.from, pair.to);
        Ok(self.options.heat_map(&spans, title))
    }
}

impl HeatmapOptions {
    /// The lower end of each row, in nanoseconds.
    fn edges(&self, spans: &[TimedSpan]) -> Vec<u64> {
        if let Some(edges) = &self.edges {
            return edges.clone();
        }
        let mut latencies: Vec<u64> = spans.iter().map(|span| span.nanos).collect();
        latencies.sort_unstable();
        let at = |index: usize| latencies.get(index).copied().unwrap_or_default();
        let (shortest, median) = (at(0), at(latencies.len() / 2));
        let longest = at(latencies.len().saturating_sub(1));
        let has_outliers = longest / OUTLIER_RATIO > median;
        let top = self.max_latency.unwrap_or(longest);
        let is_logarithmic = self.is_logarithmic;
        match is_logarithmic.unwrap_or(has_outliers && self.max_latency.is_none()) {
            true => logarithmic_edges(shortest, top, self.rows),
            false => linear_edges(top, self.rows),
        }
    }

    /// The heat map of latencies, of which there is at least one.
    pub(super) fn heat_map(&self, spans: &[TimedSpan], title: String) -> HeatMap {
        let ends = spans.iter().map(|span| span.end);
        let (first, last) = (ends.clone().min(), ends.max());
        let (first, last) = (first.unwrap_or_default(), last.unwrap_or_default());
        let edges = self.edges(spans);
        let mut heat = HeatMap::of_durations(first, last, self.columns, edges);
        for span in spans {
            heat.add_duration(span.end, span.nanos);
        }
        heat.title = title;
        heat.unit = "latencies".to_owned();
        heat
    }
}

/// Nanoseconds, shown as microseconds.
struct Microseconds(u64);

impl Display for Microseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:03}", self.0 / 1000, self.0 % 1000)
    }
}
