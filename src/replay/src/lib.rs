//! rperf-replay.
