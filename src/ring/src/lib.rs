//! rperf-ring.
