//! Tests of tracepoint formats: small ones here, against the whole machine in [`machine`].

mod machine;
mod perf_file;
