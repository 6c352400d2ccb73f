//! rperf-view.

pub mod evlist;
pub mod header;
pub mod report;

pub mod script;
