//! `script -d`: whether samples come in order.

use rperf_replay::{Replay, Turn, What};

use crate::cli::context::Context;

/// Says which samples are older than one before them.
pub(super) fn order(context: &Context, replay: &Replay<'_>) {
    let mut latest = 0;
    let mut misordered: u64 = 0;
    for Turn { what, .. } in replay.turns() {
        let What::Sample(sample) = what else {
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
