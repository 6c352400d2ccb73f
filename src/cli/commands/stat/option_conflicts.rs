//! Refuses combinations of options, before anything is done.

use clap::ArgMatches;

use crate::cli::error::CliError;
use crate::cli::live::workload;
use crate::cli::options::flag;

/// Refuses options that contradict each other, or lack a required one.
pub(super) fn check(matches: &ArgMatches) -> Result<(), CliError> {
    let on = |id: &str| flag(matches, id) == Some(true);
    let given = |id: &str| matches.contains_id(id);
    let usage = |message: &str| Err(CliError::usage(message));
    let words = workload::workload_words(matches);
    if given("interval-count") && !given("interval-print") {
        return usage("interval-count option should be used together with interval-print.");
    }
    if on("interval-clear") && !given("interval-print") {
        return usage("interval-clear option should be used together with interval-print.");
    }
    if given("timeout") && given("interval-count") {
        return usage("timeout option is not supported with interval-count.");
    }
    if on("table")
        && matches
            .get_one::<u64>("repeat")
            .is_none_or(|runs| *runs == 1)
    {
        return usage("--table is only supported with -r");
    }
    if on("metric-only") && given("repeat") {
        return usage("--metric-only is not supported with -r");
    }
    if on("metric-only") && on("per-thread") {
        return usage("--metric-only is not supported with --per-thread");
    }
    if given("td-level") && !on("topdown") {
        return usage("--td-level needs --topdown");
    }
    two_formats(matches)?;
    if given("field-separator") && on("big-num") {
        return usage("-B option not supported with -x");
    }
    if given("repeat") && given("interval-print") {
        return usage("-I and -r exclude each other");
    }
    let watched = ["pid", "tid", "uid", "cpu"].into_iter().any(given) || on("all-cpus");
    if on("per-thread") && !watched && !words.is_empty() {
        return usage(
            "The --per-thread option is only available when monitoring via -p -t -a options or only --per-thread.",
        );
    }
    Ok(())
}

/// Refuses CSV and JSON together.
pub(super) fn two_formats(matches: &ArgMatches) -> Result<(), CliError> {
    if matches.contains_id("field-separator") && flag(matches, "json-output") == Some(true) {
        return Err(CliError::usage("-x and -j exclude each other"));
    }
    Ok(())
}
