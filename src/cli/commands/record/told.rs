//! `--synth` and `--proc-map-timeout`: what is told of those who ran before.

use std::time::Duration;

use clap::ArgMatches;
use rperf_session::Synthesized;

use crate::cli::error::CliError;

/// As long as perf waits.
const MAPS_WITHIN: u64 = 500;

const ALL: Synthesized = Synthesized {
    tasks: true,
    mappings: true,
    cgroups: true,
};

/// Of `--synth`.
pub(super) fn synthesized(matches: &ArgMatches) -> Result<Synthesized, CliError> {
    match matches.get_one::<String>("synth") {
        None => Ok(ALL),
        Some(words) => parse(words).ok_or_else(|| {
            CliError::usage(format!("Invalid synth option: {words}"))
                .hint("choose from no, all, or some of task,mmap,cgroup")
        }),
    }
}

/// A list: `no` and `all` settle it where they stand.
fn parse(words: &str) -> Option<Synthesized> {
    let mut told = Synthesized::default();
    for word in words.split(',') {
        match word {
            "no" | "none" => return Some(Synthesized::default()),
            "all" => return Some(ALL),
            "task" => told.tasks = true,
            // They are of tasks.
            "mmap" => (told.tasks, told.mappings) = (true, true),
            "cgroup" => told.cgroups = true,
            _ => return None,
        }
    }
    Some(told)
}

/// How long the mappings of one process may take.
pub(super) fn maps_within(matches: &ArgMatches) -> Duration {
    let given = matches.get_one::<u64>("proc-map-timeout").copied();
    Duration::from_millis(given.unwrap_or(MAPS_WITHIN))
}

/// Threads that read what is told; `None` where that is left to the recording. perf takes 0 for one as well.
pub(in crate::cli::commands) fn told_by(matches: &ArgMatches) -> Option<usize> {
    let given = matches.get_one::<u64>("num-thread-synthesize").copied();
    given.map(|threads| usize::try_from(threads).map_or(usize::MAX, |threads| threads.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_add_up() {
        let told = |tasks, mappings, cgroups| {
            Some(Synthesized {
                tasks,
                mappings,
                cgroups,
            })
        };
        for (words, expected) in [
            ("no", told(false, false, false)),
            ("all", told(true, true, true)),
            ("task", told(true, false, false)),
            ("mmap", told(true, true, false)),
            ("cgroup", told(false, false, true)),
            ("cgroup,task", told(true, false, true)),
            ("task,no", told(false, false, false)),
            ("x", None),
            ("task,", None),
            ("", None),
        ] {
            assert_eq!(parse(words), expected, "{words}");
        }
    }
}
