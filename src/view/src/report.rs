//! `report`: tables of the hottest code with call graphs below their rows, in the layout of perf 6.1; for programs, rows as
//! JSON or CSV.

mod blocks;
mod cells;
mod data;
mod graph;
mod hierarchy;
mod stats;
mod table;
mod tasks;
#[cfg(test)]
mod tests;
mod text;
mod threads;

pub use self::cells::{ReportCell, ReportCells, RowPart, share, short_count};
pub use self::data::ReportData;
pub use self::graph::GraphValue;
pub use self::stats::{EventStats, Stats, write_stats};
pub use self::table::{ReportLayout, write_rows, write_titles};
pub use self::tasks::write_tasks;
pub use self::text::{
    ReportEvent, write_banner, write_branch_counts, write_constant_columns, write_event,
    write_lost, write_tip,
};
pub use self::threads::{ThreadLayout, write_threads};
