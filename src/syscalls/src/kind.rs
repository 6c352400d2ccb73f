//! How arguments are printed. This depends on their type and name, with exceptions for some calls.

use crate::constants::{self as names, FlagNames, ValueNames};

/// How an argument is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// A signed decimal number.
    Number,
    /// A hexadecimal number.
    Hex,
    /// An address, whose content may be captured.
    Pointer,
    /// An address of a NUL-terminated path.
    Path,
    /// An address of a NUL-terminated text other than a path.
    Text,
    /// An address of bytes, whose number is another argument or the result.
    Buffer,
    /// An address of a socket address.
    SocketAddress,
    /// A file descriptor.
    Fd,
    /// A file descriptor of a directory, or `AT_FDCWD`.
    DirFd,
    /// A process id or thread id.
    Pid,
    /// The mode of a file.
    Mode,
    /// One value of a list, printed also if it is 0.
    Value(&'static ValueNames),
    /// One value of a list, not printed if it is 0.
    NonZeroValue(&'static ValueNames),
    /// A set of flags.
    Flags(&'static FlagNames),
    /// The flags of open(2).
    OpenFlags,
    /// The mode of access(2).
    AccessMode,
    /// A socket's type.
    SocketType,
    /// A protocol, whose meaning depends on the argument `family`.
    Protocol,
    /// A socket's option, whose meaning depends on the argument `level`.
    SocketOption,
    /// A futex operation.
    FutexOp,
    /// The last argument of futex(2).
    FutexMask,
    /// A request of ioctl(2).
    IoctlRequest,
    /// The third argument of fcntl(2), whose meaning depends on the command.
    FcntlArgument,
    /// The second argument of prctl(2), whose meaning depends on the option.
    PrctlArgument,
    /// The third argument of prctl(2), whose meaning depends on the option.
    PrctlValue,
    /// An index of kcmp(2), whose meaning depends on the type.
    KcmpIndex,
    /// A scheduling policy.
    Policy,
}

/// Returns the kind of an argument.
pub(crate) fn argument_kind(call: &str, index: usize, name: &str, c_type: &str) -> ArgumentKind {
    use ArgumentKind as Kind;
    if let Some(kind) = exception(call, name) {
        return kind;
    }
    // Not only at the end: there are `void*const`.
    let is_pointer = c_type.contains('*');
    let is_text = matches!(c_type, "const char*" | "char*");
    match (name, c_type) {
        ("u_msg_ptr", _) => Kind::Buffer,
        (_, "const char*") if is_path(call, name) => Kind::Path,
        (_, "const char*") if name == "buf" || name.ends_with("value") => Kind::Buffer,
        (_, "const char*") => Kind::Text,
        _ if is_text => Kind::Pointer,
        (_, "struct sockaddr*") => Kind::SocketAddress,
        ("buf" | "buff" | "ubuf", _) if is_pointer => Kind::Buffer,
        _ if is_pointer || c_type.ends_with("handler_t") => Kind::Pointer,
        (_, "pid_t") => Kind::Pid,
        (_, "umode_t") => Kind::Mode,
        ("mode", "mode_t") => Kind::Mode,
        (name, _) if name.ends_with("dfd") && call != "pidfd_send_signal" => Kind::DirFd,
        ("sig", "int") => Kind::NonZeroValue(&names::SIGNAL),
        // These names are those of descriptors, whatever their type.
        (
            "newfd" | "fd" | "oldfd" | "fd_in" | "fd_out" | "epfd" | "ufd" | "in_fd" | "out_fd",
            _,
        ) => Kind::Fd,
        (name, "int" | "unsigned int") if name.ends_with("fd") => Kind::Fd,
        ("addr" | "start" | "brk" | "newsp" | "tls", "unsigned long")
            if is_address(call, index) =>
        {
            Kind::Hex
        }
        _ => Kind::Number,
    }
}

/// Whether an `unsigned long` of this name is an address in this call; perf prints others as decimal numbers.
fn is_address(call: &str, _: usize) -> bool {
    matches!(
        call,
        "mmap"
            | "mmap2"
            | "munmap"
            | "mprotect"
            | "pkey_mprotect"
            | "mremap"
            | "brk"
            | "madvise"
            | "clone"
            | "mseal"
            | "remap_file_pages"
    )
}

fn is_path(call: &str, name: &str) -> bool {
    if matches!(
        call,
        "add_key" | "request_key" | "fsconfig" | "setxattr" | "getxattr"
    ) {
        return name.contains("path");
    }
    name.contains("path")
        || name.contains("filename")
        || matches!(
            name,
            "oldname"
                | "newname"
                | "specialfile"
                | "name"
                | "dir_name"
                | "dev_name"
                | "library"
                | "new_root"
                | "put_old"
                | "special"
        )
}

/// Returns the kind of an argument that its type and name do not determine.
fn exception(call: &str, name: &str) -> Option<ArgumentKind> {
    memory_exception(call, name)
        .or_else(|| file_exception(call, name))
        .or_else(|| socket_exception(call, name))
        .or_else(|| task_exception(call, name))
}

fn memory_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("mmap" | "mmap2" | "mprotect" | "pkey_mprotect", "prot") => Kind::Flags(&names::PROT),
        ("mmap" | "mmap2", "flags") => Kind::Flags(&names::MMAP),
        ("mmap" | "mmap2", "off" | "pgoff") => Kind::Hex,
        ("mmap" | "mmap2", "fd") => Kind::Fd,
        ("mremap", "flags") => Kind::Flags(&names::MREMAP),
        ("mremap", "new_addr") => Kind::Hex,
        ("madvise" | "process_madvise", "behavior") => Kind::NonZeroValue(&names::MADVISE),
        ("pkey_alloc", "init_val") => Kind::Flags(&names::PKEY),
        ("shmat", "shmaddr") => Kind::Pointer,
        ("msync", "flags") => Kind::Flags(&names::MSYNC),
        ("memfd_create", "flags") => Kind::Flags(&names::MEMFD),
        _ => return None,
    })
}

fn file_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("open" | "openat" | "open_by_handle_at", "flags") | ("mq_open", "oflag") => {
            Kind::OpenFlags
        }
        (
            "pipe2" | "dup3" | "accept4" | "epoll_create1" | "inotify_init1" | "signalfd4"
            | "timerfd_create" | "userfaultfd",
            "flags",
        ) => Kind::Flags(&names::FD_FLAGS),
        ("eventfd2", "flags") => Kind::Flags(&names::EVENTFD),
        ("access" | "faccessat" | "faccessat2", "mode") => Kind::AccessMode,
        ("lseek" | "_llseek", "whence") => Kind::Value(&names::WHENCE),
        ("fcntl" | "fcntl64", "cmd") => Kind::Value(&names::FCNTL),
        ("fcntl" | "fcntl64", "arg") => Kind::FcntlArgument,
        ("flock", "cmd") => Kind::Flags(&names::FLOCK),
        ("unlinkat", "flag") => Kind::Flags(&names::UNLINK),
        ("fadvise64" | "fadvise64_64", "advice") => Kind::Value(&names::FADVISE),
        ("ioctl", "cmd") => Kind::IoctlRequest,
        ("ioctl", "arg") => Kind::Hex,
        ("renameat2", "flags") => Kind::Flags(&names::RENAME),
        ("mount", "flags") => Kind::Flags(&names::MOUNT),
        ("fsmount", "flags") => Kind::Flags(&names::FSMOUNT),
        ("fsmount", "attr_flags") => Kind::Flags(&names::MOUNT_ATTR),
        ("fspick", "flags") => Kind::Flags(&names::FSPICK),
        ("move_mount", "flags") => Kind::Flags(&names::MOVE_MOUNT),
        ("fsconfig", "cmd") => Kind::Value(&names::FSCONFIG),
        ("statx", "flags") => Kind::Flags(&names::STATX_FLAGS),
        ("statx", "mask") => Kind::Flags(&names::STATX_MASK),
        ("sync_file_range" | "sync_file_range2", "flags") => Kind::Flags(&names::SYNC_RANGE),
        ("epoll_ctl", "op") => Kind::Value(&names::EPOLL_OP),
        ("dup", "fildes") | ("tee", "fdin" | "fdout") => Kind::Fd,
        ("name_to_handle_at" | "open_by_handle_at", "mountdirfd" | "dfd") => Kind::DirFd,
        _ => return None,
    })
}

fn socket_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("socket" | "socketpair", "family") => Kind::Value(&names::FAMILY),
        ("socket" | "socketpair", "type") => Kind::SocketType,
        ("socket" | "socketpair", "protocol") => Kind::Protocol,
        ("setsockopt" | "getsockopt", "level") => Kind::Value(&names::SOCKET_LEVEL),
        ("setsockopt" | "getsockopt", "optname") => Kind::SocketOption,
        ("shutdown", "how") => Kind::Value(&names::SHUTDOWN),
        (
            "sendto" | "sendmsg" | "sendmmsg" | "recvfrom" | "recvmsg" | "recvmmsg"
            | "recvmmsg_time64",
            "flags",
        ) => Kind::Flags(&names::MSG),
        _ => return None,
    })
}

fn task_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("clone", "clone_flags") | ("unshare", "unshare_flags") => Kind::Flags(&names::CLONE),
        ("setns", "flags") => Kind::Flags(&names::CLONE),
        ("waitid", "which") => Kind::Value(&names::WAIT_ID),
        ("futex" | "futex_time64", "op") => Kind::FutexOp,
        ("futex" | "futex_time64", "val3") => Kind::FutexMask,
        ("rt_sigprocmask" | "sigprocmask", "how") => Kind::Value(&names::SIGPROCMASK),
        ("getrlimit" | "setrlimit" | "prlimit64" | "ugetrlimit", "resource") => {
            Kind::Value(&names::RLIMIT)
        }
        ("prctl", "option") => Kind::Value(&names::PRCTL),
        ("prctl", "arg2") => Kind::PrctlArgument,
        ("prctl", "arg3") => Kind::PrctlValue,
        ("arch_prctl", "option") => Kind::NonZeroValue(&names::ARCH_PRCTL),
        ("arch_prctl", "arg2") => Kind::Hex,
        (
            "clock_gettime" | "clock_settime" | "clock_getres" | "clock_adjtime"
            | "clock_gettime64",
            "which_clock",
        ) => Kind::Value(&names::CLOCK),
        ("clock_nanosleep" | "clock_nanosleep_time64", "which_clock") => {
            Kind::NonZeroValue(&names::CLOCK)
        }
        ("timerfd_create", "clockid") | ("timer_create", "which_clock") => {
            Kind::Value(&names::CLOCK)
        }
        ("getitimer" | "setitimer", "which") => Kind::Value(&names::ITIMER),
        ("sched_setscheduler", "policy") => Kind::Policy,
        ("landlock_add_rule", "rule_type") => Kind::Value(&names::LANDLOCK_RULE),
        ("bpf", "cmd") => Kind::Value(&names::BPF),
        ("keyctl", "option") => Kind::Value(&names::KEYCTL),
        ("kcmp", "type") => Kind::Value(&names::KCMP),
        ("kcmp", "idx1" | "idx2") => Kind::KcmpIndex,
        ("seccomp", "op") => Kind::Value(&names::SECCOMP_OP),
        ("seccomp", "flags") => Kind::Flags(&names::SECCOMP_FLAGS),
        ("getrandom", "flags") => Kind::Flags(&names::RANDOM),
        ("perf_event_open", "flags") => Kind::Flags(&names::PERF_OPEN),
        ("perf_event_open", "cpu") => Kind::Number,
        ("wait4" | "waitid" | "waitpid", "options") => Kind::Flags(&names::WAIT),
        _ => return None,
    })
}
