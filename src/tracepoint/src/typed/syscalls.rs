//! System calls. Source: the kernel's `include/trace/events/syscalls.h`.

use super::NumberArray;
use super::event::typed_event;

typed_event! {
    /// Entry of a system call.
    SysEnter(SysEnterLayout) = "raw_syscalls:sys_enter" {
        /// Number of the call.
        id: i64,
        /// The six argument registers, whether or not the call uses them.
        args: NumberArray,
    }
}

typed_event! {
    /// Return from a system call.
    SysExit(SysExitLayout) = "raw_syscalls:sys_exit" {
        /// Number of the call.
        id: i64,
        /// Return value; -4095 to -1 is a negated errno.
        ret: i64,
    }
}
