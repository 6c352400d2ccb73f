//! rperf-view.

pub mod header;
pub mod report;

pub mod script;
