//! Off-CPU time, compared with that of a slow method (`oracle`), which searches all earlier events at the end of each wait.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::sched::off_cpu::{
    OffCpu, OffCpuOptions, OffCpuState, OffCpuTable, OffCpuTime, StackFrame, SwitchStack,
};
use rperf_analysis::{EventLayouts, ObserverPass, PrepareSamples, Sleep};
use rperf_replay::{DsoId, Sample, World};
use rperf_resolve::Level;
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// An interrupt makes a wakeup if its time is a multiple of this, or if the idle task runs; otherwise, the running task makes it.
const INTERRUPT_PERIOD: u64 = 7;
/// States of a task that is switched out: interruptible, uninterruptible, runnable, preempted.
const STATES: [u64; 4] = [1, 2, 0, 0x100];
const TASKS: usize = 5;

/// A step of a schedule; impossible steps are skipped.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The CPU's task is switched out in the state with this index, and a runnable task, selected by the second number, is
    /// switched in; if there is none, the idle task.
    Switch(usize, usize),
    /// A sleeping task, selected by this number, is woken.
    Wake(usize),
}

/// An event of `task` on a CPU.
#[derive(Debug, Clone, Copy)]
struct Event {
    time: u64,
    cpu: u32,
    task: u32,
    /// The woken task, or the task that is switched in.
    other: u32,
    /// Index of the state in which `task` is switched out; `None` for a wakeup.
    state: Option<usize>,
}

/// Gives each event a stack of one frame, with the event's time as [`DsoId`]: a stack in the result identifies its event.
struct TimeStacks;

impl PrepareSamples for TimeStacks {
    type Detail = SwitchStack;

    fn prepare(
        &self,
        _: &World,
        sample: &Sample<'_>,
        _: Option<&TypedEvent<'_>>,
    ) -> Option<SwitchStack> {
        let time = sample.order.time;
        Some(SwitchStack {
            frames: [frame(time)].into(),
            is_interrupt: time.is_multiple_of(INTERRUPT_PERIOD),
        })
    }
}

/// Gives each event a stack without frames, in the context of its task.
struct NoStacks;

impl PrepareSamples for NoStacks {
    type Detail = SwitchStack;

    fn prepare(
        &self,
        _: &World,
        _: &Sample<'_>,
        _: Option<&TypedEvent<'_>>,
    ) -> Option<SwitchStack> {
        Some(SwitchStack {
            frames: [].into(),
            is_interrupt: false,
        })
    }
}

fn frame(time: u64) -> StackFrame {
    StackFrame {
        symbol: None,
        dso: Some(DsoId(u32::try_from(time).expect("a short test"))),
        level: Level::Kernel,
    }
}

/// Returns a schedule of tasks 1 to `TASKS` on two CPUs.
fn schedule(steps: &[(u64, usize, Step)]) -> Vec<Event> {
    let mut running = [0, 0];
    let mut sleeping: Vec<u32> = Vec::new();
    let mut runnable: Vec<u32> = (1..=TASKS as u32).collect();
    let mut events = Vec::new();
    let mut time = 0;
    for (after, cpu, step) in steps {
        time += after;
        let task = running[*cpu];
        let (other, state) = match step {
            Step::Switch(state, number) => {
                let next = match runnable.len() {
                    0 => 0,
                    count => runnable.swap_remove(number % count),
                };
                match (task, STATES[*state]) {
                    (0, _) => {}
                    (_, 1 | 2) => sleeping.push(task),
                    _ => runnable.push(task),
                }
                // Only the idle task can be followed by itself, if no task is runnable.
                if next == task {
                    continue;
                }
                running[*cpu] = next;
                (next, Some(*state))
            }
            Step::Wake(_) if sleeping.is_empty() => continue,
            Step::Wake(number) => {
                let woken = sleeping.swap_remove(number % sleeping.len());
                runnable.push(woken);
                (woken, None)
            }
        };
        events.push(Event {
            time,
            cpu: *cpu as u32,
            task,
            other,
            state,
        });
    }
    events
}

fn measured(
    events: &[Event],
    endian: Endian,
    max_wakers: usize,
    stacks: impl PrepareSamples<Detail = SwitchStack>,
) -> OffCpuTable {
    let mut recording = Recording::new(endian);
    for event in events {
        let Event {
            time,
            cpu,
            task,
            other,
            state,
        } = *event;
        match state {
            Some(state) => recording.switch(time, cpu, (task, STATES[state]), other),
            None => recording.wakeup(time, cpu, task, other),
        }
    }
    with_replay(&recording.finish(), |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let mut off_cpu = OffCpu::new(OffCpuOptions {
            max_wakers,
            ..OffCpuOptions::default()
        });
        let pass = ObserverPass::new(&layouts, stacks).with_tasks();
        pass.run(replay, NonZeroUsize::MIN, &mut off_cpu)
            .expect("memory");
        off_cpu.finish()
    })
}

/// Name of the task, its state, time of the switch, and its wakers: name (`None` for an interrupt) and time of the wakeup.
type Key = (String, OffCpuState, u64, Vec<(Option<String>, u64)>);

/// The waker that ended the last sleep of `task` before the event with index `before`, then the waker of that waker, and so on:
/// at most `max_wakers`.
fn wakers(
    events: &[Event],
    before: usize,
    task: u32,
    max_wakers: usize,
) -> Vec<(Option<String>, u64)> {
    let sleep_index = events[..before].iter().rposition(|event| {
        event.task == task && event.state.is_some_and(|state| STATES[state] & 3 != 0)
    });
    let wakeup_index = events[..before]
        .iter()
        .rposition(|event| event.state.is_none() && event.other == task);
    let (Some(sleep_index), Some(wakeup_index), true) = (sleep_index, wakeup_index, max_wakers > 0)
    else {
        return Vec::new();
    };
    // The sleep has not ended.
    if wakeup_index < sleep_index {
        return Vec::new();
    }
    let Event {
        time, task: waker, ..
    } = events[wakeup_index];
    if waker == 0 || time.is_multiple_of(INTERRUPT_PERIOD) {
        return vec![(None, time)];
    }
    let mut chain = vec![(Some(format!(":{waker}")), time)];
    chain.extend(wakers(events, wakeup_index, waker, max_wakers - 1));
    chain
}

/// Returns the expected rows.
fn oracle(events: &[Event], max_wakers: usize) -> BTreeMap<Key, OffCpuTime> {
    let mut expected: BTreeMap<Key, OffCpuTime> = BTreeMap::new();
    for (at, event) in events.iter().enumerate() {
        let task = event.other;
        // The idle task has no off-CPU time.
        if task == 0 {
            continue;
        }
        // The event that switched out the task which `event` wakes or switches in.
        let left = events[..at]
            .iter()
            .rev()
            .find(|before| before.task == task && before.state.is_some());
        let Some(left) = left else {
            continue;
        };
        let wakeup = events[..at].iter().rev().find(|before| {
            before.state.is_none() && before.other == task && before.time > left.time
        });
        let (state, since) = match (STATES[left.state.expect("a switch")], wakeup) {
            (1, None) => (OffCpuState::Sleeping(Sleep::Interruptible), left.time),
            (2, None) => (OffCpuState::Sleeping(Sleep::Uninterruptible), left.time),
            (1 | 2, Some(wakeup)) => (OffCpuState::Woken, wakeup.time),
            _ => (OffCpuState::Preempted, left.time),
        };
        let chain = match state {
            // `event` is the wakeup that ended this sleep.
            OffCpuState::Sleeping(_) => wakers(events, at + 1, task, max_wakers),
            _ => Vec::new(),
        };
        let sum = expected
            .entry((format!(":{task}"), state, left.time, chain))
            .or_default();
        let nanos = event.time - since;
        sum.count += 1;
        sum.nanos += nanos;
        sum.max = sum.max.max(nanos);
    }
    expected
}

#[test]
fn rows_with_equal_times_are_ordered_by_the_names_of_wakers() {
    let mut events = Vec::new();
    for waker in (2..9).rev() {
        let start = u64::from(10 - waker) * 100;
        let event = |time, task, other, state| Event {
            time: start + time,
            cpu: 0,
            task,
            other,
            state,
        };
        // The idle task leaves the CPU in the state runnable (2, an index of `STATES`), task 1 in the state interruptible (0).
        events.extend([
            event(0, 0, 1, Some(2)),
            event(10, 1, 0, Some(0)),
            event(20, waker, 1, None),
        ]);
    }
    let max_wakers = 1;
    let table = measured(&events, Endian::Little, max_wakers, NoStacks);
    let sleeps = table
        .rows
        .iter()
        .filter(|row| row.state == OffCpuState::Sleeping(Sleep::Interruptible));
    let names: Vec<_> = sleeps.map(|row| row.wakers[0].comm.clone()).collect();
    let expected: Vec<_> = (2..9)
        .map(|waker| Some(format!(":{waker}").into_bytes()))
        .collect();
    assert_eq!(names, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn off_cpu_time_matches_the_oracle(
        steps in proptest::collection::vec(
            (1..9_u64, 0..2_usize, prop_oneof![
                (0..4_usize, 0..TASKS).prop_map(|(state, next)| Step::Switch(state, next)),
                (0..TASKS).prop_map(Step::Wake),
            ]),
            0..100,
        ),
        max_wakers in 0..4_usize,
        big in any::<bool>(),
    ) {
        let events = schedule(&steps);
        let endian = if big { Endian::Big } else { Endian::Little };
        let table = measured(&events, endian, max_wakers, TimeStacks);
        let time = |stack: usize| {
            let frames = &table.stacks[stack];
            frames.first().and_then(|frame| frame.dso).map_or(0, |dso| u64::from(dso.0))
        };
        let name = |comm: &Vec<u8>| String::from_utf8_lossy(comm).into_owned();
        let actual: BTreeMap<Key, OffCpuTime> = table
            .rows
            .iter()
            .map(|row| {
                let wakers = row.wakers.iter();
                let wakers = wakers.map(|waker| (waker.comm.as_ref().map(name), time(waker.stack)));
                ((name(&row.comm), row.state, time(row.stack), wakers.collect()), row.time)
            })
            .collect();
        prop_assert_eq!(actual.len(), table.rows.len());
        prop_assert!(table.rows.is_sorted_by_key(|row| std::cmp::Reverse(row.time.nanos)));
        prop_assert_eq!(actual, oracle(&events, max_wakers));
    }
}
