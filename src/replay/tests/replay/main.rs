//! Tests of whole recordings, made in memory.

mod damage;
mod file;
mod machine;
mod oracle;
mod perf;
