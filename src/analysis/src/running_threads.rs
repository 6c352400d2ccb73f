//! The number of threads running at a time, from context switch records.

use rperf_replay::{Order, Replay};
use rperf_wire::AttrFlags;

use crate::{
    AllSamples, ContextSwitch, EventContext, EventLayouts, Observer, ObserverPass, TaskChange,
    TaskId, TaskStates,
};

/// Returns each change of the number of running threads, with the new number, in the order of the records; `None` if no
/// event requests context switch records. Idle tasks are not counted.
#[must_use]
pub fn running_threads(replay: &Replay<'_>) -> Option<Vec<(Order, u32)>> {
    let mut events = replay.data().events().iter();
    if !events.any(|event| event.attr.flags.contains(AttrFlags::CONTEXT_SWITCH)) {
        return None;
    }
    let layouts = EventLayouts::empty(replay.data().endian());
    let pass = ObserverPass::new(&layouts, AllSamples)
        .with_tasks()
        .with_switches();
    let mut running = RunningThreads::default();
    pass.run_without_samples(replay, &mut running);
    Some(running.steps)
}

#[derive(Default)]
struct RunningThreads {
    /// Only its number of running tasks is used: the completed states that it reports are ignored.
    states: TaskStates,
    /// Each change, with the new number.
    steps: Vec<(Order, u32)>,
}

impl RunningThreads {
    /// Adds a change at `order` if the number differs from the last one.
    fn step(&mut self, order: Order) {
        let running = self.states.running_count();
        let before = self.steps.last().map_or(0, |(_, number)| *number);
        if running != before {
            self.steps.push((order, running));
        }
    }
}

impl Observer for RunningThreads {
    fn task(&mut self, at: &EventContext, change: TaskChange<'_>) {
        // An event that is attached to a task stops when the task exits, so there is no record of the task's last switch out.
        if matches!(change, TaskChange::Exit(_)) {
            self.states.task(at, &change, |_| {});
            self.step(at.order);
        }
    }

    fn switch(&mut self, at: &EventContext, switch: ContextSwitch) {
        if at.task != TaskId::UNKNOWN {
            self.states.switch(at, switch, |_| {});
            self.step(at.order);
        }
    }
}
