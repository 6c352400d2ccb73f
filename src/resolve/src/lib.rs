//! rperf-resolve.
