//! rperf-view.
