//! Warnings about stretches of time in which records were lost.

use clap::ArgMatches;
use rperf_analysis::sched::LostStretches;
use rperf_view::sched::Seconds;

use crate::cli::context::Context;

/// The number of stretches that are listed without `-v`.
const LISTED: usize = 5;

/// Lists the stretches whose times and delays are doubtful.
pub(super) fn warn_of_losses(lost: &LostStretches, matches: &ArgMatches, context: &Context) {
    let stretches = lost.stretches();
    if stretches.is_empty() {
        return;
    }
    let listed = match context.verbosity(matches) {
        0 => LISTED,
        _ => stretches.len(),
    };
    for stretch in stretches.iter().take(listed) {
        let cpu = match stretch.cpu {
            Some(cpu) => format!("CPU {cpu}"),
            None => "unknown CPU".to_owned(),
        };
        let (from, to) = (Seconds(stretch.from), Seconds(stretch.to));
        let records = stretch.records;
        context.warn(format_args!(
            "{cpu}: {records} records were lost between {from} and {to} s; run times and delays of its tasks are doubtful there"
        ));
    }
    let hidden = stretches.len().saturating_sub(listed);
    if hidden > 0 {
        context.note(format_args!("hint: -v lists {hidden} more stretches"));
    }
    if lost.is_incomplete() {
        context.warn("there are more stretches with lost records than are listed");
    }
}
