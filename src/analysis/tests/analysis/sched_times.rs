//! Times of tasks, compared with a search back through all switches.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::sched::timehist::{
    TimeEvent, TimeHistory, TimeHistoryOptions, TimeRow, TimeRows,
};
use rperf_analysis::{EventLayouts, ObserverPass, PrepareSamples};
use rperf_replay::{FoldControl, Sample, World};
use rperf_tracepoint::typed::TypedEvent;
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// States of a task that is switched out: asleep, uninterruptible, runnable, preempted.
const STATES: [u64; 4] = [1, 2, 0, 0x100];

/// Time, CPU, the task that is switched out, the index of its state, the next task.
type Switch = (u64, u32, u32, usize, u32);

/// Number of runs, run time, and waits by state: asleep, uninterruptible, runnable or preempted.
type Sums = (u64, u64, [u64; 3]);

/// Selects all samples, each with an empty stack.
struct NoStacks;

impl PrepareSamples for NoStacks {
    type Detail = String;

    fn prepare(&self, _: &World, _: &Sample<'_>, _: Option<&TypedEvent<'_>>) -> Option<String> {
        Some(String::new())
    }
}

/// The sum of the run times in all rows.
struct RowSum(u64);

impl TimeRows for RowSum {
    fn row(&mut self, row: &TimeRow<'_>) -> FoldControl {
        if let TimeEvent::SwitchedOut { times, .. } = row.event {
            self.0 += times.run;
        }
        FoldControl::Continue
    }

    fn lost(&mut self, _: u64, _: Option<u32>, _: u64) -> FoldControl {
        panic!("nothing is lost");
    }
}

/// The times of each task. The run that a switch ends began with the previous switch on the same CPU, whichever task that one
/// switched in. The wait before this run lasted from the task's previous switch-out until the run began.
fn oracle(switches: &[Switch]) -> BTreeMap<u32, Sums> {
    let mut sums: BTreeMap<u32, Sums> = BTreeMap::new();
    for (at, (time, cpu, task, _, _)) in switches.iter().enumerate() {
        let before = || switches[..at].iter().rev();
        let (count, run, waits) = sums.entry(*task).or_default();
        *count += 1;
        let Some((since, ..)) = before().find(|(_, other_cpu, ..)| other_cpu == cpu) else {
            continue;
        };
        *run += time - since;
        if let Some((left, _, _, state, _)) =
            before().find(|(_, _, other_task, ..)| other_task == task)
        {
            // Runnable and preempted tasks have one sum. The wait is 0 if the task left another CPU after this run began: a
            // random recording may switch it in on both CPUs.
            waits[[0, 1, 2, 2][*state]] += since.saturating_sub(*left);
        }
    }
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn times_match_a_search_through_all_switches(
        switches in proptest::collection::vec((1..9_u64, 0..2_u32, 1..5_u32, 0..4_usize, 1..5_u32), 0..60),
        is_big_endian in any::<bool>(),
    ) {
        let mut time = 0;
        let switches: Vec<Switch> = switches
            .into_iter()
            .map(|(after, cpu, task, state, next)| {
                time += after;
                (time, cpu, task, state, next)
            })
            .collect();
        let mut recording = Recording::new(if is_big_endian { Endian::Big } else { Endian::Little });
        for (time, cpu, task, state, next) in &switches {
            recording.switch(*time, *cpu, (*task, STATES[*state]), *next);
        }
        let (rows, summary) = with_replay(&recording.finish(), |data, replay| {
            let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
            let options = TimeHistoryOptions { cpu_count: 2, ..TimeHistoryOptions::default() };
            let mut history = TimeHistory::new(&layouts, options, RowSum(0));
            let pass = ObserverPass::new(&layouts, NoStacks).with_tasks();
            let threads = NonZeroUsize::MIN;
            pass.run(replay, threads, &mut history).expect("memory");
            let (rows, summary, _) = history.finish();
            (rows, summary)
        });
        // All tasks are in `running`, since none exits.
        let actual: BTreeMap<u32, Sums> = summary
            .running
            .iter()
            .map(|timed| {
                let times = &timed.times;
                let waits = [times.wait.sleep, times.wait.iowait, times.wait.preempt];
                (timed.task.tid.cast_unsigned(), (times.runs.count, times.run, waits))
            })
            .collect();
        prop_assert_eq!(&actual, &oracle(&switches));
        prop_assert_eq!(rows.0, actual.values().map(|sums| sums.1).sum::<u64>());
        let first = switches.first().map_or(0, |switch| switch.0);
        prop_assert_eq!(summary.duration, time.saturating_sub(first));
    }
}
