//! Those who are told what goes on.

use std::path::Path;

use crate::error::Error;

/// How far a transfer has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// The object that the file is wanted for, by its name in the recording.
    pub object: &'a Path,
    /// The address of the server.
    pub server: &'a str,
    /// Bytes so far, unpacked.
    pub received: u64,
    /// All bytes, where the server says so.
    pub total: Option<u64>,
}

/// Is told what a client does. Called from whatever thread looks for a file, by one at a time.
pub trait Watch: Send + Sync {
    /// A transfer goes on: called for every piece, so that whoever shows it decides how often.
    fn progress(&self, progress: &Progress<'_>);

    /// The transfer that progress was told of has ended, one way or the other.
    fn ended(&self);

    /// A server or a file is of no use. Once for each server.
    fn failed(&self, error: &Error);
}
