//! The title and the aggregation of the counts of a recording.

use rperf_count::{Aggregation, AggregationRules};
use rperf_perfdata::PerfData;
use rperf_wire::StatConfig;

use super::super::grouping::{at_last_level, is_per_cpu_or_set};
use super::machine;
use crate::cli::context::Context;
use crate::cli::shared::recorded_stat::RecordedStat;

/// Returns the title of tables: the command line that counted; `pipe` if unknown.
pub(super) fn title(data: &PerfData<'_>) -> String {
    let words = match data.header().is_pipe() {
        true => None,
        false => data.features().cmdline(),
    };
    let words = words.map_or("pipe".to_owned(), |words| words.join(" "));
    format!("'{words}'")
}

/// Returns the aggregation: as requested; as recorded if `requested` is `Global`, or if it requires counts per CPU and there are
/// none. If the recorded one requires them, too, it is `Global`.
pub(super) fn aggregation_rules(
    recorded: &RecordedStat<'_>,
    data: &PerfData<'_>,
    requested: Aggregation,
    context: &Context,
) -> AggregationRules {
    let counted = recorded.setting(StatConfig::AGGREGATION);
    let counted = counted.map(Aggregation::of_number).unwrap_or_default();
    let mut by = match requested {
        Aggregation::Global => counted,
        requested => requested,
    };
    if is_per_cpu_or_set(by) && !recorded.is_per_cpu() {
        context.note("warning: processing task data, aggregation mode not set");
        by = match is_per_cpu_or_set(counted) {
            true => Aggregation::Global,
            false => counted,
        };
    }
    let topology = machine::topology(data.features());
    AggregationRules {
        by: at_last_level(by, &topology),
        topology,
        unscaled: recorded.setting(StatConfig::SCALE) == Some(0),
    }
}
