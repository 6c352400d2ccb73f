//! What a report is to show.

use std::sync::Arc;

use regex::Regex;

use crate::fields::{Field, Number};
use crate::keys::Key;
use crate::parallelism::Parallelism;

/// What is counted, and how it is laid out.
#[derive(Debug, Clone)]
pub struct Options {
    /// What is counted.
    pub counted: Counted,
    /// What is shown of a row.
    pub columns: Vec<Field>,
    /// What rows are ordered by. Its keys tell them apart.
    pub order_by: Vec<Field>,
    /// Whether callees count for their callers.
    pub children: bool,
    /// Which end of a callchain its graph begins with.
    pub order: Direction,
    /// The call graphs, if any are wanted.
    pub graph: Option<GraphOptions>,
    /// Whether events without callchains show the call graphs of one that has them.
    pub lent_graphs: bool,
    /// Frames of a callchain that count, from the innermost.
    pub max_stack: usize,
    /// Whether callchains begin with the branches that samples came with.
    pub branch_chains: bool,
    /// Whether what no function is known of is left out, in callchains too.
    pub hide_unresolved: bool,
    /// Fits the functions of callchains that the key `parent` shows: of each chain the one nearest to where graphs begin.
    pub parent: Option<Regex>,
    /// Whether samples without such a function count for no row.
    pub exclude_other: bool,
    /// Fits functions that count for all that they call.
    pub ignore_callees: Option<Regex>,
    /// Rows are shown whose function's name contains this.
    pub symbol_filter: Option<String>,
    /// Whether shares are of the samples that count instead of all.
    pub relative: bool,
    /// What the key `time` takes for one moment, in nanoseconds.
    pub time_quantum: u64,
    /// Whether it shows nanoseconds.
    pub nanoseconds: bool,
    /// Whether lines of source have the whole path of their file.
    pub full_paths: bool,
    /// Whether symbols are shown with the address where they were seen first and a letter for where they are from, and
    /// objects with their whole path.
    pub places: bool,
    /// Which event of a group rows are ordered by, before the others; its leader is 0.
    pub sort_event: usize,
    /// How many threads ran at a time, where latencies are asked for.
    pub parallelism: Option<Arc<Parallelism>>,
    /// By event, whether weights have parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub weight_parts: Vec<bool>,
}

/// Samples in one row, without call graphs: whoever asks says by what rows are told apart.
impl Default for Options {
    fn default() -> Self {
        Self {
            counted: Counted::default(),
            columns: Vec::new(),
            order_by: Vec::new(),
            children: false,
            order: Direction::default(),
            graph: None,
            lent_graphs: false,
            max_stack: usize::MAX,
            branch_chains: false,
            hide_unresolved: false,
            parent: None,
            exclude_other: false,
            ignore_callees: None,
            symbol_filter: None,
            relative: false,
            time_quantum: Self::TIME_QUANTUM,
            nanoseconds: false,
            full_paths: false,
            places: false,
            sort_event: 0,
            parallelism: None,
            weight_parts: Vec::new(),
        }
    }
}

/// What makes the rows of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counted {
    /// Samples, with the events that they stand for.
    #[default]
    Samples,
    /// The branches that samples came with, one by one.
    Branches,
    /// Samples of memory accesses, with what they cost.
    Accesses,
}

impl Options {
    /// What the key `time` takes for one moment where nothing is said, in nanoseconds.
    pub const TIME_QUANTUM: u64 = 100_000_000;

    /// What tells rows apart.
    pub(crate) fn keys(&self) -> Vec<&'static Key> {
        let fields = self.order_by.iter();
        fields.filter_map(|field| field.key()).collect()
    }
}

/// Which end of a callchain its graph begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// The outermost caller.
    Caller,
    /// The function that was hit.
    #[default]
    Callee,
}

/// What call graphs show.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphOptions {
    /// How chains are put together.
    pub form: GraphForm,
    /// Branches below this share are left out, in percent: of the parent in [`GraphForm::Fractal`], else of all events.
    pub min_percent: f64,
    /// Whether calls from different places of one function are different branches.
    pub by_address: bool,
    /// Whether calls from different lines of one function are.
    pub by_line: bool,
    /// Whether frames that are ends of branches tell of them.
    pub tells_branches: bool,
}

impl GraphOptions {
    /// Whether frames are shown with the place in their function.
    pub(crate) fn tells_places(&self) -> bool {
        self.by_address || self.by_line
    }
}

impl Options {
    /// Whether anything is made of callchains.
    #[must_use]
    pub fn reads_chains(&self) -> bool {
        self.keeps_chains() || self.parent.is_some() || self.ignore_callees.is_some()
    }

    /// Whether branches are frames of callchains.
    pub(crate) fn leads_with_branches(&self) -> bool {
        self.branch_chains && self.counted != Counted::Branches && self.reads_chains()
    }

    /// Whether they are shown, or count for rows of their own.
    pub(crate) fn keeps_chains(&self) -> bool {
        self.children || self.graph.is_some()
    }

    /// Whether keys show what tracepoints tell.
    #[must_use]
    pub fn shows_payload(&self) -> bool {
        self.keys().iter().any(|key| key.shows_payload())
    }

    /// Whether keys show lines of source.
    pub(crate) fn keys_show_lines(&self) -> bool {
        self.keys().iter().any(|key| key.shows_source())
    }

    /// The same for a group whose leader is the event at `event`: without the keys that are of others.
    pub(crate) fn of_event(&self, event: usize) -> Self {
        let is_of = |field: &Field| field.key().is_none_or(|key| key.is_of(event));
        let kept = |fields: &[Field]| {
            fields
                .iter()
                .filter(|field| is_of(field))
                .copied()
                .collect()
        };
        Self {
            columns: kept(&self.columns),
            order_by: kept(&self.order_by),
            ..self.clone()
        }
    }

    /// Whether keys show places in functions.
    pub(crate) fn keys_show_offsets(&self) -> bool {
        self.keys().iter().any(|key| key.shows_offset())
    }

    /// Whether any number is of what the hardware says that samples cost.
    pub(crate) fn counts_costs(&self) -> bool {
        let fields = self.columns.iter().chain(&self.order_by);
        fields
            .filter_map(|field| field.number())
            .any(Number::is_average)
    }

    /// Whether keys show the size of mappings.
    pub(crate) fn keys_show_map_sizes(&self) -> bool {
        self.keys().iter().any(|key| key.shows_map_size())
    }
}

/// How the chains of a row are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphForm {
    /// As a tree, with shares of all events.
    #[default]
    Graph,
    /// As a tree, with shares of the parent.
    Fractal,
    /// One by one, each with all chains that begin like it.
    Flat,
    /// One by one, each in a line.
    Folded,
}

impl GraphForm {
    /// Whether chains stand one by one instead of in a tree.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Flat | Self::Folded)
    }
}
