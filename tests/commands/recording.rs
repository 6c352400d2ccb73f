//! Generated perf.data files with cpu-clock samples, for cases that cannot be recorded on demand.

use rperf_testkit::{Bytes, FileAttr, PerfFile};

/// `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | PERIOD`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 32 | 256;
/// `perf_event_attr::context_switch`.
const CONTEXT_SWITCH: u64 = 1 << 26;
/// `PERF_SAMPLE_BRANCH_STACK`.
const BRANCH_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_ANY`.
const ANY_BRANCH: u64 = 1 << 3;
pub(super) const MISC_USER: u16 = PerfFile::USER;
/// `PERF_RECORD_MISC_COMM_EXEC`.
pub(super) const MISC_EXEC: u16 = 1 << 13;
/// `PERF_RECORD_MISC_SWITCH_OUT`.
const MISC_SWITCH_OUT: u16 = 1 << 13;
/// `PERF_RECORD_FORK`.
const FORK: u32 = 7;
/// `PERF_RECORD_SWITCH`.
const SWITCH: u32 = 14;
/// `PERF_CONTEXT_MAX`, the lowest context marker.
const CONTEXT_MAX: u64 = (-4095_i64).cast_unsigned();
/// The period of each sample, in nanoseconds.
const PERIOD: u64 = 250_000;

/// A recording of one event, cpu-clock with callchains.
pub(super) struct Recording {
    file: PerfFile,
    has_branches: bool,
    has_switches: bool,
}

/// One sample.
pub(super) struct Sampled<'a> {
    /// Process and thread.
    pub(super) ids: (u32, u32),
    pub(super) time: u64,
    /// The raw callchain, with context markers such as `PERF_CONTEXT_USER`.
    pub(super) chain: &'a [u64],
}

impl Recording {
    pub(super) fn new() -> Self {
        Self {
            file: PerfFile::new(),
            has_branches: false,
            has_switches: false,
        }
    }

    /// A recording whose samples have branch stacks.
    pub(super) fn with_branches() -> Self {
        Self {
            has_branches: true,
            ..Self::new()
        }
    }

    /// Adds a record. The body of a record other than a sample must end with the fields of `sample_id_all`: process, thread and
    /// time.
    fn push(&mut self, kind: u32, misc: u16, body: Bytes) {
        self.file.record(kind, misc, body.done());
    }

    /// Adds a COMM record; [`MISC_EXEC`] in `misc` means that exec(2) set the name.
    pub(super) fn comm(&mut self, misc: u16, (pid, tid): (u32, u32), name: &str, time: u64) {
        let body = Bytes::new().u32(pid).u32(tid).text(name, 8);
        self.push(PerfFile::COMM, misc, body.u32(pid).u32(tid).u64(time));
    }

    /// Adds a FORK record; `parent` and `child` are (process, thread).
    pub(super) fn fork(&mut self, parent: (u32, u32), child: (u32, u32), time: u64) {
        let body = Bytes::new()
            .u32(child.0)
            .u32(parent.0)
            .u32(child.1)
            .u32(parent.1)
            .u64(time);
        self.push(FORK, 0, body.u32(parent.0).u32(parent.1).u64(time));
    }

    /// Adds a SWITCH record: a thread of process 10 is switched in or out.
    pub(super) fn switch(&mut self, tid: u32, is_in: bool, time: u64) {
        self.has_switches = true;
        let misc = if is_in { 0 } else { MISC_SWITCH_OUT };
        self.push(SWITCH, misc, Bytes::new().u32(10).u32(tid).u64(time));
    }

    /// Adds an executable mapping of `len` bytes at `start`, from offset `pgoff` of the file.
    pub(super) fn mmap(
        &mut self,
        pid: u32,
        (start, len, pgoff): (u64, u64, u64),
        name: &str,
        time: u64,
    ) {
        let body = Bytes::new()
            .u32(pid)
            .u32(pid)
            .u64(start)
            .u64(len)
            .u64(pgoff);
        let body = body.text(name, 8).u32(pid).u32(pid).u64(time);
        self.push(PerfFile::MMAP, MISC_USER, body);
    }

    /// Adds a sample, whose branch stack is empty if the recording has branch stacks. It is a sample of the kernel if the first
    /// address of its callchain is a kernel address.
    pub(super) fn sample(&mut self, sampled: Sampled<'_>) {
        self.sample_with_branches(&[], sampled);
    }

    /// Adds a sample with branches, newest first; each is its source, target and flags. Branches are ignored unless the recording
    /// was created by [`Self::with_branches`].
    pub(super) fn sample_with_branches(&mut self, branches: &[[u64; 3]], sampled: Sampled<'_>) {
        let ip = sampled
            .chain
            .iter()
            .copied()
            .find(|address| *address < CONTEXT_MAX)
            .unwrap_or_default();
        let misc = if ip >> 63 == 1 {
            PerfFile::KERNEL
        } else {
            MISC_USER
        };
        let (pid, tid) = sampled.ids;
        let mut body = Bytes::new()
            .u64(ip)
            .u32(pid)
            .u32(tid)
            .u64(sampled.time)
            .u64(PERIOD);
        body = body.u64(sampled.chain.len() as u64);
        for address in sampled.chain {
            body = body.u64(*address);
        }
        if self.has_branches {
            body = body.u64(branches.len() as u64);
            body = branches
                .iter()
                .flatten()
                .fold(body, |body, word| body.u64(*word));
        }
        self.push(PerfFile::SAMPLE, misc, body);
    }

    /// Returns the file.
    pub(super) fn finish(mut self) -> Vec<u8> {
        let attr = FileAttr {
            // `PERF_TYPE_SOFTWARE`; the default config, 0, is cpu-clock.
            kind: 1,
            period: PERIOD,
            sample_type: SAMPLE_TYPE | if self.has_branches { BRANCH_STACK } else { 0 },
            flags: FileAttr::SAMPLE_ID_ALL | if self.has_switches { CONTEXT_SWITCH } else { 0 },
            branches: if self.has_branches { ANY_BRANCH } else { 0 },
            ..FileAttr::default()
        };
        self.file.event(&attr, &[]).finish()
    }
}
