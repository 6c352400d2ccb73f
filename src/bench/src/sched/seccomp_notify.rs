//! A process makes system calls, and another process answers them.

use std::io::{self, Read as _, Write as _};
use std::os::unix::process::parent_id;
use std::time::{Duration, Instant};

use rperf_sys::{GetppidListener, Pidfd};

use crate::BenchError;

/// `EPERM`, reported for an error without a number.
const NO_PERMISSION: i32 = 1;
/// The answer to each call.
const ANSWER: u32 = 0x7e11;

/// The benchmark `sched seccomp-notify`.
#[derive(Debug, Clone, Copy)]
pub struct SeccompNotify {
    /// Number of system calls that are answered.
    pub loops: u64,
    /// Whether wake-ups are synchronous (Linux 6.6): the kernel wakes each process on the CPU of the other, if possible.
    pub synchronous: bool,
}

impl SeccompNotify {
    /// Runs the benchmark; returns the time of all system calls.
    ///
    /// # Errors
    /// [`BenchError::Unavailable`] if the kernel does not support seccomp notifications or a sandbox refuses them;
    /// [`BenchError::System`] if another system call fails; [`BenchError::Child`] if the process that makes the calls got a wrong
    /// answer.
    pub fn run(&self) -> Result<Duration, BenchError> {
        let (mut reader, mut writer) = io::pipe().map_err(BenchError::of("pipe"))?;
        let loops = self.loops;
        let mut children = rperf_sys::Children::default();
        let caller = move || {
            let listener = GetppidListener::install();
            // Sent to the parent: the listener's file descriptor, or a negative error number.
            let outcome = match &listener {
                Ok(listener) => listener.descriptor(),
                Err(error) => -error.raw_os_error().unwrap_or(NO_PERMISSION),
            };
            let is_sent = writer.write_all(&outcome.to_ne_bytes()).is_ok();
            // `parent_id` makes the call that the listener receives, getppid(2).
            let is_answered = listener.is_ok() && (0..loops).all(|_| parent_id() == ANSWER);
            u8::from(!(is_sent && is_answered))
        };
        let pid = children.fork(caller).map_err(BenchError::of("fork"))?;
        let mut outcome = [0; 4];
        reader
            .read_exact(&mut outcome)
            .map_err(BenchError::of("the calling process ended"))?;
        let descriptor = i32::from_ne_bytes(outcome);
        if descriptor < 0 {
            let error = io::Error::from_raw_os_error(-descriptor);
            return Err(BenchError::Unavailable(format!(
                "seccomp filter that notifies another process: {error}"
            )));
        }
        let listener = Pidfd::of_process(pid)
            .and_then(|process| GetppidListener::of_process(&process, descriptor))
            .map_err(|error| BenchError::Unavailable(format!("pidfd_getfd: {error}")))?;
        if self.synchronous {
            listener.wake_synchronously().map_err(|error| {
                BenchError::Unavailable(format!("synchronous notifications: {error}"))
            })?;
        }
        let start = Instant::now();
        for _ in 0..self.loops {
            listener
                .answer(ANSWER.into())
                .map_err(BenchError::of("seccomp notification"))?;
        }
        match children.wait().map_err(BenchError::of("wait"))? {
            None => Ok(start.elapsed()),
            Some(status) => Err(BenchError::Child(status)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_answered() {
        for synchronous in [false, true] {
            let bench = SeccompNotify {
                loops: 50,
                synchronous,
            };
            match bench.run() {
                Ok(time) => assert!(time > Duration::ZERO),
                // Older kernels and sandboxes.
                Err(error) => assert!(matches!(error, BenchError::Unavailable(_)), "{error:?}"),
            }
        }
    }
}
