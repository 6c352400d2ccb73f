//! Steps of `sched replay`: they do not deadlock, and take the recorded time.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::sched::replay::{ReplayPlan, ReplayRecorder, ReplayStep};
use rperf_analysis::{AllSamples, EventLayouts, ObserverPass};
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// States of a task that is switched out: asleep, runnable, preempted.
const STATES: [u64; 3] = [1, 0, 0x100];

/// A task switch or a wakeup:
/// - the time,
/// - the CPU,
/// - the task that is switched out or wakes another; 0 is the idle task,
/// - for a switch, the index of this task's state in `STATES` (`Some(0)` is asleep); `None` for a wakeup,
/// - the other task: the next one or the woken one.
type Event = (u64, u32, u32, Option<usize>, u32);

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (
        1..9_u64,
        0..2_u32,
        0..5_u32,
        proptest::option::of(0..3_usize),
        0..5_u32,
    );
    proptest::collection::vec(event, 0..120).prop_map(|events| {
        let mut time = 0;
        let events = events.into_iter().map(|(after, cpu, task, state, other)| {
            time += after;
            (time, cpu, task, state, other)
        });
        events.collect()
    })
}

fn plan(events: &[Event]) -> ReplayPlan {
    let mut recording = Recording::new(Endian::NATIVE);
    for (time, cpu, task, state, other) in events {
        match state {
            Some(state) => recording.switch(*time, *cpu, (*task, STATES[*state]), *other),
            None => recording.wakeup(*time, *cpu, *task, *other),
        }
    }
    with_replay(&recording.finish(), |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let mut recorder = ReplayRecorder::new(&layouts);
        let pass = ObserverPass::new(&layouts, AllSamples).with_tasks();
        pass.run(replay, NonZeroUsize::MIN, &mut recorder)
            .expect("memory");
        recorder.finish()
    })
}

/// Takes one step at a time, always of the ready task with the highest index in the plan, until all tasks are finished or
/// blocked. Returns the number of steps left.
fn left_over(plan: &ReplayPlan) -> usize {
    let mut next = vec![0; plan.tasks.len()];
    let mut woken = vec![false; plan.wakeups as usize];
    loop {
        let is_ready = |task: usize| match plan.tasks[task].steps.get(next[task]) {
            None => false,
            Some(ReplayStep::Await(number)) => woken[*number as usize],
            Some(_) => true,
        };
        let Some(task) = (0..next.len()).rev().find(|task| is_ready(*task)) else {
            break;
        };
        if let ReplayStep::Wake {
            number,
            task: woken_task,
        } = plan.tasks[task].steps[next[task]]
        {
            assert!(!woken[number as usize], "wakeup {number} is made twice");
            assert!(
                plan.tasks[woken_task]
                    .steps
                    .contains(&ReplayStep::Await(number))
            );
            woken[number as usize] = true;
        }
        next[task] += 1;
    }
    let steps = plan.tasks.iter().zip(next);
    steps.map(|(task, next)| task.steps.len() - next).sum()
}

/// Corrects the task of each event, whether it is switched out or a waker: it becomes the task that runs on the CPU. Appends a
/// switch to the idle task on each CPU, so that all runs end.
fn consistent(mut events: Vec<Event>) -> Vec<Event> {
    let mut current = BTreeMap::new();
    for (_, cpu, task, state, other) in &mut events {
        let running = current.entry(*cpu).or_insert(*task);
        *task = *running;
        if state.is_some() {
            *running = *other;
        }
    }
    let end = events.last().map_or(0, |event| event.0) + 1;
    events.extend(
        current
            .into_iter()
            .map(|(cpu, running)| (end, cpu, running, Some(0), 0)),
    );
    events
}

/// The time that each task ran: from the previous switch on the same CPU to its switch-out.
fn run_times(events: &[Event]) -> BTreeMap<i32, u64> {
    let mut times = BTreeMap::new();
    for (at, (time, cpu, task, state, _)) in events.iter().enumerate() {
        let mut earlier = events[..at].iter().rev();
        let before = earlier.find(|event| event.1 == *cpu && event.3.is_some());
        if let (Some(_), Some(before), true) = (state, before, *task != 0) {
            *times.entry(task.cast_signed()).or_default() += time - before.0;
        }
    }
    times
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn steps_never_deadlock(events in events()) {
        prop_assert_eq!(left_over(&plan(&events)), 0);
    }

    #[test]
    fn tasks_run_as_long_as_recorded(events in events()) {
        let events = consistent(events);
        let plan = plan(&events);
        prop_assert_eq!(left_over(&plan), 0);
        let mut actual = BTreeMap::new();
        for task in &plan.tasks {
            prop_assert!(task.tid != 0 || task.steps.is_empty());
            for step in &task.steps {
                if let ReplayStep::Run(nanos) = step {
                    *actual.entry(task.tid).or_default() += nanos;
                }
            }
        }
        let expected = run_times(&events);
        prop_assert_eq!(actual, expected.into_iter().filter(|(_, nanos)| *nanos > 0).collect::<BTreeMap<_, _>>());
        let switches = events.iter().filter(|event| event.3.is_some()).count() as u64;
        let wakeups = events.len() as u64 - switches;
        let counts = plan.counts;
        prop_assert_eq!(counts.runs, switches);
        // As in perf, a sleep is counted at each switch and at the start of each task, even if it is not among the steps.
        prop_assert_eq!(counts.sleeps, switches + plan.tasks.len() as u64);
        prop_assert_eq!(counts.wakeups, wakeups);
        let events: u64 = plan.tasks.iter().map(|task| task.events).sum();
        prop_assert_eq!(events, counts.runs + counts.sleeps + counts.wakeups);
    }
}

#[test]
fn a_wakeup_by_a_task_is_awaited_and_others_become_sleeps() {
    use ReplayStep::{Await, Run, Sleep, Wake};
    let plan = plan(&[
        (100, 0, 0, Some(0), 1),
        (150, 0, 1, None, 2),
        (180, 0, 1, Some(0), 2),
        (200, 0, 2, Some(0), 0),
        // By the idle task, so in an interrupt: no step of a task, and the woken one gets a sleep of the recorded time.
        (260, 0, 0, None, 1),
        (261, 0, 0, Some(0), 1),
        (300, 0, 1, Some(0), 0),
    ]);
    let steps: Vec<_> = plan
        .tasks
        .iter()
        .map(|task| (task.tid, &*task.steps))
        .collect();
    let wake = Wake { number: 0, task: 2 };
    assert_eq!(
        steps,
        [
            (0, &[][..]),
            (1, &[Run(50), wake, Run(30), Sleep(80), Run(39)]),
            (2, &[Await(0), Run(20)]),
        ]
    );
}
