//! Constants of system calls on tasks, signals, memory and System V IPC objects, and of those that control the whole system.
//!
//! `None` of `flags!`: the value 0 has no name. `Decimal` and `Hex` of `values!`: how values without a name are printed. Negative
//! numbers are written as their 32 bits.

use super::{FlagNames, UnknownValue, ValueNames};

flags!(CLONE3, None, 0x80 "NEWTIME", 0x100 "VM", 0x200 "FS", 0x400 "FILES", 0x800 "SIGHAND", 0x1000 "PIDFD", 0x2000 "PTRACE", 0x4000 "VFORK",
    0x8000 "PARENT", 0x10000 "THREAD", 0x20000 "NEWNS", 0x40000 "SYSVSEM", 0x80000 "SETTLS", 0x100000 "PARENT_SETTID",
    0x200000 "CHILD_CLEARTID", 0x400000 "DETACHED", 0x800000 "UNTRACED", 0x1000000 "CHILD_SETTID", 0x2000000 "NEWCGROUP",
    0x4000000 "NEWUTS", 0x8000000 "NEWIPC", 0x10000000 "NEWUSER", 0x20000000 "NEWPID", 0x40000000 "NEWNET", 0x80000000 "IO",
    0x1_0000_0000 "CLEAR_SIGHAND", 0x2_0000_0000 "INTO_CGROUP");
flags!(PIDFD, None, 0o4000 "NONBLOCK", 0o200 "THREAD");
flags!(PIDFD_SIGNAL, None, 1 "THREAD", 2 "THREAD_GROUP", 4 "PROCESS_GROUP");
values!(PRIORITY, Decimal, 0 "PROCESS", 1 "PGRP", 2 "USER");
values!(IO_PRIORITY, Decimal, 1 "PROCESS", 2 "PGRP", 3 "USER");
values!(IO_CLASS, Decimal, 0 "NONE", 1 "RT", 2 "BE", 3 "IDLE");
values!(RUSAGE, Decimal, 0 "SELF", 1 "THREAD", 0xffff_ffff "CHILDREN");
flags!(SCHED_FLAGS, None, 0x1 "RESET_ON_FORK", 0x2 "RECLAIM", 0x4 "DL_OVERRUN", 0x8 "KEEP_POLICY", 0x10 "KEEP_PARAMS", 0x20 "UTIL_CLAMP_MIN",
    0x40 "UTIL_CLAMP_MAX");
values!(PTRACE, Hex, 0 "TRACEME", 1 "PEEKTEXT", 2 "PEEKDATA", 3 "PEEKUSER", 4 "POKETEXT", 5 "POKEDATA", 6 "POKEUSER", 7 "CONT", 8 "KILL",
    9 "SINGLESTEP", 12 "GETREGS", 13 "SETREGS", 14 "GETFPREGS", 15 "SETFPREGS", 16 "ATTACH", 17 "DETACH", 18 "GETFPXREGS", 19 "SETFPXREGS",
    24 "SYSCALL", 25 "GET_THREAD_AREA", 26 "SET_THREAD_AREA", 30 "ARCH_PRCTL", 31 "SYSEMU", 32 "SYSEMU_SINGLESTEP", 33 "SINGLEBLOCK",
    0x4200 "SETOPTIONS", 0x4201 "GETEVENTMSG", 0x4202 "GETSIGINFO", 0x4203 "SETSIGINFO", 0x4204 "GETREGSET", 0x4205 "SETREGSET",
    0x4206 "SEIZE", 0x4207 "INTERRUPT", 0x4208 "LISTEN", 0x4209 "PEEKSIGINFO", 0x420a "GETSIGMASK", 0x420b "SETSIGMASK",
    0x420c "SECCOMP_GET_FILTER", 0x420d "SECCOMP_GET_METADATA", 0x420e "GET_SYSCALL_INFO", 0x420f "GET_RSEQ_CONFIGURATION",
    0x4210 "SET_SYSCALL_USER_DISPATCH_CONFIG", 0x4211 "GET_SYSCALL_USER_DISPATCH_CONFIG", 0x4212 "SET_SYSCALL_INFO");
values!(MEMBARRIER, Hex, 0 "QUERY", 0x1 "GLOBAL", 0x2 "GLOBAL_EXPEDITED", 0x4 "REGISTER_GLOBAL_EXPEDITED", 0x8 "PRIVATE_EXPEDITED",
    0x10 "REGISTER_PRIVATE_EXPEDITED", 0x20 "PRIVATE_EXPEDITED_SYNC_CORE", 0x40 "REGISTER_PRIVATE_EXPEDITED_SYNC_CORE",
    0x80 "PRIVATE_EXPEDITED_RSEQ", 0x100 "REGISTER_PRIVATE_EXPEDITED_RSEQ", 0x200 "GET_REGISTRATIONS");
flags!(LANDLOCK_CREATE, None, 1 "VERSION", 2 "ERRATA");
flags!(LANDLOCK_RESTRICT, None, 1 "LOG_SAME_EXEC_OFF", 2 "LOG_NEW_EXEC_ON", 4 "LOG_SUBDOMAINS_OFF");
values!(LSM_ATTR, Decimal, 100 "CURRENT", 101 "EXEC", 102 "FSCREATE", 103 "KEYCREATE", 104 "PREV", 105 "SOCKCREATE");
values!(KEYRING, Decimal, 0xffff_ffff "THREAD_KEYRING", 0xffff_fffe "PROCESS_KEYRING", 0xffff_fffd "SESSION_KEYRING",
    0xffff_fffc "USER_KEYRING", 0xffff_fffb "USER_SESSION_KEYRING", 0xffff_fffa "GROUP_KEYRING", 0xffff_fff9 "REQKEY_AUTH_KEY",
    0xffff_fff8 "REQUESTOR_KEYRING");

flags!(SIGNAL_STACK, None, 1 "ONSTACK", 2 "DISABLE", 0x8000_0000 "AUTODISARM");
values!(SIGNAL_CODE, Decimal, 0 "USER", 0x80 "KERNEL", 0xffff_ffff "QUEUE", 0xffff_fffe "TIMER", 0xffff_fffd "MESGQ", 0xffff_fffc "ASYNCIO",
    0xffff_fffb "SIGIO", 0xffff_fffa "TKILL");
values!(CHILD_CODE, Decimal, 1 "EXITED", 2 "KILLED", 3 "DUMPED", 4 "TRAPPED", 5 "STOPPED", 6 "CONTINUED");
values!(SIGNAL_EVENT, Decimal, 0 "SIGNAL", 1 "NONE", 2 "THREAD", 4 "THREAD_ID");
flags!(TIMER, None, 1 "ABSTIME", 2 "CANCEL_ON_SET");

flags!(MLOCK2, None, 1 "ONFAULT");
flags!(MLOCKALL, None, 1 "CURRENT", 2 "FUTURE", 4 "ONFAULT");
values!(MEMORY_POLICY, Hex, 0 "DEFAULT", 1 "PREFERRED", 2 "BIND", 3 "INTERLEAVE", 4 "LOCAL", 5 "PREFERRED_MANY", 6 "WEIGHTED_INTERLEAVE");
flags!(MEMORY_POLICY_FLAGS, None, 0x2000 "NUMA_BALANCING", 0x4000 "RELATIVE_NODES", 0x8000 "STATIC_NODES");
flags!(MEMORY_MOVE, None, 1 "STRICT", 2 "MOVE", 4 "MOVE_ALL");
flags!(GET_POLICY, None, 1 "NODE", 2 "ADDR", 4 "MEMS_ALLOWED");
flags!(SHADOW_STACK, None, 1 "SET_TOKEN", 2 "SET_MARKER");
// The size is a number in the lowest two bits (0: 8 bits, without a name), so 3 is tried before 2 and 1.
flags!(FUTEX2, None, 3 "SIZE_U64", 2 "SIZE_U32", 1 "SIZE_U16", 4 "NUMA", 8 "MPOL", 0x80 "PRIVATE");

flags!(SHMAT, None, 0o10000 "RDONLY", 0o20000 "RND", 0o40000 "REMAP", 0o100000 "EXEC");
flags!(MESSAGE, None, 0o4000 "NOWAIT", 0o10000 "NOERROR", 0o20000 "EXCEPT", 0o40000 "COPY");
flags!(IPC_GET, None, 0o1000 "CREAT", 0o2000 "EXCL");
flags!(SHM_GET, None, 0o1000 "CREAT", 0o2000 "EXCL", 0o4000 "HUGETLB", 0o10000 "NORESERVE");
values!(SEMAPHORE_COMMAND, Decimal, 0 "RMID", 1 "SET", 2 "STAT", 3 "INFO", 11 "GETPID", 12 "GETVAL", 13 "GETALL", 14 "GETNCNT", 15 "GETZCNT",
    16 "SETVAL", 17 "SETALL", 18 "SEM_STAT", 19 "SEM_INFO", 20 "SEM_STAT_ANY");
values!(SHM_COMMAND, Decimal, 0 "RMID", 1 "SET", 2 "STAT", 3 "INFO", 11 "LOCK", 12 "UNLOCK", 13 "SHM_STAT", 14 "SHM_INFO", 15 "SHM_STAT_ANY");
values!(QUEUE_COMMAND, Decimal, 0 "RMID", 1 "SET", 2 "STAT", 3 "INFO", 11 "MSG_STAT", 12 "MSG_INFO", 13 "MSG_STAT_ANY");

values!(REBOOT_MAGIC, Hex, 0xfee1_dead "MAGIC1", 672_274_793 "MAGIC2", 85_072_278 "MAGIC2A", 369_367_448 "MAGIC2B", 537_993_216 "MAGIC2C");
values!(REBOOT, Hex, 0x0123_4567 "RESTART", 0xcdef_0123 "HALT", 0x89ab_cdef "CAD_ON", 0 "CAD_OFF", 0x4321_fedc "POWER_OFF",
    0xa1b2_c3d4 "RESTART2", 0xd000_fce2 "SW_SUSPEND", 0x4558_4543 "KEXEC");
values!(SYSLOG, Decimal, 0 "CLOSE", 1 "OPEN", 2 "READ", 3 "READ_ALL", 4 "READ_CLEAR", 5 "CLEAR", 6 "CONSOLE_OFF", 7 "CONSOLE_ON",
    8 "CONSOLE_LEVEL", 9 "SIZE_UNREAD", 10 "SIZE_BUFFER");
flags!(DELETE_MODULE, None, 0o4000 "NONBLOCK", 0o1000 "TRUNC");
flags!(INIT_MODULE, None, 1 "IGNORE_MODVERSIONS", 2 "IGNORE_VERMAGIC", 4 "COMPRESSED_FILE");
flags!(KEXEC, None, 0x1 "ON_CRASH", 0x2 "PRESERVE_CONTEXT", 0x4 "UPDATE_ELFCOREHDR", 0x8 "CRASH_HOTPLUG_SUPPORT");
flags!(KEXEC_FILE, None, 0x1 "UNLOAD", 0x2 "ON_CRASH", 0x4 "NO_INITRAMFS", 0x8 "DEBUG");

/// Returns the text of the flags of shmget(2), semget(2) or msgget(2), which contain permissions: `CREAT|0600`.
pub(crate) fn ipc_text(names: &FlagNames, value: u64) -> String {
    let mut text = names.text(value & !0o777);
    if value & 0o777 != 0 || text.is_empty() {
        let separator = if text.is_empty() { "" } else { "|" };
        // In octal as in C: `0600`, not `0o600`.
        text.push_str(&format!("{separator}{:#05o}", value & 0o777).replace("0o", "0"));
    }
    text
}

/// Returns the text of an I/O priority: its class, and its remaining bits as a number: `PRIO_VALUE(BE, 4)`.
pub(crate) fn io_priority_text(value: u64) -> String {
    format!(
        "PRIO_VALUE({}, {})",
        IO_CLASS.text(value >> 13 & 7),
        value & 0x1fff
    )
}

/// Returns the text of a memory policy with its flags.
pub(crate) fn memory_policy_text(value: u64) -> String {
    let flags = MEMORY_POLICY_FLAGS.text(value & 0xe000);
    let separator = if flags.is_empty() { "" } else { "|" };
    format!("{}{separator}{flags}", MEMORY_POLICY.text(value & !0xe000))
}
