//! The items that a report counts (samples, branches or memory accesses), their default sort keys, and the time quantum.

use clap::ArgMatches;
use rperf_hist::CountedItems;
use rperf_perfdata::feature::FeatureId;
use rperf_perfdata::{EventDesc, Metadata};
use rperf_wire::{EventType, SampleType};

use crate::cli::error::CliError;
use crate::cli::options::flag;
use crate::cli::shared::tracepoints::ALL_FIELDS_KEY;

/// The default sort keys of samples.
const SAMPLE_KEYS: &str = "comm,dso,symbol";

/// The default sort keys of samples if the recording has only tracepoints.
const TRACEPOINT_KEYS: &str = "trace";

/// The same with `--raw-trace`: all fields of the tracepoints, not formatted.
const RAW_KEYS: &str = ALL_FIELDS_KEY;

/// The default sort keys of branches.
const BRANCH_KEYS: &str = "comm,dso_from,symbol_from,symbol_to,cycles";

/// The default sort keys of memory accesses.
const ACCESS_KEYS: &str =
    "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat";

/// The keys that are printed as the default sort order of memory accesses, as in perf: [`ACCESS_KEYS`] and
/// `local_p_stage_cyc`, a key for PowerPC without a column in rperf.
const PRINTED_ACCESS_KEYS: &str = "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,local_p_stage_cyc";

/// The items to count, according to the options.
#[derive(Debug, Clone)]
pub(super) struct CountMode {
    /// `true` for `-b`, `false` for `--no-branch-stack`; if neither is given, branches are counted if recorded.
    branches: Option<bool>,
    /// `--mem-mode`.
    accesses: bool,
    /// `--sort`, as given.
    sort: Option<String>,
}

impl CountMode {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches) -> Self {
        Self {
            branches: flag(matches, "branch-stack"),
            accesses: flag(matches, "mem-mode") == Some(true),
            sort: matches.get_one::<String>("sort").cloned(),
        }
    }

    /// Returns the items to count in a recording.
    pub(super) fn counted(&self, recording: Metadata<'_>) -> Result<CountedItems, CliError> {
        let any_event_has = |bit| {
            let mut events = recording.events.iter();
            events.any(|event| event.attr.sample_type.contains(bit))
        };
        let copies_stacks = any_event_has(SampleType::STACK_USER);
        let has_accesses = any_event_has(SampleType::DATA_SRC);
        // As in perf, branch stacks are ignored if user stacks are copied.
        let has_branches = recording.features.has(FeatureId::BRANCH_STACK) && !copies_stacks;
        match (self.branches, self.accesses) {
            (Some(true), _) if !has_branches => {
                let error = CliError::message(255, "Selected -b but no branch data.");
                Err(error.hint("record branch stacks with 'record -b'"))
            }
            (Some(true), true) => Err(CliError::usage("-b and --mem-mode exclude each other")),
            (None, true) if has_branches => {
                let error = CliError::message(255, "branch and mem mode incompatible");
                Err(error.hint("the recording has branch stacks: add --no-branch-stack"))
            }
            (_, true) if !recording.is_pipe && !has_accesses => {
                let error = CliError::message(255, "Selected --mem-mode but no mem data.");
                Err(error.hint("record memory events with 'record -d'"))
            }
            (_, true) => Ok(CountedItems::Accesses),
            (Some(false), _) => Ok(CountedItems::Samples),
            _ if has_branches => Ok(CountedItems::Branches),
            _ => Ok(CountedItems::Samples),
        }
    }

    /// The sort keys to print after the total weight of memory accesses; `None` if other items are counted.
    pub(super) fn access_sort_keys(&self, counted: CountedItems) -> Option<&str> {
        let printed = self.sort.as_deref().unwrap_or(PRINTED_ACCESS_KEYS);
        (counted == CountedItems::Accesses).then_some(printed)
    }
}

/// Returns the default sort keys. If all events are tracepoints, rows are sorted by the tracepoints' fields rather than by code;
/// not for a pipe, in which other events may follow. `raw` is `--raw-trace`.
pub(super) fn default_keys(
    counted: CountedItems,
    recording: Metadata<'_>,
    raw: bool,
) -> &'static str {
    let is_tracepoint = |event: &EventDesc| event.attr.kind == EventType::TRACEPOINT;
    let only_tracepoints = !recording.is_pipe && recording.events.iter().all(is_tracepoint);
    match counted {
        CountedItems::Branches => BRANCH_KEYS,
        CountedItems::Accesses => ACCESS_KEYS,
        CountedItems::Samples if only_tracepoints && raw => RAW_KEYS,
        CountedItems::Samples if only_tracepoints => TRACEPOINT_KEYS,
        CountedItems::Samples => SAMPLE_KEYS,
    }
}

/// Parses `--time-quantum`, a number with a unit, into nanoseconds.
pub(super) fn time_quantum(text: &str) -> Result<u64, CliError> {
    let wrong = || {
        CliError::usage(format!(
            "--time-quantum: '{text}' is not a time: give a number with s, ms, us or ns"
        ))
    };
    let unit_start = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(unit_start.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit: u64 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return Err(wrong()),
    };
    let quantum = number.checked_mul(unit).filter(|quantum| *quantum > 0);
    quantum.ok_or_else(|| CliError::usage("--time-quantum must be above 0 and below 584 years"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quanta_have_units() {
        for (text, quantum) in [
            ("2s", 2_000_000_000),
            ("100ms", 100_000_000),
            ("3us", 3000),
            ("7ns", 7),
        ] {
            assert_eq!(time_quantum(text).ok(), Some(quantum));
        }
        for text in [
            "",
            "ms",
            "5",
            "0ms",
            "5min",
            "99999999999999999999s",
            "18446744073709551615s",
        ] {
            assert!(time_quantum(text).is_err(), "{text}");
        }
    }
}
