//! What a report is to show.

use crate::keys::Key;

/// What is counted, and how it is laid out.
#[derive(Debug, Clone)]
pub struct Options {
    /// What tells rows apart, in the order of the columns.
    pub keys: Vec<&'static Key>,
    /// Whether callees count for their callers.
    pub children: bool,
    /// Which end of a callchain its graph begins with.
    pub order: Direction,
    /// The call graphs, if any are wanted.
    pub graph: Option<GraphOptions>,
    /// Whether rows that nothing else orders are ordered by their samples: as in perf, where these are shown.
    pub by_samples: bool,
    /// Frames of a callchain that count, from the innermost.
    pub max_stack: usize,
}

/// Which end of a callchain its graph begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The outermost caller.
    Caller,
    /// The function that was hit.
    Callee,
}

/// What call graphs show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphOptions {
    /// Branches below this share of all events are left out, in percent.
    pub min_percent: f64,
}
