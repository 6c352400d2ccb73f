//! A decaying histogram for live views: rows decay at each refresh, and new samples are added.
//!
//! ```text
//! samples of an interval --histogram--> Histogram --add--> fresh --refresh--> rows, old counts times 7/8
//! ```
//!
//! Rows are identified by their cells, not by ids of processes and objects: a live view removes unused processes and objects from
//! its World (`rperf_replay::World`), and their ids become invalid.

mod graph;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::fields::ReportField;
use crate::histogram::{ColumnSum, Histogram, HistogramRow, Weights};
use crate::options::{GraphOptions, HistogramOptions};

/// Treatment of existing rows at a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Decay {
    /// Counts decay to seven eighths; rows that reach 0 are removed.
    #[default]
    Slowly,
    /// Rows are removed: only the last interval is shown.
    AtOnce,
    /// Counts are unchanged; for use while events are disabled.
    Not,
}

/// The modes whose samples are hidden, on the host and in guests alike. A refresh removes the rows whose own samples, of all
/// events of a group, are hidden; then it adds the new samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HiddenSamples {
    /// Whether kernel samples are hidden.
    pub kernel: bool,
    /// Whether samples of user space are hidden.
    pub user: bool,
}

/// The rows of one event, or of a group.
#[derive(Debug)]
pub struct DecayingHistogram {
    order_by: Vec<ReportField>,
    graph: Option<GraphOptions>,
    /// The rows of the last refresh, with complete call graphs.
    rows: Vec<HistogramRow>,
    /// Sums of the samples that count in the totals but have no row, such as filtered ones, by event.
    rest: Vec<ColumnSum>,
    /// Samples since the last refresh.
    fresh: Option<Histogram>,
    /// Number of all samples added.
    sample_count: u64,
    displayed: Histogram,
}

impl DecayingHistogram {
    /// Creates an empty histogram for these options.
    #[must_use]
    pub fn new(options: &HistogramOptions) -> Self {
        let displayed = Histogram {
            columns: options.columns.clone(),
            children: options.children,
            sort_event: options.sort_event,
            ..Histogram::default()
        };
        Self {
            order_by: options.order_by.clone(),
            graph: options.graph,
            rows: Vec::new(),
            rest: Vec::new(),
            fresh: None,
            sample_count: 0,
            displayed,
        }
    }

    /// Returns `options` for histograms that can be added to each other: these have all branches of call graphs.
    #[must_use]
    pub fn addable_options(options: &HistogramOptions) -> HistogramOptions {
        let graph = options.graph.map(|graph| GraphOptions {
            min_percent: 0.0,
            ..graph
        });
        HistogramOptions {
            graph,
            ..options.clone()
        }
    }

    /// Adds a histogram of new samples, which are shown at the next refresh.
    pub fn add(&mut self, more: Histogram) {
        self.sample_count += more.total().samples;
        match &mut self.fresh {
            Some(fresh) => {
                let graph = self.graph;
                add_rows(&mut fresh.rows, more.rows, graph);
                add_sums(&mut fresh.totals, &more.totals);
            }
            None => self.fresh = Some(more),
        }
    }

    /// Applies `decay` to rows, removes `hidden` rows, and adds the samples since the last refresh.
    pub fn refresh(&mut self, decay: Decay, hidden: HiddenSamples) {
        self.apply_decay(decay);
        self.rows.retain(|row| !hidden.hides(row));
        if let Some(fresh) = self.fresh.take() {
            let mut fresh_rest = fresh.totals.clone();
            for row in &fresh.rows {
                for (sum, in_row) in fresh_rest.iter_mut().zip(sums(row)) {
                    *sum = sum.without(in_row);
                }
            }
            add_sums(&mut self.rest, &fresh_rest);
            self.displayed.events = fresh.events;
            add_rows(&mut self.rows, fresh.rows, self.graph);
        }
        self.show();
    }

    /// The displayed histogram.
    #[must_use]
    pub fn histogram(&self) -> &Histogram {
        &self.displayed
    }

    /// Number of all samples added.
    #[must_use]
    pub fn sample_count(&self) -> u64 {
        self.sample_count
    }

    fn apply_decay(&mut self, decay: Decay) {
        match decay {
            Decay::Not => {}
            Decay::AtOnce => {
                self.rows.clear();
                self.rest.clear();
            }
            Decay::Slowly => {
                for row in &mut self.rows {
                    decay_weights(&mut row.weights);
                    row.others.iter_mut().for_each(decay_weights);
                    decay_count(&mut row.chains);
                    graph::decay(&mut row.graph);
                }
                self.rest.iter_mut().for_each(decay_sum);
                self.rows.retain(|row| {
                    let mut by_event = std::iter::once(&row.weights).chain(&row.others);
                    by_event.any(|weights| weights.total > 0 || weights.own > 0)
                });
            }
        }
    }

    /// Sorts rows, and copies them with the displayed branches of their call graphs to the displayed histogram.
    fn show(&mut self) {
        let order_by = &self.order_by;
        let sort_event = self.displayed.sort_event;
        self.rows
            .sort_by(|one, other| by_numbers(one, other, order_by, sort_event));
        let mut totals = self.rest.clone();
        for row in &self.rows {
            add_sums(&mut totals, &sums(row).collect::<Vec<_>>());
        }
        // The total of the first event ([`Histogram::all`]).
        let all = totals.first().copied().unwrap_or_default();
        let threshold = self
            .graph
            .map(|graph| graph::BranchThreshold::new(&graph, all.period));
        let rows = self.rows.iter().map(|row| HistogramRow {
            graph: threshold.map_or_else(Vec::new, |threshold| threshold.displayed(&row.graph)),
            others: row.others.clone(),
            cells: row.cells.clone(),
            ..*row
        });
        self.displayed.rows = rows.collect();
        self.displayed.totals = totals;
        self.displayed.all = all;
    }
}

impl HiddenSamples {
    fn hides(self, row: &HistogramRow) -> bool {
        let (mut has_kernel, mut has_user) = (false, false);
        // The modes are not compared with `own`: a decay rounds each of them down, so their sum may be lower.
        for weights in std::iter::once(&row.weights).chain(&row.others) {
            let [kernel, user, guest_kernel, guest_user] = weights.modes;
            has_kernel |= kernel > 0 || guest_kernel > 0;
            has_user |= user > 0 || guest_user > 0;
        }
        let has_visible = has_kernel && !self.kernel || has_user && !self.user;
        (has_kernel || has_user) && !has_visible
    }
}

/// Multiplies by seven eighths and rounds down, so that small counts reach 0.
fn decay_count(value: &mut u64) {
    *value = u64::try_from(u128::from(*value) * 7 / 8).unwrap_or(*value);
}

/// Decays a sum of older samples.
pub(crate) fn decay_sum(sum: &mut ColumnSum) {
    decay_count(&mut sum.period);
    decay_count(&mut sum.samples);
    decay_count(&mut sum.latency);
}

fn decay_weights(weights: &mut Weights) {
    decay_count(&mut weights.own);
    weights.modes.iter_mut().for_each(decay_count);
    decay_count(&mut weights.total);
    decay_count(&mut weights.samples);
    decay_count(&mut weights.latency);
    decay_count(&mut weights.total_latency);
    weights.costs.iter_mut().for_each(decay_count);
}

/// The row's own sums, by event.
fn sums(row: &HistogramRow) -> impl Iterator<Item = ColumnSum> {
    let by_event = std::iter::once(&row.weights).chain(&row.others);
    by_event.map(|weights| ColumnSum {
        period: weights.own,
        samples: weights.samples,
        latency: weights.latency,
    })
}

fn add_sums(sums: &mut Vec<ColumnSum>, more: &[ColumnSum]) {
    sums.resize(sums.len().max(more.len()), ColumnSum::default());
    for (sum, more) in sums.iter_mut().zip(more) {
        sum.add(*more);
    }
}

/// Adds each row to the row with the same cells, or appends it if there is none.
fn add_rows(rows: &mut Vec<HistogramRow>, more: Vec<HistogramRow>, graph: Option<GraphOptions>) {
    let known = rows.iter().enumerate();
    let known: FxHashMap<&[String], usize> = known.map(|(at, row)| (&row.cells[..], at)).collect();
    let indices: Vec<Option<usize>> = more
        .iter()
        .map(|row| known.get(&row.cells[..]).copied())
        .collect();
    // New rows may have equal cells.
    let mut new: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    // In a list of chains only equal chains are merged; in a tree, branches with the same first frame.
    let is_list = graph.is_some_and(|graph| graph.form.is_list());
    for (row, index) in more.into_iter().zip(indices) {
        let index = index.or_else(|| new.get(&row.cells).copied());
        match index.and_then(|index| rows.get_mut(index)) {
            Some(existing) => add_row(existing, row, is_list),
            None => {
                new.insert(row.cells.clone(), rows.len());
                rows.push(row);
            }
        }
    }
}

fn add_row(row: &mut HistogramRow, more: HistogramRow, is_list: bool) {
    row.add(&more);
    row.chains += more.chains;
    row.unresolved &= more.unresolved;
    graph::add(&mut row.graph, more.graph, is_list);
}

/// Compares rows by the numbers in `order_by`, in descending order: those of the event `sort_event` first. Rows with equal
/// numbers are in ascending order of their cells.
fn by_numbers(
    one: &HistogramRow,
    other: &HistogramRow,
    order_by: &[ReportField],
    sort_event: usize,
) -> Ordering {
    let numbers = order_by.iter().filter_map(|field| field.number());
    let compared = numbers.map(|number| {
        let [one, other] = [one, other].map(|row| row.compared_numbers(number, sort_event));
        other.cmp(one)
    });
    let compared = compared.fold(Ordering::Equal, Ordering::then);
    compared.then_with(|| one.cells.cmp(&other.cells))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::NumberField;

    fn row(cell: &str, own: u64) -> HistogramRow {
        HistogramRow {
            weights: Weights {
                own,
                modes: [0, own, 0, 0],
                total: own,
                samples: 1,
                ..Weights::default()
            },
            others: Vec::new(),
            cells: vec![cell.to_owned()],
            unresolved: false,
            chains: 0,
            graph: Vec::new(),
        }
    }

    fn histogram(rows: Vec<HistogramRow>, rest: u64) -> Histogram {
        let own: u64 = rows.iter().map(|row| row.weights.own).sum();
        let all = ColumnSum {
            period: own + rest,
            samples: rows.len() as u64,
            latency: 0,
        };
        Histogram {
            events: vec![0],
            totals: vec![all],
            all,
            rows,
            ..Histogram::default()
        }
    }

    fn decaying() -> DecayingHistogram {
        DecayingHistogram::new(&HistogramOptions {
            order_by: vec![ReportField::Number(NumberField::Own)],
            ..HistogramOptions::default()
        })
    }

    fn displayed_rows(decaying: &DecayingHistogram) -> Vec<(&str, u64)> {
        let rows = decaying.histogram().rows.iter();
        rows.map(|row| (row.cells[0].as_str(), row.weights.own))
            .collect()
    }

    #[test]
    fn rows_decay_to_seven_eighths_and_are_removed_at_zero() {
        let mut decaying = decaying();
        decaying.add(histogram(vec![row("a", 16), row("b", 1)], 8));
        decaying.refresh(Decay::Slowly, HiddenSamples::default());
        assert_eq!(displayed_rows(&decaying), [("a", 16), ("b", 1)]);
        assert_eq!(decaying.histogram().all.period, 25);
        decaying.add(histogram(vec![row("c", 20), row("a", 1)], 0));
        decaying.refresh(Decay::Slowly, HiddenSamples::default());
        assert_eq!(displayed_rows(&decaying), [("c", 20), ("a", 15)]);
        // The rows, and 7/8 of the 8 without a row.
        assert_eq!(decaying.histogram().all.period, 35 + 7);
        // perf's values: 15, 13, 11, 9, 7, 6, 5, 4, 3, 2, 1, 0.
        for left in [13, 11, 9, 7, 6, 5, 4, 3, 2, 1] {
            decaying.refresh(Decay::Slowly, HiddenSamples::default());
            assert_eq!(displayed_rows(&decaying).last(), Some(&("a", left)));
        }
        decaying.refresh(Decay::Slowly, HiddenSamples::default());
        assert!(
            displayed_rows(&decaying)
                .iter()
                .all(|(cell, _)| *cell != "a")
        );
        assert_eq!(decaying.sample_count(), 4);
    }

    #[test]
    fn rows_with_equal_cells_in_one_interval_are_merged() {
        let mut decaying = decaying();
        decaying.add(histogram(vec![row("a", 2), row("a", 3)], 0));
        decaying.add(histogram(vec![row("a", 4), row("b", 9)], 0));
        decaying.refresh(Decay::AtOnce, HiddenSamples::default());
        assert_eq!(displayed_rows(&decaying), [("a", 9), ("b", 9)]);
        decaying.refresh(Decay::Not, HiddenSamples::default());
        assert_eq!(displayed_rows(&decaying), [("a", 9), ("b", 9)]);
        decaying.refresh(Decay::AtOnce, HiddenSamples::default());
        assert_eq!(displayed_rows(&decaying), []);
    }

    #[test]
    fn rows_of_a_hidden_mode_are_removed() {
        let mut decaying = decaying();
        let mut kernel = row("k", 5);
        kernel.weights.modes = [5, 0, 0, 0];
        // Samples of the kernels of the host and of a guest.
        let mut both_kernels = row("g", 5);
        both_kernels.weights.modes = [2, 0, 3, 0];
        // Only the second event of a group has samples, of the kernel.
        let mut of_second = row("second", 0);
        of_second.others = vec![kernel.weights];
        // The samples of the first event are hidden, the samples of the second event are not.
        let mut mixed = row("mixed", 1);
        mixed.weights.modes = [1, 0, 0, 0];
        mixed.others = vec![row("u", 2).weights];
        let rows = vec![row("u", 5), kernel, both_kernels, of_second, mixed];
        decaying.add(histogram(rows, 0));
        decaying.refresh(Decay::Slowly, HiddenSamples::default());
        let hidden = HiddenSamples {
            kernel: true,
            user: false,
        };
        decaying.refresh(Decay::Not, hidden);
        assert_eq!(displayed_rows(&decaying), [("u", 5), ("mixed", 1)]);
        assert_eq!(
            decaying.histogram().all.period,
            6,
            "shares are of the displayed rows"
        );
    }
}
