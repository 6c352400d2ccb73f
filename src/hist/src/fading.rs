//! A histogram of what happens now: rows fade from one refresh to the next, and new samples are added.
//!
//! ```text
//! samples of an interval --histogram--> Histogram --add--> fresh --refresh--> rows, older ones at 7/8
//! ```
//!
//! Rows are known by their cells, so that nothing here refers to the World, which forgets what has ended.

mod graph;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use crate::fields::{Field, Number};
use crate::histogram::{Histogram, Row, Sum, Weights};
use crate::options::{GraphOptions, Options};

/// What a refresh does to the rows that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fade {
    /// They keep seven eighths of their numbers; those that come to nothing go.
    #[default]
    Slowly,
    /// They go: what is shown is of one interval.
    AtOnce,
    /// They stay, as while events are stopped.
    Not,
}

/// What is not shown, and not counted where it can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hidden {
    /// What fell on the kernel.
    pub kernel: bool,
    /// What fell on user space.
    pub user: bool,
}

/// The fading rows of one event, or of a group.
#[derive(Debug)]
pub struct Fading {
    order_by: Vec<Field>,
    graph: Option<GraphOptions>,
    /// As last shown, with whole call graphs.
    rows: Vec<Row>,
    /// What belongs to no row, by event.
    rest: Vec<Sum>,
    /// What came since.
    fresh: Option<Histogram>,
    /// All that ever came.
    seen: u64,
    /// What is shown.
    shown: Histogram,
}

impl Fading {
    /// Nothing yet, of histograms with these options.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let shown = Histogram {
            columns: options.columns.clone(),
            children: options.children,
            ..Histogram::default()
        };
        Self {
            order_by: options.order_by.clone(),
            graph: options.graph,
            rows: Vec::new(),
            rest: Vec::new(),
            fresh: None,
            seen: 0,
            shown,
        }
    }

    /// Options whose histograms can be added to each other: with all branches of call graphs.
    #[must_use]
    pub fn whole(options: &Options) -> Options {
        let graph = options.graph.map(|graph| GraphOptions {
            min_percent: 0.0,
            ..graph
        });
        Options {
            graph,
            ..options.clone()
        }
    }

    /// Adds samples, to be shown at the next refresh.
    pub fn add(&mut self, more: Histogram) {
        self.seen += more.whole().samples;
        match &mut self.fresh {
            Some(fresh) => {
                let graph = self.graph;
                add_rows(&mut fresh.rows, more.rows, graph);
                add_sums(&mut fresh.wholes, &more.wholes);
            }
            None => self.fresh = Some(more),
        }
    }

    /// Lets rows fade, and adds what came since the last time.
    pub fn refresh(&mut self, fade: Fade, hidden: Hidden) {
        self.fade(fade, hidden);
        if let Some(fresh) = self.fresh.take() {
            let mut rest = fresh.wholes.clone();
            for row in &fresh.rows {
                for (rest, own) in rest.iter_mut().zip(sums(row)) {
                    *rest = rest.without(own);
                }
            }
            add_sums(&mut self.rest, &rest);
            self.shown.events = fresh.events;
            add_rows(&mut self.rows, fresh.rows, self.graph);
        }
        self.show();
    }

    /// What is to be seen now.
    #[must_use]
    pub fn histogram(&self) -> &Histogram {
        &self.shown
    }

    /// All samples that ever were added.
    #[must_use]
    pub fn seen(&self) -> u64 {
        self.seen
    }

    fn fade(&mut self, fade: Fade, hidden: Hidden) {
        match fade {
            Fade::Not => {}
            Fade::AtOnce => {
                self.rows.clear();
                self.rest.clear();
            }
            Fade::Slowly => {
                for row in &mut self.rows {
                    fade_weights(&mut row.weights);
                    row.others.iter_mut().for_each(fade_weights);
                    faded(&mut row.chains);
                    graph::fade(&mut row.graph);
                }
                self.rest.iter_mut().for_each(fade_sum);
                self.rows.retain(|row| {
                    let mut all = std::iter::once(&row.weights).chain(&row.others);
                    all.any(|weights| weights.total > 0 || weights.own > 0)
                });
            }
        }
        self.rows.retain(|row| !hidden.hides(&row.weights));
    }

    /// Orders rows, and cuts their call graphs to what is shown.
    fn show(&mut self) {
        let order_by = &self.order_by;
        self.rows
            .sort_by(|one, other| by_weight(one, other, order_by));
        let mut wholes = self.rest.clone();
        for row in &self.rows {
            add_sums(&mut wholes, &sums(row).collect::<Vec<_>>());
        }
        let all = wholes.first().copied().unwrap_or_default();
        let least = self
            .graph
            .map(|graph| graph::Least::new(&graph, all.period));
        let rows = self.rows.iter().map(|row| Row {
            graph: least.map_or_else(Vec::new, |least| least.kept(&row.graph)),
            others: row.others.clone(),
            cells: row.cells.clone(),
            ..*row
        });
        self.shown.rows = rows.collect();
        self.shown.wholes = wholes;
        self.shown.all = all;
    }
}

impl Hidden {
    fn hides(self, weights: &Weights) -> bool {
        let [kernel, user, ..] = weights.modes;
        let is_kernel = weights.own > 0 && kernel == weights.own;
        let is_user = weights.own > 0 && user == weights.own;
        self.kernel && is_kernel || self.user && is_user
    }
}

/// Seven eighths, as whole numbers: what is left of few events ends, too.
fn faded(value: &mut u64) {
    *value = u64::try_from(u128::from(*value) * 7 / 8).unwrap_or(*value);
}

/// Lets a sum of older samples fade.
pub(crate) fn fade_sum(sum: &mut Sum) {
    faded(&mut sum.period);
    faded(&mut sum.samples);
    faded(&mut sum.latency);
}

fn fade_weights(weights: &mut Weights) {
    faded(&mut weights.own);
    weights.modes.iter_mut().for_each(faded);
    faded(&mut weights.total);
    faded(&mut weights.samples);
    faded(&mut weights.latency);
    faded(&mut weights.total_latency);
    weights.costs.iter_mut().for_each(faded);
}

/// What fell on a row itself, by event.
fn sums(row: &Row) -> impl Iterator<Item = Sum> {
    let all = std::iter::once(&row.weights).chain(&row.others);
    all.map(|weights| Sum {
        period: weights.own,
        samples: weights.samples,
        latency: weights.latency,
    })
}

fn add_sums(sums: &mut Vec<Sum>, more: &[Sum]) {
    sums.resize(sums.len().max(more.len()), Sum::default());
    for (sum, more) in sums.iter_mut().zip(more) {
        sum.add(*more);
    }
}

/// Adds rows to those with the same cells.
fn add_rows(rows: &mut Vec<Row>, more: Vec<Row>, graph: Option<GraphOptions>) {
    let known = rows.iter().enumerate();
    let known: FxHashMap<&[String], usize> = known.map(|(at, row)| (&row.cells[..], at)).collect();
    let places: Vec<Option<usize>> = more
        .iter()
        .map(|row| known.get(&row.cells[..]).copied())
        .collect();
    // New rows may have equal cells among themselves.
    let mut new: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    let is_list = graph.is_some_and(|graph| graph.form.is_list());
    for (row, place) in more.into_iter().zip(places) {
        let place = place.or_else(|| new.get(&row.cells).copied());
        match place.and_then(|place| rows.get_mut(place)) {
            Some(known) => add_row(known, row, is_list),
            None => {
                new.insert(row.cells.clone(), rows.len());
                rows.push(row);
            }
        }
    }
}

fn add_row(row: &mut Row, more: Row, is_list: bool) {
    row.add(&more);
    row.chains += more.chains;
    row.unresolved &= more.unresolved;
    graph::add(&mut row.graph, more.graph, is_list);
}

/// The heavier first, by the numbers in the order; then by cells.
fn by_weight(one: &Row, other: &Row, order_by: &[Field]) -> Ordering {
    let numbers = order_by.iter().filter_map(|field| match field {
        Field::Number(number) => Some(*number),
        Field::Key(_) => None,
    });
    let compared = numbers.map(|number: Number| other.numbers(number).cmp(one.numbers(number)));
    let compared = compared.fold(Ordering::Equal, Ordering::then);
    compared.then_with(|| one.cells.cmp(&other.cells))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cell: &str, own: u64) -> Row {
        Row {
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

    fn histogram(rows: Vec<Row>, rest: u64) -> Histogram {
        let own: u64 = rows.iter().map(|row| row.weights.own).sum();
        let all = Sum {
            period: own + rest,
            samples: rows.len() as u64,
            latency: 0,
        };
        Histogram {
            events: vec![0],
            wholes: vec![all],
            all,
            rows,
            ..Histogram::default()
        }
    }

    fn fading() -> Fading {
        Fading::new(&Options {
            order_by: vec![Field::Number(Number::Own)],
            ..Options::default()
        })
    }

    fn shown(fading: &Fading) -> Vec<(&str, u64)> {
        let rows = fading.histogram().rows.iter();
        rows.map(|row| (row.cells[0].as_str(), row.weights.own))
            .collect()
    }

    #[test]
    fn rows_keep_seven_eighths_and_go_when_nothing_is_left() {
        let mut fading = fading();
        fading.add(histogram(vec![row("a", 16), row("b", 1)], 8));
        fading.refresh(Fade::Slowly, Hidden::default());
        assert_eq!(shown(&fading), [("a", 16), ("b", 1)]);
        assert_eq!(fading.histogram().all.period, 25);
        fading.add(histogram(vec![row("c", 20), row("a", 1)], 0));
        fading.refresh(Fade::Slowly, Hidden::default());
        assert_eq!(shown(&fading), [("c", 20), ("a", 15)]);
        assert_eq!(fading.histogram().all.period, 35 + 7);
        // perf's numbers: 15, 13, 11, 9, 7, 6, 5, 4, 3, 2, 1, 0.
        for left in [13, 11, 9, 7, 6, 5, 4, 3, 2, 1] {
            fading.refresh(Fade::Slowly, Hidden::default());
            assert_eq!(shown(&fading).last(), Some(&("a", left)));
        }
        fading.refresh(Fade::Slowly, Hidden::default());
        assert!(shown(&fading).iter().all(|(cell, _)| *cell != "a"));
        assert_eq!(fading.seen(), 4);
    }

    #[test]
    fn rows_of_several_histograms_of_one_interval_are_one() {
        let mut fading = fading();
        fading.add(histogram(vec![row("a", 2), row("a", 3)], 0));
        fading.add(histogram(vec![row("a", 4), row("b", 9)], 0));
        fading.refresh(Fade::AtOnce, Hidden::default());
        assert_eq!(shown(&fading), [("a", 9), ("b", 9)]);
        fading.refresh(Fade::Not, Hidden::default());
        assert_eq!(shown(&fading), [("a", 9), ("b", 9)]);
        fading.refresh(Fade::AtOnce, Hidden::default());
        assert_eq!(shown(&fading), []);
    }

    #[test]
    fn a_hidden_side_goes_with_its_rows() {
        let mut fading = fading();
        let mut kernel = row("k", 5);
        kernel.weights.modes = [5, 0, 0, 0];
        fading.add(histogram(vec![row("u", 5), kernel], 0));
        fading.refresh(Fade::Slowly, Hidden::default());
        let hidden = Hidden {
            kernel: true,
            user: false,
        };
        fading.refresh(Fade::Not, hidden);
        assert_eq!(shown(&fading), [("u", 5)]);
        assert_eq!(fading.histogram().all.period, 5, "shares are of the rest");
    }
}
