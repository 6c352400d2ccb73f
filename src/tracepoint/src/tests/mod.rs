//! Tests of tracepoint formats: small ones here, and all tracepoints of the machine in [`machine`].

mod fields;
mod formats;
mod machine;
mod perf_file;
mod print;
mod random;
mod readers;
mod typed;
