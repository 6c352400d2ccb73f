//! Structures, arrays and numbers that arguments point to, and their lengths.

use super::Direction::{self, In, Out};
use crate::Abi;

/// A structure, an array or a number, and the calls that have it as an argument.
pub(super) struct Shape {
    pub(super) calls: &'static [&'static str],
    /// The name of the argument; `None` for any name.
    pub(super) name: Option<&'static str>,
    /// A part of the argument's type; empty for any.
    pub(super) c_type: &'static str,
    pub(super) direction: Direction,
    pub(super) length: ShapeLength,
}

pub(super) enum ShapeLength {
    /// The number of bytes.
    Fixed(u32),
    /// The number of bytes, if it depends on the architecture.
    FixedBy(fn(Abi) -> u32),
    /// The name of the argument with the number of elements, and the size of an element in bytes.
    Counted(&'static str, u32),
    /// The size of an element in bytes; the number of elements is the call's result.
    Returned(u32),
    /// Like `Returned`, if the size depends on the architecture.
    ReturnedBy(fn(Abi) -> u32),
    /// The name of the argument that points to the number of bytes.
    Pointed(&'static str),
}

/// Returns a [`Shape`]; the parameters are its fields.
const fn shape(
    calls: &'static [&'static str],
    name: Option<&'static str>,
    c_type: &'static str,
    direction: Direction,
    length: ShapeLength,
) -> Shape {
    Shape {
        calls,
        name,
        c_type,
        direction,
        length,
    }
}

use ShapeLength::{Counted, Fixed, FixedBy, Pointed, Returned, ReturnedBy};

/// The size of `struct stat` of asm/stat.h in bytes.
fn stat_size(abi: Abi) -> u32 {
    match abi {
        Abi::X86_64 => 144,
        Abi::I386 => 64,
        Abi::Arm64 | Abi::Riscv64 => 128,
    }
}

/// The size of `struct epoll_event` in bytes: packed on x86-64, where it has the layout of i386.
pub(crate) fn epoll_event_size(abi: Abi) -> u32 {
    match abi {
        Abi::X86_64 | Abi::I386 => 12,
        Abi::Arm64 | Abi::Riscv64 => 16,
    }
}

/// The size of the kernel's `struct sigaction` in bytes. On RISC-V, it has no `sa_restorer`.
fn signal_action_size(abi: Abi) -> u32 {
    match abi {
        Abi::X86_64 | Abi::Arm64 => 32,
        Abi::I386 => 20,
        Abi::Riscv64 => 24,
    }
}

/// Structures, arrays and numbers. Sizes given as numbers are those of 64-bit programs, also for [`Abi::I386`]: no memory of
/// 32-bit programs is captured. Of `siginfo`, `sigevent` and the masks of NUMA nodes, only the beginning is captured: the part
/// that is shown.
pub(super) const SHAPES: &[Shape] = &[
    shape(&["connect"], None, "sockaddr", In, Counted("addrlen", 1)),
    shape(
        &["sendto"],
        Some("addr"),
        "sockaddr",
        In,
        Counted("addr_len", 1),
    ),
    shape(&["bind"], None, "sockaddr", In, Counted("addrlen", 1)),
    shape(
        &["accept", "accept4"],
        None,
        "sockaddr",
        Out,
        Pointed("upeer_addrlen"),
    ),
    shape(
        &["getsockname", "getpeername"],
        None,
        "sockaddr",
        Out,
        Pointed("usockaddr_len"),
    ),
    shape(&["recvfrom"], None, "sockaddr", Out, Pointed("addr_len")),
    shape(&["getsockopt"], Some("optval"), "", Out, Pointed("optlen")),
    shape(
        &[
            "clock_nanosleep",
            "clock_settime",
            "epoll_pwait2",
            "rt_sigtimedwait",
            "mq_timedsend",
            "mq_timedreceive",
            "semtimedop",
        ],
        None,
        "const struct timespec*",
        In,
        Fixed(16),
    ),
    // In calls.txt, the types of the next four have no `const`, so they are selected by name. The array of `utimensat` has two
    // elements.
    shape(&["nanosleep"], Some("rqtp"), "timespec", In, Fixed(16)),
    shape(&["ppoll"], Some("tsp"), "timespec", In, Fixed(16)),
    shape(&["recvmmsg"], Some("timeout"), "timespec", In, Fixed(16)),
    shape(&["utimensat"], Some("utimes"), "timespec", In, Fixed(32)),
    shape(
        &["clock_gettime", "clock_getres", "sched_rr_get_interval"],
        None,
        "timespec",
        Out,
        Fixed(16),
    ),
    shape(
        &["stat", "fstat", "lstat", "newfstatat"],
        Some("statbuf"),
        "",
        Out,
        FixedBy(stat_size),
    ),
    shape(&["pipe", "pipe2"], Some("fildes"), "", Out, Fixed(8)),
    shape(&["socketpair"], Some("usockvec"), "", Out, Fixed(8)),
    shape(&["poll", "ppoll"], Some("ufds"), "", In, Counted("nfds", 8)),
    shape(
        &["epoll_ctl"],
        Some("event"),
        "",
        In,
        FixedBy(epoll_event_size),
    ),
    shape(
        &["epoll_wait", "epoll_pwait", "epoll_pwait2"],
        Some("events"),
        "",
        Out,
        ReturnedBy(epoll_event_size),
    ),
    shape(
        &["rt_sigaction"],
        Some("act"),
        "",
        In,
        FixedBy(signal_action_size),
    ),
    shape(
        &["rt_sigaction"],
        Some("oact"),
        "",
        Out,
        FixedBy(signal_action_size),
    ),
    shape(&["rt_sigprocmask"], Some("nset"), "", In, Fixed(8)),
    shape(&["rt_sigprocmask"], Some("oset"), "", Out, Fixed(8)),
    shape(&["rt_sigsuspend"], Some("unewset"), "", In, Fixed(8)),
    shape(&["setrlimit"], Some("rlim"), "", In, Fixed(16)),
    shape(&["getrlimit"], Some("rlim"), "", Out, Fixed(16)),
    shape(&["prlimit64"], Some("new_rlim"), "", In, Fixed(16)),
    shape(&["prlimit64"], Some("old_rlim"), "", Out, Fixed(16)),
    shape(&["wait4", "waitpid"], Some("stat_addr"), "", Out, Fixed(4)),
    shape(
        &["setsockopt"],
        Some("optval"),
        "",
        In,
        Counted("optlen", 1),
    ),
    shape(&["clone3"], Some("uargs"), "", In, Counted("size", 1)),
    shape(&["openat2"], Some("how"), "", In, Counted("usize", 1)),
    shape(
        &["mount_setattr", "open_tree_attr"],
        Some("uattr"),
        "",
        In,
        Counted("usize", 1),
    ),
    shape(&["sched_setattr"], Some("uattr"), "", In, Fixed(56)),
    shape(&["io_uring_setup"], Some("params"), "", In, Fixed(120)),
    shape(&["statx"], Some("buffer"), "", Out, Fixed(256)),
    shape(&["utimes", "futimesat"], Some("utimes"), "", In, Fixed(32)),
    shape(&["rt_sigpending"], Some("uset"), "", Out, Fixed(8)),
    shape(
        &[
            "rt_sigtimedwait",
            "signalfd",
            "signalfd4",
            "ppoll",
            "epoll_pwait",
            "epoll_pwait2",
        ],
        None,
        "sigset_t",
        In,
        Fixed(8),
    ),
    shape(
        &["rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"],
        None,
        "siginfo",
        In,
        Fixed(48),
    ),
    shape(
        &["rt_sigtimedwait", "waitid"],
        None,
        "siginfo",
        Out,
        Fixed(48),
    ),
    shape(&["sigaltstack"], Some("uss"), "", In, Fixed(24)),
    shape(&["sigaltstack"], Some("uoss"), "", Out, Fixed(24)),
    shape(
        &["timer_create", "mq_notify"],
        None,
        "sigevent",
        In,
        Fixed(24),
    ),
    shape(
        &["timer_create"],
        Some("created_timer_id"),
        "",
        Out,
        Fixed(4),
    ),
    shape(
        &["sched_setaffinity"],
        Some("user_mask_ptr"),
        "",
        In,
        Counted("len", 1),
    ),
    shape(
        &["sched_getaffinity"],
        Some("user_mask_ptr"),
        "",
        Out,
        Returned(1),
    ),
    shape(&["mbind", "set_mempolicy"], Some("nmask"), "", In, Fixed(8)),
    shape(&["get_mempolicy"], Some("nmask"), "", Out, Fixed(8)),
    shape(&["migrate_pages"], None, "unsigned long*", In, Fixed(8)),
    shape(
        &["futex_waitv"],
        Some("waiters"),
        "",
        In,
        Counted("nr_futexes", 24),
    ),
    shape(
        &["setgroups"],
        Some("grouplist"),
        "",
        In,
        Counted("gidsetsize", 4),
    ),
    shape(&["getgroups"], Some("grouplist"), "", Out, Returned(4)),
    shape(&["getresuid"], None, "uid_t*", Out, Fixed(4)),
    shape(&["getresgid"], None, "gid_t*", Out, Fixed(4)),
    shape(&["getcpu"], None, "unsigned*", Out, Fixed(4)),
    shape(
        &["splice", "copy_file_range", "sendfile"],
        None,
        "loff_t*",
        In,
        Fixed(8),
    ),
];
