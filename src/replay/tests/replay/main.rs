//! Tests of whole recordings, made in memory.

mod file;
mod machine;
mod oracle;
