//! Random stacks are unwound into the calls that led to them.

use proptest::prelude::*;
use rperf_unwind::{Arch, Ending};

use super::elf::Section;
use super::program::{Program, Shape};

/// Shapes that every kind of unwind information can describe. `words`, the size of the frame, includes the return address
/// and, in `Frames` and `Saves`, the saved register.
fn common_shape() -> impl Strategy<Value = Shape> {
    let words = 2..15_u8;
    prop_oneof![
        (1..15_u8).prop_map(|words| Shape::Moves { words }),
        words.clone().prop_map(|words| Shape::Frames { words }),
        words.prop_map(|words| Shape::Saves { words }),
    ]
}

/// Shapes that DWARF can describe, and functions without unwind information that set up a frame pointer.
fn shape() -> impl Strategy<Value = Shape> {
    prop_oneof![
        3 => common_shape(),
        1 => (2..15_u8).prop_map(|words| Shape::WithoutInfo { words }),
        1 => Just(Shape::Realigns),
    ]
}

/// A program, and the functions that call each other in this order, as indices of its shapes.
pub(crate) fn program() -> impl Strategy<Value = (Program, Vec<usize>)> {
    // Minimum numbers of calls.
    const NO_CALL: usize = 0;
    const ONE_CALL: usize = 1;
    let arch = prop_oneof![Just(Arch::X86_64), Just(Arch::X86), Just(Arch::Aarch64)];
    let section = prop_oneof![
        Just(Section::Searched),
        Just(Section::Plain),
        Just(Section::Headless),
        Just(Section::Debug),
    ];
    // `.ARM.exidx` and `.ARM.extab`, instead of DWARF.
    let exceptions = Just((Arch::Arm, Section::Exceptions));
    prop_oneof![
        4 => of_functions((arch, section), shape(), NO_CALL),
        // The outermost function has no unwind information; it is recognized by r11, which is 0 in it and which its callees
        // restore. In the innermost frame, r11 is not checked, as it may hold anything: hence at least one call.
        1 => of_functions(exceptions, common_shape(), ONE_CALL),
    ]
}

/// A program with functions of random shapes, and at least `min_calls` calls.
fn of_functions(
    kind: impl Strategy<Value = (Arch, Section)>,
    shape: impl Strategy<Value = Shape>,
    min_calls: usize,
) -> impl Strategy<Value = (Program, Vec<usize>)> {
    let shapes = prop::collection::vec(shape, 1..20);
    let calls = prop::collection::vec(any::<prop::sample::Index>(), min_calls..60);
    (kind, shapes, calls).prop_map(|((arch, section), shapes, calls)| {
        let calls = calls.iter().map(|call| call.index(shapes.len())).collect();
        (Program::new(arch, section, &shapes), calls)
    })
}

proptest! {
    #[test]
    fn stacks_are_unwound_into_their_calls((program, calls) in program()) {
        let sampled = program.calls(&calls);
        let (frames, outcome) = program.unwind(&sampled);
        prop_assert_eq!(outcome.ending, Ending::Complete);
        prop_assert_eq!(frames, sampled.frames);
    }
}
