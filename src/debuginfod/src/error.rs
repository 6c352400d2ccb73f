//! What keeps a file from being fetched. None of it stops a report.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rperf_symbol::BuildId;

/// Why a server, or what it sent, is of no use.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An address of a server that cannot be one.
    #[error("'{url}' is no address of a debuginfod server: {reason}")]
    BadUrl {
        /// The word.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A wish for a check that is not made.
    #[error("'{word}' is not supported: signatures of files are not checked")]
    Signatures {
        /// The word among the addresses.
        word: String,
    },
    /// https without the means for it.
    #[error("no https: {reason}")]
    NoTls {
        /// What is missing.
        reason: String,
    },
    /// The server is down, is none, or went away.
    #[error("debuginfod server {server} cannot be used")]
    Unreachable {
        /// Its address.
        server: String,
        /// What went wrong.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An answer other than the file, or that there is none.
    #[error("debuginfod server {server} cannot be used: it answers with status {status}")]
    Status {
        /// Its address.
        server: String,
        /// Of HTTP.
        status: u16,
    },
    /// A transfer that hangs.
    #[error("debuginfod server {server} cannot be used: it sent less than 100 kB in {} s", within.as_secs_f32())]
    Slow {
        /// Its address.
        server: String,
        /// The time that it had for so much.
        within: Duration,
    },
    /// A file that takes longer than a file may.
    #[error("{url}: not complete after {} s", after.as_secs_f32())]
    TooLong {
        /// The file.
        url: String,
        /// The limit.
        after: Duration,
    },
    /// A file beyond the limit.
    #[error("{url}: larger than {limit} bytes")]
    TooLarge {
        /// The file.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A server that sends something else than it was asked for.
    #[error("{url}: its build-id is {}, so it is not used", found.map_or_else(|| "missing".to_owned(), |id| id.to_string()))]
    OtherBuild {
        /// The file.
        url: String,
        /// What the file says.
        found: Option<BuildId>,
    },
    /// The cache cannot be written.
    #[error("{}", path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
