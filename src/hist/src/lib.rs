//! Histograms of samples: sort keys, entries, call graphs.
//!
//! ```text
//! samples --fold--> unique raw stacks --resolver--> stacks of names --keys--> entries --order, text--> Histogram
//! ```
//!
//! Samples are folded by their raw contents before anything is resolved: each unique stack is resolved, counted for its
//! innermost function (with `--children` for all callers, too) and added to call graphs once, instead of once per sample.
//!
//! **Invariant.** The result doesn't depend on the number of threads: rows are ordered by weights, names, addresses and the
//! earliest sample, never by indices in tables, which depend on the order in which threads add entries.

mod blocks;
mod branch_chain;
mod branch_counts;
mod chain_cache;
mod chains;
mod codes;
mod comparison;
mod decaying;
mod entries;
mod error;
mod fields;
mod fold;
mod graphs;
mod hierarchy;
mod histogram;
mod keys;
mod lines;
mod live;
mod marks;
mod named_stacks;
mod namer;
mod names;
mod options;
mod order;
pub mod parallel;
mod parallelism;
mod patterns;
mod payloads;
mod preload;
mod properties;
mod ranks;
mod reference_call_graph;
mod resolve;
mod rows;
mod sample_key;
mod select;
mod sites;
mod slices;
mod stacks;
mod statistics;
mod streams;
#[cfg(test)]
mod tests;
mod tree;
mod values;
mod watched_function;

pub use blocks::{Block, BlockTable, Blocks};
pub use branch_counts::BranchCounts;
pub use comparison::{
    BlockLine, ComparedBlock, ComparedRow, ComparedRuns, ComparedValue, Comparison,
    ComparisonMethod, ComparisonOptions, RunComparison, compare_blocks, compared_columns,
};
pub use decaying::{Decay, DecayingHistogram, HiddenSamples};
pub use error::Error;
pub use fields::{
    NumberField, ReportField, find as find_field, names as field_names, parse as parse_fields,
};
pub use fold::{FoldedSamples, SampleFold};
pub use hierarchy::HierarchyLine;
pub use histogram::{Branch, ColumnSum, Histogram, HistogramRow, Weights};
pub use keys::{CellPadding, Key};
pub use live::{LiveCounts, LiveHistograms, LiveSetup};
pub use named_stacks::{CodeOrigin, NamedFrame, NamedStacks, StackView};
pub use options::{CountedItems, Direction, GraphForm, GraphOptions, HistogramOptions};
pub use parallelism::Parallelism;
pub use payloads::{NoPayloads, PayloadText};
pub use properties::has_weight_parts;
pub use resolve::{NamingContext, RecordingInfo};
pub use select::{SampleTreatment, SelectSamples};
pub use statistics::Estimate;
pub use streams::{HotStreams, Stream, StreamFrame, StreamPairs};
pub use values::{FieldValue, FieldValues};
pub use watched_function::WatchedFunction;
