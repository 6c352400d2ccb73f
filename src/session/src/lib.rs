//! rperf-session.
