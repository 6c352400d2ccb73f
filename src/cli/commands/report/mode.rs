//! What makes the rows of a report: samples, branches or memory accesses.

use clap::ArgMatches;
use rperf_hist::Counted;
use rperf_perfdata::feature::FeatureId;
use rperf_perfdata::{Described, EventDesc};
use rperf_wire::{EventType, SampleType};

use super::tracepoints::ALL;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The rows of a report where nothing else is said.
const SAMPLE_KEYS: &str = "comm,dso,symbol";

/// The same in a recording of tracepoints alone.
const TRACEPOINT_KEYS: &str = "trace";

/// The same where their fields are not to be printed as they say.
const RAW_KEYS: &str = ALL;

const BRANCH_KEYS: &str = "comm,dso_from,symbol_from,symbol_to,cycles";

const ACCESS_KEYS: &str =
    "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat";

/// What perf says that it sorts accesses by; the last key is of other architectures and no column here.
const ACCESS_KEYS_SAID: &str = "local_weight,mem,sym,dso,symbol_daddr,dso_daddr,snoop,tlb,locked,blocked,local_ins_lat,local_p_stage_cyc";

/// What the options ask to count.
#[derive(Debug, Clone)]
pub(super) struct Mode {
    /// `-b`, `--no-branch-stack`; a recording of branches is shown as such if nothing is said.
    branches: Option<bool>,
    accesses: bool,
    /// `--sort`, as it was given.
    sort: Option<String>,
}

impl Mode {
    /// Reads the options.
    pub(super) fn new(matches: &ArgMatches) -> Self {
        Self {
            branches: flag(matches, "branch-stack"),
            accesses: flag(matches, "mem-mode") == Some(true),
            sort: matches.get_one::<String>("sort").cloned(),
        }
    }

    /// What is counted of a recording.
    pub(super) fn counted(&self, recording: Described<'_>) -> Result<Counted, CliError> {
        let any = |bit| {
            let mut events = recording.events.iter();
            events.any(|event| event.attr.sample_type.contains(bit))
        };
        let copies_stacks = any(SampleType::STACK_USER);
        let has_accesses = any(SampleType::DATA_SRC);
        let has_branches = recording.features.has(FeatureId::BRANCH_STACK) && !copies_stacks;
        match (self.branches, self.accesses) {
            (Some(true), _) if !has_branches => {
                let error = CliError::message(255, "Selected -b but no branch data.");
                Err(error.hint("branches are recorded with 'record -b'"))
            }
            (Some(true), true) => Err(CliError::usage(
                "-b shows branches and --mem-mode memory accesses: choose one",
            )),
            (None, true) if has_branches => {
                let error = CliError::usage("branch and mem mode incompatible");
                Err(error.hint("the recording has branches: add --no-branch-stack"))
            }
            (_, true) if !recording.is_pipe && !has_accesses => {
                let error = CliError::message(255, "Selected --mem-mode but no mem data.");
                Err(error.hint("accesses are recorded with 'record -d' and events of memory"))
            }
            (_, true) => Ok(Counted::Accesses),
            (Some(false), _) => Ok(Counted::Samples),
            _ if has_branches => Ok(Counted::Branches),
            _ => Ok(Counted::Samples),
        }
    }

    /// The sort keys to show after the sum of what accesses cost.
    pub(super) fn costs_by(&self, counted: Counted) -> Option<&str> {
        let said = self.sort.as_deref().unwrap_or(ACCESS_KEYS_SAID);
        (counted == Counted::Accesses).then_some(said)
    }
}

/// The sort keys where none are given. Tracepoints alone tell more by what they say than by where they are. In a pipe
/// more events may follow.
pub(super) fn usual_keys(counted: Counted, recording: Described<'_>, raw: bool) -> &'static str {
    let is_tracepoint = |event: &EventDesc| event.attr.kind == EventType::TRACEPOINT;
    let tracepoints = !recording.is_pipe && recording.events.iter().all(is_tracepoint);
    match counted {
        Counted::Branches => BRANCH_KEYS,
        Counted::Accesses => ACCESS_KEYS,
        Counted::Samples if tracepoints && raw => RAW_KEYS,
        Counted::Samples if tracepoints => TRACEPOINT_KEYS,
        Counted::Samples => SAMPLE_KEYS,
    }
}

/// Nanoseconds of `--time-quantum`: a number with its unit.
pub(super) fn time_quantum(text: &str) -> Result<u64, CliError> {
    let wrong = || {
        CliError::usage(format!(
            "--time-quantum takes a number with s, ms, us or ns, not '{text}'"
        ))
    };
    let digits = text.find(|letter: char| !letter.is_ascii_digit());
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit: u64 = match unit {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" => 1_000,
        "ns" => 1,
        _ => return Err(wrong()),
    };
    let quantum = number.checked_mul(unit).filter(|quantum| *quantum > 0);
    quantum.ok_or_else(|| CliError::usage("--time-quantum cannot be 0, nor beyond 584 years"))
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
