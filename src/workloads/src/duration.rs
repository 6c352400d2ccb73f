//! Ends workloads after a given time. A signal handler sets a flag: a loop that read the clock would make calls that a profile
//! shows.

use std::io;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::{WorkloadError, failed};

/// Set by the handler of SIGALRM and SIGINT.
static IS_OVER: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(_signal: libc::c_int) {
    IS_OVER.store(true, Ordering::Relaxed);
}

/// Whether the time is over or the user interrupted.
#[inline(always)]
pub(crate) fn is_over() -> bool {
    IS_OVER.load(Ordering::Relaxed)
}

/// The flag that [`is_over`] reads.
pub(crate) fn over_flag() -> &'static AtomicBool {
    &IS_OVER
}

/// Clears the flag, sets the signal handlers, and starts the timer of this process.
pub(crate) fn start(duration: Duration) -> Result<(), WorkloadError> {
    IS_OVER.store(false, Ordering::Relaxed);
    for signal in [libc::SIGINT, libc::SIGALRM] {
        set_handler(signal).map_err(failed("cannot set a signal handler"))?;
    }
    let zero = libc::timeval {
        tv_sec: 0,
        tv_usec: 0,
    };
    let value = libc::timeval {
        // Longer times are limited to `i32::MAX` seconds, 68 years.
        tv_sec: i32::try_from(duration.as_secs()).unwrap_or(i32::MAX).into(),
        tv_usec: duration.subsec_micros().into(),
    };
    let timer = libc::itimerval {
        it_interval: zero,
        it_value: value,
    };
    // SAFETY: `timer` is initialised; the previous value is not requested.
    let status = unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, ptr::null_mut()) };
    match status {
        0 => Ok(()),
        _ => Err(failed("cannot set a timer")(io::Error::last_os_error())),
    }
}

fn set_handler(signal: libc::c_int) -> io::Result<()> {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: zero is a valid value of every field.
    let action = unsafe { action.assume_init_mut() };
    action.sa_sigaction = on_signal as extern "C" fn(libc::c_int) as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: `action` is initialised and its handler only stores to an atomic.
    let status = unsafe { libc::sigaction(signal, action, ptr::null_mut()) };
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
