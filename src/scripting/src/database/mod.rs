//! The rows of a database for scripts that set `perf_db_export_mode`: perf's interface for exports to databases.
//!
//! `process_event` of such a script is not called. Its functions are named after tables; each call adds one row. The rows of
//! events, threads, comms, DSOs and symbols precede the samples that refer to them by id. Samples of tracepoints are not
//! exported: they are passed to the handlers of their tracepoints, as without a database.

mod calls;
mod exporter;
mod items;
mod tasks;

pub(crate) use self::calls::{DATABASE_RECORDS, DatabaseCalls};
pub use self::exporter::DatabaseExporter;
pub(crate) use self::items::{DatabaseItem, ExportedSample, exported_record};
pub(crate) use self::tasks::TaskIds;
