//! `stat report`: counts that `stat record` has kept, shown as if they were just made.

mod kept;
mod machine;

use std::io;

use clap::{ArgMatches, Command};
use rperf_count::{Grouping, Round, Sheet};
use rperf_replay::Diagnostics;
use rperf_view::stat::Times;
use rperf_wire::UserRecord;

use self::kept::Kept;
use super::args;
use super::grouping::aggregation;
use super::output::Sink;
use super::refused;
use super::show::Look;
use crate::cli::context::Context;
use crate::cli::error::{CliError, Exit};
use crate::cli::findings::conclude;
use crate::cli::input::{self, Input};

const ABOUT: &str = "\
Shows counts that 'stat record' has kept: the table of everything, or one for each interval. The options show other parts of \
the machine than were asked for when it was counted. As 'stat' does, it writes to the standard error, or where -o says.";

/// The exit status for a file without counts.
const NO_COUNTS: u8 = 255;

/// The options.
pub(in crate::cli::commands) fn command() -> Command {
    Command::new("stat report")
        .long_about(ABOUT)
        .arg(input::option())
        .arg(input::force())
        .args(args::shown())
}

/// Shows the counts of a file or pipe.
pub(in crate::cli::commands) fn run(
    matches: &ArgMatches,
    context: &Context,
) -> Result<Exit, CliError> {
    refused::two_formats(matches)?;
    let asked = aggregation(matches)?;
    let input = Input::open(matches, context)?;
    let data = input.parse(context)?;
    let path = matches.get_one::<String>("output");
    let mut sink = Sink::open(path, matches, context)?;
    let look = Look::new(matches, context);
    let mut kept = Kept::new(&data, asked);
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
                found.bad_records.add(record.position, error);
                continue;
            }
        };
        let Some(round) = kept.take(&record, &decoded) else {
            continue;
        };
        let grouping = grouping.get_or_insert_with(|| kept.grouping(context));
        let text = table(&kept, grouping, (&round, number), &look)?;
        sink.write(&text)?;
        number += 1;
    }
    conclude(&input.path, &found, context)?;
    if number == 0 {
        let message = format!("{}: there are no counts in it", input.path.display());
        return Err(CliError::message(NO_COUNTS, message)
            .hint("'stat record' keeps counts; 'report' shows samples"));
    }
    Ok(Exit::Ok)
}

/// The table of one round.
fn table(
    kept: &Kept<'_>,
    grouping: &Grouping,
    (round, number): (&Round, u64),
    look: &Look,
) -> io::Result<Vec<u8>> {
    let mut sheet = Sheet::new(kept.events(), grouping);
    sheet.add(round.took, &round.readings);
    let table = sheet.table();
    let subject = kept.subject(grouping.by);
    if !round.is_whole {
        return look.interval(subject, (number, round.at), &table);
    }
    let times = Times {
        elapsed: sheet.elapsed(),
        used: None,
    };
    look.whole(subject, &table, times, &[])
}
