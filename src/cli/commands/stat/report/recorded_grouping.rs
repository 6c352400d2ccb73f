//! The title and the aggregation of the counts of a recording.

use rperf_count::{Aggregation, AggregationRules, ModeNumbers};
use rperf_perfdata::PerfData;
use rperf_wire::StatConfig;

use super::super::grouping::{at_last_level, is_per_cpu_or_set};
use super::machine;
use crate::cli::context::Context;
use crate::cli::shared::recorded_stat::RecordedStat;

/// The highest level of caches (`MAX_CACHE_LVL` of perf's `util/header.h`).
const MAX_CACHE_LEVEL: u64 = 4;

/// Returns the title of tables: the command line in the header; `pipe` for a pipe or a header without a command line.
pub(super) fn title(data: &PerfData<'_>) -> String {
    let words = match data.header().is_pipe() {
        true => None,
        false => data.features().cmdline(),
    };
    let words = words.map_or("pipe".to_owned(), |words| words.join(" "));
    format!("'{words}'")
}

/// Returns the recorded aggregation. A cache level of 0 means the last level.
fn recorded_aggregation(recorded: &RecordedStat<'_>, data: &PerfData<'_>) -> Aggregation {
    let level = recorded.setting(StatConfig::CACHE_LEVEL);
    let numbers = match level {
        None => ModeNumbers::Perf6_1,
        Some(_) => numbers_of(&data.features().version().unwrap_or_default()),
    };
    let number = recorded.setting(StatConfig::AGGREGATION);
    let by = number.map(|number| Aggregation::of_number(number, numbers));
    match (by.unwrap_or_default(), level) {
        (Aggregation::Cache(_), Some(level @ 1..=MAX_CACHE_LEVEL)) => {
            Aggregation::Cache(u8::try_from(level).unwrap_or_default())
        }
        (by, _) => by,
    }
}

/// Returns the numbers of modes of a recorder that records the cache level (perf 6.5 and later). `version` is its version, such
/// as `6.12.117`.
fn numbers_of(version: &str) -> ModeNumbers {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    match (parts.next().flatten(), parts.next().flatten()) {
        (Some(6), Some(..9)) => ModeNumbers::Perf6_5,
        _ => ModeNumbers::Perf6_9,
    }
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
    let recorded_by = recorded_aggregation(recorded, data);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_modes_depend_on_the_version() {
        for (version, numbers) in [
            ("6.5", ModeNumbers::Perf6_5),
            ("6.8.12", ModeNumbers::Perf6_5),
            ("6.9", ModeNumbers::Perf6_9),
            ("6.12.117", ModeNumbers::Perf6_9),
            ("7.2.13", ModeNumbers::Perf6_9),
            ("", ModeNumbers::Perf6_9),
        ] {
            assert_eq!(numbers_of(version), numbers, "{version}");
        }
    }
}
