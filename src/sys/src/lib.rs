//! rperf-sys.
