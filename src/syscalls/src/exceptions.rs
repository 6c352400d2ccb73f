//! Arguments whose type and name do not determine how they are printed.

use crate::ArgumentKind;
use crate::constants::{self as names, files, system};

/// Returns the kind of an argument that its type and name do not determine; `None` for other arguments.
///
/// The functions below only divide a long list: the arguments of a call may be in several of them, but each argument is in one.
/// An argument of the kind [`ArgumentKind::Value`] is printed even if it is 0; one of the kind [`ArgumentKind::NonZeroValue`] is
/// by default omitted if it is 0.
pub(crate) fn exception(call: &str, name: &str) -> Option<ArgumentKind> {
    memory_exception(call, name)
        .or_else(|| file_exception(call, name))
        .or_else(|| socket_exception(call, name))
        .or_else(|| task_exception(call, name))
        .or_else(|| path_exception(call, name))
        .or_else(|| mount_exception(call, name))
        .or_else(|| notification_exception(call, name))
        .or_else(|| process_exception(call, name))
        .or_else(|| ipc_exception(call, name))
        .or_else(|| system_exception(call, name))
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
        ("memfd_secret", "flags") => Kind::Flags(&names::FD_FLAGS),
        ("mlock2", "flags") => Kind::Flags(&system::MLOCK2),
        ("mlockall", "flags") => Kind::Flags(&system::MLOCKALL),
        ("mbind" | "set_mempolicy", "mode") => Kind::MemoryPolicy,
        ("mbind" | "move_pages", "flags") => Kind::Flags(&system::MEMORY_MOVE),
        ("get_mempolicy", "flags") => Kind::Flags(&system::GET_POLICY),
        ("get_mempolicy", "addr") | ("set_mempolicy_home_node", "start") => Kind::Hex,
        ("map_shadow_stack", "addr") => Kind::Hex,
        ("map_shadow_stack", "flags") => Kind::Flags(&system::SHADOW_STACK),
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
        ("fallocate", "mode") => Kind::Flags(&files::FALLOCATE),
        ("preadv2" | "pwritev2", "flags") => Kind::Flags(&files::RWF),
        ("splice" | "tee" | "vmsplice", "flags") => Kind::Flags(&files::SPLICE),
        ("close_range", "flags") => Kind::Flags(&files::CLOSE_RANGE),
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
        ("clone", "clone_flags") => Kind::Flags(&names::CLONE),
        // Unlike in clone(2), the low byte is no signal: it may have `CLONE_NEWTIME`.
        ("unshare", "unshare_flags") | ("setns", "flags") => Kind::Flags(&system::CLONE3),
        ("waitid", "which") => Kind::Value(&names::WAIT_ID),
        ("futex" | "futex_time64", "op") => Kind::FutexOp,
        ("futex" | "futex_time64", "val3") | ("futex_wait" | "futex_wake", "mask") => {
            Kind::FutexMask
        }
        ("futex_wait" | "futex_wake", "flags") => Kind::Flags(&system::FUTEX2),
        ("rt_sigprocmask" | "sigprocmask", "how") => Kind::Value(&names::SIGPROCMASK),
        ("getrlimit" | "setrlimit" | "prlimit64" | "ugetrlimit", "resource") => {
            Kind::Value(&names::RLIMIT)
        }
        ("prctl", "option") => Kind::Value(&names::PRCTL),
        ("prctl", "arg2") => Kind::PrctlArg2,
        ("prctl", "arg3") => Kind::PrctlArg3,
        ("arch_prctl", "option") => Kind::NonZeroValue(&names::ARCH_PRCTL),
        ("arch_prctl", "arg2") => Kind::Hex,
        (
            "clock_gettime" | "clock_settime" | "clock_getres" | "clock_adjtime"
            | "clock_gettime64",
            "which_clock",
        ) => Kind::Value(&names::CLOCK),
        ("clock_nanosleep" | "clock_nanosleep_time64", "which_clock")
        | ("futex_wait" | "futex_waitv", "clockid") => Kind::NonZeroValue(&names::CLOCK),
        ("timerfd_create", "clockid") | ("timer_create", "which_clock") => {
            Kind::Value(&names::CLOCK)
        }
        ("getitimer" | "setitimer", "which") => Kind::Value(&names::ITIMER),
        ("sched_setscheduler" | "sched_get_priority_max" | "sched_get_priority_min", "policy") => {
            Kind::Policy
        }
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

fn path_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("faccessat2", "flags") => Kind::Flags(&files::AT_ACCESS),
        (
            "fchownat" | "fchmodat2" | "linkat" | "utimensat" | "execveat" | "mount_setattr",
            "flag" | "flags",
        )
        | (
            "setxattrat" | "getxattrat" | "listxattrat" | "removexattrat" | "file_getattr"
            | "file_setattr",
            "at_flags",
        ) => Kind::Flags(&files::AT),
        ("name_to_handle_at", "flag") => Kind::Flags(&files::AT_HANDLE),
        ("execveat", "fd") => Kind::DirFd,
        ("setxattr" | "lsetxattr" | "fsetxattr", "flags") => Kind::Flags(&files::XATTR),
        ("mknod" | "mknodat" | "ustat", "dev") => Kind::Device,
        ("quotactl" | "quotactl_fd", "cmd") => Kind::QuotaCommand,
        ("swapon", "swap_flags") => Kind::Flags(&files::SWAP),
        _ => return None,
    })
}

fn mount_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("umount" | "umount2", "flags") => Kind::Flags(&files::UMOUNT),
        // The only flag, `FSOPEN_CLOEXEC`, has the number of `FSMOUNT_CLOEXEC`.
        ("fsopen", "flags") => Kind::Flags(&names::FSMOUNT),
        ("open_tree" | "open_tree_attr", "flags") => Kind::Flags(&files::OPEN_TREE),
        _ => return None,
    })
}

fn notification_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("inotify_add_watch", "mask") => Kind::Flags(&files::INOTIFY),
        ("fanotify_init", "flags") => Kind::Flags(&files::FANOTIFY_INIT),
        ("fanotify_init", "event_f_flags") => Kind::OpenFlags,
        ("fanotify_mark", "flags") => Kind::Flags(&files::FANOTIFY_MARK),
        ("fanotify_mark", "mask") => Kind::Flags(&files::FANOTIFY_EVENT),
        ("io_uring_enter", "flags") => Kind::Flags(&files::URING_ENTER),
        ("io_uring_register", "opcode") => Kind::Value(&files::URING_REGISTER),
        _ => return None,
    })
}

fn process_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("pidfd_open", "flags") => Kind::Flags(&system::PIDFD),
        ("pidfd_send_signal", "flags") => Kind::Flags(&system::PIDFD_SIGNAL),
        ("ptrace", "request") => Kind::Value(&system::PTRACE),
        ("ptrace", "addr" | "data") => Kind::Hex,
        ("membarrier", "cmd") => Kind::Value(&system::MEMBARRIER),
        ("getpriority" | "setpriority", "which") => Kind::NonZeroValue(&system::PRIORITY),
        ("ioprio_get" | "ioprio_set", "which") => Kind::NonZeroValue(&system::IO_PRIORITY),
        ("ioprio_set", "ioprio") => Kind::IoPriority,
        ("getrusage", "who") => Kind::NonZeroValue(&system::RUSAGE),
        ("landlock_create_ruleset", "flags") => Kind::Flags(&system::LANDLOCK_CREATE),
        ("landlock_restrict_self", "flags") => Kind::Flags(&system::LANDLOCK_RESTRICT),
        ("lsm_get_self_attr" | "lsm_set_self_attr", "attr") => {
            Kind::NonZeroValue(&system::LSM_ATTR)
        }
        ("add_key", "ringid") | ("request_key", "destringid") => {
            Kind::NonZeroValue(&system::KEYRING)
        }
        (
            "timer_settime" | "timerfd_settime" | "clock_nanosleep" | "clock_nanosleep_time64",
            "flags",
        ) => Kind::Flags(&system::TIMER),
        _ => return None,
    })
}

fn ipc_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("semget", "semflg") | ("msgget", "msgflg") => Kind::IpcFlags(&system::IPC_GET),
        ("shmget", "shmflg") => Kind::IpcFlags(&system::SHM_GET),
        ("shmat", "shmflg") => Kind::Flags(&system::SHMAT),
        ("msgsnd" | "msgrcv", "msgflg") => Kind::Flags(&system::MESSAGE),
        ("semctl", "cmd") => Kind::Value(&system::SEMAPHORE_COMMAND),
        ("shmctl", "cmd") => Kind::Value(&system::SHM_COMMAND),
        ("msgctl", "cmd") => Kind::Value(&system::QUEUE_COMMAND),
        _ => return None,
    })
}

fn system_exception(call: &str, name: &str) -> Option<ArgumentKind> {
    use ArgumentKind as Kind;
    Some(match (call, name) {
        ("reboot", "magic1" | "magic2") => Kind::Value(&system::REBOOT_MAGIC),
        ("reboot", "cmd") => Kind::Value(&system::REBOOT),
        ("syslog", "type") => Kind::Value(&system::SYSLOG),
        ("delete_module", "flags") => Kind::Flags(&system::DELETE_MODULE),
        ("finit_module", "flags") => Kind::Flags(&system::INIT_MODULE),
        ("kexec_load", "flags") => Kind::Flags(&system::KEXEC),
        ("kexec_load", "entry") => Kind::Hex,
        ("kexec_file_load", "flags") => Kind::Flags(&system::KEXEC_FILE),
        _ => return None,
    })
}
