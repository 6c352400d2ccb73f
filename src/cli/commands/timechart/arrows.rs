//! Wakeups as arrows between the rows of tasks.

use std::collections::{BTreeMap, BTreeSet};

use rperf_analysis::timechart::{Timechart, Wakeup};
use rperf_flame::ChartArrow;

use super::tasks::ShownTasks;

/// The maximum number of arrows of a picture; more could not be distinguished.
const MAX_ARROWS: usize = 600;
/// The number of equal parts into which the time of the chart is divided at first. In each part, a task has at most one
/// arrow to each other task. While there are too many arrows, the length of the parts is doubled.
const PARTS: u64 = 400;

/// Returns wakeups as arrows between the rows of drawn tasks, at most [`MAX_ARROWS`]. `first_row` is that of the first task.
pub(super) fn arrows(chart: &Timechart, shown: &ShownTasks, first_row: usize) -> Vec<ChartArrow> {
    let order = shown.order().iter();
    // Rows by index in `Timechart::tasks`.
    let rows: BTreeMap<usize, usize> = order.copied().zip(first_row..).collect();
    let drawn = |wakeup: &Wakeup| {
        let (from, to) = (
            *rows.get(&wakeup.waker.get())?,
            *rows.get(&wakeup.woken.get())?,
        );
        (from != to).then_some(ChartArrow {
            time: wakeup.time,
            from,
            to,
        })
    };
    let mut arrows: Vec<ChartArrow> = chart.wakeups.iter().filter_map(drawn).collect();
    let span = chart.end.saturating_sub(chart.start).max(1);
    let mut part_nanos = (span / PARTS).max(1);
    loop {
        let mut seen = BTreeSet::default();
        arrows.retain(|arrow| {
            let part_number = arrow.time.saturating_sub(chart.start) / part_nanos;
            seen.insert((part_number, arrow.from, arrow.to))
        });
        if arrows.len() <= MAX_ARROWS || part_nanos >= span {
            break;
        }
        part_nanos = part_nanos.saturating_mul(2);
    }
    // If too many remain even with one part, the earliest are kept.
    arrows.truncate(MAX_ARROWS);
    arrows
}
