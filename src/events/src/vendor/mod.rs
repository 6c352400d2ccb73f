//! Vendor tables: events and metrics that neither the kernel nor sysfs has names for.
//!
//! The tables are loaded from a [`TableFolder`], in the layouts of their publishers:
//!
//! - perf's `tools/perf/pmu-events`: `mapfile.csv` maps each processor to a folder of JSON files;
//! - Intel's `perfmon`: `mapfile.csv` maps each processor to single files;
//! - Arm's `data`: one file in `pmu` for each processor, which contains its CPUID.
//!
//! Loading never fails: unusable parts are skipped and reported as [`TableFinding`]s.

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

pub use built_in::{BuiltIn, default_metrics};
pub use event::VendorEvent;
pub use finding::TableFinding;
pub use folder::TableFolder;
pub use load::{LoadedTables, load};
pub use metric::{MetricGrouping, VendorMetric, metric_groups};
pub use scale::UnitScale;
pub use tables::VendorTables;

#[cfg(test)]
mod tests;
