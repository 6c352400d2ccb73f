//! Tests of whole recordings, made in memory.

mod counts;
mod damage;
mod file;
mod machine;
mod oracle;
mod perf;
mod side;
mod stream;
