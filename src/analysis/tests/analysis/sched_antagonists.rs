//! Antagonists: the tasks that ran during the waits of a task, compared with a look at every nanosecond of each wait.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::sched::latency::{
    Antagonist, LatencyOptions, LatencySortKey, LatencyTable, SchedLatency,
};
use rperf_analysis::{AllSamples, EventLayouts, ObserverPass};
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// States of a task that is switched out: asleep, runnable, preempted.
const STATES: [u64; 3] = [1, 0, 0x100];
/// The index of the state "asleep" in [`STATES`].
const ASLEEP: usize = 0;

#[derive(Debug, Clone, Copy)]
enum Action {
    /// The task is switched out in the state with this index in [`STATES`], and the task with this tid is switched in.
    Switch(usize, u32),
    /// The task wakes the task with this tid for this CPU.
    Wake(u32, u32),
    /// The task moves the task with this tid to this CPU.
    Migrate(u32, u32),
}

/// An event of a task on a CPU.
#[derive(Debug, Clone, Copy)]
struct Event {
    time: u64,
    cpu: u32,
    task: u32,
    action: Action,
}

/// For each task that ran (`None` if unknown): nanoseconds and number of runs.
type Times = BTreeMap<Option<u32>, (u64, u64)>;

fn events() -> impl Strategy<Value = Vec<Event>> {
    let action = prop_oneof![
        3 => (0..3_usize, 0..5_u32).prop_map(|(state, next)| Action::Switch(state, next)),
        2 => (1..5_u32, 0..2_u32).prop_map(|(task, cpu)| Action::Wake(task, cpu)),
        1 => (1..5_u32, 0..2_u32).prop_map(|(task, cpu)| Action::Migrate(task, cpu)),
    ];
    proptest::collection::vec((1..9_u64, 0..2_u32, 0..5_u32, action), 0..80).prop_map(|events| {
        let mut time = 0;
        let mut running = [0, 0];
        let mut events: Vec<Event> = events
            .into_iter()
            .map(|(after, cpu, selector, action)| {
                time += after;
                // Most events are of the running task, the rest of any task, as after a lost switch.
                let task = if selector == 0 {
                    time as u32 % 5
                } else {
                    running[cpu as usize]
                };
                if let Action::Switch(_, next) = action {
                    running[cpu as usize] = next;
                }
                Event {
                    time,
                    cpu,
                    task,
                    action,
                }
            })
            .collect();
        events
            .retain(|event| !matches!(event.action, Action::Switch(_, next) if next == event.task));
        events
    })
}

fn recording(events: &[Event], endian: Endian) -> Vec<u8> {
    let mut recording = Recording::new(endian);
    for Event {
        time,
        cpu,
        task,
        action,
    } in events
    {
        let at = (*time, *cpu, *task);
        match action {
            Action::Switch(state, next) => {
                recording.switch(*time, *cpu, (*task, STATES[*state]), *next)
            }
            Action::Wake(woken, target) => recording.wakeup_for(at, *woken, *target),
            Action::Migrate(moved, target) => recording.migrate(at, *moved, *target),
        }
    }
    recording.finish()
}

fn measured(file: &[u8], merge_names: bool) -> LatencyTable {
    with_replay(file, |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let options = LatencyOptions {
            with_antagonists: true,
            ..LatencyOptions::default()
        };
        let mut latency = SchedLatency::new(&layouts, options);
        let pass = ObserverPass::new(&layouts, AllSamples).with_tasks();
        pass.run(replay, NonZeroUsize::MIN, &mut latency)
            .expect("memory");
        latency.finish(merge_names, &[LatencySortKey::Pid])
    })
}

/// The index of the event that begins the wait of `tid` which ends at event `at`; `at` itself if the wait has no earlier event.
/// `None` if `tid` was running or its wakeup is missing. `ended` says which earlier events ended waits.
fn beginning(events: &[Event], at: usize, tid: u32, ended: &[bool]) -> Option<usize> {
    let mut woken = None;
    for before in (0..at).rev() {
        let Event { task, action, .. } = events[before];
        match action {
            // Already running. Switches that ended no wait are ignored: their task was running already, or its wakeup is missing
            // and it still counts as asleep.
            Action::Switch(_, next) if next == tid && ended[before] => return None,
            Action::Switch(ASLEEP, _) if task == tid => return woken,
            Action::Switch(..) if task == tid => return Some(before),
            Action::Wake(other, _) if other == tid => woken = Some(before),
            _ => {}
        }
    }
    Some(woken.unwrap_or(at))
}

/// A CPU that a task waits for.
struct Queue {
    cpu: u32,
    /// The time since which the task waits for this CPU: `known`, or the time of the wakeup if the kernel migrated
    /// the task as part of the wakeup.
    from: u64,
    /// The time of the wakeup, switch or migration that puts the task in this queue. Runs that ended before this time
    /// are unknown.
    known: u64,
}

/// The CPUs that `tid` waits for between the events `begin` and `end`, in order of time.
fn queues(events: &[Event], begin: usize, end: usize, tid: u32) -> Vec<Queue> {
    let Event {
        time, cpu, action, ..
    } = events[begin];
    let first = match action {
        Action::Wake(_, target) => target,
        _ => cpu,
    };
    let mut queues = vec![Queue {
        cpu: first,
        from: time,
        known: time,
    }];
    // If the next event on the waker's CPU is a migration of the task, the kernel chose the CPU as part of the wakeup, and the
    // task waits for it since the wakeup.
    let mut next_time_on_waker_cpu = match action {
        Action::Wake(..) => {
            let next = events[begin + 1..].iter().find(|event| event.cpu == cpu);
            next.map(|event| event.time)
        }
        _ => None,
    };
    for event in &events[begin + 1..end] {
        match event.action {
            Action::Migrate(moved, target) if moved == tid => {
                let from = match next_time_on_waker_cpu.take() {
                    // No two events have the same time, so this migration is that next event.
                    Some(at) if at == event.time => time,
                    _ => event.time,
                };
                queues.push(Queue {
                    cpu: target,
                    from,
                    known: event.time,
                });
            }
            _ => {}
        }
    }
    queues
}

/// The task that runs on a CPU at `time`, and the time of the switch since which it runs, as seen by a task that waits there
/// until `leaves`. The task is `None` if the next switch is from a different task, or if there is no switch.
fn running(events: &[Event], cpu: u32, time: u64, leaves: u64) -> (Option<u32>, Option<u64>) {
    let switches = || {
        events
            .iter()
            .filter(|event| event.cpu == cpu && matches!(event.action, Action::Switch(..)))
    };
    let before = switches().rfind(|event| event.time <= time);
    let after = switches().find(|event| event.time > time && event.time <= leaves);
    let since = before.map(|event| event.time);
    let started = before.map(|event| match event.action {
        Action::Switch(_, next) => next,
        _ => unreachable!("only switches"),
    });
    let stopped = after.map(|event| event.task);
    let task = match (started, stopped) {
        (Some(started), Some(stopped)) => (started == stopped).then_some(started),
        (started, stopped) => started.or(stopped),
    };
    (task, since)
}

/// The times of each task that waited, from a look at every nanosecond of each wait.
fn oracle(events: &[Event]) -> BTreeMap<u32, Times> {
    let mut expected: BTreeMap<u32, Times> = BTreeMap::new();
    let mut ended = Vec::new();
    for (at, event) in events.iter().enumerate() {
        let Action::Switch(_, tid) = event.action else {
            ended.push(false);
            continue;
        };
        let begin = beginning(events, at, tid, &ended);
        ended.push(begin.is_some());
        // The idle task does not wait.
        let Some(begin) = begin.filter(|_| tid != 0) else {
            continue;
        };
        let times = expected.entry(tid).or_default();
        if begin == at {
            continue;
        }
        let queues = queues(events, begin, at, tid);
        let mut runs = BTreeSet::new();
        for time in events[begin].time..event.time {
            let queue_index = queues
                .iter()
                .rposition(|queue| queue.from <= time)
                .expect("the first one");
            let leaves = queues
                .get(queue_index + 1)
                .map_or(event.time, |next| next.from);
            let Queue { cpu, known, .. } = queues[queue_index];
            let (who, since) = running(events, cpu, time, leaves);
            // If another task is switched in after the wakeup and before the migration that chose the CPU, the task that ran
            // until this switch is not known any more.
            let ended_before_known =
                running(events, cpu, known.max(time), leaves).1 != since && time < known;
            if ended_before_known {
                times.entry(None).or_default().0 += 1;
                continue;
            }
            let (nanos, count) = times.entry(who).or_default();
            *nanos += 1;
            *count += u64::from(runs.insert((queue_index, since)));
        }
    }
    expected
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn antagonists_match_a_look_at_every_nanosecond(events in events(), big in any::<bool>()) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let file = recording(&events, endian);
        let [table, merged_table] = [false, true].map(|merge_names| measured(&file, merge_names));
        let mut actual: BTreeMap<u32, Times> = BTreeMap::new();
        for row in &table.rows {
            let times = actual.entry(row.tid.cast_unsigned()).or_default();
            let mut sum = 0;
            for (who, time) in row.sums.antagonists.by_time() {
                let who = match who {
                    Antagonist::Task { tid, .. } => Some(tid.expect("a thread").cast_unsigned()),
                    Antagonist::Idle => Some(0),
                    Antagonist::Unknown => None,
                };
                prop_assert_eq!(time.delayed_tasks, 1);
                sum += time.nanos;
                times.insert(who, (time.nanos, time.runs));
            }
            prop_assert_eq!(sum, row.sums.delay);
        }
        prop_assert_eq!(&actual, &oracle(&events));
        let totals = table.sums();
        let merged = merged_table.sums();
        prop_assert_eq!(totals.delay, merged.delay);
        // Each unnamed task has a name of its own, `:tid`, so that no tasks are merged.
        let times = |sums: &rperf_analysis::sched::latency::LatencySums| {
            let antagonists = sums.antagonists.by_time();
            antagonists.iter().map(|(_, time)| *time).collect::<Vec<_>>()
        };
        prop_assert_eq!(times(&totals), times(&merged));
    }
}

#[test]
fn a_long_wait_sums_up_the_runs_of_others() {
    let mut recording = Recording::new(Endian::Little);
    recording.switch(1, 0, (1, 0x100), 2);
    for round in 0..500_u64 {
        let tasks = [2, 3, 4];
        let [prev, next] = [0, 1].map(|at| tasks[(round as usize + at) % 3]);
        recording.switch(2 + round, 0, (prev, 1), next);
    }
    recording.switch(600, 0, (4, 1), 1);
    let merge_names = false;
    let table = measured(&recording.finish(), merge_names);
    let row = table
        .rows
        .iter()
        .find(|row| row.tid == 1)
        .expect("the task");
    let times = row.sums.antagonists.by_time();
    let runs: u64 = times.iter().map(|(_, time)| time.runs).sum();
    assert_eq!((row.sums.delay, runs), (599, 501), "{times:?}");
    assert_eq!(times.len(), 3, "{times:?}");
}
