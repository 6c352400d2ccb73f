//! Waiting for events of many descriptors (epoll(7)), and counters that can be waited for (eventfd(2)).

use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

/// The mode in which a registered descriptor reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EpollMode {
    /// Whether it reports only when new data arrive (edge-triggered), instead of as long as it is readable.
    pub edge: bool,
    /// Whether it reports only once, until [`Epoll::modify`] enables it again.
    pub oneshot: bool,
}

impl EpollMode {
    fn events(self) -> u32 {
        let flag = |set: bool, value: i32| if set { value } else { 0 };
        let events =
            libc::EPOLLIN | flag(self.edge, libc::EPOLLET) | flag(self.oneshot, libc::EPOLLONESHOT);
        events.cast_unsigned()
    }
}

/// A set of descriptors that can be waited for.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

impl Epoll {
    /// Creates an empty set.
    ///
    /// # Errors
    /// What epoll_create1(2) reports: `EMFILE`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes a number and returns a new descriptor, or fails.
        owned(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).map(Self)
    }

    /// Adds a descriptor; [`Epoll::wait`] returns `data` for it.
    ///
    /// # Errors
    /// What epoll_ctl(2) reports: `EEXIST` if it is a member, `ENOSPC` at the user's limit.
    pub fn add(&self, fd: impl AsFd, mode: EpollMode, data: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd.as_fd(), mode, data)
    }

    /// Changes the mode and the data of a member; enables a one-shot member that has reported.
    ///
    /// # Errors
    /// What epoll_ctl(2) reports: `ENOENT` if it is not a member.
    pub fn modify(&self, fd: impl AsFd, mode: EpollMode, data: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd.as_fd(), mode, data)
    }

    /// Removes a member.
    ///
    /// # Errors
    /// What epoll_ctl(2) reports: `ENOENT` if it is not a member.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        // The kernel ignores mode and data.
        self.control(libc::EPOLL_CTL_DEL, fd.as_fd(), EpollMode::default(), 0)
    }

    /// Waits up to `timeout_millis` (-1: no limit) for a descriptor that is readable, closed by its peer or has an error, and
    /// returns its data; `None` if there is none in this time.
    ///
    /// # Errors
    /// What epoll_wait(2) reports: `EINTR`.
    pub fn wait(&self, timeout_millis: i32) -> io::Result<Option<u64>> {
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        // SAFETY: the kernel writes up to one event to the place passed.
        let count =
            unsafe { libc::epoll_wait(self.0.as_raw_fd(), &raw mut event, 1, timeout_millis) };
        match count {
            0 => Ok(None),
            1 => Ok(Some(event.u64)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    fn control(
        &self,
        operation: i32,
        fd: BorrowedFd<'_>,
        mode: EpollMode,
        data: u64,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: mode.events(),
            u64: data,
        };
        // SAFETY: both descriptors are open; the kernel reads the event.
        let result = unsafe {
            libc::epoll_ctl(
                self.0.as_raw_fd(),
                operation,
                fd.as_raw_fd(),
                &raw mut event,
            )
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for Epoll {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A counter that is readable while it is not 0. [`EventFd::take`] and [`EventFd::signal`] never block.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates a counter with the value 0.
    ///
    /// # Errors
    /// What eventfd(2) reports: `EMFILE`.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes numbers and returns a new descriptor, or fails.
        owned(unsafe { libc::eventfd(0, libc::EFD_NONBLOCK | libc::EFD_CLOEXEC) }).map(Self)
    }

    /// Adds 1.
    ///
    /// # Errors
    /// `EAGAIN` at the largest value.
    pub fn signal(&self) -> io::Result<()> {
        let one = 1_u64;
        // SAFETY: the kernel reads the eight bytes of the number.
        match unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) } {
            8 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Returns the value and sets it to 0.
    ///
    /// # Errors
    /// `EAGAIN` if it is 0.
    pub fn take(&self) -> io::Result<u64> {
        let mut value = 0_u64;
        // SAFETY: the kernel writes the eight bytes of the number.
        match unsafe { libc::read(self.0.as_raw_fd(), (&raw mut value).cast(), 8) } {
            8 => Ok(value),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn owned(fd: i32) -> io::Result<OwnedFd> {
    match fd {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: the call that returned it succeeded, so `fd` is an open descriptor with no other owner.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signalled_eventfd_is_reported_with_its_data_and_in_its_mode() {
        let (epoll, event) = (Epoll::new().unwrap(), EventFd::new().unwrap());
        let oneshot = EpollMode {
            edge: false,
            oneshot: true,
        };
        epoll.add(&event, EpollMode::default(), 7).unwrap();
        assert_eq!(epoll.wait(0).unwrap(), None);
        event.signal().unwrap();
        event.signal().unwrap();
        assert_eq!(epoll.wait(-1).unwrap(), Some(7));
        epoll.modify(&event, oneshot, 8).unwrap();
        assert_eq!(epoll.wait(-1).unwrap(), Some(8));
        assert_eq!(epoll.wait(0).unwrap(), None);
        assert_eq!(event.take().unwrap(), 2);
        let error = event.take().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        epoll.remove(&event).unwrap();
        assert!(epoll.modify(&event, oneshot, 8).is_err());
    }
}
