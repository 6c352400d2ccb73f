//! Recordings in the formats of other tools.
//!
//! ```text
//! samples --Gather--> Profile (tables of frames and stacks, samples by thread) --> firefox | perfetto | pprof | speedscope
//! samples --json::Text--> a JSON object for each sample, as Linux perf writes it
//! ```
//!
//! **Invariants.** What is written does not depend on the number of threads: tables are numbered in the order in which the
//! recording first needs them. Writers take a [`Profile`] and nothing else, so that they are tested without a recording.

mod column;
pub mod firefox;
mod gather;
mod intern;
pub mod json;
pub mod perfetto;
pub mod pprof;
mod profile;
pub mod speedscope;

pub use gather::{Gather, Gathered};
pub use profile::{
    Event, Frame, Function, Kind, Object, Place, Profile, Row, Stack, Thread, Track, Unit,
};
