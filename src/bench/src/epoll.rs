//! Benchmarks of epoll: threads that wait for events, or that change the set of descriptors.

mod control;
mod wait;

pub use control::{Control, ControlThread};
pub use wait::{Wait, WaitResult, WaitThread};

use std::io;

use rperf_sys::{Epoll, EpollMode, EventFd, raise_open_files_limit};

use crate::BenchError;

/// Creates `each` descriptors for each of `threads` threads; raises the limit of open files first.
fn events(threads: u32, each: u32) -> Result<Vec<Vec<EventFd>>, BenchError> {
    raise_open_files_limit().map_err(BenchError::of("setrlimit"))?;
    let own = || (0..each).map(|_| EventFd::new()).collect();
    let all: io::Result<_> = (0..threads).map(|_| own()).collect();
    all.map_err(BenchError::of("eventfd"))
}

/// Addresses of the first and the last descriptor of a thread.
fn addresses(own: &[EventFd]) -> [usize; 2] {
    [own.first(), own.last()]
        .map(|event| event.map_or(0, |event| std::ptr::from_ref(event) as usize))
}

/// An epoll set inside others.
#[derive(Debug)]
struct Nested {
    /// The set with the descriptors, and the sets around it in order.
    levels: Vec<Epoll>,
}

impl Nested {
    /// Creates a set inside this many others.
    fn new(depth: u32) -> io::Result<Self> {
        let mut levels = vec![Epoll::new()?];
        for _ in 0..depth {
            let outer = Epoll::new()?;
            if let Some(inner) = levels.last() {
                outer.add(inner, EpollMode::default(), 0)?;
            }
            levels.push(outer);
        }
        Ok(Self { levels })
    }

    /// Returns the set with the descriptors.
    fn inner(&self) -> io::Result<&Epoll> {
        self.levels.first().ok_or(io::ErrorKind::NotFound.into())
    }

    /// Waits for a descriptor through all levels; `None` after the timeout, or if another thread took the event in
    /// between.
    fn wait(&self, timeout_millis: i32) -> io::Result<Option<u64>> {
        let mut timeout = timeout_millis;
        let mut data = None;
        for level in self.levels.iter().rev() {
            data = level.wait(timeout)?;
            if data.is_none() {
                break;
            }
            timeout = 0;
        }
        Ok(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_found_through_all_levels() {
        let nested = Nested::new(3).unwrap();
        let event = EventFd::new().unwrap();
        let inner = nested.inner().unwrap();
        inner.add(&event, EpollMode::default(), 5).unwrap();
        assert_eq!(nested.wait(0).unwrap(), None);
        event.signal().unwrap();
        assert_eq!(nested.wait(1000).unwrap(), Some(5));
    }
}
