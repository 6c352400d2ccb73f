//! One open event: `perf_event_open(2)` and its ioctls.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::perf_event_attr;
use perf_event_open_sys::ioctls;
use rperf_wire::{Attr, Cursor, Endian, ReadFormat};

/// `PERF_FLAG_FD_CLOEXEC`: the descriptor does not survive exec.
pub const PERF_FLAG_FD_CLOEXEC: u64 = 1 << 3;

/// `PERF_FLAG_PID_CGROUP`: the pid argument is the descriptor of a cgroup's folder.
pub const PERF_FLAG_PID_CGROUP: u64 = 1 << 2;

/// The task and the CPU that an event observes: the pid and cpu arguments of `perf_event_open(2)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedTask {
    /// Thread id; 0 is the caller, -1 every thread (then `cpu` must be given). With [`PERF_FLAG_PID_CGROUP`], the descriptor of
    /// the cgroup.
    pub pid: i32,
    /// CPU number; -1 is any CPU (then `pid` must be given).
    pub cpu: i32,
}

/// An open perf event.
#[derive(Debug)]
pub struct Counter {
    fd: OwnedFd,
}

/// The result of reading a single event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterValue {
    /// The count, in the unit of the event.
    pub value: u64,
    /// Nanoseconds the event was enabled, if `TOTAL_TIME_ENABLED` was requested.
    pub enabled: Option<u64>,
    /// Nanoseconds the event was on a counter, if `TOTAL_TIME_RUNNING` was requested.
    pub running: Option<u64>,
    /// Event id, if `ID` was requested.
    pub id: Option<u64>,
    /// Samples lost because the ring was full, if `LOST` was requested (Linux 6.0).
    pub lost: Option<u64>,
}

impl Counter {
    /// Opens an event with `FD_CLOEXEC`, as a member of the group of `leader` if given.
    ///
    /// # Errors
    /// What perf_event_open(2) reports; its manual page explains the errors of each field.
    pub fn open(attr: &Attr, observed: ObservedTask, leader: Option<&Self>) -> io::Result<Self> {
        Self::open_with(attr, observed, leader, PERF_FLAG_FD_CLOEXEC)
    }

    /// Opens an event with `FD_CLOEXEC` for the tasks of a cgroup while they run on CPU `cpu`, as a member of the group of
    /// `leader` if given.
    ///
    /// # Errors
    /// As [`Counter::open`].
    pub fn open_in_cgroup(
        attr: &Attr,
        cgroup: BorrowedFd<'_>,
        cpu: i32,
        leader: Option<&Self>,
    ) -> io::Result<Self> {
        let pid = cgroup.as_raw_fd();
        let flags = PERF_FLAG_FD_CLOEXEC | PERF_FLAG_PID_CGROUP;
        Self::open_with(attr, ObservedTask { pid, cpu }, leader, flags)
    }

    fn open_with(
        attr: &Attr,
        observed: ObservedTask,
        leader: Option<&Self>,
        flags: u64,
    ) -> io::Result<Self> {
        let bytes = attr.encode(Endian::NATIVE);
        // The kernel takes the structure's size from its size field, so a shorter or longer layout
        // than the bindings' is fine; the copy of `bytes` in `words` only serves alignment. The known sizes are multiples of 8,
        // so the chunks of 8 bytes cover all of `bytes`.
        let mut words = vec![0_u64; bytes.len().div_ceil(size_of::<u64>())];
        for (word, chunk) in words.iter_mut().zip(bytes.as_chunks().0) {
            *word = u64::from_ne_bytes(*chunk);
        }
        let group_fd = leader.map_or(-1, |leader| leader.fd.as_raw_fd());
        // SAFETY: `words` holds a whole perf_event_attr of the size its size field states, is aligned
        // for it and outlives the call; the kernel only writes its size field, and only on E2BIG.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                words.as_mut_ptr().cast::<perf_event_attr>(),
                observed.pid,
                observed.cpu,
                group_fd,
                flags as _,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call succeeded, so `fd` is an open descriptor with no other owner.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(Self { fd })
    }

    /// Duplicates the descriptor of the event.
    ///
    /// # Errors
    /// What fcntl(2) reports: `EMFILE`.
    pub fn try_clone(&self) -> io::Result<Self> {
        let fd = self.fd.try_clone()?;
        Ok(Self { fd })
    }

    /// Starts counting (`PERF_EVENT_IOC_ENABLE`).
    ///
    /// # Errors
    /// What ioctl(2) reports.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the request takes a number.
        check(unsafe { ioctls::ENABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Stops counting (`PERF_EVENT_IOC_DISABLE`).
    ///
    /// # Errors
    /// What ioctl(2) reports.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the request takes a number.
        check(unsafe { ioctls::DISABLE(self.fd.as_raw_fd(), 0) })
    }

    /// Enables the event for `overflows` more overflows (`PERF_EVENT_IOC_REFRESH`).
    ///
    /// # Errors
    /// What ioctl(2) reports.
    pub fn refresh(&self, overflows: i32) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the request takes a number.
        check(unsafe { ioctls::REFRESH(self.fd.as_raw_fd(), overflows) })
    }

    /// Redirects this event's records to the ring of `to` (`PERF_EVENT_IOC_SET_OUTPUT`).
    ///
    /// # Errors
    /// What ioctl(2) reports: `EINVAL`, for example if the two events observe different CPUs, or different tasks and no
    /// particular CPU, if they have different clocks, or if only one of them writes backward.
    pub fn set_output(&self, to: &Self) -> io::Result<()> {
        // SAFETY: both descriptors are open perf events; the request takes a descriptor number.
        check(unsafe { ioctls::SET_OUTPUT(self.fd.as_raw_fd(), to.fd.as_raw_fd()) })
    }

    /// Sets the filter of the event: an expression on the fields of a tracepoint, or address ranges of a trace
    /// (`PERF_EVENT_IOC_SET_FILTER`).
    ///
    /// # Errors
    /// What ioctl(2) reports: `EINVAL` for a filter that does not fit the event or is too long. A filter with a NUL is not passed
    /// to the kernel: [`io::ErrorKind::InvalidInput`].
    pub fn set_filter(&self, filter: &str) -> io::Result<()> {
        let mut filter = CString::new(filter)?.into_bytes_with_nul();
        // SAFETY: the request reads a string that ends with a NUL and outlives the call.
        check(unsafe { ioctls::SET_FILTER(self.fd.as_raw_fd(), filter.as_mut_ptr().cast()) })
    }

    /// Runs a BPF program at each occurrence of the event, if it is a tracepoint or probe, otherwise at each of its samples
    /// (`PERF_EVENT_IOC_SET_BPF`).
    ///
    /// # Errors
    /// What ioctl(2) reports: `EINVAL` for an event that cannot run programs, `EEXIST` if it has a program already.
    pub fn attach(&self, program: &impl AsFd) -> io::Result<()> {
        let program = program.as_fd().as_raw_fd().cast_unsigned();
        // SAFETY: both descriptors are open; the request takes a descriptor number.
        check(unsafe { ioctls::SET_BPF(self.fd.as_raw_fd(), program) })
    }

    /// Returns the kernel's id of the event (`PERF_EVENT_IOC_ID`).
    ///
    /// # Errors
    /// What ioctl(2) reports.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the request writes eight bytes to the address, which is that of `id`.
        check(unsafe { ioctls::ID(self.fd.as_raw_fd(), &raw mut id) })?;
        Ok(id)
    }

    /// Reads the event, which was opened with `format`; with `GROUP`, returns the reading of the
    /// group's leader.
    ///
    /// # Errors
    /// What read(2) reports; [`io::ErrorKind::UnexpectedEof`] when the event is in error state or
    /// the kernel returned less than `format` asks for.
    pub fn read(&self, format: ReadFormat) -> io::Result<CounterValue> {
        let readings = self.read_all(format)?;
        let first = readings.into_iter().next();
        first.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads all events that one read(2) returns: with `GROUP` in `format` the leader, then the
    /// other members in the order in which they were opened; otherwise the event alone. All members
    /// have the times of the leader.
    ///
    /// # Errors
    /// As [`Counter::read`].
    pub fn read_all(&self, format: ReadFormat) -> io::Result<Vec<CounterValue>> {
        // Room for a group of at least 600 events; read(2) reports ENOSPC if the group does not fit.
        let mut bytes = [0_u8; 16 << 10];
        let size = read_fd(self.fd.as_fd(), &mut bytes)?;
        let mut at = Cursor::new(bytes.get(..size).unwrap_or_default(), Endian::NATIVE);
        // Returns the next number, if it was requested; otherwise the kernel has not written it.
        let mut next = |requested: bool| -> io::Result<Option<u64>> {
            if !requested {
                return Ok(None);
            }
            let word = at.u64("counter");
            word.map(Some)
                .map_err(|error| io::Error::new(io::ErrorKind::UnexpectedEof, error))
        };
        let in_group = format.contains(ReadFormat::GROUP);
        // A group: the number of events, the times, then value, id and lost samples of each event. A single event: its value,
        // the times, id and lost samples.
        let always_written = true;
        let count_or_value = next(always_written)?.unwrap_or_default();
        let enabled = next(format.contains(ReadFormat::TOTAL_TIME_ENABLED))?;
        let running = next(format.contains(ReadFormat::TOTAL_TIME_RUNNING))?;
        let count = if in_group { count_or_value } else { 1 };
        let mut readings = Vec::new();
        for _ in 0..count {
            readings.push(CounterValue {
                value: next(in_group)?.unwrap_or(count_or_value),
                enabled,
                running,
                id: next(format.contains(ReadFormat::ID))?,
                lost: next(format.contains(ReadFormat::LOST))?,
            });
        }
        Ok(readings)
    }
}

impl AsFd for Counter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Calls read(2), and again after a signal.
pub(crate) fn read_fd(fd: BorrowedFd<'_>, to: &mut [u8]) -> io::Result<usize> {
    loop {
        // SAFETY: the kernel writes at most `to.len()` bytes to the slice.
        let size = unsafe { libc::read(fd.as_raw_fd(), to.as_mut_ptr().cast(), to.len()) };
        match usize::try_from(size) {
            Ok(size) => return Ok(size),
            Err(_) => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}

#[cfg(test)]
impl Counter {
    /// Opens a dummy event of this thread in user mode, for tests of rings: it counts nothing, but its ring receives the records
    /// selected by `flags`, such as MMAP. `None` if that is not permitted.
    pub(crate) fn open_dummy(flags: rperf_wire::AttrFlags) -> Option<Self> {
        use rperf_wire::{AttrFlags, EventType};

        let attr = Attr {
            kind: EventType::SOFTWARE,
            config: Attr::DUMMY,
            flags: flags | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        Self::open(&attr, ObservedTask { pid: 0, cpu: -1 }, None).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rperf_wire::{AttrFlags, EventType};

    /// Opens a software clock for this thread; `None` if that is not permitted.
    fn task_clock() -> Option<Counter> {
        let attr = Attr {
            kind: EventType::SOFTWARE,
            // `PERF_COUNT_SW_TASK_CLOCK`.
            config: 1,
            read_format: ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED,
            flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        Counter::open(&attr, ObservedTask { pid: 0, cpu: -1 }, None).ok()
    }

    #[test]
    fn counts_between_enable_and_disable() {
        let Some(counter) = task_clock() else { return };
        counter.enable().unwrap();
        for _ in 0..10_000 {
            std::hint::black_box(0);
        }
        counter.disable().unwrap();
        let format = ReadFormat::ID | ReadFormat::TOTAL_TIME_ENABLED;
        let first = counter.read(format).unwrap();
        assert!(first.value > 0 && first.enabled.is_some_and(|nanos| nanos > 0));
        assert_eq!(first.id, Some(counter.id().unwrap()));
        assert_eq!(
            counter.read(format).unwrap().value,
            first.value,
            "the count does not change"
        );
    }

    #[test]
    fn a_group_is_read_at_once() {
        let format = ReadFormat::GROUP | ReadFormat::ID | ReadFormat::TOTAL_TIME_RUNNING;
        let own = ObservedTask { pid: 0, cpu: -1 };
        let attr = |config| Attr {
            kind: EventType::SOFTWARE,
            config,
            read_format: format,
            flags: AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..Attr::default()
        };
        // `PERF_COUNT_SW_TASK_CLOCK`, and below `PERF_COUNT_SW_PAGE_FAULTS`.
        let Ok(clock) = Counter::open(&attr(1), own, None) else {
            return;
        };
        let faults = Counter::open(&attr(2), own, Some(&clock)).unwrap();
        let readings = clock.read_all(format).unwrap();
        let ids: Vec<Option<u64>> = readings.iter().map(|reading| reading.id).collect();
        assert_eq!(ids, [clock.id().ok(), faults.id().ok()]);
        assert_eq!(readings[0].running, readings[1].running);
    }

    #[test]
    fn an_unknown_event_is_an_error_of_the_kernel() {
        let attr = Attr {
            kind: EventType(u32::MAX),
            ..Attr::default()
        };
        let error = Counter::open(&attr, ObservedTask { pid: 0, cpu: -1 }, None).unwrap_err();
        assert!(error.raw_os_error().is_some());
    }
}
