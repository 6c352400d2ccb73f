//! Limits of this process.

use std::io;

/// Raises the soft limit of open files (`RLIMIT_NOFILE`) to the hard one and returns it.
///
/// # Errors
/// What getrlimit(2) and setrlimit(2) report.
pub fn raise_open_files() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the kernel reads the structure it is given.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(limit.rlim_cur)
}

#[cfg(test)]
mod tests {
    #[test]
    fn raising_twice_changes_nothing_more() {
        let first = super::raise_open_files().unwrap();
        assert_eq!(super::raise_open_files().unwrap(), first);
    }
}
