//! `script -d`: checks whether samples are ordered by time.

use rperf_replay::{OrderedRecord, RecordContent, Replay};

use crate::cli::context::Context;

/// Reports samples that are older than the preceding one.
pub(super) fn order(context: &Context, replay: &Replay<'_>) {
    let mut latest = 0;
    let mut misordered: u64 = 0;
    for OrderedRecord { content, .. } in replay.ordered_records() {
        let RecordContent::Sample(sample) = content else {
            continue;
        };
        let time = sample.wire.time.unwrap_or(u64::MAX);
        if time < latest {
            misordered += 1;
            let message = "Samples misordered, previous";
            context.note(format_args!("{message}: {latest} this: {time}"));
        }
        latest = time;
    }
    context.note(format_args!("Misordered timestamps: {misordered}"));
}
