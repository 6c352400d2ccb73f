//! `stat report`: shows the counts stored by `stat record`.

mod machine;
mod recorded_stat;

use std::io;

use clap::{ArgMatches, Command};
use rperf_count::{AggregationRules, Aggregator, IntervalCounts};
use rperf_replay::{BadRecord, Diagnostics};
use rperf_view::stat::Times;
use rperf_wire::UserRecord;

use self::recorded_stat::RecordedStat;
use super::args;
use super::grouping::aggregation;
use super::option_conflicts;
use super::output::StatOutput;
use super::tables::TableFormat;
use crate::cli::context::Context;
use crate::cli::error::{CliError, ExitStatus};
use crate::cli::findings::conclude;
use crate::cli::input::{self, InputName, OpenedInput};

const ABOUT: &str = "\
Shows the counts in a file of 'stat record': total counts, or those of each interval. Options can select another \
aggregation than was used while counting. As 'stat' does, it writes to the standard error unless -o is given.";

/// The exit status for a file without counts.
const NO_COUNTS_STATUS: u8 = 255;

/// The options.
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
    option_conflicts::two_formats(matches)?;
    let requested = aggregation(matches)?;
    let name = InputName {
        recorder: "stat record",
        ..InputName::new(matches)
    };
    let input = OpenedInput::of(name, context)?.complete(context)?;
    let data = input.parse(context)?;
    let path = matches.get_one::<String>("output");
    let mut sink = StatOutput::open(path, matches, context)?;
    let look = TableFormat::new(matches, context);
    let mut recorded = RecordedStat::new(&data, requested);
    let mut grouping = None;
    let mut number = 0;
    let mut found = Diagnostics::default();
    for record in data.records() {
        let record = match record {
            Ok(record) => record,
            Err(error) => {
                found.end = Some(error);
                break;
            }
        };
        let decoded = match UserRecord::decode(&record.raw, data.endian()) {
            Ok(decoded) => decoded,
            Err(error) => {
                found.bad_records.add(BadRecord {
                    offset: record.position,
                    kind: record.raw.kind,
                    error,
                });
                continue;
            }
        };
        let Some(round) = recorded.take(&record, &decoded) else {
            continue;
        };
        let grouping = grouping.get_or_insert_with(|| recorded.grouping(context));
        let text = table(&recorded, grouping, &round, number, &look)?;
        sink.write(&text)?;
        number += 1;
    }
    conclude(&input.path, &found, context)?;
    if number == 0 {
        let message = format!("{}: the file contains no counts", input.path.display());
        return Err(CliError::message(NO_COUNTS_STATUS, message)
            .hint("counts are written by 'stat record'; use 'report' for samples"));
    }
    Ok(ExitStatus::Ok)
}

/// The table of one round.
fn table(
    recorded: &RecordedStat<'_>,
    grouping: &AggregationRules,
    round: &IntervalCounts,
    number: u64,
    look: &TableFormat,
) -> io::Result<Vec<u8>> {
    let mut aggregator = Aggregator::new(recorded.events(), grouping);
    aggregator.add(round.duration, &round.readings);
    let table = aggregator.table();
    let subject = recorded.subject(grouping.by);
    if !round.is_total {
        return look.interval(subject, number, round.at, &table);
    }
    let times = Times {
        elapsed: aggregator.elapsed(),
        used: None,
    };
    look.final_table(subject, &table, times, &[])
}
