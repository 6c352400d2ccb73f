//! The example `longest_wait`, and passes that read only the events that they need.

use std::num::NonZeroUsize;

use rperf_analysis::{AllSamples, EventLayouts, ObserverPass, RunState, WaitReason};
use rperf_tracepoint::typed::SchedSwitchLayout;
use rperf_wire::Endian;

use crate::longest_wait::LongestWait;
use crate::recording::{Recording, with_replay};

// Values of `prev_state` in `sched_switch`.
const PREEMPTED: u64 = 0x100;
const ASLEEP: u64 = 1;

#[test]
fn the_longest_wait_of_each_task_is_found() {
    for endian in [Endian::Little, Endian::Big] {
        let mut recording = Recording::new(endian);
        // `wakeup`: time, CPU, waker, woken task. `switch`: time, CPU, task switched out and its state, task switched in.
        // `lost`: (time, CPU, running task), number of lost records.
        recording.wakeup(100, 0, 0, 7);
        recording.switch(110, 0, (0, 0), 7);
        recording.switch(150, 0, (7, PREEMPTED), 8);
        recording.switch(250, 0, (8, ASLEEP), 7);
        recording.lost((260, 0, 7), 5);
        recording.switch(300, 0, (7, ASLEEP), 0);
        recording.wakeup(320, 0, 0, 8);
        recording.switch(325, 0, (0, 0), 8);
        let file = recording.finish();
        let waits = with_replay(&file, |data, replay| {
            let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
            assert!(layouts.has("sched:sched_switch") && layouts.unreadable().is_empty());
            let mut waits = LongestWait::default();
            let pass = ObserverPass::new(&layouts, AllSamples);
            // One thread decodes.
            let delivered = pass
                .run(replay, NonZeroUsize::MIN, &mut waits)
                .expect("memory");
            assert_eq!((delivered.typed_events, delivered.lost), (7, 5));
            waits.longest
        });
        let actual: Vec<_> = waits
            .values()
            .map(|wait| (wait.tid, wait.from, wait.to))
            .collect();
        assert_eq!(actual, [(7, 150, 250), (8, 320, 325)], "{endian:?}");
        assert_eq!(waits[&7].state, RunState::Runnable(WaitReason::Preempted));
    }
}

#[test]
fn events_that_are_not_needed_are_read_only_if_a_recording_has_losses() {
    // All events of a recording with a loss are read: each of them narrows the time in which the loss happened.
    for (has_loss, expected) in [(false, 2), (true, 4)] {
        let mut recording = Recording::new(Endian::Little);
        recording.wakeup(100, 0, 0, 7);
        recording.switch(110, 0, (0, 0), 7);
        recording.wakeup(120, 0, 7, 8);
        recording.switch(150, 0, (7, PREEMPTED), 8);
        if has_loss {
            recording.lost((160, 0, 8), 5);
        }
        let file = recording.finish();
        let delivered = with_replay(&file, |data, replay| {
            let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
            let pass = ObserverPass::new(&layouts, AllSamples);
            let pass = pass.reading(&[SchedSwitchLayout::TRACEPOINTS]);
            pass.run(replay, NonZeroUsize::MIN, &mut LongestWait::default())
                .expect("memory")
        });
        assert_eq!(delivered.typed_events, expected);
    }
}
