//! Idle states and frequencies of CPUs.

use rperf_tracepoint::typed::{CpuFrequency, CpuIdle};

use super::{ChartRange, TimeGrid, Timeline, TimelinePiece};

/// The number of idle states that are distinguished; deeper states count as the deepest of them.
pub const IDLE_STATES: usize = 7;

/// The frequency of a CPU from a time on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrequencyStep {
    /// The time of the change, in nanoseconds: the first one if it changed several times in a cell of the [`TimeGrid`].
    pub time: u64,
    /// The frequency in kHz: the highest one if it changed several times in a cell. Changes before the start of the chart belong
    /// to its first cell.
    pub khz: u32,
}

/// Idle states and frequencies of one CPU.
#[derive(Debug, Default)]
pub struct CpuPower {
    /// Idle states over time, by their cpuidle index (0: polling on x86, WFI on Arm), without further data (`()`).
    pub idle: Timeline<IDLE_STATES, ()>,
    /// Changes of the frequency, in order of time, at most one per cell.
    pub frequencies: Vec<FrequencyStep>,
    /// The start and the index of the current idle state.
    open: Option<(u64, usize)>,
}

impl CpuPower {
    /// Handles the start or end of an idle state. Either one ends the current idle state.
    pub(super) fn idle(
        &mut self,
        time: u64,
        event: &CpuIdle<'_>,
        grid: &TimeGrid,
        range: ChartRange,
    ) {
        self.close(time, grid, range);
        self.open = match event.state() {
            CpuIdle::EXIT => None,
            state => Some((time, (state as usize).min(IDLE_STATES - 1))),
        };
    }

    /// Ends the current idle state, if there is one, and adds the part of it that is in `range` to the timeline.
    pub(super) fn close(&mut self, time: u64, grid: &TimeGrid, range: ChartRange) {
        if let Some((since, state)) = self.open.take() {
            let shown = range.clip(since, time);
            self.idle
                .push(grid, TimelinePiece::one(shown.first, shown.last, state, ()));
        }
    }

    /// Handles a change of the frequency.
    pub(super) fn frequency(&mut self, time: u64, event: &CpuFrequency<'_>, grid: &TimeGrid) {
        let step = FrequencyStep {
            time,
            // The tracepoint's field `state` is the new frequency in kHz.
            khz: event.state(),
        };
        self.push_step(step, grid);
    }

    fn push_step(&mut self, step: FrequencyStep, grid: &TimeGrid) {
        match self.frequencies.last_mut() {
            Some(last) if grid.cell_of(last.time) == grid.cell_of(step.time) => {
                last.khz = last.khz.max(step.khz);
            }
            _ => self.frequencies.push(step),
        }
    }

    /// Merges states and frequencies anew after the cells of `grid` have become longer.
    pub(super) fn coarsen(&mut self, grid: &TimeGrid) {
        self.idle.coarsen(grid);
        for step in std::mem::take(&mut self.frequencies) {
            self.push_step(step, grid);
        }
    }
}
