//! Errors of replaying a recording.

use rperf_memory::OutOfMemory;

/// Why a recording cannot be replayed. Offsets are relative to the start of the file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record is compressed, although the header has no compression.
    #[error("record at offset {offset:#x} is compressed, although the header has no compression")]
    Compressed {
        /// Offset of the record.
        offset: u64,
    },
    /// Out of memory for per-record data.
    #[error("out of memory for {what} of the recording: {source}")]
    OutOfMemory {
        /// Description of the data.
        what: &'static str,
        /// The failed allocation.
        source: OutOfMemory,
    },
}

impl Error {
    /// Returns a function for `map_err` that creates [`Error::OutOfMemory`] for the data described by `what`.
    pub(crate) fn no_room(what: &'static str) -> impl FnOnce(OutOfMemory) -> Self {
        move |source| Self::OutOfMemory { what, source }
    }
}
