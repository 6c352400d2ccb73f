//! Benchmarks of epoll: threads that wait for events, or that change the set of descriptors.

mod control;
mod wait;

pub use control::{Control, ControlThread};
pub use wait::{Wait, WaitResult, WaitThread};

use std::io;

use rperf_sys::{Epoll, EpollMode, EventFd, raise_open_files_limit};

use crate::BenchError;

/// The `data` of epoll_ctl(2) for members whose data is not used: descriptors in a set that no thread waits for, and nested sets,
/// each of which is the only member of its outer set.
const UNUSED_DATA: u64 = 0;

/// Raises the limit of open files, then creates `per_thread` descriptors for each of `threads` threads.
fn create_descriptors(threads: u32, per_thread: u32) -> Result<Vec<Vec<EventFd>>, BenchError> {
    raise_open_files_limit().map_err(BenchError::of("setrlimit"))?;
    let of_one_thread = || (0..per_thread).map(|_| EventFd::new()).collect();
    let all: io::Result<_> = (0..threads).map(|_| of_one_thread()).collect();
    all.map_err(BenchError::of("eventfd"))
}

/// Returns the memory addresses of the objects of a thread's first and last descriptor, as printed by perf; 0 if it has none.
fn addresses(descriptors: &[EventFd]) -> [usize; 2] {
    [descriptors.first(), descriptors.last()]
        .map(|descriptor| descriptor.map_or(0, |event_fd| std::ptr::from_ref(event_fd) as usize))
}

/// Epoll sets of which each is the only member of the next one; the innermost has the descriptors.
#[derive(Debug)]
struct Nested {
    /// The sets from the innermost to the outermost.
    levels: Vec<Epoll>,
}

impl Nested {
    /// Creates an empty set inside `depth` other sets.
    fn new(depth: u32) -> io::Result<Self> {
        let mut levels = vec![Epoll::new()?];
        for _ in 0..depth {
            let outer = Epoll::new()?;
            if let Some(inner) = levels.last() {
                outer.add(inner, EpollMode::default(), UNUSED_DATA)?;
            }
            levels.push(outer);
        }
        Ok(Self { levels })
    }

    /// Returns the innermost set, which has the descriptors.
    fn inner(&self) -> io::Result<&Epoll> {
        self.levels.first().ok_or(io::ErrorKind::NotFound.into())
    }

    /// Waits for an event of the outermost set, then looks for it in each set inside, without waiting. Returns the data of a
    /// descriptor; `None` after the timeout, or if another thread took the event meanwhile.
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
        let descriptor = EventFd::new().unwrap();
        let inner = nested.inner().unwrap();
        inner.add(&descriptor, EpollMode::default(), 5).unwrap();
        assert_eq!(nested.wait(0).unwrap(), None);
        descriptor.signal().unwrap();
        assert_eq!(nested.wait(1000).unwrap(), Some(5));
    }
}
