//! Files and streams as they are written and read, by the crate's public face alone.

mod branches;
mod compressed;
mod feature_roundtrip;
mod features;
mod made;
mod old_and_foreign;
mod pipe;
mod rewrite;
mod tracing_data;
mod truncation;
