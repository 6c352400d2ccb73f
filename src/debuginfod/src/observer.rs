//! Progress and error callbacks.

use std::path::Path;

use crate::error::Error;

/// Progress of a download.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The object's name in the recording.
    pub object: &'a Path,
    /// The server's address.
    pub server: &'a str,
    /// Bytes received, decompressed.
    pub received: u64,
    /// Total size in bytes, if the server sent it.
    pub total: Option<u64>,
}

/// Receives progress and errors of a client. Called from any thread, but from one at a time.
pub trait DownloadObserver: Send + Sync {
    /// Reports progress. Called for every chunk; the implementation limits the update rate.
    fn progress(&self, progress: &Progress<'_>);

    /// Reports the end of a download, successful or not. Only called for a download whose progress was reported.
    fn ended(&self);

    /// Reports an error: a file that cannot be used; a server that cannot be used, which is not queried again; or a cache that
    /// cannot be written, after which no server is queried.
    fn failed(&self, error: &Error);
}
