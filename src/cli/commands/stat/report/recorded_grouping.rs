//! The title and the aggregation of the counts of a recording.

use rperf_count::{Aggregation, AggregationRules};
use rperf_perfdata::PerfData;
use rperf_wire::StatConfig;

use super::super::grouping::{at_last_level, is_per_cpu_or_set};
use super::machine;
use crate::cli::context::Context;
use crate::cli::shared::recorded_stat::RecordedStat;

/// Returns the title of tables: the command line in the header; `pipe` for a pipe or a header without a command line.
pub(super) fn title(data: &PerfData<'_>) -> String {
    let words = match data.header().is_pipe() {
        true => None,
        false => data.features().cmdline(),
    };
    let words = words.map_or("pipe".to_owned(), |words| words.join(" "));
    format!("'{words}'")
}

/// Returns the rules by which the recorded readings are aggregated. `Global` requests the recorded aggregation. If the
/// requested aggregation needs counts per CPU and the recording has none, prints a warning and uses the recorded aggregation,
/// or `Global` if that one needs counts per CPU, too.
pub(super) fn aggregation_rules(
    recorded: &RecordedStat<'_>,
    data: &PerfData<'_>,
    requested: Aggregation,
    context: &Context,
) -> AggregationRules {
    let number = recorded.setting(StatConfig::AGGREGATION);
    let recorded_by = number.map(Aggregation::of_number).unwrap_or_default();
    let mut by = match requested {
        Aggregation::Global => recorded_by,
        requested => requested,
    };
    // By CPU, or by a set of CPUs such as a core or a node.
    if is_per_cpu_or_set(by) && !recorded.is_per_cpu() {
        context.note("warning: processing task data, aggregation mode not set");
        by = match is_per_cpu_or_set(recorded_by) {
            true => Aggregation::Global,
            false => recorded_by,
        };
    }
    let topology = machine::topology(data.features());
    AggregationRules {
        // `--per-cache` without a level means the last level.
        by: at_last_level(by, &topology),
        topology,
        unscaled: recorded.setting(StatConfig::SCALE) == Some(0),
    }
}
