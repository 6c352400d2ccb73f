//! CTF 1.8, the Common Trace Format (diamon.org/ctf), for babeltrace, Trace Compass and other trace viewers.
//!
//! A trace is a folder. Its file `metadata` is a text that describes all layouts. Its file `perf_stream_N` has the events of
//! CPU N, in packets. Events and fields have the names that Linux perf gives them: `perf_ip`, `perf_tid`, the fields of
//! tracepoints.
//!
//! ```text
//! samples, records --CtfRender--> CtfBlock (payloads) --CtfWriter--> packets of each CPU
//! ```
//!
//! All numbers are little-endian and aligned to bytes, so that a trace does not depend on the machine.

mod class;
mod fields;
mod metadata;
mod render;
mod writer;

pub use self::class::CtfLayout;
pub use self::metadata::{CtfEnvironment, write_metadata};
pub use self::render::{CtfBlock, CtfRender, CtfScratch};
pub use self::writer::CtfWriter;

/// The file name of a CPU's stream.
#[must_use]
pub fn stream_name(cpu: u32) -> String {
    format!("perf_stream_{cpu}")
}

#[cfg(test)]
mod tests;
