//! Generated recordings of waits for locks: with `contention_begin` and `contention_end`, with events of lockdep, and of futexes.

use rperf_testkit::{Bytes, FileAttr, PerfFile};
use rperf_tracepoint::TracingDataBuilder;
use rperf_wire::Endian;

const TRACEPOINT: u32 = 2;
/// `sample_type`: IDENTIFIER, TID, TIME, CALLCHAIN, CPU and RAW.
const FIELDS: u64 = 1 << 16 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 7 | 1 << 10;
/// The `header_page` of tracefs, which describes a page of the kernel's ring buffer; perf reads it.
const PAGE: &[u8] = b"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
/// `sample_type`: CGROUP.
const CGROUP: u64 = 1 << 21;
/// `PERF_RECORD_CGROUP`.
const CGROUP_RECORD: u32 = 19;
/// `PERF_TYPE_SOFTWARE` and `PERF_COUNT_SW_BPF_OUTPUT`.
const SOFTWARE: u32 = 1;
const BPF_OUTPUT: u64 = 10;
/// `PERF_CONTEXT_KERNEL`.
const KERNEL: u64 = -128_i64 as u64;

/// The number of futex(2) on x86_64.
const FUTEX_CALL: u64 = 202;

/// Flags of `lock:lock_acquire`.
pub(crate) const TRY: u32 = 1;
pub(crate) const READ: u32 = 2;

/// An event; its number is its id in the file and, if it is a tracepoint, in the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Acquire = 901,
    Acquired,
    Contended,
    Release,
    Begin,
    End,
    FutexEnter,
    FutexExit,
    /// The record that the BPF program of `lock record --owners` writes when a wait begins.
    Owner,
}

use Event::{Acquire, Acquired, Begin, Contended, End, FutexEnter, FutexExit, Owner, Release};

/// The events of lockdep.
pub(crate) const LOCKDEP: &[Event] = &[Acquire, Acquired, Contended, Release];
/// The events of waits.
pub(crate) const WAITS: &[Event] = &[Begin, End];

impl Event {
    fn name(self) -> &'static str {
        match self {
            Acquire => "lock_acquire",
            Acquired => "lock_acquired",
            Contended => "lock_contended",
            Release => "lock_release",
            Begin => "contention_begin",
            End => "contention_end",
            FutexEnter => "sys_enter_futex",
            FutexExit => "sys_exit_futex",
            Owner => "lock-waits",
        }
    }

    fn system(self) -> &'static str {
        match self {
            FutexEnter | FutexExit => "syscalls",
            _ => "lock",
        }
    }

    fn full_name(self) -> String {
        match self {
            Owner => self.name().to_owned(),
            _ => format!("{}:{}", self.system(), self.name()),
        }
    }

    /// The fields and the print format in the format file of the event.
    fn format(self) -> &'static str {
        match self {
            Acquire => {
                "\tfield:unsigned int flags;\toffset:8;\tsize:4;\tsigned:0;\n\
                \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n\
                \tfield:void * lockdep_addr;\toffset:16;\tsize:8;\tsigned:0;\n\n\
                print fmt: \"%p %s\", REC->lockdep_addr, __get_str(name)\n"
            }
            Begin => {
                "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
                \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n\n\
                print fmt: \"%p\", REC->lock_addr\n"
            }
            End => {
                "\tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
                \tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n\n\
                print fmt: \"%p\", REC->lock_addr\n"
            }
            FutexEnter => {
                "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
                \tfield:u32 * uaddr;\toffset:16;\tsize:8;\tsigned:0;\n\
                \tfield:int op;\toffset:24;\tsize:8;\tsigned:0;\n\n\
                print fmt: \"%p\", REC->uaddr\n"
            }
            FutexExit => {
                "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
                \tfield:long ret;\toffset:16;\tsize:8;\tsigned:1;\n\n\
                print fmt: \"%ld\", REC->ret\n"
            }
            _ => {
                "\tfield:__data_loc char[] name;\toffset:8;\tsize:4;\tsigned:0;\n\
                \tfield:void * lockdep_addr;\toffset:16;\tsize:8;\tsigned:0;\n\n\
                print fmt: \"%p %s\", REC->lockdep_addr, __get_str(name)\n"
            }
        }
    }
}

/// A recording under construction.
pub(crate) struct LockFile {
    file: PerfFile,
    /// The time of the last event, in nanoseconds.
    time: u64,
    /// The cgroup of the following samples, if cgroups are recorded.
    cgroup: Option<u64>,
}

/// The thread of an event, its lock, and other values of the event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) tid: u32,
    pub(crate) lock: u64,
    /// Name of the class, or of the lock for [`Owner`].
    pub(crate) class: &'static str,
    /// Flags of `lock_acquire` or `contention_begin`, operation of futex(2), or thread that has the lock, for [`Owner`].
    /// Those of `contention_begin` here: 1 for a spinning wait, 2 to read, 4 to write, 32 for a mutex; 0 for a semaphore.
    pub(crate) flags: u32,
}

impl LockFile {
    /// Creates a recording with these events, and threads by id and name.
    pub(crate) fn with(events: &[Event], threads: &[(u32, &str)]) -> Self {
        Self::with_fields(events, threads, FIELDS)
    }

    /// Like [`LockFile::with`]; samples have cgroups, and `paths` are those of the cgroups 1, 2 and so on.
    pub(crate) fn with_cgroups(events: &[Event], threads: &[(u32, &str)], paths: &[&str]) -> Self {
        let mut lock_file = Self::with_fields(events, threads, FIELDS | CGROUP);
        for (id, path) in (1..).zip(paths) {
            let body = lock_file.bytes().u64(id).text(path, 8);
            // The `sample_id`: process, thread, time, CPU (two words) and event.
            let body = body.u32(0).u32(0).u64(0).u32(0).u32(0);
            let body = body.u64(events[0] as u64).done();
            lock_file.file.record(CGROUP_RECORD, 0, body);
        }
        lock_file.cgroup = Some(1);
        lock_file
    }

    /// Sets the cgroup of the following samples.
    pub(crate) fn enter_cgroup(&mut self, id: u64) {
        self.cgroup = Some(id);
    }

    fn with_fields(events: &[Event], threads: &[(u32, &str)], fields: u64) -> Self {
        let mut file = PerfFile::new();
        let mut tracing = TracingDataBuilder::new(Endian::Little, 8, 4096);
        let header_event = b"";
        tracing.headers(PAGE, header_event);
        for event in events {
            let id = *event as u64;
            let (kind, config) = match event {
                Owner => (SOFTWARE, BPF_OUTPUT),
                _ => (TRACEPOINT, id),
            };
            let attr = FileAttr {
                kind,
                config,
                period: 1,
                sample_type: fields,
                flags: FileAttr::SAMPLE_ID_ALL,
                ..FileAttr::default()
            };
            file.event(&attr, &[id]);
            if *event == Owner {
                continue;
            }
            let text = format!(
                "name: {}\nID: {id}\nformat:\n\
                \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
                \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
                \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
                \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{}",
                event.name(),
                event.format()
            );
            tracing.event(event.system(), text.as_bytes());
        }
        file.feature(PerfFile::TRACING_DATA, tracing.encode());
        if events.contains(&Owner) {
            let names: Vec<String> = events.iter().map(|event| event.full_name()).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            file.event_names(&names);
        }
        for (tid, name) in threads {
            let body = file.bytes().u32(*tid).u32(*tid).text(name, 8);
            // The `sample_id`, as in `with_cgroups`.
            let body = body.u32(*tid).u32(*tid).u64(0).u32(0).u32(0);
            let body = body.u64(events[0] as u64).done();
            file.record(PerfFile::COMM, 0, body);
        }
        Self {
            file,
            time: 1_000_000,
            cgroup: None,
        }
    }

    fn bytes(&self) -> Bytes {
        self.file.bytes()
    }

    /// Adds the mapping of the kernel.
    fn kernel(&mut self) {
        const START: u64 = 0xffff_ffff_8100_0000;
        let body = self.bytes().u32(u32::MAX).u32(0).u64(START);
        let body = body.u64(u64::MAX - START).u64(START);
        // `text` pads the whole body, here of 55 bytes, to a multiple of its second argument: to 72. Any multiple of 8 is valid.
        let body = body.text("[kernel.kallsyms]_text", 24);
        // The `sample_id`, as in `with_cgroups`.
        let body = body.u32(u32::MAX).u32(0).u64(0).u32(0).u32(0);
        let body = body.u64(Begin as u64).done();
        self.file.record(PerfFile::MMAP, PerfFile::KERNEL, body);
    }

    /// Adds an event, `after` nanoseconds after the previous one.
    pub(crate) fn event(&mut self, after: u64, event: Event, place: Place) {
        self.time += after;
        let Place {
            tid,
            lock,
            class,
            flags,
        } = place;
        let raw = self.bytes().u16(event as u16).u16(0).u32(tid);
        // A `__data_loc`: the size of the name with its NUL, and its offset, 24.
        let name_location = u32::try_from(class.len() + 1).expect("a short name") << 16 | 24;
        let raw = match event {
            Begin => raw.u64(lock).u32(flags),
            End => raw.u64(lock).u32(0),
            FutexEnter => raw.u64(FUTEX_CALL).u64(lock).u64(u64::from(flags)),
            FutexExit => raw.u64(FUTEX_CALL).u64(0),
            Owner => self.owner(place),
            Acquire => raw
                .u32(flags)
                .u32(name_location)
                .u64(lock)
                .raw(class)
                .raw([0]),
            _ => raw.u32(name_location).u32(0).u64(lock).raw(class).raw([0]),
        };
        // The size field (4 bytes) and the raw data together are a multiple of 8.
        let padding = (4 + 8 - raw.len() % 8) % 8;
        let raw = raw.raw(vec![0; padding]).done();
        let size = u32::try_from(raw.len()).expect("a short event");
        let body = self.bytes().u64(event as u64).u32(tid).u32(tid);
        let body = body.u64(self.time).u32(0).u32(0);
        // A context marker; three frames, which `lock contention` skips for locks of the kernel; and a caller without symbol.
        // Locks whose addresses differ by multiples of 0x1000 have the same caller, others (such as 0x1008 apart) do not.
        let chain = [KERNEL, 0x1000, 0x2000, 0x3000, 0x4000 + lock % 0x1000];
        let body = body.u64(chain.len() as u64);
        let body = chain.iter().fold(body, |body, ip| body.u64(*ip));
        let body = body.u32(size).raw(raw);
        let body = match self.cgroup {
            Some(id) => body.u64(id).done(),
            None => body.done(),
        };
        self.file.record(PerfFile::SAMPLE, PerfFile::KERNEL, body);
    }

    /// Returns the raw data of [`Owner`]: `place.flags` is the thread that has the lock, `place.class` is the name of the lock.
    fn owner(&self, place: Place) -> Bytes {
        // The number of a name is its index. `&CACHE` is a lock in a slab cache: number 4, then the name of the cache,
        // padded with NULs until the raw data (with the 16 bytes before the name) is a multiple of 32 bytes long.
        let names = ["", "mmap_lock", "siglock", "rq_lock"];
        let number = names.iter().position(|name| *name == place.class);
        let raw = self.bytes().u64(place.lock).u32(place.flags);
        match place.class.strip_prefix('&') {
            Some(cache) => raw.u32(4).text(cache, 32),
            None => raw.u32(u32::try_from(number.expect("a name")).expect("a small number")),
        }
    }

    pub(crate) fn finish(&self) -> Vec<u8> {
        self.file.finish()
    }
}

/// Returns lockdep's events of two threads and three locks, two of them of one class. `bad` adds events in an impossible order.
pub(crate) fn lockdep(bad: bool) -> Vec<u8> {
    const CLASS: &str = "&pool->lock";
    const LONG: &str = "a_name_of_many_letters";
    let mut file = LockFile::with(LOCKDEP, &[(1, "alpha"), (2, "beta")]);
    let place = |tid, lock: u64, class, flags| Place {
        tid,
        lock: 0xffff_8880_0000_1000 + lock * 0x1000,
        class,
        flags,
    };
    let [one, two] = [1, 2].map(|tid| place(tid, 0, CLASS, 0));
    let tried = place(1, 1, CLASS, TRY);
    let [reading, writing] = [(1, READ), (2, 0)].map(|(tid, flags)| place(tid, 2, LONG, flags));
    for (after, event, place) in [
        (1000, Acquire, one),
        (1000, Acquired, one),
        (1000, Acquire, two),
        (1000, Contended, two),
        (5000, Release, one),
        (1001, Acquired, two),
        (1000, Release, two),
        (1000, Acquire, tried),
        (1000, Release, tried),
        (1000, Acquire, reading),
        (1000, Acquire, reading),
        (1000, Release, reading),
        (1000, Release, reading),
        (1000, Acquire, writing),
        (1000, Contended, writing),
        (2503, Acquired, writing),
        (1000, Release, writing),
        // Events without the acquire before them.
        (1000, Release, place(2, 1, CLASS, 0)),
        (1000, Acquired, place(1, 1, CLASS, 0)),
    ] {
        file.event(after, event, place);
    }
    if bad {
        let other = place(1, 1, CLASS, 0);
        for (event, place) in [
            (Acquire, one),
            (Acquire, one),
            (Acquire, other),
            (Acquired, other),
            (Acquired, other),
            (Acquire, writing),
            (Release, writing),
            // The row of this lock (that of `one` and `two`) is already bad.
            (Acquire, two),
            (Acquired, two),
            (Contended, two),
        ] {
            file.event(1000, event, place);
        }
    }
    file.finish()
}

/// Returns lockdep's events of a lock of the kernel, and a wait for a futex.
pub(crate) fn lockdep_with_futex() -> Vec<u8> {
    let of_lock = [(1000, Acquire), (1000, Acquired), (1000, Release)];
    lock_then_futex(LOCKDEP, &of_lock)
}

/// Returns the events of [`lockdep_with_futex`] without the release, and the wait (begin and end) for the lock of the kernel.
pub(crate) fn lockdep_with_waits() -> Vec<u8> {
    let of_lock = [
        (1000, Acquire),
        (1000, Begin),
        (1500, End),
        (1000, Acquired),
    ];
    lock_then_futex(&[LOCKDEP, WAITS].concat(), &of_lock)
}

/// Returns a recording of `recorded` events and of futex(2), of one thread: the events of a lock of the kernel, each with the
/// time since the one before it, then a wait for a futex.
fn lock_then_futex(recorded: &[Event], of_lock: &[(u64, Event)]) -> Vec<u8> {
    let recorded = [recorded, &[FutexEnter, FutexExit]].concat();
    let mut file = LockFile::with(&recorded, &[(1, "alpha")]);
    let place = |lock: u64| Place {
        tid: 1,
        lock,
        class: "&pool->lock",
        flags: 0,
    };
    for (after, event) in of_lock {
        // An address of the kernel.
        file.event(*after, *event, place(1 << 63));
    }
    file.event(1000, FutexEnter, place(0x5000));
    file.event(2500, FutexExit, place(0));
    file.finish()
}

/// Returns waits of two threads for three locks. One wait begins twice, which is possible, and ends twice, which is an impossible
/// order. Another wait never ends, and one end has no begin.
pub(crate) fn waits() -> Vec<u8> {
    let mut file = LockFile::with(WAITS, &[(1, "alpha"), (2, "beta")]);
    let place = |tid, lock: u64, flags| Place {
        tid,
        lock: 0xffff_8880_0000_1000 + lock * 0x1008,
        class: "",
        flags,
    };
    for (after, event, place) in [
        (1000, Begin, place(1, 0, 1)),
        (1000, End, place(1, 0, 0)),
        (1000, Begin, place(2, 0, 1)),
        (1000, Begin, place(2, 0, 32)),
        (3333, End, place(2, 0, 0)),
        (1000, End, place(2, 0, 0)),
        (1000, Begin, place(1, 1, 0)),
        (1000, End, place(1, 2, 0)),
        (1000, Begin, place(2, 2, 33)),
        (1000, End, place(2, 2, 0)),
    ] {
        file.event(after, event, place);
    }
    file.finish()
}

/// Returns a wait of a thread, and one of a thread that has exited: the kernel records its ids as -1.
pub(crate) fn wait_after_exit() -> Vec<u8> {
    let mut file = LockFile::with(WAITS, &[(1, "alpha")]);
    let place = |tid| Place {
        tid,
        lock: 0xffff_8880_0000_1000,
        class: "",
        flags: 2,
    };
    file.event(1000, Begin, place(1));
    file.event(1000, End, place(1));
    file.event(1000, Begin, place(u32::MAX));
    file.event(1500, End, place(u32::MAX));
    file.finish()
}

/// Returns two waits of a thread for one lock, with different flags.
pub(crate) fn waits_for_one_lock() -> Vec<u8> {
    let mut file = LockFile::with(WAITS, &[(1, "alpha")]);
    for flags in [1, 2] {
        let place = Place {
            tid: 1,
            lock: 0xffff_8880_0000_1000,
            class: "",
            flags,
        };
        file.event(1000, Begin, place);
        file.event(1000, End, place);
    }
    file.finish()
}

/// Returns a wait with each of these flags, each for another lock.
pub(crate) fn kinds(all_flags: &[u32]) -> Vec<u8> {
    let mut file = LockFile::with(WAITS, &[(1, "alpha")]);
    for (number, flags) in (0..).zip(all_flags) {
        let place = Place {
            tid: 1,
            lock: 0xffff_8880_0000_1000 + number * 0x1008,
            class: "",
            flags: *flags,
        };
        file.event(1000, Begin, place);
        file.event(1000 + number, End, place);
    }
    file.finish()
}

/// Returns waits for locks at 0xffffffff82000008 and 0xffffffff82000100 in the kernel, and for one outside of it.
pub(crate) fn global_locks() -> Vec<u8> {
    let mut file = LockFile::with(WAITS, &[(1, "alpha")]);
    file.kernel();
    for lock in [
        0xffff_ffff_8200_0008,
        0xffff_ffff_8200_0100,
        0xffff_8880_0000_1000,
    ] {
        let place = Place {
            tid: 1,
            lock,
            class: "",
            flags: 1,
        };
        file.event(1000, Begin, place);
        file.event(1000, End, place);
    }
    file.finish()
}

/// Returns waits in three cgroups, the second of which is that of a container. A mutex is waited for in the first for 1000 and
/// 4333 ns, and in the second for 1000 ns; a futex is waited for in the third for 2500 ns.
pub(crate) fn waits_in_cgroups() -> Vec<u8> {
    let docker = format!("/docker/{}", "0123456789abcdef".repeat(4));
    let events = [Begin, End, FutexEnter, FutexExit];
    let paths = ["/user.slice", &docker, "/system.slice/web.service"];
    let mut file = LockFile::with_cgroups(&events, &[(1, "alpha")], &paths);
    let lock = Place {
        tid: 1,
        lock: 0xffff_8880_0000_1000,
        class: "",
        flags: 32,
    };
    for (cgroup, wait) in [(1, 1000), (1, 4333), (2, 1000)] {
        file.enter_cgroup(cgroup);
        file.event(1000, Begin, lock);
        file.event(wait, End, lock);
    }
    file.enter_cgroup(3);
    let futex = Place {
        lock: 0x5000,
        flags: 0,
        ..lock
    };
    file.event(1000, FutexEnter, futex);
    file.event(2500, FutexExit, futex);
    file.finish()
}

/// Returns waits of the threads 1 and 2, and records with the owners and names of their locks. Records come before the begins of
/// their waits or after them; two waits have no record, and one record has no wait.
pub(crate) fn waits_with_owners() -> Vec<u8> {
    let threads = [(1, "alpha"), (2, "beta"), (3, "gamma")];
    let mut file = LockFile::with(&[Begin, End, Owner], &threads);
    let wait = |tid, lock: u64, flags| Place {
        tid,
        lock: 0xffff_8880_0000_1000 + lock * 0x1008,
        class: "",
        flags,
    };
    let record = |tid, lock, owner, class| Place {
        class,
        ..wait(tid, lock, owner)
    };
    for (after, event, place) in [
        // The first wait begins after its record, the second one before its own.
        (1000, Owner, record(1, 0, 3, "mmap_lock")),
        (100, Begin, wait(1, 0, 4)),
        (100, Begin, wait(2, 0, 4)),
        (100, Owner, record(2, 0, 1, "mmap_lock")),
        (1000, End, wait(1, 0, 0)),
        (1000, End, wait(2, 0, 0)),
        // A mutex that spins and then sleeps is one wait; its owner is that of its first record.
        (100, Owner, record(2, 1, 3, "&kmalloc-64")),
        (100, Begin, wait(2, 1, 33)),
        (100, Owner, record(2, 1, 1, "&kmalloc-64")),
        (100, Begin, wait(2, 1, 32)),
        (1000, End, wait(2, 1, 0)),
        // A wait without a record.
        (100, Begin, wait(1, 2, 1)),
        (2000, End, wait(1, 2, 0)),
        // A name without an owner.
        (100, Begin, wait(1, 3, 1)),
        (100, Owner, record(1, 3, 0, "rq_lock")),
        (3000, End, wait(1, 3, 0)),
        // A record of a lock for which no thread waits, and a wait that does not end.
        (100, Owner, record(2, 5, 3, "siglock")),
        (100, Begin, wait(2, 4, 1)),
    ] {
        file.event(after, event, place);
    }
    file.finish()
}
