//! rperf-lines.
