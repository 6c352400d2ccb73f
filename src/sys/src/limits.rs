//! Resource limits of this process.

use std::io;

/// The limit of open files that root gets if the hard limit is lower. It is the default of `fs.nr_open`, the kernel's maximum for
/// this limit.
const FOR_ROOT: libc::rlim_t = 1 << 20;

/// Raises the soft limit of open files (`RLIMIT_NOFILE`) to the hard limit, and returns the new limit. For root
/// (`CAP_SYS_RESOURCE`), both limits are raised to at least 1048576 if `fs.nr_open` permits it.
///
/// # Errors
/// What getrlimit(2) and setrlimit(2) report.
pub fn raise_open_files_limit() -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure passed to it.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_max < FOR_ROOT && set_open_files(FOR_ROOT, FOR_ROOT).is_ok() {
        return Ok(FOR_ROOT);
    }
    if limit.rlim_cur < limit.rlim_max {
        set_open_files(limit.rlim_max, limit.rlim_max)?;
    }
    Ok(limit.rlim_max)
}

/// The limit of this process's address space in bytes (`RLIMIT_AS`, `ulimit -v`); `None` if unlimited.
#[must_use]
pub fn address_space_limit() -> Option<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel fills the structure passed to it.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_AS, &raw mut limit) };
    (result == 0 && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

fn set_open_files(soft: libc::rlim_t, hard: libc::rlim_t) -> io::Result<()> {
    let limit = libc::rlimit {
        rlim_cur: soft,
        rlim_max: hard,
    };
    // SAFETY: the kernel reads the structure passed to it.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn raising_the_limit_is_idempotent() {
        let first = super::raise_open_files_limit().unwrap();
        assert_eq!(super::raise_open_files_limit().unwrap(), first);
    }
}
