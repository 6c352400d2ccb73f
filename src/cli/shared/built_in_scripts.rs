//! The scripts of Linux perf that are built into `script`.

use std::ffi::{OsStr, OsString};

/// A built-in script.
pub(crate) struct BuiltInScript {
    pub(crate) name: &'static str,
    /// The arguments shown after the name in the list of scripts.
    pub(crate) arguments: &'static str,
    pub(crate) description: &'static str,
    /// The options of `record` for a recording that the script can read.
    pub(crate) record_options: &'static [&'static str],
    pub(crate) kind: ScriptKind,
}

/// The implementation of a script.
#[derive(Clone, Copy)]
pub(crate) enum ScriptKind {
    /// The command `flamegraph`.
    Flamegraph {
        /// The options that are always given to `flamegraph`, as words of its command line.
        words: &'static [&'static str],
        /// The options of the script that are translated, each with the words that replace it. Other words are passed on.
        options: &'static [(&'static str, &'static [&'static str])],
    },
    /// A profile for profiler.firefox.com, as `data convert` writes it.
    Firefox,
    /// A database of SQLite.
    Database,
    /// Samples by region of physical memory.
    PhysicalMemory,
    /// A table that rperf computes.
    Native(NativeScript),
}

/// A script whose table rperf computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NativeScript {
    CompactionTimes,
    FailedSyscalls,
    FailedSyscallsByPid,
    FutexContention,
    NetDropmonitor,
    NetdevTimes,
    RwByFile,
    RwByPid,
    Rwtop,
    Sctop,
    SyscallCounts,
    SyscallCountsByPid,
    TaskAnalyzer,
    WakeupLatency,
}

impl NativeScript {
    /// The name of the script.
    pub(crate) fn name(self) -> &'static str {
        let mut scripts = SCRIPTS.iter();
        let found =
            scripts.find(|script| matches!(script.kind, ScriptKind::Native(kind) if kind == self));
        found.map_or("", |script| script.name)
    }
}

/// All built-in scripts.
pub(crate) const SCRIPTS: [BuiltInScript; 19] = [
    native(
        NativeScript::CompactionTimes,
        [
            "compaction-times",
            "[options] [tasks]",
            "time spent in memory compaction",
        ],
        &[
            "-e",
            "compaction:mm_compaction_begin",
            "-e",
            "compaction:mm_compaction_end",
            "-e",
            "compaction:mm_compaction_migratepages",
            "-e",
            "compaction:mm_compaction_isolate_migratepages",
            "-e",
            "compaction:mm_compaction_isolate_freepages",
        ],
    ),
    BuiltInScript {
        name: "export-to-sqlite",
        arguments: "<database> [...]",
        description: "samples, threads, objects and symbols as a database",
        record_options: &[],
        kind: ScriptKind::Database,
    },
    native(
        NativeScript::FailedSyscalls,
        [
            "failed-syscalls",
            "[comm]",
            "failed system calls of each program",
        ],
        &["-e", "raw_syscalls:sys_exit"],
    ),
    native(
        NativeScript::FailedSyscallsByPid,
        [
            "failed-syscalls-by-pid",
            "[comm|pid]",
            "failed system calls of each thread, by error",
        ],
        &["-e", "raw_syscalls:sys_exit"],
    ),
    BuiltInScript {
        name: "flamegraph",
        arguments: "[-f format] [-o file]",
        description: "stacks as a picture, or as a tree in JSON",
        record_options: &["-g"],
        kind: ScriptKind::Flamegraph {
            words: &[],
            options: &[
                ("-f", &["--format"]),
                // Listed for completeness only: words that are not listed are passed on unchanged, too.
                ("--format", &["--format"]),
                ("--colorscheme", &["--colors"]),
            ],
        },
    },
    native(
        NativeScript::FutexContention,
        [
            "futex-contention",
            "",
            "waits of each thread for each futex",
        ],
        &[
            "-e",
            "syscalls:sys_enter_futex",
            "-e",
            "syscalls:sys_exit_futex",
        ],
    ),
    BuiltInScript {
        name: "gecko",
        arguments: "[--save-only file]",
        description: "stacks as a profile for profiler.firefox.com",
        record_options: &["-F", "99", "-g"],
        kind: ScriptKind::Firefox,
    },
    BuiltInScript {
        name: "mem-phys-addr",
        arguments: "",
        description: "samples by the region of physical memory that they access",
        record_options: &["--phys-data"],
        kind: ScriptKind::PhysicalMemory,
    },
    native(
        NativeScript::NetDropmonitor,
        ["net_dropmonitor", "", "kernel functions that drop packets"],
        &["-e", "skb:kfree_skb"],
    ),
    native(
        NativeScript::NetdevTimes,
        [
            "netdev-times",
            "[tx] [rx] [dev=] [debug]",
            "latencies of sent packets, and of received packets in softirqs",
        ],
        &[
            "-e",
            "net:net_dev_xmit",
            "-e",
            "net:net_dev_queue",
            "-e",
            "net:netif_receive_skb",
            "-e",
            "net:netif_rx",
            "-e",
            "skb:consume_skb",
            "-e",
            "skb:kfree_skb",
            "-e",
            "skb:skb_copy_datagram_iovec",
            "-e",
            "napi:napi_poll",
            "-e",
            "irq:irq_handler_entry",
            "-e",
            "irq:irq_handler_exit",
            "-e",
            "irq:softirq_entry",
            "-e",
            "irq:softirq_exit",
            "-e",
            "irq:softirq_raise",
        ],
    ),
    native(
        NativeScript::RwByFile,
        [
            "rw-by-file",
            "<comm>",
            "reads and writes of a program, by file descriptor",
        ],
        &[
            "-e",
            "syscalls:sys_enter_read",
            "-e",
            "syscalls:sys_enter_write",
        ],
    ),
    native(
        NativeScript::RwByPid,
        ["rw-by-pid", "", "reads and writes of each thread"],
        READ_WRITE,
    ),
    native(
        NativeScript::Rwtop,
        [
            "rwtop",
            "[interval]",
            "reads and writes of each thread, refreshed",
        ],
        READ_WRITE,
    ),
    native(
        NativeScript::Sctop,
        ["sctop", "[comm] [interval]", "system calls, refreshed"],
        &["-e", "raw_syscalls:sys_enter"],
    ),
    BuiltInScript {
        name: "stackcollapse",
        arguments: "",
        description: "folded stacks: one per line, with its number of samples",
        record_options: &[],
        kind: ScriptKind::Flamegraph {
            words: &["--folded"],
            options: &[
                ("--include-pid", &["--root", "pid"]),
                ("--include-tid", &["--root", "tid"]),
                ("--no-comm", &["--root", "none"]),
                ("--kernel", &["--marks"]),
            ],
        },
    },
    native(
        NativeScript::SyscallCounts,
        [
            "syscall-counts",
            "[comm]",
            "number of calls of each system call",
        ],
        &["-e", "raw_syscalls:sys_enter"],
    ),
    native(
        NativeScript::SyscallCountsByPid,
        [
            "syscall-counts-by-pid",
            "[comm|pid]",
            "number of calls of each system call, by thread",
        ],
        &["-e", "raw_syscalls:sys_enter"],
    ),
    native(
        NativeScript::TaskAnalyzer,
        [
            "task-analyzer",
            "[options]",
            "when and for how long threads run, and the time between runs",
        ],
        &["-e", "sched:sched_switch", "-e", "sched:sched_migrate_task"],
    ),
    native(
        NativeScript::WakeupLatency,
        [
            "wakeup-latency",
            "",
            "time from wakeups to the next switch on the CPU",
        ],
        &["-e", "sched:sched_switch", "-e", "sched:sched_wakeup"],
    ),
];

/// The options of `record` for the entries and returns of read(2) and write(2).
const READ_WRITE: &[&str] = &[
    "-e",
    "syscalls:sys_enter_read",
    "-e",
    "syscalls:sys_exit_read",
    "-e",
    "syscalls:sys_enter_write",
    "-e",
    "syscalls:sys_exit_write",
];

/// Returns a script whose table rperf computes.
const fn native(
    script: NativeScript,
    [name, arguments, description]: [&'static str; 3],
    record_options: &'static [&'static str],
) -> BuiltInScript {
    BuiltInScript {
        name,
        arguments,
        description,
        record_options,
        kind: ScriptKind::Native(script),
    }
}

impl ScriptKind {
    /// Returns the words that replace a word given to the script: those that [`Self::Flamegraph`] has for this option,
    /// otherwise the word itself.
    pub(crate) fn translated(&self, word: &OsStr) -> Vec<OsString> {
        let options = match self {
            Self::Flamegraph { options, .. } => *options,
            Self::Firefox | Self::Database | Self::PhysicalMemory | Self::Native(_) => &[],
        };
        match options.iter().find(|(option, _)| word == *option) {
            Some((_, words)) => words.iter().map(OsString::from).collect(),
            None => vec![word.to_owned()],
        }
    }
}
