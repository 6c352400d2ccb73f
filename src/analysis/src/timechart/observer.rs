//! Builds a chart from events in order of time.

use std::collections::BTreeMap;
use std::iter;

use rperf_replay::FoldControl;
use rperf_tracepoint::typed::{SchedSwitch, SchedWakeup, TypedEvent};

use super::calls::{CallSpans, FinishedCall};
use super::stacks::StackTable;
use super::wakeups::Wakeups;
use super::{
    ChartRange, CpuLane, Highlight, StackChain, TaskActivity, TaskLane, TimeGrid, Timechart,
    TimechartCounts, TimechartOptions, TimelinePiece, Wakeup,
};
use crate::sched::{LostStretches, SchedTasks, TaskIndex, UNKNOWN_PID, ignored_wakeup};
use crate::{
    EventContext, EventLayouts, Loss, Observer, RunState, Sleep, StateInterval, TaskChange,
    TaskStates,
};

/// Builds a [`Timechart`].
#[derive(Debug)]
pub struct TimechartObserver {
    options: TimechartOptions,
    /// The wakeup tracepoint that is ignored, since another one reports the same wakeups.
    ignored_wakeup: Option<&'static str>,
    grid: TimeGrid,
    /// The start of the chart and the time of its last event so far; `None` before the first event in the range.
    bounds: Option<(u64, u64)>,
    /// Whether an event was before the range.
    has_earlier: bool,
    /// Whether an event was after the range.
    has_later: bool,
    states: TaskStates,
    /// States that the current event ended. Empty between events; its memory is reused.
    ended: Vec<StateInterval>,
    tasks: SchedTasks,
    lanes: Vec<TaskLane>,
    cpus: BTreeMap<u32, CpuLane>,
    wakeups: Wakeups,
    calls: CallSpans,
    stacks: StackTable,
    losses: LostStretches,
    counts: TimechartCounts,
}

impl TimechartObserver {
    /// Creates an observer of a recording with these layouts.
    #[must_use]
    pub fn new(layouts: &EventLayouts, options: TimechartOptions) -> Self {
        Self {
            ignored_wakeup: ignored_wakeup(layouts),
            grid: TimeGrid::new(0, options.cells),
            bounds: None,
            has_earlier: false,
            has_later: false,
            states: TaskStates::new(),
            ended: Vec::new(),
            tasks: SchedTasks::new(),
            lanes: Vec::new(),
            cpus: BTreeMap::new(),
            wakeups: Wakeups::default(),
            calls: CallSpans::default(),
            stacks: StackTable::default(),
            losses: LostStretches::default(),
            counts: TimechartCounts::default(),
            options,
        }
    }

    /// Returns the chart; `None` if no switch, wakeup, power event or system call is in the range.
    #[must_use]
    pub fn finish(mut self) -> Option<Timechart> {
        let (start, mut end) = self.bounds?;
        if self.has_later {
            end = self.options.range.last;
            self.extend(end);
        }
        let states = std::mem::take(&mut self.states);
        for interval in states.finish(end) {
            self.draw_interval(&interval);
        }
        // Calls that have not returned.
        for (tid, call) in self.calls.open_calls(end) {
            self.draw_call(UNKNOWN_PID, tid.cast_signed(), call);
        }
        let range = self.options.range;
        for cpu in self.cpus.values_mut() {
            cpu.power.close(end, &self.grid, range);
        }
        // Each task's last call, which is not drawn yet.
        for lane in &mut self.lanes {
            lane.calls.flush(end, self.options.calls, &self.grid);
        }
        Some(Timechart {
            start,
            end,
            grid: self.grid,
            cpus: self.cpus,
            call_counts: self.calls.counts(),
            tasks: self.lanes,
            wakeups: self.wakeups.into_kept(),
            stacks: self.stacks.into_stacks(),
            losses: self.losses,
            counts: self.counts,
        })
    }

    /// Notes the time of an event. If the time is in the range, extends the chart to it and returns true.
    fn record_time(&mut self, time: u64) -> bool {
        let ChartRange {
            first: from,
            last: to,
        } = self.options.range;
        if time < from {
            self.has_earlier = true;
            return false;
        }
        if time > to {
            self.has_later = true;
            return false;
        }
        match &mut self.bounds {
            Some((_, last)) => *last = time.max(*last),
            None => {
                let start = if self.has_earlier { from } else { time };
                self.grid = TimeGrid::new(start, self.options.cells);
                self.bounds = Some((start, time));
            }
        }
        self.extend(time);
        true
    }

    /// Extends the grid to `time`. If its cells become longer, merges the timelines drawn so far, and thins out the wakeups,
    /// accordingly.
    fn extend(&mut self, time: u64) {
        if !self.grid.extend(time) {
            return;
        }
        let grid = &self.grid;
        for lane in &mut self.lanes {
            lane.states.coarsen(grid);
            lane.calls.timeline.coarsen(grid);
        }
        for cpu in self.cpus.values_mut() {
            cpu.usage.coarsen(grid);
            cpu.power.coarsen(grid);
        }
        self.wakeups.coarsen(grid);
    }

    /// Returns the lane of a task, which is added if it is new. `time`, if given, extends the lane: it becomes the first time
    /// of a lane without times, and the last time of a lane whose last time is earlier.
    fn lane(&mut self, pid: i32, tid: i32, time: Option<u64>) -> (TaskIndex, &mut TaskLane) {
        let index = self.tasks.find_or_add(pid, tid);
        let missing = (index.get() + 1).saturating_sub(self.lanes.len());
        let new_lanes = iter::repeat_with(TaskLane::default).take(missing);
        self.lanes.extend(new_lanes);
        let task = self.tasks.get(index);
        let lane = &mut self.lanes[index.get()];
        (lane.pid, lane.tid) = (task.pid, task.tid);
        if let Some(time) = time {
            if lane.last == 0 {
                lane.first = time;
            }
            lane.last = lane.last.max(time);
        }
        (index, lane)
    }

    fn switch(&mut self, at: &EventContext, event: &SchedSwitch<'_>, stack: Option<StackChain>) {
        let (time, pid) = (at.time(), at.task.pid.cast_signed());
        let is_in_range = self.record_time(time);
        let time_in_range = is_in_range.then_some(time);
        self.counts.switches += u64::from(is_in_range);
        let stack = stack.and_then(|stack| self.stacks.id(stack));
        self.drive(at, TypedEvent::SchedSwitch(*event));
        let prev = event.prev_pid();
        if prev != 0 {
            // Samples after the exit of the task have the process id -1, which is `UNKNOWN_PID`. Numbers below -1 come from
            // damaged files.
            let (_, lane) = self.lane(pid.max(UNKNOWN_PID), prev, time_in_range);
            lane.rename(event.prev_comm());
            lane.stack = stack;
        }
        let next = event.next_pid();
        if next != 0 {
            let (_, lane) = self.lane(UNKNOWN_PID, next, time_in_range);
            lane.rename(event.next_comm());
        }
    }

    fn wake(&mut self, at: &EventContext, event: &SchedWakeup<'_>) {
        if self.ignored_wakeup == Some(event.tracepoint()) {
            return;
        }
        let time = at.time();
        let is_in_range = self.record_time(time);
        self.drive(at, TypedEvent::SchedWakeup(*event));
        if event.success() == Some(false) || event.pid() == 0 {
            return;
        }
        let (woken, lane) = self.lane(UNKNOWN_PID, event.pid(), is_in_range.then_some(time));
        lane.rename(event.comm());
        if !is_in_range {
            return;
        }
        self.counts.wakeups += 1;
        let waker_tid = at.task.tid.cast_signed();
        // The task that an interrupt interrupts is not the waker; nor is the idle task.
        if waker_tid > 0 && !event.is_by_interrupt() {
            let (waker, _) = self.lane(at.task.pid.cast_signed(), waker_tid, Some(time));
            self.wakeups.push(Wakeup { time, waker, woken }, &self.grid);
        }
    }

    /// Passes an event to the state machine, and draws the states that it ends.
    fn drive(&mut self, at: &EventContext, event: TypedEvent<'_>) {
        let mut ended = std::mem::take(&mut self.ended);
        self.states
            .event(at, &event, |interval| ended.push(interval));
        for interval in ended.drain(..) {
            self.draw_interval(&interval);
        }
        self.ended = ended;
    }

    /// Draws the part of a state that is in the range. States of idle tasks, and [`RunState::New`], are not drawn; the latter
    /// only extends the times of the task's lane.
    fn draw_interval(&mut self, interval: &StateInterval) {
        let shown = self.options.range.clip(interval.from, interval.to);
        let (from, to) = (shown.first, shown.last);
        if interval.tid == 0 || self.bounds.is_none() || from >= to {
            return;
        }
        let grid = self.grid;
        let highlight = self.options.highlight.clone();
        let (index, lane) = self.lane(UNKNOWN_PID, interval.tid.cast_signed(), Some(to));
        lane.first = lane.first.min(from);
        let activity = match interval.state {
            RunState::New => return,
            RunState::Running => match is_highlighted(highlight.as_ref(), lane, interval) {
                true => TaskActivity::Highlighted,
                false => TaskActivity::Running,
            },
            RunState::Runnable(_) => TaskActivity::Waiting,
            RunState::Sleeping(Sleep::Uninterruptible) => TaskActivity::Blocked,
            RunState::Sleeping(_) => TaskActivity::Sleeping,
        };
        if let Some(sum) = lane.nanos.get_mut(activity.state()) {
            *sum = sum.saturating_add(to - from);
        }
        let is_running = interval.state.is_running();
        let stack = lane.stack.filter(|_| !is_running);
        let piece = TimelinePiece::one(from, to, activity.state(), stack);
        lane.states.push(&grid, piece);
        if is_running && let Some(cpu) = interval.cpu {
            let cpu = self.cpus.entry(cpu).or_default();
            // State 1 of [`CpuLane::usage`] is that of highlighted runs, 0 that of others.
            let state = usize::from(activity == TaskActivity::Highlighted);
            cpu.usage
                .push(&grid, TimelinePiece::one(from, to, state, index));
            cpu.busy = cpu.busy.saturating_add(to - from);
        }
    }

    /// Draws the part of a system call that is in the range. Unlike a state, a call of no duration is drawn, too.
    fn draw_call(&mut self, pid: i32, tid: i32, mut call: FinishedCall) {
        let shown = self.options.range.clip(call.from, call.to);
        (call.from, call.to) = (shown.first, shown.last);
        if call.from > call.to || self.bounds.is_none() {
            return;
        }
        let (grid, options) = (self.grid, self.options.calls);
        let (_, lane) = self.lane(pid, tid, Some(call.to));
        lane.first = lane.first.min(call.from);
        lane.calls.add(call, options, &grid);
    }
}

fn is_highlighted(
    highlight: Option<&Highlight>,
    lane: &TaskLane,
    interval: &StateInterval,
) -> bool {
    match highlight {
        None => false,
        Some(Highlight::LongerThan(nanos)) => interval.duration() > *nanos,
        Some(Highlight::Name(name)) => lane.names.last() == Some(name),
    }
}

impl Observer<Option<StackChain>> for TimechartObserver {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, stack: Option<StackChain>) {
        self.losses.event(at);
        let (time, task) = (at.time(), at.task);
        let (pid, tid) = (task.pid.cast_signed(), task.tid.cast_signed());
        match &event {
            TypedEvent::SchedSwitch(event) => self.switch(at, event, stack),
            TypedEvent::SchedWakeup(event) => self.wake(at, event),
            TypedEvent::SchedMigrateTask(_) | TypedEvent::SchedProcessFork(_) => {
                self.drive(at, event);
            }
            TypedEvent::CpuIdle(event) => {
                self.counts.power_events += u64::from(self.record_time(time));
                // Events before the range begin idle states that may reach into it; `idle` clips the states to the range.
                let range = self.options.range;
                let cpu = self.cpus.entry(event.cpu_id()).or_default();
                cpu.power.idle(time, event, &self.grid, range);
            }
            TypedEvent::CpuFrequency(event) => {
                let is_in_range = self.record_time(time);
                self.counts.power_events += u64::from(is_in_range);
                // Changes before the range give the frequency at its start.
                if time <= self.options.range.last {
                    let cpu = self.cpus.entry(event.cpu_id()).or_default();
                    cpu.power.frequency(time, event, &self.grid);
                }
            }
            TypedEvent::SysEnterIo(event) => {
                self.counts.call_events += u64::from(self.record_time(time));
                self.calls.enter(time, task.tid, event);
            }
            TypedEvent::SysExitIo(event) => {
                self.counts.call_events += u64::from(self.record_time(time));
                let call = self.calls.exit(time, task.tid, event, self.options.calls);
                if let Some(call) = call {
                    self.draw_call(pid, tid, call);
                }
            }
            _ => {}
        }
    }

    fn task(&mut self, at: &EventContext, change: TaskChange<'_>) {
        self.tasks.change(&change);
        // FORK records end no states, and EXIT records end one only before the first `sched_switch` of the recording. That state
        // (new or runnable) is not drawn until the exit, since the task must have run in between.
        self.states.task(at, &change, |_| {});
        if let TaskChange::Comm { task, name, .. } = change {
            let (pid, tid) = (task.pid.cast_signed(), task.tid.cast_signed());
            let (_, lane) = self.lane(pid, tid, None);
            lane.rename(name);
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
        self.states.lost();
        self.calls.lost();
    }

    fn flow(&self) -> FoldControl {
        match self.has_later {
            true => FoldControl::Stop,
            false => FoldControl::Continue,
        }
    }
}
