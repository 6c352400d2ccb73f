//! What an error of perf_event_open(2) means for a counted event.

use std::io;

/// Whether the error may mean that a weak group can't be scheduled; the same errors as in perf.
pub(super) fn breaks_group(cause: &io::Error) -> bool {
    matches!(cause.raw_os_error(), Some(libc::EINVAL | libc::EBADF))
}

/// Whether the error means that the event isn't supported; then the other events are still counted.
pub(super) fn is_unsupported(cause: &io::Error) -> bool {
    matches!(
        cause.raw_os_error(),
        Some(
            libc::EINVAL
                | libc::ENOENT
                | libc::ENOSYS
                | libc::EOPNOTSUPP
                | libc::ENXIO
                | libc::ENODEV
        )
    )
}
