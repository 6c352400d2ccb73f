//! Which task runs on each CPU after each switch, for `sched map`.

use std::collections::BTreeMap;

use rperf_replay::FoldControl;
use rperf_tracepoint::typed::{SchedSwitch, TypedEvent};

use super::tasks::{SchedTask, SchedTasks, TaskIndex, entry};
use super::{LostStretches, UNKNOWN_PID};
use crate::{EventContext, Loss, Observer, TaskChange};

/// The idle task's code.
const IDLE: TaskCode = TaskCode(*b". ");
/// The code of tasks that are not selected.
const OTHER: TaskCode = TaskCode(*b"- ");

/// Selects tasks by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskNameFilter {
    /// At least one name; none is empty.
    names: Vec<Vec<u8>>,
    /// Whether a task's name only needs to contain one of `names`.
    is_fuzzy: bool,
}

impl TaskNameFilter {
    /// Selects the tasks with one of `names`; if `is_fuzzy`, the tasks whose name contains one of them. Returns `None` if
    /// `names` is empty, or if one of them is empty: every name contains it.
    #[must_use]
    pub fn new(names: Vec<Vec<u8>>, is_fuzzy: bool) -> Option<Self> {
        let is_valid = !names.is_empty() && names.iter().all(|name| !name.is_empty());
        is_valid.then_some(Self { names, is_fuzzy })
    }

    fn matches(&self, comm: &[u8]) -> bool {
        self.names.iter().any(|name| match self.is_fuzzy {
            true => comm.windows(name.len()).any(|part| part == name),
            false => comm == name,
        })
    }
}

/// The two characters for a task: `A0` to `Z0`, then `A1` to `Z1` and so on to `Z9`, then again from `A0`; `.` for the idle task,
/// `-` for one that is not selected, both followed by a blank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskCode([u8; 2]);

impl TaskCode {
    /// Returns the two characters.
    #[must_use]
    pub fn bytes(self) -> [u8; 2] {
        self.0
    }

    fn next(self) -> Self {
        let [letter, digit] = self.0;
        Self(match (letter, digit) {
            (b'Z', b'9') => *b"A0",
            (b'Z', digit) => [b'A', digit + 1],
            (letter, digit) => [letter + 1, digit],
        })
    }
}

/// A switch, with the tasks on all CPUs after it.
#[derive(Debug)]
pub struct MapRow<'m> {
    /// The time in nanoseconds.
    pub time: u64,
    /// The CPU that switched.
    pub cpu: u32,
    /// The task switched in.
    pub task: &'m SchedTask,
    /// The code of `task`.
    pub code: TaskCode,
    /// Whether this is the first row of `task`, or its first since it was renamed; `false` if it is not selected.
    pub has_new_name: bool,
    /// Whether this is the first switch of its CPU.
    pub is_first_of_cpu: bool,
    /// CPUs in order of their first switch.
    pub seen_cpus: &'m [u32],
    running: &'m BTreeMap<u32, TaskIndex>,
    tasks: &'m SchedTasks,
    mapped: &'m [MappedTask],
    filter: Option<&'m TaskNameFilter>,
}

impl MapRow<'_> {
    /// Whether [`MapRow::task`] is selected.
    #[must_use]
    pub fn is_selected(&self) -> bool {
        self.code != OTHER
    }

    /// Returns the task that runs on a CPU, with its code; `None` before the first switch of the CPU, or if the task has no code
    /// yet: it was renamed to a selected name after it was switched in.
    #[must_use]
    pub fn running(&self, cpu: u32) -> Option<(&SchedTask, TaskCode)> {
        let index = *self.running.get(&cpu)?;
        let task = self.tasks.get(index);
        if self
            .filter
            .is_some_and(|filter| !filter.matches(&task.comm))
        {
            return Some((task, OTHER));
        }
        let code = self.mapped.get(index.get())?.code?;
        Some((task, code))
    }
}

/// The code of a task, and whether a row has explained it.
#[derive(Debug, Default)]
struct MappedTask {
    code: Option<TaskCode>,
    /// Whether a row has shown its current name.
    is_named: bool,
}

/// Passes a [`MapRow`] for each selected switch to `sink`.
#[derive(Debug)]
pub struct SwitchMap<S> {
    sink: S,
    cpus: Option<Vec<u32>>,
    filter: Option<TaskNameFilter>,
    tasks: SchedTasks,
    /// By [`TaskIndex`].
    mapped: Vec<MappedTask>,
    next_code: TaskCode,
    /// The task that each CPU last switched to.
    running: BTreeMap<u32, TaskIndex>,
    seen_cpus: Vec<u32>,
    losses: LostStretches,
    flow: FoldControl,
}

impl<S: FnMut(&MapRow<'_>) -> FoldControl> SwitchMap<S> {
    /// Creates a map of the switches on `cpus` to or from a task that `filter` selects; `None` selects all.
    pub fn new(cpus: Option<Vec<u32>>, filter: Option<TaskNameFilter>, sink: S) -> Self {
        Self {
            sink,
            cpus,
            filter,
            tasks: SchedTasks::new(),
            mapped: Vec::new(),
            next_code: TaskCode(*b"A0"),
            running: BTreeMap::new(),
            seen_cpus: Vec::new(),
            losses: LostStretches::default(),
            flow: FoldControl::Continue,
        }
    }

    /// Returns where records were lost.
    #[must_use]
    pub fn into_losses(self) -> LostStretches {
        self.losses
    }

    fn is_selected(&self, task: TaskIndex) -> bool {
        let filter = self.filter.as_ref();
        filter.is_none_or(|filter| filter.matches(&self.tasks.get(task).comm))
    }

    fn switch(&mut self, time: u64, cpu: u32, event: &SchedSwitch<'_>) {
        let index = self.tasks.find_or_add(UNKNOWN_PID, event.next_pid());
        // By name, as in perf.
        let is_idle = self.tasks.get(index).comm == b"swapper";
        let is_selected = self.is_selected(index);
        let switches_selected_task = is_selected || {
            let prev = self.tasks.find_or_add(UNKNOWN_PID, event.prev_pid());
            self.is_selected(prev)
        };
        let is_first_of_cpu = self.running.insert(cpu, index).is_none();
        if is_first_of_cpu {
            self.seen_cpus.push(cpu);
        }
        let mapped = entry(&mut self.mapped, index);
        let code = match is_selected {
            false => OTHER,
            true => *mapped.code.get_or_insert_with(|| match is_idle {
                true => IDLE,
                false => {
                    let following = self.next_code.next();
                    std::mem::replace(&mut self.next_code, following)
                }
            }),
        };
        let is_cpu_selected = self.cpus.as_ref().is_none_or(|cpus| cpus.contains(&cpu));
        if !is_cpu_selected || !switches_selected_task {
            return;
        }
        let has_new_name = is_selected && !std::mem::replace(&mut mapped.is_named, true);
        let row = MapRow {
            time,
            cpu,
            task: self.tasks.get(index),
            code,
            has_new_name,
            is_first_of_cpu,
            seen_cpus: &self.seen_cpus,
            running: &self.running,
            tasks: &self.tasks,
            mapped: &self.mapped,
            filter: self.filter.as_ref(),
        };
        self.flow = (self.sink)(&row);
    }
}

impl<S: FnMut(&MapRow<'_>) -> FoldControl> Observer for SwitchMap<S> {
    fn event(&mut self, at: &EventContext, event: TypedEvent<'_>, (): ()) {
        if self.losses.usable_event(at)
            && let TypedEvent::SchedSwitch(event) = event
            && let Some(cpu) = at.cpu
            && self.flow == FoldControl::Continue
        {
            self.switch(at.time(), cpu, &event);
        }
    }

    fn task(&mut self, _: &EventContext, change: TaskChange<'_>) {
        if let Some(renamed) = self.tasks.change(&change) {
            entry(&mut self.mapped, renamed).is_named = false;
        }
    }

    fn lost(&mut self, at: &EventContext, loss: Loss) {
        self.losses.lost(at, loss);
    }

    fn flow(&self) -> FoldControl {
        self.flow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_exactly_or_in_part_and_empty_ones_are_refused() {
        let new = |names: &[&[u8]], is_fuzzy| {
            TaskNameFilter::new(names.iter().map(|name| name.to_vec()).collect(), is_fuzzy)
        };
        for is_fuzzy in [false, true] {
            assert_eq!(new(&[], is_fuzzy), None);
            assert_eq!(new(&[b"sh", b""], is_fuzzy), None);
        }
        let [exact, fuzzy] = [false, true].map(|is_fuzzy| new(&[b"sh"], is_fuzzy).unwrap());
        assert!(exact.matches(b"sh") && !exact.matches(b"bash"));
        assert!(fuzzy.matches(b"bash") && !fuzzy.matches(b"s") && !fuzzy.matches(b""));
    }
}
