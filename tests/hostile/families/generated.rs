//! Generated recordings: each record is well-formed, but the whole is inconsistent. Since ids, times, addresses and lengths are
//! each picked from a few values, there are processes that are their own parents, overlapping mappings, and times that go
//! backwards.

use rperf_testkit::{Bytes, record};

use super::recordings;
use crate::case::{Case, CaseInputs};
use crate::names;
use crate::random::Random;

/// Pids, tids and CPUs.
const IDS: [u32; 7] = [0, 1, 2, 3, 77, u32::MAX, 1 << 31];
const TIMES: [u64; 8] = [
    0,
    1,
    1000,
    1001,
    5_000_000_000,
    1 << 62,
    u64::MAX - 1,
    u64::MAX,
];
/// Lengths, and other numbers of 8 bytes such as counter values.
const LENGTHS: [u64; 8] = [
    0,
    1,
    0x1000,
    0x2000,
    0x10_0000,
    1 << 47,
    u64::MAX - 1,
    u64::MAX,
];
const ADDRESSES: [u64; 14] = [
    0,
    1,
    0x1000,
    0x1139,
    0x11b0,
    0x40_1000,
    0x5555_5555_5139,
    0x5555_5555_5000,
    0x7fff_ffff_f000,
    0xffff_ffff_8100_0000,
    0xffff_ffff_8100_0100,
    0xffff_ffff_c000_0010,
    u64::MAX - 4095,
    u64::MAX,
];
/// Callchain contexts (`PERF_CONTEXT_*`).
const CONTEXTS: [i64; 8] = [-32, -128, -512, -2048, -2176, -2560, -640, -4095];

/// The bits of `sample_type` (`PERF_SAMPLE_*`), by number.
mod sample_bit {
    pub(super) const IP: usize = 0;
    pub(super) const TID: usize = 1;
    pub(super) const TIME: usize = 2;
    pub(super) const ADDR: usize = 3;
    pub(super) const READ: usize = 4;
    pub(super) const CALLCHAIN: usize = 5;
    pub(super) const ID: usize = 6;
    pub(super) const CPU: usize = 7;
    pub(super) const PERIOD: usize = 8;
    pub(super) const STREAM_ID: usize = 9;
    pub(super) const RAW: usize = 10;
    pub(super) const BRANCH_STACK: usize = 11;
    pub(super) const REGS_USER: usize = 12;
    pub(super) const STACK_USER: usize = 13;
    pub(super) const WEIGHT: usize = 14;
    pub(super) const DATA_SRC: usize = 15;
    pub(super) const IDENTIFIER: usize = 16;
    pub(super) const TRANSACTION: usize = 17;
    pub(super) const REGS_INTR: usize = 18;
    pub(super) const PHYS_ADDR: usize = 19;
    pub(super) const AUX: usize = 20;
    pub(super) const CGROUP: usize = 21;
    pub(super) const DATA_PAGE_SIZE: usize = 22;
    pub(super) const CODE_PAGE_SIZE: usize = 23;
    pub(super) const WEIGHT_STRUCT: usize = 24;
}
/// The number of bits of `sample_type`.
const SAMPLE_TYPE_BITS: usize = 25;
/// The bits that most events have: `PERF_SAMPLE_IP | TID | TIME | CALLCHAIN | PERIOD`.
const USUAL_SAMPLE_TYPE: u64 = 0x127;
/// The bit `sample_id_all` of the flags of an attr.
const SAMPLE_ID_ALL: u64 = 1 << 18;

/// Record types (`PERF_RECORD_*`).
mod record_type {
    pub(super) const MMAP: u32 = 1;
    pub(super) const COMM: u32 = 3;
    pub(super) const EXIT: u32 = 4;
    pub(super) const THROTTLE: u32 = 5;
    pub(super) const FORK: u32 = 7;
    pub(super) const SAMPLE: u32 = 9;
    pub(super) const MMAP2: u32 = 10;
    pub(super) const AUX: u32 = 11;
    pub(super) const ITRACE_START: u32 = 12;
    pub(super) const LOST_SAMPLES: u32 = 13;
    pub(super) const SWITCH: u32 = 14;
    pub(super) const SWITCH_CPU_WIDE: u32 = 15;
    pub(super) const NAMESPACES: u32 = 16;
    pub(super) const KSYMBOL: u32 = 17;
    pub(super) const BPF_EVENT: u32 = 18;
    pub(super) const CGROUP: u32 = 19;
    pub(super) const TEXT_POKE: u32 = 20;
    pub(super) const AUX_OUTPUT_HW_ID: u32 = 21;
    pub(super) const FINISHED_ROUND: u32 = 68;
}

// Sizes in the file, in bytes.
const FILE_HEADER: usize = 104;
const ATTR: usize = 136;
/// An attr, and the offset and size of its ids.
const ATTR_ENTRY: usize = ATTR + 16;

/// An event, as far as it determines the format of its records.
#[derive(Debug, Clone)]
struct Event {
    kind: u32,
    config: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    /// `branch_sample_type`.
    branches: u64,
    user_registers: u64,
    interrupt_registers: u64,
    /// `sample_stack_user`: the size in bytes.
    stack: u32,
    /// The id of the samples, which is not part of the attr.
    id: u64,
}

impl Event {
    fn random(id: u64, random: &mut Random) -> Self {
        let few_bits =
            |random: &mut Random| random.next() & random.next() & random.next() & 0xff_ffff;
        let sample_type =
            USUAL_SAMPLE_TYPE | random.next() & random.next() & ((1 << SAMPLE_TYPE_BITS) - 1);
        Self {
            kind: *random.pick(&[0, 1, 1, 1, 2, 3, 4, 5, 6, 99]),
            config: random.next() % 12,
            // The bit of the identifier is set in both cases.
            sample_type: if random.one_in(3) {
                sample_type & !few_bits(random)
            } else {
                sample_type
            } | 1 << sample_bit::IDENTIFIER,
            read_format: random.next() & 0x1f,
            // Bits up to `sigtrap`.
            flags: SAMPLE_ID_ALL | random.next() & random.next() & 0x3f_ffff_ffff,
            // Without the highest bit, `PERF_SAMPLE_BRANCH_COUNTERS`: the function `branches` writes no counters.
            branches: random.next() & random.next() & 0x7_ffff,
            user_registers: few_bits(random),
            interrupt_registers: few_bits(random),
            stack: *random.pick(&[0, 8, 64, 512]),
            id,
        }
    }

    /// `perf_event_attr`, with a period or frequency of 1000; the clock, if `flags` use one, is `CLOCK_MONOTONIC`.
    fn attr(&self) -> Vec<u8> {
        let attr = Bytes::new()
            .u32(self.kind)
            .u32(ATTR as u32)
            .u64(self.config)
            .u64(1000);
        let attr = attr
            .u64(self.sample_type)
            .u64(self.read_format)
            .u64(self.flags);
        // The first four are `wakeup_events`, `bp_type`, `config1` and `config2`.
        let attr = attr
            .u32(1)
            .u32(0)
            .u64(0)
            .u64(0)
            .u64(self.branches)
            .u64(self.user_registers);
        let attr = attr.u32(self.stack).u32(1).u64(self.interrupt_registers);
        attr.raw([0; 32]).done()
    }

    fn has(&self, bit: usize) -> bool {
        self.sample_type >> bit & 1 == 1
    }

    /// Appends the sample_id trailer of non-sample records to `body`.
    fn trailer(&self, body: Bytes, random: &mut Random) -> Bytes {
        let mut body = body;
        if self.has(sample_bit::TID) {
            body = body.u32(*random.pick(&IDS)).u32(*random.pick(&IDS));
        }
        if self.has(sample_bit::TIME) {
            body = body.u64(*random.pick(&TIMES));
        }
        for bit in [sample_bit::ID, sample_bit::STREAM_ID] {
            if self.has(bit) {
                body = body.u64(self.id);
            }
        }
        if self.has(sample_bit::CPU) {
            body = body.u32(*random.pick(&IDS)).u32(0);
        }
        body.u64(self.id)
    }

    /// The body of a sample, field by field. It begins with the identifier.
    fn sample(&self, random: &mut Random) -> Bytes {
        let mut body = Bytes::new().u64(self.id);
        // The kernel's order of fields after the identifier.
        for bit in [
            sample_bit::IP,
            sample_bit::TID,
            sample_bit::TIME,
            sample_bit::ADDR,
            sample_bit::ID,
            sample_bit::STREAM_ID,
            sample_bit::CPU,
            sample_bit::PERIOD,
            sample_bit::READ,
            sample_bit::CALLCHAIN,
            sample_bit::RAW,
            sample_bit::BRANCH_STACK,
            sample_bit::REGS_USER,
            sample_bit::STACK_USER,
            sample_bit::WEIGHT,
            sample_bit::WEIGHT_STRUCT,
            sample_bit::DATA_SRC,
            sample_bit::TRANSACTION,
            sample_bit::REGS_INTR,
            sample_bit::PHYS_ADDR,
            sample_bit::CGROUP,
            sample_bit::DATA_PAGE_SIZE,
            sample_bit::CODE_PAGE_SIZE,
            sample_bit::AUX,
        ] {
            // The kernel refuses both weights: they are one field.
            let is_second_weight = bit == sample_bit::WEIGHT_STRUCT && self.has(sample_bit::WEIGHT);
            if self.has(bit) && !is_second_weight {
                body = self.field(bit, body, random);
            }
        }
        body
    }

    /// Appends the field of a sample that `bit` of `sample_type` requests.
    fn field(&self, bit: usize, body: Bytes, random: &mut Random) -> Bytes {
        match bit {
            sample_bit::TID => body.u32(*random.pick(&IDS)).u32(*random.pick(&IDS)),
            sample_bit::TIME => body.u64(*random.pick(&TIMES)),
            sample_bit::ID | sample_bit::STREAM_ID => body.u64(self.id),
            sample_bit::CPU => body.u32(*random.pick(&[0, 1, 3, 4095, u32::MAX])).u32(0),
            sample_bit::READ => self.read(body, random),
            sample_bit::CALLCHAIN => chain(body, random),
            sample_bit::RAW => {
                let size = random.below(8) * 8 + 4;
                body.u32(size as u32).raw(vec![random.next() as u8; size])
            }
            sample_bit::BRANCH_STACK => branches(self.branches, body, random),
            sample_bit::REGS_USER => registers(self.user_registers, body, random),
            sample_bit::REGS_INTR => registers(self.interrupt_registers, body, random),
            sample_bit::STACK_USER => match random.one_in(3) || self.stack == 0 {
                true => body.u64(0),
                false => {
                    let size = u64::from(self.stack);
                    let filled = vec![random.next() as u8; self.stack as usize];
                    // The last number is the size of the part that was filled (`dyn_size`).
                    body.u64(size)
                        .raw(filled)
                        .u64(*random.pick(&[0, 8, size, u64::MAX]))
                }
            },
            sample_bit::AUX => body.u64(8).u64(random.next()),
            sample_bit::WEIGHT
            | sample_bit::DATA_SRC
            | sample_bit::TRANSACTION
            | sample_bit::WEIGHT_STRUCT => body.u64(random.next() & random.next()),
            // IP, ADDR, PERIOD, PHYS_ADDR, CGROUP, DATA_PAGE_SIZE and CODE_PAGE_SIZE.
            _ => body.u64(*random.pick(&ADDRESSES)),
        }
    }

    /// Appends the counter values of a sample (`PERF_SAMPLE_READ`).
    fn read(&self, body: Bytes, random: &mut Random) -> Bytes {
        // The bits of `PERF_FORMAT_*`: 0 and 1 are the times, 2 is the id, 3 the group, and 4 the number of lost samples.
        let has = |bit: u32| self.read_format >> bit & 1 == 1;
        let value = |body: Bytes, random: &mut Random| body.u64(*random.pick(&LENGTHS));
        // The times enabled and running.
        let times = |body: Bytes, random: &mut Random| {
            let count = (self.read_format & 3).count_ones();
            (0..count).fold(body, |body, _| value(body, random))
        };
        // The id, and the number of lost samples; any number will do for the latter, so the id is written again.
        let id_and_lost = |body: Bytes| {
            let present = [2, 4].into_iter().filter(|bit| has(*bit));
            present.fold(body, |body, _| body.u64(self.id))
        };
        let is_group = has(3);
        if !is_group {
            return id_and_lost(times(value(body, random), random));
        }
        let count = random.below(4);
        let mut body = times(body.u64(count as u64), random);
        for _ in 0..count {
            body = id_and_lost(value(body, random));
        }
        body
    }
}

/// A callchain, sometimes nearly as long as a record may be.
fn chain(body: Bytes, random: &mut Random) -> Bytes {
    let count = match random.one_in(15) {
        true => 1000 + random.below(6000),
        false => random.below(8),
    };
    let mut body = body.u64(count as u64);
    let is_deep = count > 8;
    for index in 0..count {
        body = match random.one_in(if is_deep { 2000 } else { 5 }) {
            true => body.u64(*random.pick(&CONTEXTS) as u64),
            false if is_deep => body.u64(0x40_1000 + index as u64 * 8),
            false => body.u64(*random.pick(&ADDRESSES)),
        };
    }
    body
}

fn branches(kinds: u64, body: Bytes, random: &mut Random) -> Bytes {
    /// `PERF_SAMPLE_BRANCH_HW_INDEX`.
    const INDEX: u64 = 1 << 17;
    let count = random.below(6);
    let mut body = body.u64(count as u64);
    if kinds & INDEX != 0 {
        body = body.u64(*random.pick(&LENGTHS));
    }
    for _ in 0..count {
        body = body
            .u64(*random.pick(&ADDRESSES))
            .u64(*random.pick(&ADDRESSES))
            .u64(random.next() & 0xfff);
    }
    body
}

fn registers(mask: u64, body: Bytes, random: &mut Random) -> Bytes {
    let abi = *random.pick(&[0, 1, 2, 2, 2]);
    let mut body = body.u64(abi);
    if abi != 0 {
        for _ in 0..mask.count_ones() {
            body = body.u64(*random.pick(&ADDRESSES));
        }
    }
    body
}

/// Type and body of a random non-sample record, of a type that the kernel writes. The body ends with the sample_id trailer of
/// `event`.
fn non_sample_record(event: &Event, workload: &str, random: &mut Random) -> (u32, Bytes) {
    let ids = |body: Bytes, count: usize, random: &mut Random| {
        (0..count).fold(body, |body, _| body.u32(*random.pick(&IDS)))
    };
    let numbers = |body: Bytes, count: usize, random: &mut Random| {
        (0..count).fold(body, |body, _| body.u64(*random.pick(&LENGTHS)))
    };
    let name = match random.below(4) {
        0 => workload.to_owned(),
        1 => String::from_utf8_lossy(&names::hostile(random)).into_owned(),
        _ => (*random.pick(&[
            "//anon",
            "[kernel.kallsyms]_text",
            "[vdso]",
            "[m]",
            "/bin/sh",
            "jit-77.dump",
        ]))
        .to_owned(),
    };
    // At most 4000 bytes of the name.
    let end = (0..=name.len().min(4000))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    let name = &name[..end.unwrap_or(0)];
    let kind = *random.pick(&[
        record_type::MMAP,
        record_type::COMM,
        record_type::COMM,
        record_type::EXIT,
        record_type::THROTTLE,
        record_type::FORK,
        record_type::FORK,
        record_type::FORK,
        record_type::MMAP2,
        record_type::MMAP2,
        record_type::MMAP2,
        record_type::AUX,
        record_type::ITRACE_START,
        record_type::LOST_SAMPLES,
        record_type::SWITCH,
        record_type::SWITCH_CPU_WIDE,
        record_type::NAMESPACES,
        record_type::KSYMBOL,
        record_type::BPF_EVENT,
        record_type::CGROUP,
        record_type::TEXT_POKE,
        record_type::AUX_OUTPUT_HW_ID,
    ]);
    let body = Bytes::new();
    let body = match kind {
        record_type::MMAP => numbers(
            ids(body, 2, random).u64(*random.pick(&ADDRESSES)),
            2,
            random,
        )
        .text(name, 8),
        record_type::COMM => ids(body, 2, random).text(name, 8),
        record_type::EXIT | record_type::FORK => ids(body, 4, random).u64(*random.pick(&TIMES)),
        record_type::THROTTLE | record_type::AUX => numbers(body, 3, random),
        record_type::MMAP2 => {
            let body = ids(body, 2, random).u64(*random.pick(&ADDRESSES));
            let body = numbers(body, 2, random).u32(8).u32(1).u64(7).u64(0);
            body.u32(random.next() as u32 & 7).u32(2).text(name, 8)
        }
        record_type::ITRACE_START | record_type::SWITCH_CPU_WIDE => ids(body, 2, random),
        record_type::LOST_SAMPLES => numbers(body, 1, random),
        record_type::SWITCH => body,
        record_type::NAMESPACES => {
            let count = random.below(8) as u64;
            numbers(ids(body, 2, random).u64(count), 2 * count as usize, random)
        }
        record_type::KSYMBOL => body
            .u64(*random.pick(&ADDRESSES))
            .u32(random.next() as u32)
            .u16(1)
            .u16(random.next() as u16 & 1)
            .text(name, 8),
        record_type::BPF_EVENT => body
            .u16(random.next() as u16 & 3)
            .u16(0)
            .u32(random.next() as u32)
            .u64(random.next()),
        record_type::CGROUP => body.u64(random.next() & 3).text(name, 8),
        // Address, lengths of the old and the new code, both codes, and padding.
        record_type::TEXT_POKE => body
            .u64(*random.pick(&ADDRESSES))
            .u16(4)
            .u16(4)
            .raw([0x90; 8])
            .raw([0; 4]),
        // AUX_OUTPUT_HW_ID.
        _ => body.u64(random.next() & 3),
    };
    (kind, event.trailer(body, random))
}

/// A recording with some events and many records.
fn recording(workload: &str, random: &mut Random) -> Vec<u8> {
    let events: Vec<Event> = (0..1 + random.below(3))
        .map(|id| Event::random(id as u64 + 1, random))
        .collect();
    let mut records = Vec::new();
    for _ in 0..*random.pick(&[10, 100, 100, 1000]) {
        let event = random.pick(&events).clone();
        let misc = *random.pick(&[0, 1, 2, 2, 2, 4, 5, 0x2002, 0x4002, 0x8000, 0xffff]);
        let (kind, body) = match random.one_in(2) {
            true => (record_type::SAMPLE, event.sample(random)),
            false => non_sample_record(&event, workload, random),
        };
        records.extend(record(kind, misc, body));
        if random.one_in(30) {
            records.extend(record(record_type::FINISHED_ROUND, 0, Bytes::new()));
        }
    }
    let count = events.len();
    // The offsets of the attrs, of their ids, and of the records.
    let (attrs, ids) = (FILE_HEADER, FILE_HEADER + count * ATTR_ENTRY);
    let data = ids + count * 8;
    let file = Bytes::new()
        .raw("PERFILE2")
        .u64(FILE_HEADER as u64)
        .u64(ATTR_ENTRY as u64)
        .u64(attrs as u64)
        .u64((count * ATTR_ENTRY) as u64);
    let file = file.u64(data as u64).u64(records.len() as u64).raw([0; 48]);
    let file = events
        .iter()
        .enumerate()
        .fold(file, |file, (index, event)| {
            file.raw(event.attr()).u64((ids + index * 8) as u64).u64(8)
        });
    let file = events.iter().fold(file, |file, event| file.u64(event.id));
    file.raw(records).done()
}

/// A generated recording, and any command that reads recordings.
pub(crate) fn inconsistent(inputs: &mut CaseInputs<'_>) -> Case {
    let bytes = recording(&inputs.seeds.workload, inputs.random);
    recordings::any_command("generated recording", bytes, inputs)
}
