//! Registers of a thread of another process (ptrace(2)).

use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// The maximum time to wait until the thread stops.
const STOP_TIMEOUT: Duration = Duration::from_millis(200);
/// The number of words that the buffer holds: more than the largest register set has.
const WORDS: usize = 64;

/// `PTRACE_EVENT_STOP`, the event of a stop by `PTRACE_INTERRUPT`.
const EVENT_STOP: i32 = 128;

/// General registers in the order of the architecture's `perf_regs.h`, with a bit in `mask` for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadRegisters {
    /// The registers that `values` has.
    pub mask: u64,
    /// Their values, by ascending number.
    pub values: Vec<u64>,
}

/// Register numbers of `perf_regs.h` (0 to 8: AX BX CX DX SI DI BP SP IP; 16 to 23: R8 to R15), and the positions of these
/// registers in `struct user_regs_struct`, in words.
#[cfg(target_arch = "x86_64")]
const POSITIONS: &[(u32, usize)] = &[
    (0, 10),
    (1, 5),
    (2, 11),
    (3, 12),
    (4, 13),
    (5, 14),
    (6, 4),
    (7, 19),
    (8, 16),
    (16, 9),
    (17, 8),
    (18, 7),
    (19, 6),
    (20, 3),
    (21, 2),
    (22, 1),
    (23, 0),
];

/// Reads the registers of a thread of a 64-bit program. The thread is stopped for the read, as by a debugger; most system calls
/// in which it may wait are restarted. `None` for threads of 32-bit programs, and on architectures other than x86-64 and arm64.
///
/// # Errors
/// What ptrace(2) and waitpid(2) report: `ESRCH` if there is no such thread, `EPERM` if it may not be traced or is already
/// traced; `ETIMEDOUT` if it does not stop.
pub fn thread_registers(tid: u32) -> io::Result<Option<ThreadRegisters>> {
    let tid = libc::pid_t::try_from(tid).map_err(|_| io::Error::from_raw_os_error(libc::ESRCH))?;
    let stopped = StoppedThread::stop(tid)?;
    stopped.registers()
}

/// A thread that is stopped, or about to stop; dropping this value lets it continue.
struct StoppedThread(libc::pid_t);

impl StoppedThread {
    fn stop(tid: libc::pid_t) -> io::Result<Self> {
        request(libc::PTRACE_SEIZE, tid)?;
        let thread = Self(tid);
        request(libc::PTRACE_INTERRUPT, tid)?;
        let began = Instant::now();
        while !thread.poll_stop()? {
            if began.elapsed() > STOP_TIMEOUT {
                return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
            }
            thread::sleep(Duration::from_micros(50));
        }
        Ok(thread)
    }

    /// Returns whether the thread has stopped at the interrupt. If a signal stopped it first, the signal is
    /// delivered and the thread continues.
    fn poll_stop(&self) -> io::Result<bool> {
        let mut status = 0;
        // SAFETY: the kernel writes one number.
        let result =
            unsafe { libc::waitpid(self.0, &raw mut status, libc::WNOHANG | libc::__WALL) };
        match result {
            0 => Ok(false),
            -1 => Err(io::Error::last_os_error()),
            _ if !libc::WIFSTOPPED(status) => Err(io::Error::from_raw_os_error(libc::ESRCH)),
            _ if status >> 16 == EVENT_STOP => Ok(true),
            _ => {
                let signal = libc::WSTOPSIG(status);
                // SAFETY: the request takes numbers.
                unsafe { libc::ptrace(libc::PTRACE_CONT, self.0, 0_usize, signal as usize) };
                Ok(false)
            }
        }
    }

    fn registers(&self) -> io::Result<Option<ThreadRegisters>> {
        let mut words = [0_u64; WORDS];
        let mut set = libc::iovec {
            iov_base: words.as_mut_ptr().cast(),
            iov_len: size_of_val(&words),
        };
        // SAFETY: the kernel writes at most `iov_len` bytes to `words`, and the written length to `set`.
        let result = unsafe {
            libc::ptrace(
                libc::PTRACE_GETREGSET,
                self.0,
                libc::NT_PRSTATUS as usize,
                &raw mut set,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(parse_register_set(
            words.get(..set.iov_len / 8).unwrap_or_default(),
        ))
    }
}

impl Drop for StoppedThread {
    fn drop(&mut self) {
        // A thread that has not stopped yet cannot be detached. If it stops later, it continues when its tracer, the thread that
        // called `stop`, ends.
        let _ = request(libc::PTRACE_DETACH, self.0);
    }
}

/// The type of ptrace(2)'s requests in this C library.
#[cfg(target_env = "musl")]
type PtraceRequest = libc::c_int;
#[cfg(not(target_env = "musl"))]
type PtraceRequest = libc::c_uint;

fn request(request: PtraceRequest, tid: libc::pid_t) -> io::Result<()> {
    // SAFETY: these requests take numbers.
    match unsafe { libc::ptrace(request, tid, 0_usize, 0_usize) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns the registers of a complete 64-bit register set; `None` for a 32-bit one.
#[cfg(target_arch = "x86_64")]
fn parse_register_set(words: &[u64]) -> Option<ThreadRegisters> {
    /// The number of words of `struct user_regs_struct`; that of 32-bit programs is shorter.
    const COMPLETE: usize = 27;
    if words.len() != COMPLETE {
        return None;
    }
    let values = POSITIONS
        .iter()
        .map(|(_, position)| words.get(*position).copied());
    Some(ThreadRegisters {
        mask: POSITIONS.iter().map(|(number, _)| 1 << number).sum(),
        values: values.collect::<Option<_>>()?,
    })
}

/// Returns the registers of a complete 64-bit register set, `None` for a 32-bit one. `words` are X0 to X30, SP, PC and the
/// processor state: the first 33 are in the order of `perf_regs.h`.
#[cfg(target_arch = "aarch64")]
fn parse_register_set(words: &[u64]) -> Option<ThreadRegisters> {
    let values = words.get(..33).filter(|_| words.len() == 34)?;
    Some(ThreadRegisters {
        mask: (1 << 33) - 1,
        values: values.to_vec(),
    })
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn parse_register_set(_: &[u64]) -> Option<ThreadRegisters> {
    None
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_sleeping_process_has_registers_and_keeps_sleeping() {
        let mut child = Command::new("sleep")
            .arg("30")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(50));
        let read = thread_registers(child.id());
        let is_alive = child.try_wait().unwrap().is_none();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(is_alive);
        match read {
            Ok(Some(registers)) => {
                assert_eq!(registers.mask.count_ones() as usize, registers.values.len());
                // Stack and instruction pointers, by their index in `values`, are not 0.
                let pointers = if cfg!(target_arch = "x86_64") {
                    [7, 8]
                } else {
                    [31, 32]
                };
                assert!(pointers.iter().all(|place| registers.values[*place] != 0));
            }
            Ok(None) if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) => {
                panic!("no registers");
            }
            Ok(None) => {}
            // Tracing is forbidden, as in a sandbox.
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}"),
        }
        assert_eq!(
            thread_registers(u32::MAX).unwrap_err().raw_os_error(),
            Some(libc::ESRCH)
        );
    }
}
