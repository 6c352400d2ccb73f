//! Files and streams written and read through the crate's public API.

mod branches;
mod compressed;
mod feature_roundtrip;
mod features;
mod generated;
mod old_and_foreign;
mod pipe;
mod rewrite;
mod tracing_data;
mod truncation;
