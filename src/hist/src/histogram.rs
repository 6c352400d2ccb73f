//! The finished report of one event: plain data with text, for views.

use std::sync::Arc;

use crate::keys::Key;

/// The rows of one event.
#[derive(Debug, Clone, Default)]
pub struct Histogram {
    /// Keys that tell the rows apart, one column each.
    pub keys: Vec<&'static Key>,
    /// Samples of the event.
    pub samples: u64,
    /// Sum of their periods: what percentages refer to.
    pub period: u64,
    /// Whether [`Row::total`] counts callees too and is shown beside [`Row::own`].
    pub children: bool,
    /// Heaviest first.
    pub rows: Vec<Row>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Events of the samples that fell on it.
    pub own: u64,
    /// Those and, with children, the events of samples whose callchain goes through it.
    pub total: u64,
    /// Samples that fell on it.
    pub samples: u64,
    /// One text for each key.
    pub cells: Vec<String>,
    /// Whether no function is known for it.
    pub unresolved: bool,
    /// Samples whose callchains are in its call graph.
    pub chains: u64,
    /// Its call graph from the threshold up.
    pub graph: Vec<Branch>,
}

/// Events and samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sum {
    /// Events.
    pub period: u64,
    /// Samples.
    pub samples: u64,
}

impl Sum {
    /// Adds another sum.
    pub(crate) fn add(&mut self, other: Self) {
        self.period = self.period.saturating_add(other.period);
        self.samples += other.samples;
    }

    /// What is left without `part`.
    #[must_use]
    pub fn without(self, part: Self) -> Self {
        Self {
            period: self.period.saturating_sub(part.period),
            samples: self.samples.saturating_sub(part.samples),
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
