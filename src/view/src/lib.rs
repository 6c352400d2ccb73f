//! rperf-view.

pub mod header;

pub mod script;
