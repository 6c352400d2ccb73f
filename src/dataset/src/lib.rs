//! Recordings as tables for databases and data frames.
//!
//! ```text
//! Profile + records --> Dataset --TABLES: rows of cells--> ndjson | parquet
//! ```
//!
//! The profile (`rperf_export::Profile`) has the samples with their stacks, the records ([`RecordRows`]) have the mappings,
//! threads and losses.
//!
//! [`TABLES`] is the schema: each table has its columns and the function that makes its rows. Both
//! formats have the same tables, columns and values; docs/dataset.md describes them for users.
//!
//! **Invariants.** Rows do not depend on the number of threads that read the recording, or on the path of its file.
//! A value that was not recorded is null, except that wall-clock times are estimated if the recording has no clock reference.

mod dataset;
pub mod ndjson;
#[cfg(feature = "parquet")]
pub mod parquet;
mod records;
mod rows;
mod schema;

#[cfg(all(test, feature = "parquet"))]
mod tests;

pub use dataset::{Dataset, RecordingInfo};
pub use records::{LossKind, LossRow, MappingRow, RecordRows, TaskRow};
pub use rows::TABLES;
pub use schema::{Cell, Column, ColumnKind, RowSink, SCHEMA_VERSION, Table};
