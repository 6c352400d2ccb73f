//! Vendor tables: events and metrics that neither the kernel nor sysfs has names for.
//!
//! The tables are loaded from a [`TableFolder`], on disk or built in, in one of these repositories' layouts:
//!
//! - perf's `tools/perf/pmu-events`: `mapfile.csv` maps each processor to a folder of JSON files;
//! - Intel's `perfmon`: each line of `mapfile.csv` maps a processor to one file;
//! - Arm's `data`: the folder `pmu` has one file for each processor; the file contains the processor's CPUID.
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
