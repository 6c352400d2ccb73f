//! How many threads ran at a time, out of records of context switches.

use std::collections::BTreeSet;

use rperf_hist::Parallelism;
use rperf_replay::{Order, Replay};
use rperf_wire::{AttrFlags, Misc, Record, RecordKind};

/// What tells when threads run.
const KINDS: &[RecordKind] = &[
    RecordKind::SWITCH,
    RecordKind::SWITCH_CPU_WIDE,
    RecordKind::EXIT,
];

/// The idle tasks of all processors.
const IDLE: u32 = 0;

/// What the recording tells; `None` if it has no context switches.
pub(super) fn parallelism(replay: &Replay<'_>) -> Option<Parallelism> {
    let mut events = replay.data().events().iter();
    if !events.any(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH)) {
        return None;
    }
    let mut running = BTreeSet::new();
    let mut steps: Vec<(Order, u32)> = Vec::new();
    for side in replay.sides(KINDS) {
        // Tasks end without leaving their processor.
        let (tid, runs) = match Record::decode(&side.raw, replay.data().endian()) {
            Ok(Record::Exit(task)) => (task.tid, false),
            Ok(Record::Switch(_)) => {
                let Some((_, tid)) = side.id.pid_tid else {
                    continue;
                };
                (tid, !side.raw.misc.contains(Misc::SWITCH_OUT))
            }
            _ => continue,
        };
        let changed = match runs {
            true => tid != IDLE && running.insert(tid),
            false => running.remove(&tid),
        };
        if changed {
            steps.push((side.order, u32::try_from(running.len()).unwrap_or(u32::MAX)));
        }
    }
    Some(Parallelism::new(steps))
}
