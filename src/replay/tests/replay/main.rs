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

use rperf_wire::Misc;

/// `PERF_RECORD_MISC_KERNEL` and `PERF_RECORD_MISC_USER`.
const KERNEL: Misc = Misc::KERNEL;
const USER: Misc = Misc::USER;
