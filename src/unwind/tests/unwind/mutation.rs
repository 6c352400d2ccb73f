//! Damaged objects, stacks and registers: any result is accepted, in bounded time.

use proptest::prelude::*;
use rperf_symbol::FileBytes;
use rperf_unwind::FrameInfo;

use super::elf::CODE;
use super::program::{Loaded, MAX_FRAMES, unwind};
use super::property::program;

/// Fewer than `limit` bytes to overwrite: for each, the position, which fits buffers of any length, and the new value.
fn damage(limit: usize) -> impl Strategy<Value = Vec<(prop::sample::Index, u8)>> {
    prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..limit)
}

fn apply(bytes: &mut [u8], damage: &[(prop::sample::Index, u8)]) {
    for (position, value) in damage {
        if !bytes.is_empty() {
            let position = position.index(bytes.len());
            bytes[position] = *value;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn damage_neither_panics_nor_loops(
        (mut program, calls) in program(),
        header_damage in damage(4),
        table_damage in damage(20),
        stack_damage in damage(8),
        stack_size in any::<prop::sample::Index>(),
    ) {
        let mut sampled = program.calls(&calls);
        // The file header and the beginning of the segment headers.
        apply(&mut program.file[..0x80], &header_damage);
        // What follows the code: the unwind tables and the section headers.
        apply(&mut program.file[CODE.end as usize..], &table_damage);
        apply(&mut sampled.stack, &stack_damage);
        sampled.stack.truncate(stack_size.index(sampled.stack.len() + 1));
        if let Ok(object) = FrameInfo::parse(FileBytes::from(program.file), None) {
            // Damaged tables may describe endless stacks: any limit must end them, here an arbitrary one.
            let limit = 300;
            let (frames, _) = unwind(object.arch(), &Loaded::new(Ok(&object)), &sampled, limit);
            prop_assert!(frames.len() <= limit);
        }
    }

    #[test]
    fn any_registers_are_accepted(
        (program, calls) in program(),
        registers in any::<[u64; 4]>(),
    ) {
        let mut sampled = program.calls(&calls);
        [sampled.ip, sampled.stack_pointer, sampled.frame_pointer, sampled.saved] = registers;
        let (frames, _) = program.unwind(&sampled);
        prop_assert!(frames.len() <= MAX_FRAMES);
    }
}
