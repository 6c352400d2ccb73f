//! The families of cases (a case is a command with hostile input), by their input.

mod archives;
mod caches;
mod generated;
mod kernels;
mod objects;
mod recordings;
mod run_time;
mod tables;
mod texts;

use crate::case::{Case, CaseInputs};

/// The functions that make cases.
pub(crate) const ALL: [fn(&mut CaseInputs<'_>) -> Case; 12] = [
    recordings::damaged,
    recordings::with_mutated_object,
    recordings::directory,
    generated::inconsistent,
    objects::damaged,
    kernels::image,
    kernels::listing,
    run_time::code,
    archives::unpacked,
    caches::with_links,
    texts::any,
    tables::of_events,
];

/// The family of damaged recordings.
pub(crate) const DAMAGED_RECORDINGS: fn(&mut CaseInputs<'_>) -> Case = recordings::damaged;

/// The weights of the families in random choices, in the order of [`ALL`]. Only their ratios count.
pub(crate) const WEIGHTS: [usize; ALL.len()] = [32, 10, 3, 12, 18, 4, 4, 7, 6, 2, 4, 4];

/// Valid recordings made field by field: samples of `cpu-clock` with callchains, of one process.
pub(crate) mod handmade {
    use rperf_testkit::{Bytes, record};

    /// `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | PERIOD`.
    const SAMPLE_TYPE: u64 = 1 | 2 | 4 | 32 | 256;
    // Record types.
    const MMAP: u32 = 1;
    const COMM: u32 = 3;
    const SAMPLE: u32 = 9;
    const MISC_KERNEL: u16 = 1;
    const MISC_USER: u16 = 2;
    /// `use_clockid`; the clock is `CLOCK_MONOTONIC`.
    const FLAGS: u64 = 1 << 25;

    /// The contents of a recording of one process.
    pub(crate) struct Process<'a> {
        pub(crate) pid: u32,
        /// Mapped files: address, length and name.
        pub(crate) maps: &'a [(u64, u64, &'a str)],
        /// Addresses of samples.
        pub(crate) addresses: &'a [u64],
    }

    impl Process<'_> {
        /// Returns the bytes of the recording.
        pub(crate) fn recording(&self) -> Vec<u8> {
            let (pid, mut records) = (self.pid, Vec::new());
            records.extend(record(
                COMM,
                0,
                Bytes::new().u32(pid).u32(pid).text("hostile", 8),
            ));
            for (start, length, name) in self.maps {
                let misc = if start >> 63 == 1 {
                    MISC_KERNEL
                } else {
                    MISC_USER
                };
                // As in perf, kernel mappings have pid -1 and tid 0.
                let pid = if misc == MISC_KERNEL { u32::MAX } else { pid };
                let body = Bytes::new()
                    .u32(pid)
                    .u32(if misc == MISC_KERNEL { 0 } else { pid });
                let body = body.u64(*start).u64(*length).u64(0).text(name, 8);
                records.extend(record(MMAP, misc, body));
            }
            for (number, address) in (1_u64..).zip(self.addresses) {
                let misc = if address >> 63 == 1 {
                    MISC_KERNEL
                } else {
                    MISC_USER
                };
                // `PERF_CONTEXT_KERNEL` or `PERF_CONTEXT_USER`.
                let context = if misc == MISC_KERNEL { -128_i64 } else { -512 };
                let body = Bytes::new()
                    .u64(*address)
                    .u32(pid)
                    .u32(pid)
                    .u64(number * 1000);
                // The period, and a callchain of three entries.
                let body = body
                    .u64(1000)
                    .u64(3)
                    .u64(context as u64)
                    .u64(*address)
                    .u64(address + 8);
                records.extend(record(SAMPLE, misc, body));
            }
            file(&records)
        }
    }

    fn file(records: &[u8]) -> Vec<u8> {
        // Type (software), size, config (`cpu-clock`), period, sample type, read format; then flags and, after further fields,
        // the clock id.
        let attr = Bytes::new()
            .u32(1)
            .u32(128)
            .u64(0)
            .u64(1000)
            .u64(SAMPLE_TYPE)
            .u64(0);
        let attr = attr.u64(FLAGS).raw([0; 44]).u32(1).raw([0; 32]);
        // The offsets of the only attr and of the records. The attr is followed by the offset and the size of its ids; the size
        // is 0.
        let (attrs, data) = (104, 104 + 128 + 16);
        // Magic number, sizes of the header and of an attr with its ids, places of the attrs and of the records, no event types,
        // and no features.
        Bytes::new()
            .raw("PERFILE2")
            .u64(104)
            .u64(128 + 16)
            .u64(attrs)
            .u64(128 + 16)
            .u64(data)
            .u64(records.len() as u64)
            .raw([0; 16 + 32])
            .raw(attr.done())
            .u64(data)
            .u64(0)
            .raw(records)
            .done()
    }
}
