//! Recordings in the formats of other tools.
//!
//! ```text
//! samples --ProfileConversion--> Profile (tables of frames and stacks, samples by thread)
//!     --> firefox | perfetto | otlp | pprof | speedscope
//! samples --json::JsonText--> a JSON object for each sample, as Linux perf writes it
//! records in order of time --ctf::CtfWriter--> packets for each CPU
//! scheduler events, system calls --perfetto::sched::SchedTraceWriter--> packets for each CPU, slices for each thread
//! ```
//!
//! **Invariants.** The output doesn't depend on the number of rperf's threads: the entries of tables are in order of first use
//! in the recording, or sorted by id. The writers of a [`Profile`] read no recording, so that they can be tested without one.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

pub mod ctf;
pub mod firefox;
mod gather;
mod intern;
pub mod json;
mod lazy_seq;
mod locations;
pub mod otlp;
pub mod perfetto;
pub mod pprof;
mod profile;
pub mod speedscope;

pub use gather::{GatheredProfile, ProfileConversion};
pub use profile::{
    CodeKind, PeriodUnit, Process, Profile, ProfileEvent, ProfileFrame, ProfileFunction,
    ProfileLocation, ProfileObject, ProfileSample, ProfileStack, Thread, Track,
};
