//! System calls. Source: the kernel's `include/trace/events/syscalls.h`.

use super::Words;
use super::event::typed_event;

typed_event! {
    /// A thread enters the kernel by a system call.
    SysEnter(SysEnterLayout) = "raw_syscalls:sys_enter" {
        /// Number of the call.
        id: i64,
        /// Its six arguments, also those that it doesn't take.
        args: Words,
    }
}

typed_event! {
    /// A system call returns.
    SysExit(SysExitLayout) = "raw_syscalls:sys_exit" {
        /// Number of the call.
        id: i64,
        /// What it returns; from -4095 to -1 an error number, negated.
        ret: i64,
    }
}
