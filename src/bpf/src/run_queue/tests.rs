//! Tests in an interpreter the instructions that sum up waits; tests/commands/sched/live runs the programs in the kernel.

use proptest::prelude::*;

use super::*;
use crate::Register::{R1, R7, R8, R9};
use crate::{ProgramBuilder, interpreter};

/// Adds a wait, and the time at which it ended, to `value`, a task's row in the BPF map. The interpreter passes its address in
/// `R1`.
fn add(wait: u64, end: u64, value: &mut [u8]) {
    let with_registers = |b: &mut ProgramBuilder| {
        // `add_wait` takes the row's address in `R8`, the wait in `R7` and its end in `R9`. It jumps to `out` if the wait has no
        // bucket, which only the verifier considers possible.
        let out = b.label();
        b.set(R8, R1);
        b.set_wide(R7, wait);
        b.set_wide(R9, end);
        programs::add_wait(b, out);
        b.place(out);
    };
    interpreter::run(with_registers, value);
}

/// The shortest wait of a bucket. Waits below 64 have a bucket each; from 64 on, each power of two is divided into 64 buckets.
fn bucket_start(bucket: usize) -> u64 {
    let power = (bucket / 64).saturating_sub(1);
    ((bucket - power * 64) as u64) << power
}

proptest! {
    // Waits are below 2^44 ns: some can exceed the last bucket's end, 2^37 ns, and are counted in that bucket, too; no sum
    // overflows.
    #[test]
    fn waits_are_summed(waits in prop::collection::vec((any::<u64>(), 20..64_u32), 1..20)) {
        let mut value = vec![0; row::SIZE];
        // The initial minimum is the largest number, as in the map's template.
        value[row::MIN as usize..][..8].fill(0xff);
        let waits: Vec<u64> = waits.iter().map(|(bits, shift)| bits >> shift).collect();
        let mut buckets = vec![0; BUCKETS];
        for (end, wait) in (1000..).zip(&waits) {
            add(*wait, end, &mut value);
            let bucket = (0..BUCKETS).rev().find(|bucket| bucket_start(*bucket) <= *wait);
            buckets[bucket.unwrap()] += 1;
        }
        let found = TaskWaits::decode(&value);
        prop_assert_eq!((found.count, found.total), (waits.len() as u64, waits.iter().sum()));
        prop_assert_eq!(Some(&found.min), waits.iter().min());
        let max = waits.iter().copied().max().unwrap();
        // The end of the first of the longest waits; 0 if all are 0, which does not exceed the initial maximum.
        let end = waits.iter().position(|wait| *wait == max).unwrap() as u64 + 1000;
        prop_assert_eq!((found.max, found.max_end), (max, if max == 0 { 0 } else { end }));
        prop_assert_eq!(found.buckets, buckets);
    }

    // Fewer and more bytes than a row has.
    #[test]
    fn decoding_accepts_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        TaskKey::decode(&bytes);
        TaskWaits::decode(&bytes);
    }
}
