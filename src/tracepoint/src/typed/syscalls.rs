//! System calls. Source: the kernel's `include/trace/events/syscalls.h` for `raw_syscalls:*`, `kernel/trace/trace_syscalls.c`
//! for `syscalls:*`.

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

typed_event! {
    /// Entry of a system call that reads, writes, sends, receives, synchronizes or polls: one of those that `timechart` shows.
    SysEnterIo(SysEnterIoLayout) = "syscalls:sys_enter_read"
        | "syscalls:sys_enter_pread64"
        | "syscalls:sys_enter_readv"
        | "syscalls:sys_enter_preadv"
        | "syscalls:sys_enter_write"
        | "syscalls:sys_enter_pwrite64"
        | "syscalls:sys_enter_writev"
        | "syscalls:sys_enter_pwritev"
        | "syscalls:sys_enter_sync"
        | "syscalls:sys_enter_sync_file_range"
        | "syscalls:sys_enter_fsync"
        | "syscalls:sys_enter_msync"
        | "syscalls:sys_enter_recvfrom"
        | "syscalls:sys_enter_recvmmsg"
        | "syscalls:sys_enter_recvmsg"
        | "syscalls:sys_enter_sendto"
        | "syscalls:sys_enter_sendmsg"
        | "syscalls:sys_enter_sendmmsg"
        | "syscalls:sys_enter_epoll_pwait"
        | "syscalls:sys_enter_epoll_wait"
        | "syscalls:sys_enter_poll"
        | "syscalls:sys_enter_ppoll"
        | "syscalls:sys_enter_pselect6"
        | "syscalls:sys_enter_select"
    {
        /// Number of the call, a field that older kernels name `nr`; `None` if the format has neither.
        id: Option<i64> as "__syscall_nr" | "nr",
    }
}

typed_event! {
    /// Return from a system call of [`SysEnterIo`].
    SysExitIo(SysExitIoLayout) = "syscalls:sys_exit_read"
        | "syscalls:sys_exit_pread64"
        | "syscalls:sys_exit_readv"
        | "syscalls:sys_exit_preadv"
        | "syscalls:sys_exit_write"
        | "syscalls:sys_exit_pwrite64"
        | "syscalls:sys_exit_writev"
        | "syscalls:sys_exit_pwritev"
        | "syscalls:sys_exit_sync"
        | "syscalls:sys_exit_sync_file_range"
        | "syscalls:sys_exit_fsync"
        | "syscalls:sys_exit_msync"
        | "syscalls:sys_exit_recvfrom"
        | "syscalls:sys_exit_recvmmsg"
        | "syscalls:sys_exit_recvmsg"
        | "syscalls:sys_exit_sendto"
        | "syscalls:sys_exit_sendmsg"
        | "syscalls:sys_exit_sendmmsg"
        | "syscalls:sys_exit_epoll_pwait"
        | "syscalls:sys_exit_epoll_wait"
        | "syscalls:sys_exit_poll"
        | "syscalls:sys_exit_ppoll"
        | "syscalls:sys_exit_pselect6"
        | "syscalls:sys_exit_select"
    {
        /// Return value; -4095 to -1 is a negated errno.
        ret: i64,
    }
}

typed_event! {
    /// Entry of futex(2).
    SysEnterFutex(SysEnterFutexLayout) = "syscalls:sys_enter_futex" {
        /// Address of the futex in the process.
        uaddr: u64,
        /// Operation and flags: `FUTEX_*` of linux/futex.h.
        op: u32,
        /// Address of the timeout of a wait, 0 if there is none. For operations that requeue waiters, and for `FUTEX_WAKE_OP`,
        /// the number `val2`. `None` if the format has no such field.
        utime: Option<u64>,
    }
}

typed_event! {
    /// Return from futex(2).
    SysExitFutex(SysExitFutexLayout) = "syscalls:sys_exit_futex" {
        /// Return value; -4095 to -1 is a negated errno.
        ret: i64,
    }
}
