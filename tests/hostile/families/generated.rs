//! Generated recordings: each record is well-formed, but the whole is inconsistent. Since numbers are picked from a few, there
//! are processes that are their own parents, overlapping mappings, and times that go backwards.

use rperf_testkit::{Bytes, record};

use super::recordings;
use crate::case::{Case, CaseInputs};
use crate::names;
use crate::random::Random;

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

/// Bits of `sample_type`.
const SAMPLE_TYPE_BITS: usize = 25;
const IDENTIFIER: u64 = 1 << 16;

/// An event, as far as it determines the format of its records.
#[derive(Debug, Clone)]
struct Event {
    kind: u32,
    config: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    branches: u64,
    user_registers: u64,
    interrupt_registers: u64,
    stack: u32,
    id: u64,
}

impl Event {
    fn random(id: u64, random: &mut Random) -> Self {
        let few_bits =
            |random: &mut Random| random.next() & random.next() & random.next() & 0xff_ffff;
        let sample_type = 0x127 | random.next() & random.next() & ((1 << SAMPLE_TYPE_BITS) - 1);
        Self {
            kind: *random.pick(&[0, 1, 1, 1, 2, 3, 4, 5, 6, 99]),
            config: random.next() % 12,
            sample_type: if random.one_in(3) {
                sample_type & !few_bits(random)
            } else {
                sample_type
            } | IDENTIFIER,
            read_format: random.next() & 0x1f,
            flags: 1 << 18 | random.next() & random.next() & 0x3f_ffff_ffff,
            branches: random.next() & random.next() & 0xf_ffff,
            user_registers: few_bits(random),
            interrupt_registers: few_bits(random),
            stack: *random.pick(&[0, 8, 64, 512]),
            id,
        }
    }

    /// `perf_event_attr`, of 136 bytes.
    fn attr(&self) -> Vec<u8> {
        let attr = Bytes::new()
            .u32(self.kind)
            .u32(136)
            .u64(self.config)
            .u64(1000);
        let attr = attr
            .u64(self.sample_type)
            .u64(self.read_format)
            .u64(self.flags);
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

    /// The sample_id trailer of non-sample records.
    fn trailer(&self, body: Bytes, random: &mut Random) -> Bytes {
        let mut body = body;
        if self.has(1) {
            body = body.u32(*random.pick(&IDS)).u32(*random.pick(&IDS));
        }
        if self.has(2) {
            body = body.u64(*random.pick(&TIMES));
        }
        for bit in [6, 9] {
            if self.has(bit) {
                body = body.u64(self.id);
            }
        }
        if self.has(7) {
            body = body.u32(*random.pick(&IDS)).u32(0);
        }
        body.u64(self.id)
    }

    /// A sample, field by field.
    fn sample(&self, random: &mut Random) -> Bytes {
        let mut body = Bytes::new().u64(self.id);
        // The kernel's order of fields after the identifier (bit 16).
        for bit in [
            0, 1, 2, 3, 6, 9, 7, 8, 4, 5, 10, 11, 12, 13, 14, 24, 15, 17, 18, 19, 21, 22, 23, 20,
        ] {
            if self.has(bit) {
                body = self.field(bit, body, random);
            }
        }
        body
    }

    fn field(&self, bit: usize, body: Bytes, random: &mut Random) -> Bytes {
        match bit {
            1 => body.u32(*random.pick(&IDS)).u32(*random.pick(&IDS)),
            2 => body.u64(*random.pick(&TIMES)),
            6 | 9 => body.u64(self.id),
            7 => body.u32(*random.pick(&[0, 1, 3, 4095, u32::MAX])).u32(0),
            4 => self.read(body, random),
            5 => chain(body, random),
            10 => {
                let size = random.below(8) * 8 + 4;
                body.u32(size as u32).raw(vec![random.next() as u8; size])
            }
            11 => branches(self.branches, body, random),
            12 => registers(self.user_registers, body, random),
            18 => registers(self.interrupt_registers, body, random),
            13 => match random.one_in(3) || self.stack == 0 {
                true => body.u64(0),
                false => {
                    let size = u64::from(self.stack);
                    let filled = vec![random.next() as u8; self.stack as usize];
                    body.u64(size)
                        .raw(filled)
                        .u64(*random.pick(&[0, 8, size, u64::MAX]))
                }
            },
            20 => body.u64(8).u64(random.next()),
            14 | 15 | 17 | 24 => body.u64(random.next() & random.next()),
            _ => body.u64(*random.pick(&ADDRESSES)),
        }
    }

    fn read(&self, body: Bytes, random: &mut Random) -> Bytes {
        let has = |bit: u32| self.read_format >> bit & 1 == 1;
        let value = |body: Bytes, random: &mut Random| body.u64(*random.pick(&LENGTHS));
        // The times enabled and running.
        let times = |body: Bytes, random: &mut Random| {
            let count = (self.read_format & 3).count_ones();
            (0..count).fold(body, |body, _| value(body, random))
        };
        // The id, and the number of lost samples.
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

/// Type and body of a non-sample record of the kernel.
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
    let end = (0..=name.len().min(4000))
        .rev()
        .find(|at| name.is_char_boundary(*at));
    let name = &name[..end.unwrap_or(0)];
    let kind = *random.pick(&[
        1, 3, 3, 4, 5, 7, 7, 7, 10, 10, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
    ]);
    let body = Bytes::new();
    let body = match kind {
        1 => numbers(
            ids(body, 2, random).u64(*random.pick(&ADDRESSES)),
            2,
            random,
        )
        .text(name, 8),
        3 => ids(body, 2, random).text(name, 8),
        4 | 7 => ids(body, 4, random).u64(*random.pick(&TIMES)),
        5 | 11 => numbers(body, 3, random),
        10 => {
            let body = ids(body, 2, random).u64(*random.pick(&ADDRESSES));
            let body = numbers(body, 2, random).u32(8).u32(1).u64(7).u64(0);
            body.u32(random.next() as u32 & 7).u32(2).text(name, 8)
        }
        12 | 15 => ids(body, 2, random),
        13 => numbers(body, 1, random),
        14 => body,
        16 => {
            let count = random.below(8) as u64;
            numbers(ids(body, 2, random).u64(count), 2 * count as usize, random)
        }
        17 => body
            .u64(*random.pick(&ADDRESSES))
            .u32(random.next() as u32)
            .u16(1)
            .u16(random.next() as u16 & 1)
            .text(name, 8),
        18 => body
            .u16(random.next() as u16 & 3)
            .u16(0)
            .u32(random.next() as u32)
            .u64(random.next()),
        19 => body.u64(random.next() & 3).text(name, 8),
        20 => body
            .u64(*random.pick(&ADDRESSES))
            .u16(4)
            .u16(4)
            .raw([0x90; 8])
            .raw([0; 4]),
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
            true => (9, event.sample(random)),
            false => non_sample_record(&event, workload, random),
        };
        records.extend(record(kind, misc, body));
        if random.one_in(30) {
            records.extend(record(68, 0, Bytes::new()));
        }
    }
    let count = events.len();
    let (attrs, ids) = (104, 104 + count * 152);
    let data = ids + count * 8;
    let file = Bytes::new()
        .raw("PERFILE2")
        .u64(104)
        .u64(152)
        .u64(attrs)
        .u64(count as u64 * 152);
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
pub(crate) fn senseless(inputs: &mut CaseInputs<'_>) -> Case {
    let bytes = recording(&inputs.seeds.workload, inputs.random);
    recordings::any_command("generated recording", bytes, inputs)
}
