//! Histograms of samples: sort keys, entries, call graphs.
//!
//! ```text
//! samples --fold--> unique raw stacks --resolver--> stacks of names --keys--> entries --order, text--> Histogram
//! ```
//!
//! Samples are folded by what they hold before anything is looked up, so that each unique stack is resolved, counted for
//! its callers and entered into call graphs once, with the weight of all its samples.
//!
//! **Invariants.** The result does not depend on the number of threads: rows are ordered by weights, names, addresses
//! and the earliest sample, never by numbers given out on the way. Strings appear in [`Histogram`] alone.

mod blocks;
mod branch_chain;
mod branch_counts;
mod chains;
mod codes;
mod entries;
mod error;
mod facts;
mod fading;
mod fields;
mod fold;
mod graphs;
mod hierarchy;
mod histogram;
mod keys;
mod lent;
mod lines;
mod live;
mod marks;
mod named;
mod namer;
mod names;
mod options;
mod order;
pub mod parallel;
mod parallelism;
mod patterns;
mod payloads;
mod preload;
mod ranks;
mod resolve;
mod rows;
mod select;
mod sites;
mod slices;
mod stacks;
#[cfg(test)]
mod tests;
mod trail;
mod tree;
mod values;
mod watched;

pub use blocks::{Block, BlockTable, Blocks};
pub use branch_counts::BranchCounts;
pub use error::Error;
pub use facts::has_weight_parts;
pub use fading::{Fade, Fading, Hidden};
pub use fields::{Field, Number, find as find_field, names as field_names, parse as parse_fields};
pub use fold::{Folded, Samples};
pub use hierarchy::Step;
pub use histogram::{Branch, Histogram, Row, Sum, Weights};
pub use keys::{Key, Pads};
pub use live::{Live, LiveCounts, LiveSetup};
pub use named::{NamedPlace, NamedStacks, Origin, StackView};
pub use options::{Counted, Direction, GraphForm, GraphOptions, Options};
pub use parallelism::Parallelism;
pub use payloads::{NoPayloads, PayloadText};
pub use resolve::{Naming, Source};
pub use select::{Choice, Select};
pub use values::{FieldValues, Value};
pub use watched::Watched;
