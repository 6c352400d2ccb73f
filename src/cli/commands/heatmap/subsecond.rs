//! The heat map of the times of samples: seconds by fractions of the second.

use rperf_analysis::sample_times;
use rperf_flame::HeatMap;
use rperf_replay::EventIndex;

use super::HeatmapInput;
use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::event_lookup::drawn_event;

/// Maximum time from the first to the last sample of a picture, in seconds. Each second is a column.
const MAX_SECONDS: u64 = 100_000;
/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

impl HeatmapInput<'_, '_> {
    /// Returns a heat map of the samples of one event by second and fraction of the second.
    pub(super) fn subsecond(
        &self,
        event: Option<&str>,
        context: &Context,
    ) -> Result<HeatMap, CliError> {
        let index = drawn_event(
            &self.analysis.replay,
            &self.analysis.input.path,
            event,
            context,
        )?;
        let event_index = EventIndex(u32::try_from(index).unwrap_or(u32::MAX));
        let times = sample_times(
            &self.analysis.replay,
            event_index,
            self.filtered(),
            self.options.idle,
            self.analysis.jobs,
        );
        let span = times.iter().min().zip(times.iter().max());
        let (first, last) = span.ok_or_else(|| self.no_samples_left())?;
        if (last - first) / SECOND > MAX_SECONDS {
            let message = format!("the samples span more than {MAX_SECONDS} seconds");
            return Err(CliError::message(255, message)
                .hint("draw a part of the recording with --time START,END"));
        }
        let mut heat = HeatMap::of_seconds(*first, *last, self.options.rows);
        times.iter().for_each(|time| heat.add(*time));
        let event = self.analysis.replay.data().events().get(index);
        let name = event.map_or("", |event| &event.name);
        heat.title = format!("Samples of {name}: subsecond offset");
        heat.unit = "samples".to_owned();
        Ok(heat)
    }
}
