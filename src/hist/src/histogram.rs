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
    /// Its call graph from the threshold up.
    pub graph: Vec<Branch>,
}

/// A branch of a call graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Branch {
    /// Frames below each other without a fork: function names, or addresses in hexadecimal.
    pub frames: Vec<Arc<str>>,
    /// Events of the chains that come along here.
    pub period: u64,
    /// Where it forks, heaviest first.
    pub branches: Vec<Branch>,
}
