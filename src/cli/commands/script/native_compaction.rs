//! The arguments of the script `compaction-times`: a Python script in perf, computed by rperf itself (native).

use regex::Regex;
use rperf_analysis::trace_scripts::{CompactionTimes, TaskFilter};
use rperf_view::trace_scripts::CompactionLayout;

use crate::cli::error::CliError;

/// Parses the arguments, which are those of perf's script: options, and the selected threads, by thread id (perf's script says
/// pid), range of thread ids or pattern of names.
///
/// # Errors
///
/// Status 129: an unknown option, or an invalid pattern.
pub(super) fn parse(words: &[String]) -> Result<(CompactionTimes, CompactionLayout), CliError> {
    let mut layout = CompactionLayout::default();
    let (mut filter, mut times_only) = (None, false);
    for word in words {
        match word.as_str() {
            "-p" => layout.by_thread = true,
            "-pv" => (layout.by_thread, layout.each_compaction) = (true, true),
            "-u" => layout.microseconds = true,
            "-t" => times_only = true,
            "-m" => layout.moved = true,
            "-fs" => layout.free_scanner = true,
            "-ms" => layout.migration_scanner = true,
            option if option.starts_with('-') => {
                let usage = "usage: script report compaction-times [-u] [-p|-pv] [-t|-m|-fs|-ms] [pid|pid-range|comm-regex]";
                return Err(CliError::usage(format!(
                    "script compaction-times: unknown option '{option}'"
                ))
                .detail(usage));
            }
            tasks => filter = Some(task_filter(tasks)?),
        }
    }
    // Without -t, -m, -fs and -ms, all parts are shown.
    if !(times_only || layout.moved || layout.free_scanner || layout.migration_scanner) {
        (layout.moved, layout.free_scanner, layout.migration_scanner) = (true, true, true);
    }
    Ok((CompactionTimes::of_tasks(filter), layout))
}

/// Parses a thread id, a range `FIRST-LAST` or `FIRST-` of thread ids, or otherwise a pattern of names.
fn task_filter(tasks: &str) -> Result<TaskFilter, CliError> {
    // The closures get the id and the name of a thread; `pid` is the word of perf's usage.
    if let Ok(selected) = tasks.parse::<i64>() {
        return Ok(Box::new(move |pid, _| pid == selected));
    }
    // Without `-` there is no range: `tasks` is no number, so it does not parse as `first` below.
    let (first, last) = tasks.split_once('-').unwrap_or((tasks, tasks));
    let last = match last {
        "" => Ok(i64::MAX),
        last => last.parse(),
    };
    if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last) {
        return Ok(Box::new(move |pid, _| (first..=last).contains(&pid)));
    }
    let pattern = Regex::new(tasks).map_err(|error| {
        CliError::usage(format!(
            "script compaction-times: pattern '{tasks}': {error}"
        ))
    })?;
    Ok(Box::new(move |_, comm| pattern.is_match(comm)))
}
