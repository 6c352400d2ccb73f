//! The tasks that are drawn, and their rows. A lane ([`TaskLane`]) is one task over the time of the chart.

use std::collections::BTreeMap;

use rperf_analysis::timechart::{
    PieceContent, StackId, TASK_STATES, TaskActivity, TaskLane, Timechart, TimelinePiece,
};
use rperf_flame::{ChartBox, ChartRow, Paint, RowKind};
use rperf_wire::name_text;

use super::args::TimechartRequest;
use super::picture::{share, task_name};
use super::stack_names::SleepStacks;

/// Tasks that ran, or were in system calls, for at least this long are drawn, up to [`MOST_TASKS`]; in nanoseconds.
const LONG: u64 = 10_000_000;
/// Maximum number of tasks drawn, unless more are requested.
const MOST_TASKS: usize = 60;
/// The height of a box in which a task sleeps, in percent of the row.
const SLEEPING: u8 = 14;

/// The colours of the activities in [`TaskActivity::ALL`], in that order; the number of a state is an index of both.
const PAINTS: [Paint; TASK_STATES] = [
    Paint::Running,
    Paint::Highlighted,
    Paint::Waiting,
    Paint::Blocked,
    Paint::Sleeping,
];

/// The tasks that are drawn.
#[derive(Default)]
pub(super) struct ShownTasks {
    /// Indices in [`Timechart::tasks`], from top to bottom.
    order: Vec<usize>,
    /// The number of tasks of the recording that were active, including those that `-p` excludes.
    pub(super) active_count: usize,
}

impl ShownTasks {
    /// Chooses among the active tasks that `-p` selects: those with a run time of at least [`LONG`] or, with `by_calls`, such a
    /// time in system calls. If there are more than [`MOST_TASKS`], only those with most time are chosen. The number of `-n` is a
    /// minimum: tasks with less time are added up to it, and it replaces [`MOST_TASKS`] if it is higher.
    pub(super) fn choose(chart: &Timechart, request: &TimechartRequest, by_calls: bool) -> Self {
        let weight = |lane: &TaskLane| match by_calls {
            true => lane.calls.nanos,
            false => lane.run_time(),
        };
        let is_active = |lane: &TaskLane| match by_calls {
            true => lane.calls.count > 0,
            // It has events, states or system calls at more than one time, or it ran.
            false => lane.first < lane.last || lane.run_time() > 0,
        };
        let lanes = chart.tasks.iter().enumerate();
        let active: Vec<(usize, &TaskLane)> = lanes.filter(|(_, lane)| is_active(lane)).collect();
        let active_count = active.len();
        let mut chosen: Vec<(usize, &TaskLane)> = active;
        chosen.retain(|(_, lane)| is_selected(lane, &request.processes));
        chosen.sort_by_key(|(index, lane)| (std::cmp::Reverse(weight(lane)), *index));
        let long = chosen.iter().filter(|(_, lane)| weight(lane) >= LONG);
        let most = MOST_TASKS.max(request.min_tasks);
        let count = long.count().clamp(request.min_tasks, most);
        chosen.truncate(count);
        // Threads of a process are drawn next to each other: processes are in the order of `starts`, the earliest time of any
        // chosen task of the process.
        let mut starts: BTreeMap<i32, u64> = BTreeMap::default();
        for (_, lane) in &chosen {
            let start = starts.entry(process(lane)).or_insert(u64::MAX);
            *start = lane.first.min(*start);
        }
        chosen.sort_by_key(|(index, lane)| {
            let pid = process(lane);
            (starts.get(&pid).copied(), pid, lane.first, *index)
        });
        let order = chosen.into_iter().map(|(index, _)| index).collect();
        Self {
            order,
            active_count,
        }
    }

    /// Returns the number of tasks drawn.
    pub(super) fn count(&self) -> usize {
        self.order.len()
    }

    /// Returns the indices of the tasks, from top to bottom.
    pub(super) fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns the tasks, from top to bottom.
    pub(super) fn lanes<'c>(&self, chart: &'c Timechart) -> impl Iterator<Item = &'c TaskLane> {
        let lanes = self.order.iter();
        lanes.filter_map(|index| chart.tasks.get(*index))
    }
}

/// Returns the process id, or the thread id if the process is unknown.
fn process(lane: &TaskLane) -> i32 {
    match lane.pid {
        ..0 => lane.tid,
        pid => pid,
    }
}

fn is_selected(lane: &TaskLane, wanted: &[String]) -> bool {
    let is_meant = |word: &String| {
        let id = word.parse().ok();
        id == Some(lane.tid)
            || id == Some(lane.pid)
            || lane.names.iter().any(|name| name == word.as_bytes())
    };
    wanted.is_empty() || wanted.iter().any(is_meant)
}

/// Builds the rows of tasks with their states.
pub(super) struct TaskRows<'s, 'c> {
    stacks: &'s SleepStacks<'c>,
}

impl<'s, 'c> TaskRows<'s, 'c> {
    pub(super) fn new(stacks: &'s SleepStacks<'c>) -> Self {
        Self { stacks }
    }

    /// Returns the row of a task.
    pub(super) fn row(&mut self, lane: &TaskLane) -> ChartRow {
        let run_time = lane.run_time();
        let mut row = ChartRow {
            kind: RowKind::Task,
            label: format!("{} ({})", task_name(lane), Elapsed(run_time)),
            details: details(lane),
            weight: run_time,
            names: Vec::new(),
            boxes: Vec::new(),
            line: Vec::new(),
        };
        // Index in `row.names` of the name of each stack; `None` if the stack has no name, because all its functions are hidden.
        let mut name_indices: BTreeMap<StackId, Option<u32>> = BTreeMap::default();
        // Only these stacks are named.
        let named = self.stacks.longest_slept(lane);
        for piece in lane.states.pieces() {
            match &piece.content {
                // `data` is the stack with which the task was switched out, `None` while it ran.
                PieceContent::One { state, data } => {
                    let stack = data.filter(|stack| named.contains(stack));
                    let name = stack.and_then(|stack| {
                        *name_indices.entry(stack).or_insert_with(|| {
                            row.names.push(self.stacks.name(stack)?);
                            u32::try_from(row.names.len() - 1).ok()
                        })
                    });
                    row.boxes.push(single_state(piece, *state, name));
                }
                PieceContent::Merged(_) => draw_merged(piece, &mut row.boxes),
            }
        }
        row
    }
}

/// Returns the box of a piece in which the task had a single state.
fn single_state(
    piece: &TimelinePiece<TASK_STATES, Option<StackId>>,
    state: usize,
    name: Option<u32>,
) -> ChartBox {
    let paint = PAINTS.get(state).copied().unwrap_or(Paint::Sleeping);
    ChartBox {
        from: piece.from,
        to: piece.to,
        low: 0,
        high: match paint {
            Paint::Sleeping => SLEEPING,
            _ => 100,
        },
        paint,
        is_merged: false,
        name,
    }
}

/// Draws a piece of several short states: one box per state, stacked, each as high as the state's share of the time.
fn draw_merged(piece: &TimelinePiece<TASK_STATES, Option<StackId>>, boxes: &mut Vec<ChartBox>) {
    let whole = piece.to - piece.from;
    let mut low = 0_u8;
    for (paint, nanos) in PAINTS.into_iter().zip(piece.sums().nanos) {
        let share = match paint {
            // Sleep is not drawn: the rest of the height is left empty.
            Paint::Sleeping => continue,
            _ => share(nanos, whole),
        };
        let high = low.saturating_add(share).min(100);
        if low < high {
            boxes.push(ChartBox {
                from: piece.from,
                to: piece.to,
                low,
                high,
                paint,
                is_merged: true,
                name: None,
            });
        }
        low = high;
    }
}

fn details(lane: &TaskLane) -> String {
    let names: Vec<_> = lane.names.iter().map(|name| name_text(name)).collect();
    let mut text = format!("thread {} ({})", lane.tid, names.join(", then "));
    if lane.pid >= 0 && lane.pid != lane.tid {
        text.push_str(&format!(" of process {}", lane.pid));
    }
    for activity in TaskActivity::ALL {
        let nanos = lane
            .nanos
            .get(activity.state())
            .copied()
            .unwrap_or_default();
        let verb = match activity {
            TaskActivity::Running => "ran",
            TaskActivity::Highlighted => "ran (highlighted)",
            TaskActivity::Waiting => "waited for a CPU",
            TaskActivity::Blocked => "was blocked",
            TaskActivity::Sleeping => "slept",
        };
        if nanos > 0 {
            text.push_str(&format!("; {verb} {}", Elapsed(nanos)));
        }
    }
    text
}

/// A time in nanoseconds, displayed in us, ms or s.
pub(super) struct Elapsed(pub(super) u64);

impl std::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let nanos = self.0 as f64;
        match self.0 {
            1_000_000_000.. => write!(f, "{:.2} s", nanos / 1e9),
            1_000_000.. => write!(f, "{:.1} ms", nanos / 1e6),
            _ => write!(f, "{:.1} us", nanos / 1e3),
        }
    }
}
