//! Why a recording cannot be replayed.

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
    /// No thread could be started.
    #[error("cannot start a thread")]
    Spawn(#[source] std::io::Error),
}
