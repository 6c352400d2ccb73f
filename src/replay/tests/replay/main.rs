//! Tests of whole recordings, made in memory.

mod counts;
mod damage;
mod exercise;
mod file;
mod machine;
mod mutation;
mod oracle;
mod perf;
mod side;
mod stream;
