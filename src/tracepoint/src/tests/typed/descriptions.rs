//! Formats of tracepoints for synthetic kernels. A format has all fields that the typed event reads, also those that only some
//! kernels have. Where old kernels have another name for a field (`errors` for `error`), or another field in its place (`page`
//! for `pfn`), the format has the current one.

/// The format of tracepoints with the same fields.
#[derive(Debug, Clone, Copy)]
pub(super) struct TracepointCase {
    pub(super) names: &'static [&'static str],
    /// Declarations and sizes in bytes ([`LONG`] if the size depends on the kernel), in the order of the fields.
    pub(super) fields: &'static [(&'static str, usize)],
    /// Empty if the typed event takes no names of values from it.
    pub(super) print_fmt: &'static str,
}

/// Placeholder for a size that depends on the kernel: of a `long`, a `size_t`, a pointer, an array of longs, or an argument of a
/// system call, which is recorded as a `long` whatever its type.
pub(super) const LONG: usize = 0;
/// The size of a `__data_loc` word.
const WORD: usize = 4;

/// The `print fmt` of `sched_switch`, with some of the task states as current kernels show them.
pub(super) const SWITCH: &str = "\"prev_state=%s%s ==>\", (REC->prev_state & ((((0x00 | 0x03 | 0x7c) + 1) << 1) - 1)) \
    ? __print_flags(REC->prev_state & ((((0x00 | 0x7f) + 1) << 1) - 1), \"|\", { 0x01, \"S\" }, { 0x02, \"D\" }, { 0x10, \"X\" }, \
    { 0x20, \"Z\" }, { 0x80, \"I\" }) : \"R\", REC->prev_state & (((0x00 | 0x7f) + 1) << 1) ? \"+\" : \"\"";
/// The `print fmt` of softirq events, with two of the names.
const SOFTIRQ: &str =
    "\"vec=%u [action=%s]\", REC->vec, __print_symbolic(REC->vec, { 0, \"HI\" }, { 1, \"TIMER\" })";
/// The `print fmt` of slab allocations, with some of the GFP flags.
const GFP: &str = "\"call_site=%pS gfp_flags=%s\", (void *)REC->call_site, (REC->gfp_flags) ? __print_flags(REC->gfp_flags, \"|\", \
    {( unsigned long)(((( gfp_t)(0x400u|0x800u)) | (( gfp_t)0x40u))), \"GFP_NOFS\"}, {( unsigned long)(( gfp_t)0x40u), \"__GFP_IO\"}, \
    { 0, ((void *)0) }) : \"none\"";
/// The `print fmt` of page allocations: the GFP flags follow an argument (`vmemmap_base`) that perf cannot evaluate.
const PAGES: &str = "\"page=%p gfp_flags=%s\", (((struct page *)vmemmap_base) + (REC->pfn)), (REC->gfp_flags) ? \
    __print_flags(REC->gfp_flags, \"|\", {( unsigned long)(( gfp_t)0x40u), \"__GFP_IO\"}) : \"none\"";
/// The `print fmt` of `contention_begin`, with some of the lock's flags.
const FLAGS: &str = "\"%p (flags=%s)\", REC->lock_addr, __print_flags(REC->flags, \"|\", { (1U << 0), \"SPIN\" }, { (1U << 1), \"READ\" })";

/// The fields of lockdep's events other than `lock_acquire`.
const LOCKDEP: &[(&str, usize)] = &[
    ("__data_loc char[] name", WORD),
    ("void * lockdep_addr", LONG),
];

pub(super) const ALL: &[TracepointCase] = &[
    TracepointCase {
        names: &["sched:sched_switch"],
        fields: &[
            ("char prev_comm[16]", 16),
            ("pid_t prev_pid", 4),
            ("int prev_prio", 4),
            ("long prev_state", LONG),
            ("char next_comm[16]", 16),
            ("pid_t next_pid", 4),
            ("int next_prio", 4),
        ],
        print_fmt: SWITCH,
    },
    TracepointCase {
        names: &[
            "sched:sched_waking",
            "sched:sched_wakeup",
            "sched:sched_wakeup_new",
        ],
        fields: &[
            ("char comm[16]", 16),
            ("pid_t pid", 4),
            ("int prio", 4),
            ("int success", 4),
            ("int target_cpu", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["sched:sched_migrate_task"],
        fields: &[
            ("__data_loc char[] comm", WORD),
            ("pid_t pid", 4),
            ("int prio", 4),
            ("int orig_cpu", 4),
            ("int dest_cpu", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["sched:sched_process_fork"],
        fields: &[
            ("char parent_comm[16]", 16),
            ("pid_t parent_pid", 4),
            ("__data_loc char[] child_comm", WORD),
            ("pid_t child_pid", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["sched:sched_process_exit"],
        fields: &[
            ("char comm[16]", 16),
            ("pid_t pid", 4),
            ("int prio", 4),
            ("bool group_dead", 1),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["sched:sched_process_exec"],
        fields: &[
            ("__data_loc char[] filename", WORD),
            ("pid_t pid", 4),
            ("pid_t old_pid", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["sched:sched_stat_runtime"],
        fields: &[
            ("char comm[16]", 16),
            ("pid_t pid", 4),
            ("u64 runtime", 8),
            ("u64 vruntime", 8),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["raw_syscalls:sys_enter"],
        fields: &[("long id", LONG), ("unsigned long args[6]", LONG)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["raw_syscalls:sys_exit"],
        fields: &[("long id", LONG), ("long ret", LONG)],
        print_fmt: "",
    },
    TracepointCase {
        names: &[
            "syscalls:sys_enter_read",
            "syscalls:sys_enter_pread64",
            "syscalls:sys_enter_readv",
            "syscalls:sys_enter_preadv",
            "syscalls:sys_enter_write",
            "syscalls:sys_enter_pwrite64",
            "syscalls:sys_enter_writev",
            "syscalls:sys_enter_pwritev",
            "syscalls:sys_enter_sync",
            "syscalls:sys_enter_sync_file_range",
            "syscalls:sys_enter_fsync",
            "syscalls:sys_enter_msync",
            "syscalls:sys_enter_recvfrom",
            "syscalls:sys_enter_recvmmsg",
            "syscalls:sys_enter_recvmsg",
            "syscalls:sys_enter_sendto",
            "syscalls:sys_enter_sendmsg",
            "syscalls:sys_enter_sendmmsg",
            "syscalls:sys_enter_epoll_pwait",
            "syscalls:sys_enter_epoll_wait",
            "syscalls:sys_enter_poll",
            "syscalls:sys_enter_ppoll",
            "syscalls:sys_enter_pselect6",
            "syscalls:sys_enter_select",
        ],
        fields: &[("int __syscall_nr", 4)],
        print_fmt: "",
    },
    TracepointCase {
        names: &[
            "syscalls:sys_exit_read",
            "syscalls:sys_exit_pread64",
            "syscalls:sys_exit_readv",
            "syscalls:sys_exit_preadv",
            "syscalls:sys_exit_write",
            "syscalls:sys_exit_pwrite64",
            "syscalls:sys_exit_writev",
            "syscalls:sys_exit_pwritev",
            "syscalls:sys_exit_sync",
            "syscalls:sys_exit_sync_file_range",
            "syscalls:sys_exit_fsync",
            "syscalls:sys_exit_msync",
            "syscalls:sys_exit_recvfrom",
            "syscalls:sys_exit_recvmmsg",
            "syscalls:sys_exit_recvmsg",
            "syscalls:sys_exit_sendto",
            "syscalls:sys_exit_sendmsg",
            "syscalls:sys_exit_sendmmsg",
            "syscalls:sys_exit_epoll_pwait",
            "syscalls:sys_exit_epoll_wait",
            "syscalls:sys_exit_poll",
            "syscalls:sys_exit_ppoll",
            "syscalls:sys_exit_pselect6",
            "syscalls:sys_exit_select",
        ],
        fields: &[("int __syscall_nr", 4), ("long ret", LONG)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["power:cpu_idle", "power:cpu_frequency"],
        fields: &[("u32 state", 4), ("u32 cpu_id", 4)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["irq:irq_handler_entry"],
        fields: &[("int irq", 4), ("__data_loc char[] name", WORD)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["irq:irq_handler_exit"],
        fields: &[("int irq", 4), ("int ret", 4)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["irq:softirq_entry", "irq:softirq_exit", "irq:softirq_raise"],
        fields: &[("unsigned int vec", 4)],
        print_fmt: SOFTIRQ,
    },
    TracepointCase {
        names: &["workqueue:workqueue_queue_work"],
        fields: &[
            ("void * work", LONG),
            ("void * function", LONG),
            ("__data_loc char[] workqueue", WORD),
            ("int req_cpu", 4),
            ("int cpu", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &[
            "workqueue:workqueue_activate_work",
            "workqueue:workqueue_execute_start",
            "workqueue:workqueue_execute_end",
        ],
        fields: &[("void * work", LONG), ("void * function", LONG)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["kmem:kmalloc", "kmem:kmalloc_node"],
        fields: &[
            ("unsigned long call_site", LONG),
            ("const void * ptr", LONG),
            ("size_t bytes_req", LONG),
            ("size_t bytes_alloc", LONG),
            ("unsigned long gfp_flags", LONG),
            ("int node", 4),
        ],
        print_fmt: GFP,
    },
    TracepointCase {
        names: &["kmem:kfree"],
        fields: &[
            ("unsigned long call_site", LONG),
            ("const void * ptr", LONG),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["kmem:kmem_cache_alloc", "kmem:kmem_cache_alloc_node"],
        fields: &[
            ("unsigned long call_site", LONG),
            ("const void * ptr", LONG),
            ("__data_loc char[] name", WORD),
            ("size_t bytes_req", LONG),
            ("size_t bytes_alloc", LONG),
            ("unsigned long gfp_flags", LONG),
            ("int node", 4),
        ],
        print_fmt: GFP,
    },
    TracepointCase {
        names: &["kmem:kmem_cache_free"],
        fields: &[
            ("unsigned long call_site", LONG),
            ("const void * ptr", LONG),
            ("__data_loc char[] name", WORD),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["kmem:mm_page_alloc"],
        fields: &[
            ("unsigned long pfn", LONG),
            ("unsigned int order", 4),
            ("unsigned long gfp_flags", LONG),
            ("int migratetype", 4),
        ],
        print_fmt: PAGES,
    },
    TracepointCase {
        names: &["kmem:mm_page_free", "kmem:mm_page_free_direct"],
        fields: &[("unsigned long pfn", LONG), ("unsigned int order", 4)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["kmem:mm_page_alloc_extfrag"],
        fields: &[
            ("unsigned long pfn", LONG),
            ("int alloc_order", 4),
            ("int fallback_order", 4),
            ("int alloc_migratetype", 4),
            ("int fallback_migratetype", 4),
            ("int change_ownership", 4),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["lock:contention_begin"],
        fields: &[("void * lock_addr", LONG), ("unsigned int flags", 4)],
        print_fmt: FLAGS,
    },
    TracepointCase {
        names: &["lock:contention_end"],
        fields: &[("void * lock_addr", LONG), ("int ret", 4)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["syscalls:sys_enter_futex"],
        fields: &[
            ("int __syscall_nr", 4),
            ("u32 * uaddr", LONG),
            ("int op", LONG),
            ("u32 val", LONG),
            ("const struct __kernel_timespec * utime", LONG),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["syscalls:sys_exit_futex"],
        fields: &[("int __syscall_nr", 4), ("long ret", LONG)],
        print_fmt: "",
    },
    TracepointCase {
        names: &["lock:lock_acquire"],
        fields: &[
            ("unsigned int flags", 4),
            ("__data_loc char[] name", WORD),
            ("void * lockdep_addr", LONG),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["lock:lock_acquired"],
        fields: LOCKDEP,
        print_fmt: "",
    },
    TracepointCase {
        names: &["lock:lock_contended"],
        fields: LOCKDEP,
        print_fmt: "",
    },
    TracepointCase {
        names: &["lock:lock_release"],
        fields: LOCKDEP,
        print_fmt: "",
    },
    TracepointCase {
        names: &["block:block_rq_issue"],
        fields: &[
            ("dev_t dev", 4),
            ("sector_t sector", 8),
            ("unsigned int nr_sector", 4),
            ("unsigned int bytes", 4),
            ("char rwbs[10]", 10),
            ("char comm[16]", 16),
            ("__data_loc char[] cmd", WORD),
        ],
        print_fmt: "",
    },
    TracepointCase {
        names: &["block:block_rq_complete"],
        fields: &[
            ("dev_t dev", 4),
            ("sector_t sector", 8),
            ("unsigned int nr_sector", 4),
            ("int error", 4),
            ("char rwbs[10]", 10),
            ("__data_loc char[] cmd", WORD),
        ],
        print_fmt: "",
    },
];
