//! Tests of whole recordings in memory.

mod counts;
mod damage;
mod deferred;
mod exercise;
mod file;
mod guests;
mod mutation;
mod namespaces;
mod non_samples;
mod oracle;
mod perf;
mod rounds;
mod sequential_machine;
mod stream;
