//! Tests of whole recordings, made in memory.

mod counts;
mod damage;
mod deferred;
mod exercise;
mod file;
mod guests;
mod machine;
mod mutation;
mod namespaces;
mod oracle;
mod perf;
mod rounds;
mod side;
mod stream;
