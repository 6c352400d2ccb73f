//! Why a recording cannot be replayed.

use rperf_memory::OutOfMemory;

/// Why a recording cannot be replayed. Offsets count from the file's start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Records are compressed.
    #[error("record at offset {offset} is compressed, though the header says of none")]
    Compressed {
        /// Where the record stands.
        offset: u64,
    },
    /// There is no room for what has to be kept for each record.
    #[error("no room for {what} of the recording: {source}")]
    OutOfMemory {
        /// What is kept.
        what: &'static str,
        /// How much was asked for.
        source: OutOfMemory,
    },
}

impl Error {
    /// For `map_err`: names what there is no room for.
    pub(crate) fn no_room(what: &'static str) -> impl FnOnce(OutOfMemory) -> Self {
        move |source| Self::OutOfMemory { what, source }
    }
}
