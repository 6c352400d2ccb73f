//! `stat report`: shows the counts stored by `stat record`.

mod machine;
mod recorded_grouping;

use std::io;

use clap::{ArgMatches, Command};
use rperf_count::{Aggregator, IntervalCounts};
use rperf_view::stat::Times;

use super::args;
use super::grouping::aggregation_mode;
use super::option_conflicts;
use super::output::StatOutput;
use super::tables::{TableFormat, TableSubject};
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::conclude;
use crate::cli::input::{self, InputName, OpenedInput};
use crate::cli::shared::recorded_stat::RecordedStat;

const ABOUT: &str = "\
Shows the counts in a file of 'stat record': total counts, or those of each interval. Options can select an \
aggregation other than the one used while counting. Like 'stat', 'stat report' writes to the standard error unless -o or \
--log-fd is given.";

/// The exit status for a file without counts.
const NO_COUNTS_STATUS: u8 = 255;

/// Returns the command with its options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("stat report")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(input::force())
        .args(args::display_options())
}

/// Shows the counts of a file or pipe.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<ExitStatus, CliError> {
    option_conflicts::refuse_two_formats(matches)?;
    let requested = aggregation_mode(matches)?;
    let name = InputName {
        recorder: "stat record",
        ..InputName::new(matches)
    };
    let input = OpenedInput::of(name, context)?.complete(context)?;
    let data = input.parse(context)?;
    let path = matches.get_one::<String>("output");
    let mut sink = StatOutput::open(path, matches, context)?;
    let format = TableFormat::new(matches, context);
    let title = recorded_grouping::title(&data);
    let mut rules = None;
    let mut number = 0;
    // A round is an interval, or the time since the start for totals.
    let diagnostics = RecordedStat::new(&data).read(&mut |recorded, round| {
        // The rules need settings that are recorded before the first round.
        let rules = rules.get_or_insert_with(|| {
            recorded_grouping::aggregation_rules(recorded, &data, requested, context)
        });
        let subject = TableSubject {
            title: &title,
            by: rules.by,
            threads: recorded.threads(),
            // As in perf, `stat report` does not mark totals after intervals as their summary.
            may_be_summary: false,
        };
        let mut aggregator = Aggregator::new(recorded.events(), rules);
        aggregator.add(round.duration, &round.readings);
        let text = table(&aggregator, subject, round, number, &format)?;
        sink.write(&text)?;
        number += 1;
        Ok(())
    })?;
    conclude(&input.path, data.is_truncated(), &diagnostics, context)?;
    if number == 0 {
        let message = format!("{}: the file contains no counts", input.path.display());
        return Err(CliError::message(NO_COUNTS_STATUS, message)
            .hint("counts are written by 'stat record'; use 'report' for samples"));
    }
    Ok(ExitStatus::Ok)
}

/// Formats the table of `round`; `number` counts rounds from 0.
fn table(
    aggregator: &Aggregator<'_>,
    subject: TableSubject<'_>,
    round: &IntervalCounts,
    number: u64,
    format: &TableFormat,
) -> io::Result<Vec<u8>> {
    let table = aggregator.table();
    if !round.is_total {
        return format.interval_table(subject, number, round.at, &table);
    }
    let times = Times {
        elapsed: aggregator.elapsed(),
        // They are not recorded.
        cpu_times: None,
    };
    // The times of repeated runs, for `--table`: a recording has a single run.
    let runs = [];
    format.final_table(subject, &table, times, &runs)
}
