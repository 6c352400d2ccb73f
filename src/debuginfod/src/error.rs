//! Errors of servers and downloads.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rperf_symbol::BuildId;

/// Why a server, a file or the cache can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid server address.
    #[error("'{url}' is not the address of a debuginfod server: {reason}")]
    BadUrl {
        /// The address.
        url: String,
        /// The reason.
        reason: &'static str,
    },
    /// A requested signature check, which is not supported.
    #[error("'{word}' is not supported: signatures of files are not checked")]
    Signatures {
        /// The word in the list of addresses, such as `ima:enforcing`.
        word: String,
    },
    /// https is not available.
    #[error("https is not available: {reason}")]
    NoTls {
        /// The reason.
        reason: String,
    },
    /// The server is unreachable, not a debuginfod server, or closed the connection.
    #[error("debuginfod server {server} cannot be used")]
    Unreachable {
        /// Its address.
        server: String,
        /// Cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An unexpected HTTP status.
    #[error("debuginfod server {server} cannot be used: it answers with status {status}")]
    Status {
        /// Its address.
        server: String,
        /// HTTP status.
        status: u16,
    },
    /// A server that does not respond in time, or stalls a download.
    #[error("debuginfod server {server} cannot be used: it sent less than 100 kB in {} s", within.as_secs_f32())]
    Slow {
        /// Its address.
        server: String,
        /// The time limit.
        within: Duration,
    },
    /// A download that exceeds the time limit.
    #[error("{url}: not complete after {} s", after.as_secs_f32())]
    TooLong {
        /// URL of the file.
        url: String,
        /// The time limit.
        after: Duration,
    },
    /// A file that exceeds the size limit.
    #[error("{url}: larger than {limit} bytes")]
    TooLarge {
        /// URL of the file.
        url: String,
        /// The limit in bytes.
        limit: u64,
    },
    /// A file with the wrong build-id.
    #[error("{url}: its build-id is {}, so it is not used", found.map_or_else(|| "missing".to_owned(), |id| id.to_string()))]
    OtherBuild {
        /// URL of the file.
        url: String,
        /// Build-id of the file, if it has one.
        found: Option<BuildId>,
    },
    /// The cache can't be written, or a download in it can't be read.
    #[error("{}", path.display())]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
