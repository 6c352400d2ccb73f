//! `script -d`: checks whether samples are ordered by time.

use rperf_replay::{OrderedRecord, RecordContent, Replay};

use crate::cli::context::Context;

/// Reports each sample that is older than the preceding one, and the number of these samples.
///
/// `ordered_records` sorts, as perf does, only as far as FINISHED_ROUND records allow: a sample that comes too late in the file
/// follows samples that are newer.
pub(super) fn order(context: &Context, replay: &Replay<'_>) {
    let mut previous = 0;
    let mut misordered: u64 = 0;
    for OrderedRecord { content, .. } in replay.ordered_records() {
        let RecordContent::Sample(sample) = content else {
            continue;
        };
        // As in perf, a sample without a time is later than all others.
        let time = sample.wire.time.unwrap_or(u64::MAX);
        if time < previous {
            misordered += 1;
            context.note(format_args!(
                "Samples misordered, previous: {previous} this: {time}"
            ));
        }
        previous = time;
    }
    context.note(format_args!("Misordered timestamps: {misordered}"));
}
