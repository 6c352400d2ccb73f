//! Why a file isn't opened, although the kernel would allow it.

use std::io;

/// The reason for which a path was refused. Travels as the payload of an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A folder, FIFO, socket or device where a file is wanted.
    #[error("not a regular file")]
    NotRegular,
    /// A file that the kernel makes up, such as `/proc/kmsg`: reading it may block or take from it.
    #[error("a file of the kernel, not an object")]
    OfKernel,
    /// Larger than what is read into memory.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The largest size, in bytes.
        limit: u64,
    },
    /// A process holds a lease (fcntl(2), `F_SETLEASE`) that would block for longer than a second.
    #[error("another process holds a lease on it")]
    Leased,
    /// A link that another user made, on the way to a file to be written.
    #[error("a link of another user; give the path it points to")]
    ForeignLink,
    /// A FIFO or device of another user under a default name.
    #[error("another user's FIFO or device; name another output with -o")]
    ForeignPipe,
    /// An existing file of another user, or one with several names, in a folder that others may write.
    #[error("another user's file, or a hard link, in a folder that others may write")]
    ForeignFile,
    /// A file that is believed only if it is root's or the user's own.
    #[error("it belongs to neither root nor the current user")]
    ForeignOwner,
    /// A path with a part that is a link, or that isn't a folder.
    #[error("a link or a file where a folder is wanted")]
    NotFolder,
    /// A path that leads out of its folder.
    #[error("a path that leads out of its folder")]
    Outside,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::NotRegular | Refusal::OfKernel | Refusal::Outside => {
                io::ErrorKind::InvalidInput
            }
            Refusal::TooLarge { .. } => io::ErrorKind::FileTooLarge,
            Refusal::Leased => io::ErrorKind::WouldBlock,
            Refusal::NotFolder => io::ErrorKind::NotADirectory,
            Refusal::ForeignLink
            | Refusal::ForeignPipe
            | Refusal::ForeignFile
            | Refusal::ForeignOwner => io::ErrorKind::PermissionDenied,
        };
        Self::new(kind, refusal)
    }
}
