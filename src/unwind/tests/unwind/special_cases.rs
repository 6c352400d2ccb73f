//! Special cases of stacks and unwind information.

use rperf_symbol::FileBytes;
use rperf_unwind::{Arch, Ending, Error, FrameInfo, LeafSample, TruncationCause, Unwinder};

use super::elf::{self, CODE, Entry, Section, numbers};
use super::program::{
    Loaded, MAPPING_ADDRESS, MODULE, Program, STACK_END, Sampled, Shape, function_offset, unwind,
};

/// The DWARF sections: `.eh_frame` with a search table, without one, and in a file without section headers; `.debug_frame`.
const SECTIONS: [Section; 4] = [
    Section::Searched,
    Section::Plain,
    Section::Headless,
    Section::Debug,
];

/// Functions with different uses of the stack. A test passes their indexes to [`Program::calls`], outermost caller first;
/// `sampled.frames` has the expected addresses, innermost first; the last one is in the outermost function, which has no index.
const SHAPES: [Shape; 5] = [
    Shape::Moves { words: 3 },
    Shape::Frames { words: 6 },
    Shape::Saves { words: 5 },
    Shape::Realigns,
    Shape::Moves { words: 1 },
];

#[test]
fn frames_are_found_for_every_dwarf_section_and_architecture() {
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64, Arch::Arm] {
        for section in SECTIONS {
            let program = Program::new(arch, section, &SHAPES);
            let sampled = program.calls(&[0, 1, 2, 3, 0, 3, 2, 1, 4]);
            let (frames, outcome) = program.unwind(&sampled);
            assert_eq!(outcome.ending, Ending::Complete, "{arch:?} {section:?}");
            assert_eq!(outcome.guessed, 0, "{arch:?} {section:?}");
            assert_eq!(frames, sampled.frames, "{arch:?} {section:?}");
        }
    }
}

#[test]
fn guessed_frames_are_counted() {
    let shapes = [Shape::WithoutInfo { words: 4 }, Shape::Frames { words: 3 }];
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64] {
        let program = Program::new(arch, Section::Searched, &shapes);
        let sampled = program.calls(&[1, 0, 1, 0, 0]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!(outcome.ending, Ending::Complete, "{arch:?}");
        assert_eq!((frames, outcome.guessed), (sampled.frames, 3), "{arch:?}");
    }
    // On 32-bit Arm nothing is guessed: frame chains differ between compilers.
    let program = Program::new(Arch::Arm, Section::Searched, &shapes);
    let (frames, outcome) = program.unwind(&program.calls(&[1, 0]));
    assert_eq!(frames.len(), 1);
    assert_eq!(
        outcome.ending,
        Ending::Truncated {
            cause: TruncationCause::NoFrameInfo,
            module: Some(MODULE)
        }
    );
}

#[test]
fn values_below_the_stack_pointer_are_unknown() {
    let shapes = [
        Shape::Frames { words: 6 },
        Shape::Ends,
        Shape::SavesInRedZone,
    ];
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64, Arch::Arm] {
        let program = Program::new(arch, Section::Searched, &shapes);
        // `Ends` has popped the frame pointer: the register has the caller's value again.
        let sampled = program.calls(&[0, 0, 1]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
        // `SavesInRedZone` has saved the frame pointer below the stack pointer, outside the copy of the stack. Without the saved
        // value, the frame of the caller's caller is not found.
        let sampled = program.calls(&[0, 0, 2]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!(frames, sampled.frames[..2], "{arch:?}");
        let (cause, module) = (TruncationCause::BadFrameInfo, Some(MODULE));
        assert_eq!(outcome.ending, Ending::Truncated { cause, module });
    }
}

#[test]
fn exception_tables_of_32_bit_arm_have_frames() {
    let shapes = [
        Shape::Moves { words: 3 },
        Shape::Frames { words: 6 },
        Shape::Saves { words: 2 },
        Shape::Saves { words: 15 },
        Shape::Moves { words: 1 },
        Shape::Frames { words: 2 },
        Shape::WithoutInfo { words: 2 },
        Shape::Moves { words: 14 },
        Shape::Moves { words: 2 },
    ];
    let program = Program::new(Arch::Arm, Section::Exceptions, &shapes);
    let sampled = program.calls(&[0, 1, 2, 3, 4, 5, 7, 8, 1, 0]);
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
    assert_eq!(outcome.guessed, 0);
    // Functions through which nothing is thrown have no unwind information.
    let sampled = program.calls(&[0, 1, 6, 3]);
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!(frames, sampled.frames[..2]);
    let (cause, module) = (TruncationCause::NoFrameInfo, Some(MODULE));
    assert_eq!(outcome.ending, Ending::Truncated { cause, module });
}

#[test]
fn a_short_stack_copy_truncates_the_stack() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let mut sampled = program.calls(&[0, 1, 2, 3, 1]);
    sampled.stack.truncate(0x40);
    let (frames, outcome) = program.unwind(&sampled);
    let cause = TruncationCause::DumpEnd;
    assert_eq!(
        outcome.ending,
        Ending::Truncated {
            cause,
            module: None
        }
    );
    assert!(!frames.is_empty() && frames.len() < sampled.frames.len());
    assert!(sampled.frames.starts_with(&frames));
}

#[test]
fn the_caller_of_a_leaf_is_in_the_link_register() {
    let shapes = [
        Shape::Leaf,
        Shape::Frames { words: 6 },
        Shape::WithoutInfo { words: 2 },
    ];
    let caller = |arch, function| {
        let program = Program::new(arch, Section::Searched, &shapes);
        let object = FrameInfo::parse(FileBytes::from(program.file), None).unwrap();
        let leaf = LeafSample {
            arch,
            ip: MAPPING_ADDRESS + function_offset(function) + 8,
            link: MAPPING_ADDRESS + function_offset(1) + 0x20,
        };
        Unwinder::new().caller_of_leaf(leaf, &Loaded::new(Ok(&object)))
    };
    let expected = MAPPING_ADDRESS + function_offset(1) + 0x1f;
    assert_eq!(caller(Arch::Aarch64, 0), Some(expected));
    assert_eq!(caller(Arch::Aarch64, 1), None, "it has a frame");
    assert_eq!(caller(Arch::Aarch64, 2), None, "no unwind information");
    assert_eq!(caller(Arch::X86_64, 0), None, "no link register");
}

/// A callchain that the kernel recorded with frame pointers lacks the caller of an innermost function that has not set up its own
/// frame pointer.
#[test]
fn functions_without_a_frame_hide_their_caller() {
    let shapes = [
        Shape::Moves { words: 3 },
        Shape::Frames { words: 6 },
        Shape::WithoutInfo { words: 2 },
    ];
    let hides = |arch, function| {
        let program = Program::new(arch, Section::Searched, &shapes);
        let object = FrameInfo::parse(FileBytes::from(program.file), None).unwrap();
        let ip = MAPPING_ADDRESS + function_offset(function) + 8;
        Unwinder::new().is_caller_missing(arch, ip, &Loaded::new(Ok(&object)))
    };
    assert_eq!(hides(Arch::X86_64, 0), Some(true));
    assert_eq!(hides(Arch::X86_64, 1), Some(false));
    assert_eq!(hides(Arch::X86_64, 2), None, "no unwind information");
    assert_eq!(hides(Arch::Aarch64, 0), None, "not 64-bit x86");
}

#[test]
fn the_frame_limit_is_respected() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let sampled = program.calls(&[0, 1, 2]);
    let object = FrameInfo::parse(FileBytes::from(program.file), None).unwrap();
    let loaded = Loaded::new(Ok(&object));
    // The stack has 4 frames. Unwinding that stops at the limit does not find out that the fourth is the outermost one.
    for limit in 0..=4 {
        let (frames, outcome) = unwind(Arch::X86_64, &loaded, &sampled, limit);
        assert_eq!(frames, sampled.frames[..limit]);
        assert_eq!(outcome.ending, Ending::Limit);
    }
    let (_, outcome) = unwind(Arch::X86_64, &loaded, &sampled, 5);
    assert_eq!(outcome.ending, Ending::Complete);
}

#[test]
fn a_call_to_an_unmapped_address_has_its_caller() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let mut sampled = program.calls(&[0, 1, 4]);
    // The last call is to an invalid address instead of function 4, whose frame is only one word, the return address. So the
    // return address is at the stack pointer, as right after the call. The caller found there is counted as guessed.
    sampled.ip = 0xdead;
    let (frames, outcome) = program.unwind(&sampled);
    sampled.frames[0] = 0xdead;
    assert_eq!((frames, outcome.guessed), (sampled.frames, 1));
}

#[test]
fn without_an_object_only_frame_pointers_are_followed() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    for cause in [TruncationCause::LostFile, TruncationCause::NoFile] {
        let space = Loaded::new(Err(cause));
        let sampled = program.calls(&[1, 1, 1]);
        let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, 100);
        assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
        let sampled = program.calls(&[0, 0, 0]);
        let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, 100);
        assert_eq!(frames, sampled.frames[..1]);
        let module = Some(MODULE);
        assert_eq!(outcome.ending, Ending::Truncated { cause, module });
    }
}

#[test]
fn a_return_address_that_follows_no_call_is_outermost() {
    // Without and with unwind information for function 0, whose code ends where function 1 starts.
    for shape_before in [Shape::WithoutInfo { words: 4 }, Shape::Saves { words: 4 }] {
        let shapes = [shape_before, Shape::Moves { words: 3 }];
        let mut program = Program::new(Arch::X86_64, Section::Searched, &shapes);
        let mut sampled = program.calls(&[1, 1]);
        // The return address of the first call is replaced by the start of function 1, as at the start of a coroutine. Its slot
        // is one word (8 bytes) below the outermost function's stack pointer, which is 0x100 bytes below the end of the stack.
        let function_start = MAPPING_ADDRESS + function_offset(1);
        let slot = sampled.stack.len() - 0x108;
        sampled.stack[slot..slot + 8].copy_from_slice(&function_start.to_le_bytes());
        let expected = [&sampled.frames[..2], &[function_start - 1]].concat();
        // The code before this return address, the end of function 0, becomes `nop`s: unchanged, it would look like calls.
        let end = usize::try_from(function_offset(1)).unwrap();
        program.file[end - 16..end].fill(0x90);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!((frames, outcome.ending), (expected, Ending::Complete));
    }
}

#[test]
fn a_frame_that_is_its_own_caller_ends_the_stack() {
    let shapes = [
        Shape::Frames { words: 3 },
        Shape::Leaf,
        Shape::Moves { words: 3 },
    ];
    let program = Program::new(Arch::Aarch64, Section::Searched, &shapes);
    // A function that is described as having no frame calls another one. The link register contains the return address of that
    // call, which is an address in the function itself.
    let sampled = program.calls(&[0, 1, 2]);
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!(frames, sampled.frames[..2]);
    let (cause, module) = (TruncationCause::Stuck, None);
    assert_eq!(outcome.ending, Ending::Truncated { cause, module });
}

#[test]
fn code_outside_of_the_segments_has_no_frames() {
    let mut program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let sampled = program.calls(&[0, 0]);
    // p_offset and p_filesz of the first segment: the segment now begins after the code, and its end overflows.
    program.file[0x48..0x50].copy_from_slice(&CODE.end.to_le_bytes());
    program.file[0x60..0x68].copy_from_slice(&u64::MAX.to_le_bytes());
    let (frames, outcome) = program.unwind(&sampled);
    let (cause, module) = (TruncationCause::NoFrameInfo, Some(MODULE));
    assert_eq!(frames, sampled.frames[..1]);
    assert_eq!(outcome.ending, Ending::Truncated { cause, module });
}

#[test]
fn unsupported_and_truncated_files_are_refused() {
    let parse = |bytes: &[u8]| FrameInfo::parse(FileBytes::from(bytes.to_vec()), None).err();
    assert_eq!(parse(b""), Some(Error::NotElf));
    assert_eq!(parse(b"#!/bin/sh\n exit"), Some(Error::NotElf));
    let mut file = Program::new(Arch::X86_64, Section::Searched, &SHAPES).file;
    // e_machine: SPARC.
    file[18] = 2;
    assert_eq!(parse(&file), Some(Error::UnknownArch));
    assert!(matches!(
        parse(&file[..40]),
        Some(Error::NotElf | Error::Damaged { .. })
    ));
}

/// Unwind information of a damaged object must not lead to endless unwinding, for any limit.
#[test]
fn frames_without_end_are_bounded_by_the_copy_of_the_stack() {
    let numbers = numbers(Arch::X86_64);
    let (stack_pointer, return_address) = (numbers.stack_pointer, numbers.return_address);
    // DW_CFA_def_cfa, DW_CFA_offset of the return address.
    let frame = [0x0c, stack_pointer, 8, 0x80 | return_address, 1];
    // DW_CFA_val_offset: the caller's stack pointer equals this frame's.
    let same_stack = [&frame[..], &[0x14, stack_pointer, 1]].concat();
    let loops = Entry {
        start: CODE.start,
        size: 0x100,
        instructions: same_stack,
        // The caller's address is the return address itself, not 1 less, so each frame is at `ip` again.
        is_signal: true,
    };
    let file = elf::build(Arch::X86_64, Section::Searched, &[loops]);
    let object = FrameInfo::parse(FileBytes::from(file), None).unwrap();
    let ip = MAPPING_ADDRESS + CODE.start + 0x10;
    let sampled = Sampled {
        ip,
        stack_pointer: STACK_END - 64,
        frame_pointer: 0,
        saved: 0,
        stack: ip.to_le_bytes().repeat(8),
        frames: Vec::new(),
    };
    let space = Loaded::new(Ok(&object));
    let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, usize::MAX);
    let (cause, module) = (TruncationCause::Stuck, None);
    assert_eq!(outcome.ending, Ending::Truncated { cause, module });
    // The unwinder's maximum: a frame for each 4 bytes (the smallest word) of the stack's copy, and 128 for functions that use
    // no stack.
    assert_eq!(frames.len(), 64 / 4 + 128);
    let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, 20);
    assert_eq!((frames.len(), outcome.ending), (20, Ending::Limit));
}
