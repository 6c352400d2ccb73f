//! Tests of tracepoint formats.

mod fields;
mod formats;
mod machine;
mod perf_file;
mod print;
mod random;
mod readers;
mod typed;
