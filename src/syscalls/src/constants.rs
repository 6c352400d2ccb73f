//! Names of constants of the kernel's uapi headers, mostly without their common prefixes.

use std::fmt::Write as _;

/// Names of the possible values of an argument.
#[derive(Debug, PartialEq, Eq)]
pub struct ValueNames {
    names: &'static [(u64, &'static str)],
    /// How other values are printed, as in perf.
    unknown: UnknownValue,
}

#[derive(Debug, PartialEq, Eq)]
enum UnknownValue {
    Decimal,
    Hex,
}

impl ValueNames {
    pub(crate) fn text(&self, value: u64) -> String {
        let known = self.names.iter().find(|(known, _)| *known == value);
        match (known, &self.unknown) {
            (Some((_, name)), _) => (*name).to_owned(),
            (None, UnknownValue::Decimal) => (value as i64).to_string(),
            (None, UnknownValue::Hex) => format!("{value:#x}"),
        }
    }
}

/// Names of the bits of an argument.
#[derive(Debug, PartialEq, Eq)]
pub struct FlagNames {
    /// A mask, and the name that is printed first if no bit of the mask is set.
    none: Option<(u64, &'static str)>,
    /// Bits and their name, in the order of printing. Names of several bits come before the names of single bits among them.
    names: &'static [(u64, &'static str)],
}

impl FlagNames {
    /// Returns the names joined by `|`; bits without a name as one hexadecimal number. Empty if `value` is 0 and `none` is
    /// `None`.
    pub(crate) fn text(&self, value: u64) -> String {
        let mut unnamed = value;
        let mut text = String::new();
        if let Some((mask, name)) = self.none
            && value & mask == 0
        {
            text.push_str(name);
        }
        for (bits, name) in self.names {
            if unnamed & bits == *bits {
                join(&mut text, name);
                unnamed &= !bits;
            }
        }
        if unnamed != 0 {
            join(&mut text, "");
            let _ = write!(text, "{unnamed:#x}");
        }
        text
    }
}

fn join(text: &mut String, name: &str) {
    if !text.is_empty() {
        text.push('|');
    }
    text.push_str(name);
}

/// Defines [`ValueNames`]: the variant of [`UnknownValue`] for other values, then the values and their names.
macro_rules! values {
    ($id:ident, $unknown:ident, $($number:literal $name:literal),+ $(,)?) => {
        pub(crate) static $id: ValueNames = ValueNames {
            names: &[$(($number, $name)),+],
            unknown: UnknownValue::$unknown,
        };
    };
}

/// Defines [`FlagNames`]: its field `none`, then the bits and their names.
macro_rules! flags {
    ($id:ident, $none:expr, $($bits:literal $name:literal),+ $(,)?) => {
        pub(crate) static $id: FlagNames = FlagNames {
            none: $none,
            names: &[$(($bits, $name)),+],
        };
    };
}

pub(crate) mod files;
pub(crate) mod system;

flags!(OPEN, Some((3, "RDONLY")), 0o2 "RDWR", 0o2000 "APPEND", 0o20000 "ASYNC", 0o2000000 "CLOEXEC", 0o100 "CREAT",
    0o40000 "DIRECT", 0o20200000 "TMPFILE", 0o200000 "DIRECTORY", 0o200 "EXCL", 0o100000 "LARGEFILE", 0o400000 "NOFOLLOW", 0o1000000 "NOATIME",
    0o400 "NOCTTY", 0o4000 "NONBLOCK", 0o10000000 "PATH", 0o4010000 "SYNC", 0o10000 "DSYNC", 0o1000 "TRUNC",
    0o1 "WRONLY");
flags!(OPEN_ARM, Some((3, "RDONLY")), 0o2 "RDWR", 0o2000 "APPEND", 0o20000 "ASYNC", 0o2000000 "CLOEXEC", 0o100 "CREAT",
    0o200000 "DIRECT", 0o20040000 "TMPFILE", 0o40000 "DIRECTORY", 0o200 "EXCL", 0o400000 "LARGEFILE", 0o100000 "NOFOLLOW", 0o1000000 "NOATIME",
    0o400 "NOCTTY", 0o4000 "NONBLOCK", 0o10000000 "PATH", 0o4010000 "SYNC", 0o10000 "DSYNC", 0o1000 "TRUNC",
    0o1 "WRONLY");
flags!(FD_FLAGS, None, 0o2000000 "CLOEXEC", 0o4000 "NONBLOCK");
flags!(EVENTFD, None, 0o1 "SEMAPHORE", 0o2000000 "CLOEXEC", 0o4000 "NONBLOCK");
flags!(PROT, None, 1 "READ", 2 "WRITE", 4 "EXEC", 8 "SEM", 0x1000000 "GROWSDOWN", 0x2000000 "GROWSUP");
flags!(MMAP, None, 3 "SHARED_VALIDATE", 1 "SHARED", 2 "PRIVATE", 0x10 "FIXED", 0x20 "ANONYMOUS", 0x40 "32BIT", 0x100 "GROWSDOWN",
    0x800 "DENYWRITE", 0x1000 "EXECUTABLE", 0x2000 "LOCKED", 0x4000 "NORESERVE", 0x8000 "POPULATE",
    0x10000 "NONBLOCK", 0x20000 "STACK", 0x40000 "HUGETLB", 0x80000 "SYNC", 0x100000 "FIXED_NOREPLACE");
flags!(MREMAP, None, 1 "MAYMOVE", 2 "FIXED", 4 "DONTUNMAP");
flags!(MSG, None, 1 "OOB", 2 "PEEK", 4 "DONTROUTE", 8 "CTRUNC", 0x10 "PROBE", 0x20 "TRUNC", 0x40 "DONTWAIT", 0x80 "EOR",
    0x100 "WAITALL", 0x200 "FIN", 0x400 "SYN", 0x800 "CONFIRM", 0x1000 "RST", 0x2000 "ERRQUEUE", 0x4000 "NOSIGNAL",
    0x8000 "MORE", 0x10000 "WAITFORONE", 0x40000 "BATCH", 0x4000000 "ZEROCOPY", 0x20000000 "FASTOPEN", 0x40000000 "CMSG_CLOEXEC");
flags!(MSYNC, None, 1 "ASYNC", 2 "INVALIDATE", 4 "SYNC");
flags!(MEMFD, None, 1 "CLOEXEC", 2 "ALLOW_SEALING", 4 "HUGETLB", 8 "NOEXEC_SEAL", 16 "EXEC");
flags!(UNLINK, None, 0x200 "REMOVEDIR");
// These names keep their prefix, as in perf 7.2, which takes them from BTF.
values!(LANDLOCK_RULE, Decimal, 1 "LANDLOCK_RULE_PATH_BENEATH", 2 "LANDLOCK_RULE_NET_PORT");
values!(SHUTDOWN, Decimal, 0 "RD", 1 "WR", 2 "RDWR");
values!(WAIT_ID, Decimal, 0 "ALL", 1 "PID", 2 "PGID", 3 "PIDFD");
values!(FADVISE, Decimal, 0 "NORMAL", 1 "RANDOM", 2 "SEQUENTIAL", 3 "WILLNEED", 4 "DONTNEED", 5 "NOREUSE");
values!(SOCKET_LEVEL, Decimal, 0 "IP", 1 "SOCKET", 6 "TCP", 17 "UDP", 41 "IPV6", 255 "RAW", 263 "PACKET", 270 "NETLINK", 284 "XDP");
values!(SOCKET_OPTION, Decimal, 1 "DEBUG", 2 "REUSEADDR", 3 "TYPE", 4 "ERROR", 5 "DONTROUTE", 6 "BROADCAST", 7 "SNDBUF", 8 "RCVBUF",
    9 "KEEPALIVE", 10 "OOBINLINE", 11 "NO_CHECK", 12 "PRIORITY", 13 "LINGER", 14 "BSDCOMPAT", 15 "REUSEPORT", 16 "PASSCRED",
    17 "PEERCRED", 18 "RCVLOWAT", 19 "SNDLOWAT", 20 "RCVTIMEO", 21 "SNDTIMEO", 25 "BINDTODEVICE", 26 "ATTACH_FILTER",
    27 "DETACH_FILTER", 28 "PEERNAME", 29 "TIMESTAMP", 30 "ACCEPTCONN", 31 "PEERSEC", 32 "SNDBUFFORCE", 33 "RCVBUFFORCE",
    34 "PASSSEC", 35 "TIMESTAMPNS", 36 "MARK", 37 "TIMESTAMPING", 38 "PROTOCOL", 39 "DOMAIN", 46 "BUSY_POLL", 47 "MAX_PACING_RATE",
    49 "INCOMING_CPU", 50 "ATTACH_BPF", 57 "COOKIE", 60 "ZEROCOPY", 61 "TXTIME", 62 "BINDTOIFINDEX");
flags!(POLL, None, 0x1 "IN", 0x2 "PRI", 0x4 "OUT", 0x8 "ERR", 0x10 "HUP", 0x20 "NVAL", 0x40 "RDNORM", 0x80 "RDBAND", 0x100 "WRNORM",
    0x200 "WRBAND", 0x400 "MSG", 0x2000 "RDHUP", 0x1000_0000 "EXCLUSIVE", 0x2000_0000 "WAKEUP", 0x4000_0000 "ONESHOT", 0x8000_0000 "ET");
flags!(SIGNAL_ACTION, None, 0x1 "NOCLDSTOP", 0x2 "NOCLDWAIT", 0x4 "SIGINFO", 0x0400_0000 "RESTORER", 0x0800_0000 "ONSTACK",
    0x1000_0000 "RESTART", 0x4000_0000 "NODEFER", 0x8000_0000 "RESETHAND");
flags!(CLONE, None, 0x100 "VM", 0x200 "FS", 0x400 "FILES", 0x800 "SIGHAND", 0x1000 "PIDFD", 0x2000 "PTRACE", 0x4000 "VFORK",
    0x8000 "PARENT", 0x10000 "THREAD", 0x20000 "NEWNS", 0x40000 "SYSVSEM", 0x80000 "SETTLS", 0x100000 "PARENT_SETTID",
    0x200000 "CHILD_CLEARTID", 0x400000 "DETACHED", 0x800000 "UNTRACED", 0x1000000 "CHILD_SETTID", 0x2000000 "NEWCGROUP",
    0x4000000 "NEWUTS", 0x8000000 "NEWIPC", 0x10000000 "NEWUSER", 0x20000000 "NEWPID", 0x40000000 "NEWNET", 0x80000000 "IO");
flags!(RENAME, None, 1 "NOREPLACE", 2 "EXCHANGE", 4 "WHITEOUT");
flags!(MOUNT, None, 1 "RDONLY", 2 "NOSUID", 4 "NODEV", 8 "NOEXEC", 0x10 "SYNCHRONOUS", 0x20 "REMOUNT", 0x40 "MANDLOCK", 0x80 "DIRSYNC",
    0x100 "NOSYMFOLLOW", 0x400 "NOATIME", 0x800 "NODIRATIME", 0x1000 "BIND", 0x2000 "MOVE", 0x4000 "REC", 0x8000 "SILENT",
    0x10000 "POSIXACL", 0x20000 "UNBINDABLE", 0x40000 "PRIVATE", 0x80000 "SLAVE", 0x100000 "SHARED", 0x200000 "RELATIME",
    0x400000 "KERNMOUNT", 0x800000 "I_VERSION", 0x1000000 "STRICTATIME", 0x2000000 "LAZYTIME");
flags!(FSMOUNT, None, 1 "CLOEXEC");
flags!(MOUNT_ATTR, Some((0x70, "RELATIME")), 1 "RDONLY", 2 "NOSUID", 4 "NODEV", 8 "NOEXEC", 0x10 "NOATIME", 0x20 "STRICTATIME", 0x80 "NODIRATIME");
flags!(FSPICK, None, 1 "CLOEXEC", 2 "SYMLINK_NOFOLLOW", 4 "NO_AUTOMOUNT", 8 "EMPTY_PATH");
flags!(MOVE_MOUNT, None, 1 "F_SYMLINKS", 2 "F_AUTOMOUNTS", 4 "F_EMPTY_PATH", 0x10 "T_SYMLINKS", 0x20 "T_AUTOMOUNTS", 0x40 "T_EMPTY_PATH");
flags!(WAIT, None, 1 "NOHANG", 2 "UNTRACED", 4 "EXITED", 8 "CONTINUED", 0x100_0000 "NOWAIT", 0x2000_0000 "NOTHREAD",
    0x4000_0000 "ALL", 0x8000_0000 "CLONE");
flags!(RANDOM, None, 1 "NONBLOCK", 2 "RANDOM", 4 "INSECURE");
flags!(PERF_OPEN, None, 1 "FD_NO_GROUP", 2 "FD_OUTPUT", 4 "PID_CGROUP", 8 "FD_CLOEXEC");
flags!(SECCOMP_FLAGS, None, 1 "TSYNC", 2 "LOG", 4 "SPEC_ALLOW", 8 "NEW_LISTENER", 0x10 "TSYNC_ESRCH");
flags!(PKEY, None, 1 "DISABLE_ACCESS", 2 "DISABLE_WRITE");
flags!(SYNC_RANGE, None, 7 "WRITE_AND_WAIT", 1 "WAIT_BEFORE", 2 "WRITE", 4 "WAIT_AFTER");
flags!(STATX_FLAGS, None, 0x100 "SYMLINK_NOFOLLOW", 0x200 "REMOVEDIR", 0x400 "SYMLINK_FOLLOW", 0x800 "NO_AUTOMOUNT", 0x1000 "EMPTY_PATH",
    0x2000 "STATX_FORCE_SYNC", 0x4000 "STATX_DONT_SYNC");
flags!(STATX_MASK, None, 0x1 "TYPE", 0x2 "MODE", 0x4 "NLINK", 0x8 "UID", 0x10 "GID", 0x20 "ATIME", 0x40 "MTIME", 0x80 "CTIME", 0x100 "INO",
    0x200 "SIZE", 0x400 "BLOCKS", 0x800 "BTIME", 0x1000 "MNT_ID", 0x2000 "DIOALIGN", 0x4000 "MNT_ID_UNIQUE");

values!(WHENCE, Decimal, 0 "SET", 1 "CUR", 2 "END", 3 "DATA", 4 "HOLE");
// As in perf, these names keep their prefix.
values!(MADVISE, Decimal, 0 "MADV_NORMAL", 1 "MADV_RANDOM", 2 "MADV_SEQUENTIAL", 3 "MADV_WILLNEED", 4 "MADV_DONTNEED", 8 "MADV_FREE",
    9 "MADV_REMOVE", 10 "MADV_DONTFORK", 11 "MADV_DOFORK", 12 "MADV_MERGEABLE", 13 "MADV_UNMERGEABLE", 14 "MADV_HUGEPAGE",
    15 "MADV_NOHUGEPAGE", 16 "MADV_DONTDUMP", 17 "MADV_DODUMP", 18 "MADV_WIPEONFORK", 19 "MADV_KEEPONFORK", 20 "MADV_COLD",
    21 "MADV_PAGEOUT", 22 "MADV_POPULATE_READ", 23 "MADV_POPULATE_WRITE", 24 "MADV_DONTNEED_LOCKED", 25 "MADV_COLLAPSE",
    100 "MADV_HWPOISON", 101 "MADV_SOFT_OFFLINE", 102 "MADV_GUARD_INSTALL", 103 "MADV_GUARD_REMOVE");
values!(FCNTL, Decimal, 0 "DUPFD", 1 "GETFD", 2 "SETFD", 3 "GETFL", 4 "SETFL", 5 "GETLK", 6 "SETLK", 7 "SETLKW", 8 "SETOWN", 9 "GETOWN",
    10 "SETSIG", 11 "GETSIG", 12 "GETLK64", 13 "SETLK64", 14 "SETLKW64", 15 "SETOWN_EX", 16 "GETOWN_EX", 17 "GETOWNER_UIDS",
    36 "OFD_GETLK", 37 "OFD_SETLK", 38 "OFD_SETLKW",
    1024 "SETLEASE", 1025 "GETLEASE", 1026 "NOTIFY", 1029 "CANCELLK", 1030 "DUPFD_CLOEXEC", 1031 "SETPIPE_SZ", 1032 "GETPIPE_SZ",
    1033 "ADD_SEALS", 1034 "GET_SEALS", 1035 "GET_RW_HINT", 1036 "SET_RW_HINT", 1037 "GET_FILE_RW_HINT", 1038 "SET_FILE_RW_HINT");
values!(LEASE, Decimal, 0 "RDLCK", 1 "WRLCK", 2 "UNLCK");
flags!(FLOCK, None, 1 "SH", 2 "EX", 4 "NB", 8 "UN", 32 "MAND", 64 "READ", 128 "WRITE");
values!(FUTEX, Hex, 0 "WAIT", 1 "WAKE", 2 "FD", 3 "REQUEUE", 4 "CMP_REQUEUE", 5 "WAKE_OP", 6 "LOCK_PI", 7 "UNLOCK_PI", 8 "TRYLOCK_PI",
    9 "WAIT_BITSET", 10 "WAKE_BITSET", 11 "WAIT_REQUEUE_PI", 12 "CMP_REQUEUE_PI", 13 "LOCK_PI2");
values!(FAMILY, Decimal, 0 "UNSPEC", 1 "LOCAL", 2 "INET", 3 "AX25", 4 "IPX", 5 "APPLETALK", 6 "NETROM", 7 "BRIDGE", 8 "ATMPVC", 9 "X25", 10 "INET6",
    11 "ROSE", 12 "DECnet", 13 "NETBEUI", 14 "SECURITY", 15 "KEY", 16 "NETLINK", 17 "PACKET", 18 "ASH", 19 "ECONET", 20 "ATMSVC",
    21 "RDS", 22 "SNA", 23 "IRDA", 24 "PPPOX", 25 "WANPIPE", 26 "LLC", 27 "IB", 28 "MPLS", 29 "CAN", 30 "TIPC", 31 "BLUETOOTH",
    32 "IUCV", 33 "RXRPC", 34 "ISDN", 35 "PHONET", 36 "IEEE802154", 37 "CAIF", 38 "ALG", 39 "NFC", 40 "VSOCK", 41 "KCM", 42 "QIPCRTR",
    43 "SMC", 44 "XDP", 45 "MCTP");
values!(SOCKET_TYPE, Hex, 1 "STREAM", 2 "DGRAM", 3 "RAW", 4 "RDM", 5 "SEQPACKET", 6 "DCCP", 10 "PACKET");
values!(IP_PROTOCOL, Decimal, 0 "IP", 1 "ICMP", 2 "IGMP", 4 "IPIP", 6 "TCP", 8 "EGP", 12 "PUP", 17 "UDP", 22 "IDP", 29 "TP", 33 "DCCP", 41 "IPV6",
    46 "RSVP", 47 "GRE", 50 "ESP", 51 "AH", 92 "MTP", 94 "BEETPH", 98 "ENCAP", 103 "PIM", 108 "COMP", 132 "SCTP", 136 "UDPLITE",
    137 "MPLS", 143 "ETHERNET", 255 "RAW", 262 "MPTCP");
values!(SIGNAL, Hex, 1 "HUP", 2 "INT", 3 "QUIT", 4 "ILL", 5 "TRAP", 6 "ABRT", 7 "BUS", 8 "FPE", 9 "KILL", 10 "USR1", 11 "SEGV", 12 "USR2",
    13 "PIPE", 14 "ALRM", 15 "TERM", 16 "STKFLT", 17 "CHLD", 18 "CONT", 19 "STOP", 20 "TSTP", 21 "TTIN", 22 "TTOU", 23 "URG",
    24 "XCPU", 25 "XFSZ", 26 "VTALRM", 27 "PROF", 28 "WINCH", 29 "IO", 30 "PWR", 31 "SYS");
values!(SIGPROCMASK, Decimal, 0 "BLOCK", 1 "UNBLOCK", 2 "SETMASK");
values!(RLIMIT, Decimal, 0 "CPU", 1 "FSIZE", 2 "DATA", 3 "STACK", 4 "CORE", 5 "RSS", 6 "NPROC", 7 "NOFILE", 8 "MEMLOCK", 9 "AS", 10 "LOCKS",
    11 "SIGPENDING", 12 "MSGQUEUE", 13 "NICE", 14 "RTPRIO", 15 "RTTIME");
values!(PRCTL, Decimal, 1 "SET_PDEATHSIG", 2 "GET_PDEATHSIG", 3 "GET_DUMPABLE", 4 "SET_DUMPABLE", 5 "GET_UNALIGN", 6 "SET_UNALIGN",
    7 "GET_KEEPCAPS", 8 "SET_KEEPCAPS", 9 "GET_FPEMU", 10 "SET_FPEMU", 11 "GET_FPEXC", 12 "SET_FPEXC", 13 "GET_TIMING",
    14 "SET_TIMING", 15 "SET_NAME", 16 "GET_NAME", 19 "GET_ENDIAN", 20 "SET_ENDIAN", 21 "GET_SECCOMP", 22 "SET_SECCOMP",
    23 "CAPBSET_READ", 24 "CAPBSET_DROP", 25 "GET_TSC", 26 "SET_TSC", 27 "GET_SECUREBITS", 28 "SET_SECUREBITS",
    29 "SET_TIMERSLACK", 30 "GET_TIMERSLACK", 31 "TASK_PERF_EVENTS_DISABLE", 32 "TASK_PERF_EVENTS_ENABLE", 33 "MCE_KILL",
    34 "MCE_KILL_GET", 35 "SET_MM", 36 "SET_CHILD_SUBREAPER", 37 "GET_CHILD_SUBREAPER", 38 "SET_NO_NEW_PRIVS",
    39 "GET_NO_NEW_PRIVS", 40 "GET_TID_ADDRESS", 41 "SET_THP_DISABLE", 42 "GET_THP_DISABLE", 43 "MPX_ENABLE_MANAGEMENT",
    44 "MPX_DISABLE_MANAGEMENT", 45 "SET_FP_MODE", 46 "GET_FP_MODE", 47 "CAP_AMBIENT", 50 "SVE_SET_VL", 51 "SVE_GET_VL",
    52 "GET_SPECULATION_CTRL", 53 "SET_SPECULATION_CTRL", 54 "PAC_RESET_KEYS", 55 "SET_TAGGED_ADDR_CTRL",
    56 "GET_TAGGED_ADDR_CTRL", 57 "SET_IO_FLUSHER", 58 "GET_IO_FLUSHER", 59 "SET_SYSCALL_USER_DISPATCH",
    60 "PAC_SET_ENABLED_KEYS", 61 "PAC_GET_ENABLED_KEYS", 62 "SCHED_CORE", 63 "SME_SET_VL", 64 "SME_GET_VL", 65 "SET_MDWE", 66 "GET_MDWE",
    0x53564d41 "SET_VMA", 0x59616d61 "SET_PTRACER");
values!(PRCTL_MM, Decimal, 1 "START_CODE", 2 "END_CODE", 3 "START_DATA", 4 "END_DATA", 5 "START_STACK", 6 "START_BRK", 7 "BRK", 8 "ARG_START",
    9 "ARG_END", 10 "ENV_START", 11 "ENV_END", 12 "AUXV", 13 "EXE_FILE", 14 "MAP", 15 "MAP_SIZE");
values!(ARCH_PRCTL, Hex, 0x1001 "SET_GS", 0x1002 "SET_FS", 0x1003 "GET_FS", 0x1004 "GET_GS", 0x1011 "GET_CPUID", 0x1012 "SET_CPUID",
    0x1021 "GET_XCOMP_SUPP", 0x1022 "GET_XCOMP_PERM", 0x1023 "REQ_XCOMP_PERM", 0x2001 "MAP_VDSO_X32", 0x2002 "MAP_VDSO_32",
    0x2003 "MAP_VDSO_64");
values!(EPOLL_OP, Decimal, 1 "ADD", 2 "DEL", 3 "MOD");
values!(CLOCK, Decimal, 0 "REALTIME", 1 "MONOTONIC", 2 "PROCESS_CPUTIME_ID", 3 "THREAD_CPUTIME_ID", 4 "MONOTONIC_RAW", 5 "REALTIME_COARSE",
    6 "MONOTONIC_COARSE", 7 "BOOTTIME", 8 "REALTIME_ALARM", 9 "BOOTTIME_ALARM", 10 "SGI_CYCLE", 11 "TAI");
values!(ITIMER, Decimal, 0 "REAL", 1 "VIRTUAL", 2 "PROF");
values!(SCHED_POLICY, Hex, 0 "NORMAL", 1 "FIFO", 2 "RR", 3 "BATCH", 4 "ISO", 5 "IDLE", 6 "DEADLINE", 7 "EXT");
values!(FSCONFIG, Decimal, 0 "SET_FLAG", 1 "SET_STRING", 2 "SET_BINARY", 3 "SET_PATH", 4 "SET_PATH_EMPTY", 5 "SET_FD", 6 "CMD_CREATE",
    7 "CMD_RECONFIGURE", 8 "CMD_CREATE_EXCL");
values!(BPF, Decimal, 0 "MAP_CREATE", 1 "MAP_LOOKUP_ELEM", 2 "MAP_UPDATE_ELEM", 3 "MAP_DELETE_ELEM", 4 "MAP_GET_NEXT_KEY", 5 "PROG_LOAD",
    6 "OBJ_PIN", 7 "OBJ_GET", 8 "PROG_ATTACH", 9 "PROG_DETACH", 10 "PROG_TEST_RUN", 11 "PROG_GET_NEXT_ID", 12 "MAP_GET_NEXT_ID",
    13 "PROG_GET_FD_BY_ID", 14 "MAP_GET_FD_BY_ID", 15 "OBJ_GET_INFO_BY_FD", 16 "PROG_QUERY", 17 "RAW_TRACEPOINT_OPEN", 18 "BTF_LOAD",
    19 "BTF_GET_FD_BY_ID", 20 "TASK_FD_QUERY", 21 "MAP_LOOKUP_AND_DELETE_ELEM", 22 "MAP_FREEZE", 23 "BTF_GET_NEXT_ID",
    24 "MAP_LOOKUP_BATCH", 25 "MAP_LOOKUP_AND_DELETE_BATCH", 26 "MAP_UPDATE_BATCH", 27 "MAP_DELETE_BATCH", 28 "LINK_CREATE",
    29 "LINK_UPDATE", 30 "LINK_GET_FD_BY_ID", 31 "LINK_GET_NEXT_ID", 32 "ENABLE_STATS", 33 "ITER_CREATE", 34 "LINK_DETACH",
    35 "PROG_BIND_MAP", 36 "TOKEN_CREATE");
values!(KEYCTL, Decimal, 0 "GET_KEYRING_ID", 1 "JOIN_SESSION_KEYRING", 2 "UPDATE", 3 "REVOKE", 4 "CHOWN", 5 "SETPERM", 6 "DESCRIBE", 7 "CLEAR",
    8 "LINK", 9 "UNLINK", 10 "SEARCH", 11 "READ", 12 "INSTANTIATE", 13 "NEGATE", 14 "SET_REQKEY_KEYRING", 15 "SET_TIMEOUT",
    16 "ASSUME_AUTHORITY", 17 "GET_SECURITY", 18 "SESSION_TO_PARENT", 19 "REJECT", 20 "INSTANTIATE_IOV", 21 "INVALIDATE",
    22 "GET_PERSISTENT", 23 "DH_COMPUTE", 24 "PKEY_QUERY", 25 "PKEY_ENCRYPT", 26 "PKEY_DECRYPT", 27 "PKEY_SIGN", 28 "PKEY_VERIFY",
    29 "RESTRICT_KEYRING", 30 "MOVE", 31 "CAPABILITIES", 32 "WATCH_KEY");
values!(KCMP, Decimal, 0 "FILE", 1 "VM", 2 "FILES", 3 "FS", 4 "SIGHAND", 5 "IO", 6 "SYSVSEM", 7 "EPOLL_TFD");
values!(SECCOMP_OP, Hex, 0 "STRICT", 1 "FILTER", 2 "GET_ACTION_AVAIL", 3 "GET_NOTIF_SIZES");

/// Returns the text of the mode of access(2): `RW`, or `F` for 0.
pub(crate) fn access_text(mode: u64) -> String {
    if mode == 0 {
        return "F".to_owned();
    }
    let mut text = String::new();
    for (bit, name) in [(4, "R"), (2, "W"), (1, "X")] {
        if mode & bit != 0 {
            text.push_str(name);
        }
    }
    if mode & !7 != 0 {
        let _ = write!(text, "|{:#x}", mode & !7);
    }
    text
}

/// Returns the text of a socket's type with its flags.
pub(crate) fn socket_type_text(value: u64) -> String {
    let mut text = SOCKET_TYPE.text(value & 0xf);
    let flags = value & !0xf;
    if flags != 0 {
        text.push('|');
        text.push_str(&FD_FLAGS.text(flags));
    }
    text
}

/// Returns the text of a futex operation with its flags.
pub(crate) fn futex_text(value: u64) -> String {
    let mut text = FUTEX.text(value & !0x180 & 0xffff_ffff);
    for (bit, name) in [(0x80, "|PRIVATE_FLAG"), (0x100, "|CLOCK_REALTIME")] {
        if value & bit != 0 {
            text.push_str(name);
        }
    }
    text
}

/// Returns the text of a scheduling policy with its flag.
pub(crate) fn policy_text(value: u64) -> String {
    let mut text = SCHED_POLICY.text(value & 0xff);
    let flags = value & 0xffff_ff00;
    if flags == 0x4000_0000 {
        text.push_str("|RESET_ON_FORK");
    } else if flags != 0 {
        let _ = write!(text, "|{flags:#x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_keep_bits_without_a_name() {
        assert_eq!(OPEN.text(0), "RDONLY");
        assert_eq!(OPEN.text(0o2000301), "CLOEXEC|CREAT|EXCL|WRONLY");
        assert_eq!(OPEN.text(0x1000_0000), "RDONLY|0x10000000");
        assert_eq!(OPEN.text(0o20200000), "RDONLY|TMPFILE");
        assert_eq!(CLONE.text(0x0120_0011), "CHILD_CLEARTID|CHILD_SETTID|0x11");
        assert_eq!(MMAP.text(0x22), "PRIVATE|ANONYMOUS");
    }

    #[test]
    fn values_of_several_parts_are_named() {
        assert_eq!(futex_text(0x189), "WAIT_BITSET|PRIVATE_FLAG|CLOCK_REALTIME");
        assert_eq!(socket_type_text(0o2004002), "DGRAM|CLOEXEC|NONBLOCK");
        assert_eq!(socket_type_text(9), "0x9");
        assert_eq!(access_text(6), "RW");
        assert_eq!(WHENCE.text(5), "5");
    }
}
