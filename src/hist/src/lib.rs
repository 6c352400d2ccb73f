//! rperf-hist.
