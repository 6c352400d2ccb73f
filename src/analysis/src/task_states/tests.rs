//! Known, inconsistent and random sequences of events.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const CPU: Option<u32> = Some(0);
const ASLEEP: SwitchedOut = SwitchedOut::Sleeping(Sleep::Interruptible);
const PREEMPTED: SwitchedOut = SwitchedOut::Runnable(WaitReason::Preempted);

/// The completed states: thread, state, begin and end.
#[derive(Default)]
struct EndedStates(Vec<(u32, RunState, u64, u64)>);

impl EndedStates {
    fn note(&mut self, interval: StateInterval) {
        let StateInterval {
            tid,
            state,
            from,
            to,
            ..
        } = interval;
        self.0.push((tid, state, from, to));
    }
}

fn switch(prev: u32, prev_state: SwitchedOut, next: u32) -> CpuSwitch {
    let cpu = CPU;
    CpuSwitch {
        cpu,
        prev,
        prev_state,
        next,
    }
}

#[test]
fn a_task_is_woken_runs_and_sleeps() {
    let mut states = TaskStates::new();
    let mut ended = EndedStates::default();
    states.fork(5, 7, &mut |interval| ended.note(interval));
    states.wake(10, 7, CPU, |interval| ended.note(interval));
    // sched_wakeup, after sched_waking.
    states.wake(12, 7, CPU, |interval| ended.note(interval));
    states.cpu_switch(20, switch(0, PREEMPTED, 7), |interval| ended.note(interval));
    // The argument of `current` is the CPU.
    assert_eq!((states.running_count(), states.current(0)), (1, Some(7)));
    states.cpu_switch(50, switch(7, ASLEEP, 0), |interval| ended.note(interval));
    assert_eq!(
        states.state(7),
        Some((RunState::Sleeping(Sleep::Interruptible), 50))
    );
    let expected = [
        (7, RunState::New, 5, 10),
        (7, RunState::Runnable(WaitReason::Woken), 10, 20),
        (7, RunState::Running, 20, 50),
    ];
    assert_eq!(ended.0, expected);
    // Thread 0, the idle task, is the current one, but is not counted as running.
    assert_eq!((states.running_count(), states.current(0)), (0, Some(0)));
    let open: Vec<_> = states
        .finish(60)
        .iter()
        .map(|open| (open.tid, open.from))
        .collect();
    assert_eq!(open, [(0, 50), (7, 50)]);
}

#[test]
fn migrations_do_not_end_a_wait() {
    let mut states = TaskStates::new();
    let mut ended = Vec::new();
    states.wake(10, 7, Some(3), |_| {});
    states.migrate(7, 0);
    states.cpu_switch(20, switch(0, PREEMPTED, 7), |interval| ended.push(interval));
    let expected = StateInterval {
        tid: 7,
        state: RunState::Runnable(WaitReason::Woken),
        from: 10,
        to: 20,
        cpu: CPU,
        migrations: 1,
        is_doubtful: false,
    };
    assert_eq!(ended, [expected]);
}

/// A state is not reported if its end was not recorded. A sleep without a wakeup is reported: it ends at the switch to the task.
#[test]
fn inconsistent_events_are_counted() {
    let mut states = TaskStates::new();
    let mut ended = EndedStates::default();
    states.cpu_switch(10, switch(0, PREEMPTED, 7), |interval| ended.note(interval));
    // The switch from 7 to 8 was not seen.
    states.cpu_switch(20, switch(8, ASLEEP, 9), |interval| ended.note(interval));
    assert_eq!((states.state(7), states.running_count()), (None, 1));
    // 8 sleeps, but runs without a wakeup.
    states.cpu_switch(30, switch(9, PREEMPTED, 8), |interval| ended.note(interval));
    states.wake(31, 8, CPU, |interval| ended.note(interval));
    let expected = [
        (9, RunState::Running, 20, 30),
        (8, RunState::Sleeping(Sleep::Interruptible), 20, 30),
    ];
    assert_eq!(ended.0, expected);
    let expected = StateCounts {
        switches: 3,
        mismatched_switches: 1,
        missing_wakeups: 1,
        wakeups_of_running: 1,
    };
    assert_eq!(states.counts(), expected);
}

#[test]
fn a_loss_makes_open_states_doubtful() {
    let mut states = TaskStates::new();
    let mut doubtful = Vec::new();
    states.wake(1, 7, CPU, |_| {});
    states.lost();
    states.wake(2, 8, CPU, |_| {});
    states.cpu_switch(3, switch(0, PREEMPTED, 7), |interval| {
        doubtful.push(interval.is_doubtful)
    });
    states.cpu_switch(4, switch(7, PREEMPTED, 8), |interval| {
        doubtful.push(interval.is_doubtful)
    });
    assert_eq!(doubtful, [true, false, false], "7 waits, 7 runs, 8 waits");
}

/// The possible actions on a machine with two CPUs.
#[derive(Debug, Clone, Copy)]
enum Action {
    /// The CPU runs the first runnable task, or none; `out` selects the state of the previous task.
    Switch {
        cpu: u32,
        out: u8,
    },
    /// The first sleeping or new task is woken on this CPU.
    Wake {
        cpu: u32,
    },
    /// The first runnable task migrates to this CPU.
    Migrate {
        cpu: u32,
    },
    Fork,
}

fn action() -> impl Strategy<Value = Action> {
    let cpu = || 0..2_u32;
    prop_oneof![
        4 => (cpu(), 0..4_u8).prop_map(|(cpu, out)| Action::Switch { cpu, out }),
        3 => cpu().prop_map(|cpu| Action::Wake { cpu }),
        1 => cpu().prop_map(|cpu| Action::Migrate { cpu }),
        1 => Just(Action::Fork),
    ]
}

/// A machine that knows the states of its tasks, and logs each state that ends.
#[derive(Default)]
struct Machine {
    time: u64,
    /// The state, its start, its CPU and its number of migrations, by thread.
    tasks: BTreeMap<u32, (RunState, u64, Option<u32>, u32)>,
    /// The thread on each CPU.
    current: BTreeMap<u32, u32>,
    history: Vec<StateInterval>,
    next_tid: u32,
}

impl Machine {
    /// Ends and logs the state of a thread, if it has one. Then begins `state`, if given, on `cpu`.
    fn set(&mut self, tid: u32, state: Option<RunState>, cpu: Option<u32>) {
        if let Some((state, from, cpu, migrations)) = self.tasks.remove(&tid) {
            let to = self.time;
            let is_doubtful = false;
            self.history.push(StateInterval {
                tid,
                state,
                from,
                to,
                cpu,
                migrations,
                is_doubtful,
            });
        }
        if let Some(state) = state {
            self.tasks.insert(tid, (state, self.time, cpu, 0));
        }
    }

    fn first(&self, matches: impl Fn(RunState) -> bool) -> Option<u32> {
        let mut tasks = self.tasks.iter();
        tasks
            .find(|(_, (state, ..))| matches(*state))
            .map(|(tid, _)| *tid)
    }

    /// Performs an action and reports its events to `states`.
    fn act(&mut self, action: Action, states: &mut TaskStates, ended: &mut Vec<StateInterval>) {
        self.time += 10;
        let time = self.time;
        // The history of the machine has no idle tasks (thread 0).
        let mut note = |interval: StateInterval| {
            if interval.tid != 0 {
                ended.push(interval);
            }
        };
        match action {
            Action::Fork => {
                self.next_tid += 1;
                self.set(self.next_tid, Some(RunState::New), None);
                states.fork(time, self.next_tid, &mut note);
            }
            Action::Wake { cpu } => {
                let is_wakeable = |state| matches!(state, RunState::Sleeping(_) | RunState::New);
                let Some(tid) = self.first(is_wakeable) else {
                    return;
                };
                self.set(tid, Some(RunState::Runnable(WaitReason::Woken)), Some(cpu));
                // sched_waking, then sched_wakeup.
                states.wake(time, tid, Some(cpu), &mut note);
                states.wake(time + 1, tid, Some(cpu), &mut note);
            }
            Action::Migrate { cpu } => {
                let Some(tid) = self.first(RunState::is_runnable) else {
                    return;
                };
                if let Some((_, _, task_cpu, migrations)) = self.tasks.get_mut(&tid) {
                    *task_cpu = Some(cpu);
                    *migrations += 1;
                }
                states.migrate(tid, cpu);
            }
            Action::Switch { cpu, out } => {
                let next = self.first(RunState::is_runnable).unwrap_or(0);
                let prev = self.current.insert(cpu, next).unwrap_or(0);
                if prev == next {
                    return;
                }
                let prev_state = match out {
                    0 => SwitchedOut::Dead,
                    1 => PREEMPTED,
                    2 => SwitchedOut::Sleeping(Sleep::Uninterruptible),
                    _ => ASLEEP,
                };
                // The state in which `prev` is left.
                let left = match prev_state {
                    SwitchedOut::Dead => None,
                    SwitchedOut::Runnable(waiting) => Some(RunState::Runnable(waiting)),
                    SwitchedOut::Sleeping(sleep) => Some(RunState::Sleeping(sleep)),
                };
                if prev != 0 {
                    self.set(prev, left, Some(cpu));
                }
                if next != 0 {
                    self.set(next, Some(RunState::Running), Some(cpu));
                }
                let cpu = Some(cpu);
                let switch = CpuSwitch {
                    cpu,
                    prev,
                    prev_state,
                    next,
                };
                states.cpu_switch(time, switch, &mut note);
            }
        }
    }
}

proptest! {
    #[test]
    fn states_match_a_simulated_machine(actions in proptest::collection::vec(action(), 0..200)) {
        let mut machine = Machine::default();
        let (mut states, mut ended) = (TaskStates::new(), Vec::new());
        for action in actions {
            machine.act(action, &mut states, &mut ended);
            let running = machine.tasks.values().filter(|task| task.0.is_running()).count();
            prop_assert_eq!(states.running_count() as usize, running);
        }
        // No inconsistency is counted. The number of switches is not checked: it is taken from the result.
        let expected = StateCounts { switches: states.counts().switches, ..StateCounts::default() };
        prop_assert_eq!(states.counts(), expected);
        ended.extend(states.finish(machine.time).into_iter().filter(|open| open.tid != 0));
        let tasks: Vec<u32> = machine.tasks.keys().copied().collect();
        let (no_state, no_cpu) = (None, None);
        // Ends and logs the open states, in the order of `finish`: by thread.
        tasks.into_iter().for_each(|tid| machine.set(tid, no_state, no_cpu));
        prop_assert_eq!(ended, machine.history);
    }

    /// For arbitrary events, the states of a task do not overlap, and `running_count` is the number of tasks that run at the end.
    ///
    /// `one` and `other` are threads (0 is the idle task, which is neither forked nor woken); in a migration, `other` is a CPU.
    #[test]
    fn arbitrary_events_give_consistent_states(
        events in proptest::collection::vec((0..6_u8, 0..4_u32, 0..4_u32, 0..2_u32), 0..200),
    ) {
        let mut states = TaskStates::new();
        let mut ended = Vec::new();
        for (time, (kind, one, other, cpu)) in (0..).zip(events) {
            let cpu = Some(cpu);
            let mut note = |interval| ended.push(interval);
            match kind {
                0 => states.fork(time, one.max(1), &mut note),
                1 => states.wake(time, one.max(1), cpu, note),
                2 => states.migrate(one, other),
                3 | 4 => {
                    let prev_state = if kind == 3 { ASLEEP } else { PREEMPTED };
                    let switch = CpuSwitch { cpu, prev: one, prev_state, next: other };
                    states.cpu_switch(time, switch, note);
                }
                _ => states.lost(),
            }
        }
        let running = states.running_count();
        // After all events, whose times are below 200.
        let open = states.finish(1000);
        let running_at_end = open.iter().filter(|open| open.tid != 0 && open.state.is_running());
        prop_assert_eq!(running_at_end.count(), running as usize);
        ended.extend(open);
        let mut ends = BTreeMap::new();
        for interval in ended {
            prop_assert!(interval.from <= interval.to);
            // Each CPU has an idle task of its own, all with thread id 0.
            let idle_cpu = interval.cpu.filter(|_| interval.tid == 0);
            let end = ends.insert((interval.tid, idle_cpu), interval.to);
            prop_assert!(end.is_none_or(|end| end <= interval.from), "{interval:?}");
        }
    }
}
