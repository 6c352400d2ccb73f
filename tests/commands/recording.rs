//! A perf.data made byte by byte: the cases that no machine records on demand.

use rperf_testkit::Bytes;

/// `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | PERIOD`.
const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 32 | 256;
/// `sample_id_all`, bit 18 of the flags: every record ends with ids and time.
/// `context_switch`.
const CONTEXT_SWITCH: u64 = 1 << 26;
const BRANCH_STACK: u64 = 1 << 11;
/// `PERF_SAMPLE_BRANCH_ANY`.
const ANY_BRANCH: u64 = 1 << 3;
const SAMPLE_ID_ALL: u64 = 1 << 18;
const MISC_KERNEL: u16 = 1;
pub(super) const MISC_USER: u16 = 2;
/// Set in a SWITCH record of a thread that stops, in a COMM record by exec, in a FORK record by a recorder that reads /proc.
pub(super) const MISC_EXEC: u16 = 1 << 13;

/// Records of one event, cpu-clock with callchains.
pub(super) struct Recording {
    records: Vec<u8>,
    branches: bool,
    switches: bool,
}

/// One sample.
pub(super) struct Sampled<'a> {
    pub(super) ids: (u32, u32),
    pub(super) time: u64,
    pub(super) chain: &'a [u64],
}

impl Recording {
    pub(super) fn new() -> Self {
        Self {
            records: Vec::new(),
            branches: false,
            switches: false,
        }
    }

    /// One whose samples come with branches.
    pub(super) fn with_branches() -> Self {
        Self {
            branches: true,
            ..Self::new()
        }
    }

    fn push(&mut self, kind: u32, misc: u16, body: Bytes) {
        let body = body.done();
        let size = u16::try_from(body.len() + 8).expect("a record is short");
        let header = Bytes::new().u32(kind).u16(misc).u16(size).done();
        self.records.extend(header);
        self.records.extend(body);
    }

    /// A name; by exec where `misc` says so.
    pub(super) fn comm(&mut self, misc: u16, (pid, tid): (u32, u32), name: &str, time: u64) {
        let body = Bytes::new().u32(pid).u32(tid).text(name, 8);
        self.push(3, misc, body.u32(pid).u32(tid).u64(time));
    }

    /// A new process or thread.
    pub(super) fn fork(&mut self, parent: (u32, u32), child: (u32, u32), time: u64) {
        let body = Bytes::new()
            .u32(child.0)
            .u32(parent.0)
            .u32(child.1)
            .u32(parent.1)
            .u64(time);
        self.push(7, 0, body.u32(parent.0).u32(parent.1).u64(time));
    }

    /// A thread gets a processor, or loses it.
    pub(super) fn switch(&mut self, tid: u32, runs: bool, time: u64) {
        self.switches = true;
        let misc = if runs { 0 } else { MISC_EXEC };
        self.push(14, misc, Bytes::new().u32(10).u32(tid).u64(time));
    }

    /// Executable memory, `len` bytes at `start` from `pgoff` of the file on.
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
        self.push(1, MISC_USER, body);
    }

    /// A sample of user space, or of the kernel where its first address is there.
    pub(super) fn sample(&mut self, sampled: Sampled<'_>) {
        self.sample_behind(&[], sampled);
    }

    /// The same behind branches, the newest first: origin, target and flags of each.
    pub(super) fn sample_behind(&mut self, branches: &[[u64; 3]], sampled: Sampled<'_>) {
        let ip = sampled
            .chain
            .iter()
            .copied()
            .find(|address| *address < u64::MAX - 4094)
            .unwrap_or_default();
        let misc = if ip >> 63 == 1 {
            MISC_KERNEL
        } else {
            MISC_USER
        };
        let (pid, tid) = sampled.ids;
        let mut body = Bytes::new()
            .u64(ip)
            .u32(pid)
            .u32(tid)
            .u64(sampled.time)
            .u64(250_000);
        body = body.u64(sampled.chain.len() as u64);
        for address in sampled.chain {
            body = body.u64(*address);
        }
        if self.branches {
            body = body.u64(branches.len() as u64);
            body = branches
                .iter()
                .flatten()
                .fold(body, |body, word| body.u64(*word));
        }
        self.push(9, misc, body);
    }

    /// The whole file.
    pub(super) fn finish(self) -> Vec<u8> {
        let attr = Bytes::new()
            .u32(1)
            .u32(128)
            .u64(0)
            .u64(250_000)
            .u64(SAMPLE_TYPE | if self.branches { BRANCH_STACK } else { 0 })
            .u64(0)
            .u64(SAMPLE_ID_ALL | if self.switches { CONTEXT_SWITCH } else { 0 })
            .raw([0; 24])
            .u64(if self.branches { ANY_BRANCH } else { 0 })
            .raw([0; 48])
            .done();
        let (attrs, data) = (104, 104 + 128 + 16);
        Bytes::new()
            .raw("PERFILE2")
            .u64(104)
            .u64(128 + 16)
            .u64(attrs)
            .u64(128 + 16)
            .u64(data)
            .u64(self.records.len() as u64)
            .raw([0; 16 + 32])
            .raw(attr)
            .u64(data)
            .u64(0)
            .raw(self.records)
            .done()
    }
}
