//! rperf-perfdata.
