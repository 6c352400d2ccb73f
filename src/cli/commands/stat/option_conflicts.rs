//! Refuses invalid combinations of options before events are opened.

use clap::ArgMatches;

use crate::cli::error::CliError;
use crate::cli::live::workload;
use crate::cli::options::flag;

/// Refuses options that contradict each other, or lack a required one.
pub(super) fn check(matches: &ArgMatches) -> Result<(), CliError> {
    let is_set = |id: &str| flag(matches, id) == Some(true);
    let is_given = |id: &str| matches.contains_id(id);
    let usage = |message: &str| Err(CliError::usage(message));
    let workload_words = workload::workload_words(matches);
    if is_given("interval-count") && !is_given("interval-print") {
        return usage("interval-count option should be used together with interval-print.");
    }
    if is_set("interval-clear") && !is_given("interval-print") {
        return usage("interval-clear option should be used together with interval-print.");
    }
    if is_given("timeout") && is_given("interval-count") {
        return usage("timeout option is not supported with interval-count.");
    }
    // -r 1 is a single run; -r 0 repeats until it is interrupted.
    let runs = matches.get_one::<u64>("repeat").copied().unwrap_or(1);
    if is_set("table") && runs == 1 {
        return usage("--table is only supported with -r");
    }
    if is_set("metric-only") && runs != 1 {
        return usage("--metric-only is not supported with -r");
    }
    if is_set("metric-only") && is_set("per-thread") {
        return usage("--metric-only is not supported with --per-thread");
    }
    if is_given("td-level") && !is_set("topdown") {
        return usage("--td-level needs --topdown");
    }
    refuse_two_formats(matches)?;
    if is_given("field-separator") && is_set("big-num") {
        return usage("-B option not supported with -x");
    }
    let has_target = ["pid", "tid", "uid", "cpu"].into_iter().any(is_given) || is_set("all-cpus");
    if is_set("per-thread") && !has_target && !workload_words.is_empty() {
        return usage(
            "The --per-thread option is only available when monitoring via -p -t -a options or only --per-thread.",
        );
    }
    Ok(())
}

/// Refuses CSV and JSON together.
pub(super) fn refuse_two_formats(matches: &ArgMatches) -> Result<(), CliError> {
    if matches.contains_id("field-separator") && flag(matches, "json-output") == Some(true) {
        return Err(CliError::usage("-x and -j exclude each other"));
    }
    Ok(())
}
