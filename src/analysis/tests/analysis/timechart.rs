//! Time charts, compared with a search through all events.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use rperf_analysis::timechart::{
    CallOptions, ChartRange, Highlight, SwitchCallchains, TASK_STATES, TaskActivity, Timechart,
    TimechartObserver, TimechartOptions,
};
use rperf_analysis::{EventLayouts, ObserverPass};
use rperf_wire::Endian;

use crate::recording::{Recording, with_replay};

/// `prev_state`: asleep, blocked, runnable.
const STATES: [u64; 3] = [1, 2, 0];
const CPUS: usize = 2;
const TASKS: u32 = 5;

#[derive(Debug, Clone, Copy)]
enum Event {
    /// Time, CPU, task switched out, index of its state in [`STATES`], task switched in.
    Switch(u64, usize, u32, usize, u32),
    /// Time, task woken.
    Wake(u64, u32),
}

impl Event {
    fn time(self) -> u64 {
        match self {
            Self::Switch(time, ..) | Self::Wake(time, _) => time,
        }
    }
}

/// Consistent events of a scheduler: a task runs on one CPU at a time. 0 is the idle task.
fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = (1..40_000_u64, 0..CPUS, 0..3_usize, 0..=TASKS, any::<bool>());
    proptest::collection::vec(step, 2..150).prop_map(|steps| {
        let mut current = [0_u32; CPUS];
        let mut time = 1_000;
        let mut events = Vec::new();
        for (after, cpu, state, task, wakes) in steps {
            time += after;
            if current.contains(&task) && task != 0 {
                continue;
            }
            if wakes && task != 0 {
                events.push(Event::Wake(time, task));
            } else if current[cpu] != task {
                events.push(Event::Switch(time, cpu, current[cpu], state, task));
                current[cpu] = task;
            }
        }
        events
    })
}

/// The state of `task` that begins with event `at`; `None` if it is an event of other tasks.
fn entered(events: &[Event], at: usize, task: u32) -> Option<TaskActivity> {
    match events[at] {
        Event::Switch(.., next) if next == task => Some(TaskActivity::Running),
        Event::Switch(_, _, prev, state, _) if prev == task => Some(
            [
                TaskActivity::Sleeping,
                TaskActivity::Blocked,
                TaskActivity::Waiting,
            ][state],
        ),
        Event::Wake(_, woken) if woken == task => Some(TaskActivity::Waiting),
        _ => None,
    }
}

/// For each task, the time in each state, found by a search through all events. A state lasts until the next event that changes
/// it.
fn oracle(events: &[Event]) -> BTreeMap<u32, [u64; TASK_STATES]> {
    let end = events.last().map_or(0, |event| event.time());
    let mut sums: BTreeMap<u32, [u64; TASK_STATES]> = BTreeMap::new();
    for task in 1..=TASKS {
        for (at, event) in events.iter().enumerate() {
            let Some(activity) = entered(events, at, task) else {
                continue;
            };
            let mut later =
                (at + 1..events.len()).filter(|later| entered(events, *later, task).is_some());
            let next = later.next().map_or(end, |later| events[later].time());
            sums.entry(task).or_default()[activity.state()] += next - event.time();
        }
    }
    sums
}

fn chart(events: &[Event], endian: Endian, options: TimechartOptions) -> Option<Timechart> {
    let mut recording = Recording::new(endian);
    for event in events {
        match *event {
            Event::Switch(time, cpu, prev, state, next) => {
                let cpu = u32::try_from(cpu).expect("a small number");
                recording.switch(time, cpu, (prev, STATES[state]), next);
            }
            Event::Wake(time, task) => {
                let (cpu, idle_waker) = (0, 0);
                recording.wakeup(time, cpu, idle_waker, task);
            }
        }
    }
    with_replay(&recording.finish(), |data, replay| {
        let layouts = EventLayouts::of_recording(data.metadata()).expect("descriptions");
        let mut observer = TimechartObserver::new(&layouts, options);
        // The recording has no callchains: this makes no difference.
        let callchains = SwitchCallchains { is_wanted: true };
        let pass = ObserverPass::new(&layouts, callchains).with_tasks();
        pass.run(replay, NonZeroUsize::MIN, &mut observer)
            .expect("memory");
        observer.finish()
    })
}

fn options(cells: u64) -> TimechartOptions {
    TimechartOptions {
        cells,
        range: ChartRange::ALL,
        highlight: None,
        calls: CallOptions::default(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn times_in_states_are_those_of_a_search_and_add_up(
        events in events(),
        cells in prop::sample::select(vec![1_u64, 10, 1000]),
        big in any::<bool>(),
        fifths in 1..4_usize,
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let Some(whole) = chart(&events, endian, options(cells)) else {
            prop_assert!(events.is_empty());
            return Ok(());
        };
        let expected = oracle(&events);
        let mut busy = 0;
        for lane in whole.tasks.iter().filter(|lane| lane.tid > 0) {
            let sums = expected.get(&lane.tid.cast_unsigned()).copied().unwrap_or_default();
            prop_assert_eq!(lane.nanos, sums, "task {}", lane.tid);
            // The pieces (single states, or short ones merged) have the same sums. Their number is bounded: the chart's time
            // is divided into at most `2 * cells` cells, and at most two pieces begin in each. The 1 is slack.
            let mut pieces = [0; TASK_STATES];
            for piece in lane.states.pieces() {
                for (sum, nanos) in pieces.iter_mut().zip(piece.sums().nanos) {
                    *sum += nanos;
                }
            }
            prop_assert_eq!(pieces, sums);
            prop_assert!(lane.states.pieces().len() as u64 <= 4 * cells + 1);
            busy += lane.run_time();
        }
        prop_assert_eq!(whole.cpus.values().map(|cpu| cpu.busy).sum::<u64>(), busy);
        // The run times before and after an event, which is at 1 to 3 fifths of the list, add up to the whole.
        let middle = events[events.len() * fifths / 5].time();
        let parts = [(0, middle), (middle, u64::MAX)].map(|(first, last)| {
            let range = ChartRange { first, last };
            let part = chart(&events, endian, TimechartOptions { range, ..options(cells) });
            part.map_or(0, |part| part.tasks.iter().map(|lane| lane.run_time()).sum::<u64>())
        });
        prop_assert_eq!(parts[0] + parts[1], busy);
    }
}

#[test]
fn runs_are_highlighted_by_their_length() {
    let events = [
        Event::Switch(1_000, 0, 0, 0, 1),
        Event::Switch(2_000, 0, 1, 0, 2),
        Event::Switch(2_500, 0, 2, 0, 0),
    ];
    let highlighting = TimechartOptions {
        highlight: Some(Highlight::LongerThan(500)),
        ..options(1000)
    };
    let chart = chart(&events, Endian::Little, highlighting).expect("events");
    // The time of runs that are not highlighted, and of those that are.
    let nanos = |tid: i32| {
        let mut lanes = chart.tasks.iter();
        let lane = lanes.find(|lane| lane.tid == tid).expect("the task");
        (
            lane.nanos[TaskActivity::Running.state()],
            lane.nanos[TaskActivity::Highlighted.state()],
        )
    };
    assert_eq!((nanos(1), nanos(2)), ((0, 1_000), (500, 0)));
    assert_eq!((chart.start, chart.end), (1_000, 2_500));
}
