//! The finished report of one event: plain data with text, for views.

use std::sync::Arc;

use crate::fields::{Field, Number};
use crate::stacks::add_each;

/// The rows of one event, or of the events of one group.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// The events' places in the recording, a group's leader first.
    pub events: Vec<usize>,
    /// What shares of each event refer to.
    pub wholes: Vec<Sum>,
    /// All of the first event, what belongs to no row among it: call graphs have shares of that, as in perf.
    pub all: Sum,
    /// What is shown of a row.
    pub columns: Vec<Field>,
    /// Whether [`Weights::total`] counts callees too.
    pub children: bool,
    /// Whether call graphs are those of another event.
    pub lent_graphs: bool,
    /// Heaviest first.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Its numbers.
    pub weights: Weights,
    /// Those of a group's other events, in their order.
    pub others: Vec<Weights>,
    /// One text for each key among the columns.
    pub cells: Vec<String>,
    /// Whether no function is known for it.
    pub unresolved: bool,
    /// Samples whose callchains are in its call graph.
    pub chains: u64,
    /// Its call graph from the threshold up.
    pub graph: Vec<Branch>,
}

/// The numbers of one event in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Weights {
    /// Events of the samples that fell on it.
    pub own: u64,
    /// The part of them that fell on the kernel, user space, a guest's kernel and a guest's user space.
    pub modes: [u64; 4],
    /// Those that fell on it and, with children, the events of samples whose callchain goes through it.
    pub total: u64,
    /// Samples that fell on it.
    pub samples: u64,
    /// The part of [`Self::own`] in time that passed: each event is shared by the threads that ran side by side.
    pub latency: u64,
    /// The same part of [`Self::total`].
    pub total_latency: u64,
    /// What the hardware says that the samples cost, added up (`PERF_SAMPLE_WEIGHT`, three with `PERF_SAMPLE_WEIGHT_STRUCT`);
    /// 0 where nobody asks.
    pub costs: [u64; 3],
}

impl Histogram {
    /// Samples and events of all its events.
    #[must_use]
    pub fn whole(&self) -> Sum {
        let mut whole = Sum::default();
        self.wholes.iter().for_each(|sum| whole.add(*sum));
        whole
    }
}

impl Row {
    /// One number for each event.
    pub fn numbers(&self, number: Number) -> impl Iterator<Item = u64> {
        let all = std::iter::once(&self.weights).chain(&self.others);
        all.map(move |weights| number.of(weights))
    }
}

impl Row {
    /// Adds what another row counts.
    pub(crate) fn add(&mut self, other: &Self) {
        self.weights.add(&other.weights);
        for (own, more) in self.others.iter_mut().zip(&other.others) {
            own.add(more);
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

/// Events and samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// Events.
    pub period: u64,
    /// Samples.
    pub samples: u64,
    /// Events, each shared by the threads that ran side by side.
    pub latency: u64,
}

impl Sum {
    /// Adds another sum.
    pub(crate) fn add(&mut self, other: Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples += other.samples;
        self.latency = self.latency.saturating_add(other.latency);
    }

    /// What is left without `part`.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            period: self.period.saturating_sub(part.period),
            samples: self.samples.saturating_sub(part.samples),
            latency: self.latency.saturating_sub(part.latency),
        }
    }
}

/// A branch of a call graph; in the forms that list chains one by one, a whole chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Frames below each other without a fork: function names, or addresses in hexadecimal.
    pub frames: Vec<Arc<str>>,
    /// The chains that come along here.
    pub all: Sum,
    /// Those of them that end here.
    pub own: Sum,
    /// Where it forks, heaviest first. None where chains are listed.
    pub branches: Vec<Branch>,
}
