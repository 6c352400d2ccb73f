//! simpleperf records are decoded as they were encoded, and decoding a truncated body does not panic.

use proptest::collection::vec;
use proptest::prelude::*;
use rperf_wire::{
    Encoder, Endian, Misc, RawRecord, RecordKind, Regs, RegsAbi, Simpleperf, SimpleperfChain, U64s,
    UnwindingDetails, UnwindingResult, UserRecord, UserStack,
};

fn body(record: &UserRecord<'_>, endian: Endian) -> Vec<u8> {
    let mut body = Vec::new();
    record.encode_body(&mut Encoder::new(&mut body, endian));
    body
}

fn decode<'a>(kind: RecordKind, body: &'a [u8], endian: Endian) -> Option<UserRecord<'a>> {
    let misc = Misc(0);
    UserRecord::decode(&RawRecord { kind, misc, body }, endian).ok()
}

/// A record of every type, from the same numbers and bytes. An unwinding result has its registers and stack if
/// `unwinding_parts` is at least 1, and the resulting frames if it is 2.
fn records<'a>(
    n: [u64; 6],
    chain: SimpleperfChain<'a>,
    name: &'a [u8],
    stack: &'a [u8],
    unwinding_parts: u8,
) -> Vec<Simpleperf<'a>> {
    let [a, b, c, d, e, f] = n;
    let count = chain.ips.len();
    // One register per frame; the stack pointers also serve as the values of the registers.
    let regs = Regs {
        abi: RegsAbi::Bits64,
        mask: (1 << count) - 1,
        values: chain.sps,
    };
    let reserved = stack.len().next_multiple_of(8);
    let details = UnwindingDetails {
        regs,
        stack: UserStack {
            bytes: stack,
            reserved,
        },
        chain: (unwinding_parts > 1).then_some(chain),
    };
    vec![
        Simpleperf::KernelSymbols { kallsyms: name },
        Simpleperf::Dso {
            kind: a,
            id: b,
            min_vaddr: c,
            name,
        },
        Simpleperf::Symbol {
            address: a,
            len: b,
            dso: c,
            name,
        },
        Simpleperf::Split(name),
        Simpleperf::SplitEnd,
        Simpleperf::EventIds((0..a % 4).map(|attr| (attr, b)).collect()),
        Simpleperf::Callchain {
            pid: 7,
            tid: 8,
            kind: a,
            time: b,
            chain,
        },
        Simpleperf::UnwindingResult(UnwindingResult {
            time: a,
            used_time: b,
            error_code: c,
            error_addr: d,
            stack_start: e,
            stack_end: f,
            details: (unwinding_parts > 0).then_some(details),
        }),
        Simpleperf::TracingData(name),
        Simpleperf::Debug {
            time: a,
            text: name,
        },
    ]
}

proptest! {
    #[test]
    fn records_round_trip(
        n in any::<[u64; 6]>(), words in vec(any::<[u8; 8]>(), 0..6), name in vec(1_u8.., 0..70),
        stack in vec(any::<u8>(), 0..40), unwinding_parts in 0_u8..3, big in any::<bool>(),
    ) {
        let endian = if big { Endian::Big } else { Endian::Little };
        let words = words.concat();
        // The first half are addresses, the second half stack pointers.
        let ips_size = words.len() / 16 * 8;
        let chain = SimpleperfChain {
            ips: U64s::new(&words[..ips_size], endian),
            sps: U64s::new(&words[ips_size..ips_size * 2], endian),
        };
        for record in records(n, chain, &name, &stack, unwinding_parts) {
            let kind = record.kind();
            let record = UserRecord::Simpleperf(record);
            let bytes = body(&record, endian);
            prop_assert_eq!(decode(kind, &bytes, endian), Some(record));
            for end in 0..bytes.len() {
                drop(decode(kind, &bytes[..end], endian));
            }
        }
    }
}

/// The DSO record is as written by simpleperf.
#[test]
fn a_dso_record_round_trips_and_an_unknown_type_is_kept() {
    let bytes = b"\x02\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0/a/b.so\0";
    let dso = UserRecord::Simpleperf(Simpleperf::Dso {
        kind: 2,
        id: 5,
        min_vaddr: 0x1000,
        name: b"/a/b.so",
    });
    let decoded = decode(RecordKind::SIMPLEPERF_DSO, bytes, Endian::Little);
    assert_eq!(decoded.as_ref(), Some(&dso));
    assert_eq!(body(&dso, Endian::Little), bytes);
    // In the range of simpleperf, but none of its types.
    let unknown = RecordKind(RecordKind::SIMPLEPERF_START + 99);
    let decoded = decode(unknown, bytes, Endian::Little);
    assert_eq!(decoded, Some(UserRecord::Other(unknown)));
}
