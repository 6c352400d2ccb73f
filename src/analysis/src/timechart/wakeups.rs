//! Wakeups of tasks by other tasks, thinned out.

use rustc_hash::FxHashSet;

use super::TimeGrid;
use crate::sched::TaskIndex;

/// A wakeup of a task by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wakeup {
    /// The time in nanoseconds.
    pub time: u64,
    /// The task that was running.
    pub waker: TaskIndex,
    /// The task that was woken.
    pub woken: TaskIndex,
}

/// Wakeups in order of time. Of the wakeups with the same waker and woken task, only the first in each slot is kept. A slot is
/// `slot_cells` cells of the [`TimeGrid`], which divides the time into cells of equal length.
#[derive(Debug, Default)]
pub(super) struct Wakeups {
    kept: Vec<Wakeup>,
    /// Slot, waker and woken task of each wakeup in `kept`.
    seen: FxHashSet<(u64, TaskIndex, TaskIndex)>,
    /// The number of grid cells in a slot; 0, the initial value, means 1.
    slot_cells: u64,
}

impl Wakeups {
    /// Maximum number of wakeups stored; if there are more, the slots are made longer.
    const MOST: usize = 400_000;

    pub(super) fn push(&mut self, wakeup: Wakeup, grid: &TimeGrid) {
        self.keep(wakeup, grid);
        while self.kept.len() > Self::MOST && self.slot_cells < u64::MAX / 2 {
            self.slot_cells = self.slot_cells.max(1) * 2;
            self.coarsen(grid);
        }
    }

    fn keep(&mut self, wakeup: Wakeup, grid: &TimeGrid) {
        let slot = grid.cell_of(wakeup.time) / self.slot_cells.max(1);
        if self.seen.insert((slot, wakeup.waker, wakeup.woken)) {
            self.kept.push(wakeup);
        }
    }

    /// Thins the wakeups out anew after the cells of the grid or the slots have become longer.
    pub(super) fn coarsen(&mut self, grid: &TimeGrid) {
        self.seen.clear();
        for wakeup in std::mem::take(&mut self.kept) {
            self.keep(wakeup, grid);
        }
    }

    pub(super) fn into_kept(self) -> Vec<Wakeup> {
        self.kept
    }
}
