//! Reasons to refuse a file that the kernel would open.

use std::io;

/// The reason why a path was refused. Carried as the payload of an [`io::Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// Not a regular file but a folder, FIFO, socket, device, or a link that is not followed.
    #[error("not a regular file")]
    NotRegular,
    /// A file of a virtual file system such as `/proc/kmsg`: reading may block or consume data.
    #[error("a file of a virtual file system")]
    Virtual,
    /// Larger than the limit for reading into memory.
    #[error("larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
    },
    /// A process held a lease (fcntl(2), `F_SETLEASE`) for longer than a second.
    #[error("another process holds a lease on it")]
    Leased,
    /// A link that neither root nor the user owns, where an output file, or a folder of the user such as a cache, is expected.
    #[error("a link of another user; give the path it points to")]
    ForeignLink,
    /// A FIFO or device of another user that is not safe to write: see [`find_in_place`](crate::find_in_place). Also a regular
    /// file of another user behind a link below `/dev` or `/proc`: like a FIFO, it would be written in place, not replaced.
    #[error("another user's FIFO or device; name another output with -o")]
    ForeignPipe,
    /// An existing file of another user, or with several hard links, in a folder that others may
    /// write.
    #[error("a file of another user or with several hard links, in a folder that others may write")]
    ForeignFile,
    /// A file of another user, where only a file of root or the user is trusted.
    #[error("it belongs to neither root nor the current user")]
    ForeignOwner,
    /// A path component is a link, or isn't a folder.
    #[error("a link or a file, not a folder")]
    NotFolder,
    /// A path that leads out of its base folder or has no last component, or a name that is not a single component.
    #[error("the path leads out of its folder")]
    Outside,
}

impl From<Refusal> for io::Error {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal {
            Refusal::NotRegular | Refusal::Virtual | Refusal::Outside => {
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
