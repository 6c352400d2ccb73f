//! Delays of tasks, compared with a search back through all events.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::sched::latency::{LatencyOptions, LatencySortKey, SchedLatency};
use rperf_analysis::{AllSamples, EventLayouts, ObserverPass};
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// The `prev_state` of a task that is asleep.
const ASLEEP: u64 = 1;
/// States of a task that is switched out: asleep, runnable, preempted.
const STATES: [u64; 3] = [ASLEEP, 0, 0x100];

/// A switch or a wakeup: time, CPU, the task that is switched out or wakes another, the index of its state in [`STATES`] (`None`
/// for a wakeup), the task that is switched in or woken.
type Event = (u64, u32, u32, Option<usize>, u32);

/// Number, sum, and maximum of the waits of a task, and the end of the longest.
type Waits = (u64, u64, u64, u64);

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (
        1..9_u64,
        0..2_u32,
        1..5_u32,
        proptest::option::of(0..3_usize),
        1..4_u32,
    );
    proptest::collection::vec(event, 0..80).prop_map(|events| {
        let mut time = 0;
        let events = events.into_iter().map(|(after, cpu, task, state, other)| {
            time += after;
            // `other`, 1 to 3, is added to the number of the task, so that the two tasks differ.
            (time, cpu, task, state, (task + other - 1) % 4 + 1)
        });
        events.collect()
    })
}

/// Looks back for the time at which the wait of `tid` that ends at event `at` began; `None` if `tid` was running, or was switched
/// out asleep and its wakeup is missing. `ended` says which earlier events ended waits.
fn wait_before(events: &[Event], at: usize, tid: u32, ended: &[bool]) -> Option<u64> {
    let mut woken = None;
    for ((time, _, task, state, other), ended) in events[..at].iter().zip(ended).rev() {
        match state {
            // This switch ended a wait of `tid`, which has been running since. A switch to `tid` that ended no wait changes
            // nothing and is skipped: the task was already running or, as its wakeup was lost, still counts as asleep.
            Some(_) if *other == tid && *ended => return None,
            Some(state) if *task == tid => {
                return match STATES[*state] {
                    ASLEEP => woken,
                    _ => Some(*time),
                };
            }
            None if *other == tid => woken = Some(*time),
            _ => {}
        }
    }
    // The task was not switched in or out before. Its wait began at its first wakeup or, if there was none, at this switch.
    Some(woken.unwrap_or(events[at].0))
}

fn oracle(events: &[Event]) -> BTreeMap<u32, Waits> {
    let mut waits: BTreeMap<u32, Waits> = BTreeMap::new();
    let mut ended = Vec::new();
    for (at, (time, _, _, state, next)) in events.iter().enumerate() {
        let since = state.and_then(|_| wait_before(events, at, *next, &ended));
        ended.push(since.is_some());
        if let Some(since) = since {
            let delay = time - since;
            let (count, sum, longest, end) = waits.entry(*next).or_default();
            *count += 1;
            *sum += delay;
            if delay > *longest {
                (*longest, *end) = (delay, *time);
            }
        }
    }
    waits
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn delays_match_a_search_through_all_events(
        events in events(),
        cpu in proptest::option::of(0..2_u32),
        big in any::<bool>(),
    ) {
        let mut recording = Recording::new(if big { Endian::Big } else { Endian::Little });
        for (time, cpu, task, state, other) in &events {
            match state {
                Some(state) => recording.switch(*time, *cpu, (*task, STATES[*state]), *other),
                None => recording.wakeup(*time, *cpu, *task, *other),
            }
        }
        let table = with_replay(&recording.finish(), |data, replay| {
            let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
            let options = LatencyOptions { cpu, with_distributions: true, ..LatencyOptions::default() };
            let mut latency = SchedLatency::new(&layouts, options);
            let pass = ObserverPass::new(&layouts, AllSamples).with_tasks();
            let threads = NonZeroUsize::MIN;
            pass.run(replay, threads, &mut latency).expect("memory");
            let merge_names = false;
            latency.finish(merge_names, &[LatencySortKey::Pid])
        });
        let actual: BTreeMap<u32, Waits> = table
            .rows
            .iter()
            .map(|row| {
                let sums = &row.sums;
                // The distribution `delays` has the same waits as the sums.
                prop_assert_eq!(sums.delays.sum(), u128::from(sums.delay));
                prop_assert_eq!(sums.delays.count(), sums.switches);
                Ok((row.tid.cast_unsigned(), (sums.switches, sums.delay, sums.max_delay, sums.max_end)))
            })
            .collect::<Result<_, TestCaseError>>()?;
        let expected = oracle(&events);
        match cpu {
            None => prop_assert_eq!(actual, expected),
            // The waits that end on one CPU are a subset of all waits.
            Some(_) => for (tid, waits) in &actual {
                prop_assert!(waits.0 <= expected[tid].0 && waits.1 <= expected[tid].1);
            },
        }
    }
}

#[test]
fn a_wait_belongs_to_the_cpu_where_it_ends() {
    let mut recording = Recording::new(Endian::Little);
    recording.wakeup(100, 0, 1, 7);
    recording.switch(110, 1, (2, ASLEEP), 7);
    // Task 7 stays runnable: its second wait begins.
    recording.switch(120, 1, (7, 0), 2);
    recording.switch(150, 0, (1, ASLEEP), 7);
    let file = recording.finish();
    let delays = |cpu| {
        with_replay(&file, |data, replay| {
            let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
            let options = LatencyOptions {
                cpu,
                ..LatencyOptions::default()
            };
            let mut latency = SchedLatency::new(&layouts, options);
            let pass = ObserverPass::new(&layouts, AllSamples).with_tasks();
            let threads = NonZeroUsize::MIN;
            pass.run(replay, threads, &mut latency).expect("memory");
            let merge_names = false;
            let rows = latency.finish(merge_names, &LatencySortKey::DEFAULT).rows;
            let row = rows.iter().find(|row| row.tid == 7).expect("the task");
            (row.sums.switches, row.sums.delay)
        })
    };
    assert_eq!(
        [delays(None), delays(Some(0)), delays(Some(1))],
        [(2, 40), (1, 30), (1, 10)]
    );
}
