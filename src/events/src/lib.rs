//! rperf-events.
