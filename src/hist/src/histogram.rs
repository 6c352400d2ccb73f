//! The report of one event as plain data with text, for views.

use std::iter::Sum;
use std::sync::Arc;

use crate::fields::{NumberField, ReportField};
use crate::stacks::add_each;

/// The rows of one event, or of the events of one group.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Indices of the events in the recording, a group's leader first.
    pub events: Vec<usize>,
    /// For each event, the sums that are 100 percent in its columns.
    pub totals: Vec<ColumnSum>,
    /// The total of the first event, including samples without a row. As in perf, percentages in
    /// call graphs relate to this total.
    pub all: ColumnSum,
    /// The columns.
    pub columns: Vec<ReportField>,
    /// Whether [`Weights::total`] includes callees.
    pub children: bool,
    /// Whether call graphs were copied from another event.
    pub reference_call_graphs: bool,
    /// The event of a group that rows are sorted by first; 0 is the leader.
    pub sort_event: usize,
    /// Sorted rows.
    pub rows: Vec<HistogramRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramRow {
    /// Its numbers for the first event.
    pub weights: Weights,
    /// The numbers of a group's other events, in their order.
    pub others: Vec<Weights>,
    /// The text for each key among the columns.
    pub cells: Vec<String>,
    /// Whether the function of the row is unknown.
    pub unresolved: bool,
    /// Number of samples with callchains in its call graph.
    pub chains: u64,
    /// Its call graph above the threshold.
    pub graph: Vec<Branch>,
}

/// The numbers of a row for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weights {
    /// Period of its own samples.
    pub own: u64,
    /// [`Self::own`] split by mode: kernel, user space, a guest's kernel and a guest's user space.
    pub modes: [u64; 4],
    /// Period of its own samples and, with children, of samples whose callchain contains it.
    pub total: u64,
    /// Number of its own samples.
    pub samples: u64,
    /// Like [`Self::own`], but each sample's period is divided by the number of threads that ran
    /// concurrently. 0 if not used.
    pub latency: u64,
    /// The same for [`Self::total`].
    pub total_latency: u64,
    /// Sums of sample weights: one with `PERF_SAMPLE_WEIGHT`, three with `PERF_SAMPLE_WEIGHT_STRUCT`. Those not used are 0.
    pub costs: [u64; 3],
}

impl Histogram {
    /// The sum of the totals of all events.
    #[must_use]
    pub fn total(&self) -> ColumnSum {
        self.totals.iter().copied().sum()
    }
}

impl HistogramRow {
    /// The value of the column `number` for each event, a group's leader first.
    pub fn numbers(&self, number: NumberField) -> impl Iterator<Item = u64> {
        let by_event = std::iter::once(&self.weights).chain(&self.others);
        by_event.map(move |weights| number.value_in(weights))
    }

    /// The row's values of the column `number` that are compared with another row's: one for each of
    /// [`NumberField::compared_events`], in their order.
    pub(crate) fn compared_numbers(
        &self,
        number: NumberField,
        sort_event: usize,
    ) -> impl Iterator<Item = u64> {
        let events = number.compared_events(sort_event, 1 + self.others.len());
        events.filter_map(move |event| {
            let weights = match event.checked_sub(1) {
                None => Some(&self.weights),
                Some(index) => self.others.get(index),
            };
            weights.map(|weights| number.value_in(weights))
        })
    }

    /// Adds the numbers of another row.
    pub(crate) fn add(&mut self, other: &Self) {
        self.weights.add(&other.weights);
        for (sum, more) in self.others.iter_mut().zip(&other.others) {
            sum.add(more);
        }
    }
}

impl Weights {
    fn add(&mut self, other: &Self) {
        self.own = self.own.saturating_add(other.own);
        self.total = self.total.saturating_add(other.total);
        self.samples += other.samples;
        self.latency = self.latency.saturating_add(other.latency);
        self.total_latency = self.total_latency.saturating_add(other.total_latency);
        add_each(&mut self.modes, &other.modes);
        add_each(&mut self.costs, &other.costs);
    }
}

/// Sums over samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ColumnSum {
    /// Sum of periods.
    pub period: u64,
    /// Number of samples.
    pub samples: u64,
    /// Sum of periods, each divided by the number of threads that ran concurrently. 0 if not used.
    pub latency: u64,
}

impl ColumnSum {
    /// Adds another sum.
    pub(crate) fn add(&mut self, other: Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples += other.samples;
        self.latency = self.latency.saturating_add(other.latency);
    }

    /// This sum minus `part`, but at least 0.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            period: self.period.saturating_sub(part.period),
            samples: self.samples.saturating_sub(part.samples),
            latency: self.latency.saturating_sub(part.latency),
        }
    }
}

impl Sum for ColumnSum {
    fn sum<I: Iterator<Item = Self>>(sums: I) -> Self {
        let mut total = Self::default();
        sums.for_each(|sum| total.add(sum));
        total
    }
}

/// A branch of a call graph; in list forms (flat and folded), a whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Consecutive frames without a fork: function names, with the position and branch statistics if requested, or hexadecimal
    /// addresses.
    pub frames: Vec<Arc<str>>,
    /// The sum over the chains through this branch.
    pub all: ColumnSum,
    /// The sum over the chains that end in this branch.
    pub own: ColumnSum,
    /// Sub-branches, heaviest first. Empty in list forms.
    pub branches: Vec<Branch>,
}
