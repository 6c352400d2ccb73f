//! Options of a report.

use std::sync::Arc;

use regex::Regex;

use crate::fields::{NumberField, ReportField};
use crate::keys::Key;
use crate::parallelism::Parallelism;

/// Settings of a histogram: the samples it counts, and how it shows them.
#[derive(Debug, Clone)]
pub struct HistogramOptions {
    /// The counted items.
    pub counted: CountedItems,
    /// The columns.
    pub columns: Vec<ReportField>,
    /// The sort order. Its keys distinguish rows.
    pub order_by: Vec<ReportField>,
    /// Whether callers have rows, with totals that include the samples of their callees.
    pub children: bool,
    /// Direction of call graphs.
    pub direction: Direction,
    /// Call graph options; `None` for no call graphs.
    pub graph: Option<GraphOptions>,
    /// Whether events without callchains use the call graphs of the first event with callchains (`--show-ref-call-graph`).
    pub reference_call_graphs: bool,
    /// Maximum number of frames of a callchain, counted from the start of the call graph. With [`Direction::Caller`], inlined
    /// functions count, too, since the callchain is truncated after its frames were resolved.
    pub max_stack: usize,
    /// Whether callchains start with the sample's branches.
    pub branch_chains: bool,
    /// Whether samples in code without a known function are ignored, and frames in such code left out of callchains.
    pub hide_unresolved: bool,
    /// Matches functions of callchains for the key `parent`: the match closest to the start of the
    /// graph is used.
    pub parent: Option<Regex>,
    /// Whether samples without a function that matches `parent` are excluded from rows.
    pub exclude_other: bool,
    /// Matches functions to which their callees are attributed.
    pub ignore_callees: Option<Regex>,
    /// Only rows with this text in the name of the function are shown.
    pub symbol_filter: Option<String>,
    /// Whether percentages relate to the samples that pass the filters instead of all samples.
    pub relative: bool,
    /// Granularity of the key `time`, in nanoseconds.
    pub time_quantum: u64,
    /// Whether the key `time` shows nanoseconds.
    pub nanoseconds: bool,
    /// Whether source lines have full paths.
    pub full_paths: bool,
    /// Whether symbols are shown with the address of their first appearance and a letter for their
    /// origin, and objects by their full path.
    pub addresses: bool,
    /// The event to sort by first, as an index in the group; 0 is the group's leader.
    pub sort_event: usize,
    /// Number of running threads over time, for latencies and the key `parallelism`; `None` if unknown or not needed.
    pub parallelism: Option<Arc<Parallelism>>,
    /// By event, whether weights have parts (`PERF_SAMPLE_WEIGHT_STRUCT`).
    pub weight_parts: Vec<bool>,
}

/// Counts all samples in one row, without columns and call graphs.
impl Default for HistogramOptions {
    fn default() -> Self {
        Self {
            counted: CountedItems::default(),
            columns: Vec::new(),
            order_by: Vec::new(),
            children: false,
            direction: Direction::default(),
            graph: None,
            reference_call_graphs: false,
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
            addresses: false,
            sort_event: 0,
            parallelism: None,
            weight_parts: Vec::new(),
        }
    }
}

/// The items counted in rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CountedItems {
    /// Samples and their periods.
    #[default]
    Samples,
    /// The branches of samples.
    Branches,
    /// Samples of memory accesses, by weight.
    Accesses,
}

impl HistogramOptions {
    /// Default granularity of the key `time`, in nanoseconds.
    pub const TIME_QUANTUM: u64 = 100_000_000;

    /// The keys that distinguish rows.
    pub(crate) fn keys(&self) -> Vec<&'static Key> {
        let fields = self.order_by.iter();
        fields.filter_map(|field| field.key()).collect()
    }
}

/// Direction of call graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the outermost caller.
    Caller,
    /// From the sampled function.
    #[default]
    Callee,
}

/// Call graph options.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GraphOptions {
    /// Form of the graph.
    pub form: GraphForm,
    /// Minimum percentage of a branch of the graph: in [`GraphForm::Fractal`] of the period of all branches of the same fork,
    /// otherwise of the total period.
    pub min_percent: f64,
    /// Whether calls from different addresses of a function are separate branches of the graph.
    pub by_address: bool,
    /// Whether calls from different lines of a function are separate branches of the graph.
    pub by_line: bool,
    /// Whether the ends of sampled branches (branch stacks) are annotated with their statistics.
    pub annotates_branches: bool,
}

impl GraphOptions {
    /// Whether frames are shown with their position in the function.
    pub(crate) fn shows_positions(&self) -> bool {
        self.by_address || self.by_line
    }
}

impl HistogramOptions {
    /// Whether callchains are used.
    #[must_use]
    pub fn reads_chains(&self) -> bool {
        self.keeps_chains() || self.parent.is_some() || self.ignore_callees.is_some()
    }

    /// Whether callchains begin with sampled branches.
    pub(crate) fn leads_with_branches(&self) -> bool {
        self.branch_chains && self.counted != CountedItems::Branches && self.reads_chains()
    }

    /// Whether callchains are shown, or callers have rows.
    pub(crate) fn keeps_chains(&self) -> bool {
        self.children || self.graph.is_some()
    }

    /// Whether keys show tracepoint payloads.
    #[must_use]
    pub fn shows_payload(&self) -> bool {
        self.keys().iter().any(|key| key.shows_payload())
    }

    /// Whether keys show source lines or files.
    pub(crate) fn keys_show_lines(&self) -> bool {
        self.keys().iter().any(|key| key.shows_source())
    }

    /// The options for the report of `event`, or of the group that it leads: without sort keys for fields of other tracepoints.
    pub(crate) fn of_event(&self, event: usize) -> Self {
        let applies = |field: &ReportField| field.key().is_none_or(|key| key.applies_to(event));
        let fields_of_event = |fields: &[ReportField]| {
            fields
                .iter()
                .filter(|field| applies(field))
                .copied()
                .collect()
        };
        Self {
            columns: fields_of_event(&self.columns),
            order_by: fields_of_event(&self.order_by),
            ..self.clone()
        }
    }

    /// Whether keys show offsets in functions.
    pub(crate) fn keys_show_offsets(&self) -> bool {
        self.keys().iter().any(|key| key.shows_offset())
    }

    /// Whether any column or sort column is a cost (weight): only these are averages.
    pub(crate) fn counts_costs(&self) -> bool {
        let fields = self.columns.iter().chain(&self.order_by);
        fields
            .filter_map(|field| field.number())
            .any(NumberField::is_average)
    }

    /// Whether keys show mapping sizes.
    pub(crate) fn keys_show_map_sizes(&self) -> bool {
        self.keys().iter().any(|key| key.shows_map_size())
    }
}

/// Form of a call graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GraphForm {
    /// A tree, with percentages of the event's total period.
    #[default]
    Graph,
    /// A tree, with percentages of the period of all branches of the same fork; for the first fork, of the row's total.
    Fractal,
    /// A list of chains, each with the sum of all chains that start with it.
    Flat,
    /// A list of chains, one per line, each with its own sum.
    Folded,
}

impl GraphForm {
    /// Whether it is a list of chains instead of a tree.
    #[must_use]
    pub fn is_list(self) -> bool {
        matches!(self, Self::Flat | Self::Folded)
    }
}
