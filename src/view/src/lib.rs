//! rperf-view.

pub mod dump;
pub mod evlist;
pub mod header;
pub mod report;

pub mod script;
