//! Tables of processor vendors: events and metrics that neither the kernel nor sysfs has names for.
//!
//! Read as their publishers lay them out, out of a [`Folder`]:
//!
//! - perf's `tools/perf/pmu-events`: `mapfile.csv` names a folder of JSON files for each processor;
//! - Intel's `perfmon`: `mapfile.csv` names single files;
//! - Arm's `data`: one file in `pmu` for each processor, which says itself whose it is.
//!
//! What cannot be used is left out and told as a [`Finding`]; no table makes reading fail.

mod arm;
mod built_in;
mod document;
mod event;
mod finding;
mod folder;
mod load;
mod mapfile;
mod metric;
mod row;
mod scale;
mod tables;
mod terms;
mod topic;

pub use built_in::BuiltIn;
pub use event::VendorEvent;
pub use finding::Finding;
pub use folder::Folder;
pub use load::{Loaded, load};
pub use metric::{Grouping, Metric, metric_groups};
pub use scale::Scale;
pub use tables::Tables;

#[cfg(test)]
mod tests;
