//! Wakeups as arrows between the rows of tasks.

use std::collections::{BTreeMap, BTreeSet};

use rperf_analysis::timechart::{Timechart, Wakeup};
use rperf_flame::ChartArrow;

use super::tasks::ShownTasks;

/// The maximum number of arrows of a picture; more could not be distinguished.
const MAX_ARROWS: usize = 600;
/// The number of equal parts into which the time of the chart is divided at first. In each part, one task has at most one
/// arrow to another. While there are too many arrows, the length of the parts is doubled.
const PARTS: u64 = 400;

/// Returns at most [`MAX_ARROWS`] wakeups between different tasks that are drawn; `first` is the row of the first drawn task.
pub(super) fn arrows(chart: &Timechart, shown: &ShownTasks, first: usize) -> Vec<ChartArrow> {
    let order = shown.order().iter();
    let rows: BTreeMap<usize, usize> = order.copied().zip(first..).collect();
    let place = |wakeup: &Wakeup| {
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
    let mut arrows: Vec<ChartArrow> = chart.wakeups.iter().filter_map(place).collect();
    let span = chart.end.saturating_sub(chart.start).max(1);
    let mut part = (span / PARTS).max(1);
    loop {
        let mut seen = BTreeSet::default();
        arrows.retain(|arrow| {
            let number = arrow.time.saturating_sub(chart.start) / part;
            seen.insert((number, arrow.from, arrow.to))
        });
        if arrows.len() <= MAX_ARROWS || part >= span {
            break;
        }
        part = part.saturating_mul(2);
    }
    arrows.truncate(MAX_ARROWS);
    arrows
}
