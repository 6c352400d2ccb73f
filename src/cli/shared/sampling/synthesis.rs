//! `--synth`, `--proc-map-timeout` and related options: records of tasks that are already running.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::{SynthesisOptions, SynthesizedRecords};

use crate::cli::context::Context;
use crate::cli::error::CliError;
use crate::cli::options::flag;

/// The default time limit for reading the mappings of one process, in milliseconds, as in perf.
const MAPS_TIMEOUT: u64 = 500;

const ALL: SynthesizedRecords = SynthesizedRecords {
    tasks: true,
    mappings: true,
    cgroups: true,
};

/// Returns the options for synthesizing records of running tasks.
pub(crate) fn options(
    matches: &ArgMatches,
    context: &Context,
) -> Result<SynthesisOptions, CliError> {
    Ok(SynthesisOptions {
        kinds: kinds(matches)?,
        maps_timeout: maps_timeout(matches, context),
        threads: threads(matches),
        at_end: flag(matches, "tail-synthesize") == Some(true),
    })
}

/// Parses `--synth`.
fn kinds(matches: &ArgMatches) -> Result<SynthesizedRecords, CliError> {
    match matches.get_one::<String>("synth") {
        None => Ok(ALL),
        Some(words) => parse(words).ok_or_else(|| {
            CliError::usage(format!("Invalid synth option: {words}"))
                .hint("choose from no, all, or some of task,mmap,cgroup")
        }),
    }
}

/// Parses a list of kinds; `None` for an unknown word. As in perf, the first `no`, `none` or `all` replaces the kinds before it
/// and ends the list: words after it are not checked.
fn parse(words: &str) -> Option<SynthesizedRecords> {
    let mut kinds = SynthesizedRecords::default();
    for word in words.split(',') {
        match word {
            "no" | "none" => return Some(SynthesizedRecords::default()),
            "all" => return Some(ALL),
            "task" => kinds.tasks = true,
            // Mappings require their tasks.
            "mmap" => (kinds.tasks, kinds.mappings) = (true, true),
            "cgroup" => kinds.cgroups = true,
            _ => return None,
        }
    }
    Some(kinds)
}

/// Returns the time limit for reading the mappings of one process: the option's value, otherwise the setting
/// `core.proc-map-timeout`, otherwise [`MAPS_TIMEOUT`].
pub(crate) fn maps_timeout(matches: &ArgMatches, context: &Context) -> Duration {
    let given = matches.get_one::<u64>("proc-map-timeout").copied();
    let configured = || context.config.text("core.proc-map-timeout")?.parse().ok();
    Duration::from_millis(given.or_else(configured).unwrap_or(MAPS_TIMEOUT))
}

/// Returns the number of threads that read procfs, if given. As in perf, 0 means 1.
pub(crate) fn threads(matches: &ArgMatches) -> Option<usize> {
    let given = matches.get_one::<u64>("num-thread-synthesize").copied();
    given.map(|threads| usize::try_from(threads).map_or(usize::MAX, |threads| threads.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_kinds_are_parsed() {
        let kinds = |tasks, mappings, cgroups| {
            Some(SynthesizedRecords {
                tasks,
                mappings,
                cgroups,
            })
        };
        for (words, expected) in [
            ("no", kinds(false, false, false)),
            ("all", kinds(true, true, true)),
            ("task", kinds(true, false, false)),
            ("mmap", kinds(true, true, false)),
            ("cgroup", kinds(false, false, true)),
            ("cgroup,task", kinds(true, false, true)),
            ("task,no", kinds(false, false, false)),
            ("x", None),
            ("task,", None),
            ("", None),
        ] {
            assert_eq!(parse(words), expected, "{words}");
        }
    }
}
