//! Single stacks with a point each.

use rperf_symbol::FileBytes;
use rperf_unwind::{Arch, Cause, Ending, Error, Leaf, ModuleId, Object, Unwinder};

use super::elf::{CODE, Section};
use super::program::{Loaded, Program, START, Shape, start, unwind};

const SECTIONS: [Section; 4] = [
    Section::Searched,
    Section::Plain,
    Section::Headless,
    Section::Debug,
];

const SHAPES: [Shape; 5] = [
    Shape::Moves { words: 3 },
    Shape::Frames { words: 6 },
    Shape::Saves { words: 5 },
    Shape::Realigns,
    Shape::Moves { words: 1 },
];

#[test]
fn every_section_and_architecture_tells_the_same_frames() {
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
fn what_is_not_said_is_guessed_and_counted() {
    let shapes = [Shape::Unsaid { words: 4 }, Shape::Frames { words: 3 }];
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64] {
        let program = Program::new(arch, Section::Searched, &shapes);
        let sampled = program.calls(&[1, 0, 1, 0, 0]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!(outcome.ending, Ending::Complete, "{arch:?}");
        assert_eq!((frames, outcome.guessed), (sampled.frames, 3), "{arch:?}");
    }
    // No two compilers chain frames alike on 32-bit Arm.
    let program = Program::new(Arch::Arm, Section::Searched, &shapes);
    let (frames, outcome) = program.unwind(&program.calls(&[1, 0]));
    assert_eq!(frames.len(), 1);
    assert_eq!(
        outcome.ending,
        Ending::Cut {
            cause: Cause::NoFrameInfo,
            module: Some(ModuleId(3))
        }
    );
}

#[test]
fn what_was_popped_is_known_and_what_lies_below_the_stack_is_not() {
    let shapes = [Shape::Frames { words: 6 }, Shape::Ends, Shape::KeepsBelow];
    for arch in [Arch::X86_64, Arch::X86, Arch::Aarch64, Arch::Arm] {
        let program = Program::new(arch, Section::Searched, &shapes);
        let sampled = program.calls(&[0, 0, 1]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
        let sampled = program.calls(&[0, 0, 2]);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!(frames, sampled.frames[..2], "{arch:?}");
        let (cause, module) = (Cause::BadFrameInfo, Some(ModuleId(3)));
        assert_eq!(outcome.ending, Ending::Cut { cause, module });
    }
}

#[test]
fn exceptions_of_32_bit_arm_tell_frames_too() {
    let shapes = [
        Shape::Moves { words: 3 },
        Shape::Frames { words: 6 },
        Shape::Saves { words: 2 },
        Shape::Saves { words: 15 },
        Shape::Moves { words: 1 },
        Shape::Frames { words: 2 },
        Shape::Unsaid { words: 2 },
        Shape::Moves { words: 14 },
        Shape::Moves { words: 2 },
    ];
    let program = Program::new(Arch::Arm, Section::Exceptions, &shapes);
    let sampled = program.calls(&[0, 1, 2, 3, 4, 5, 7, 8, 1, 0]);
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
    assert_eq!(outcome.guessed, 0);
    // What nothing is thrown through says nothing of its frame.
    let sampled = program.calls(&[0, 1, 6, 3]);
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!(frames, sampled.frames[..2]);
    let (cause, module) = (Cause::NoFrameInfo, Some(ModuleId(3)));
    assert_eq!(outcome.ending, Ending::Cut { cause, module });
}

#[test]
fn a_stack_that_was_copied_too_short_is_cut_there() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let mut sampled = program.calls(&[0, 1, 2, 3, 1]);
    sampled.stack.truncate(0x40);
    let (frames, outcome) = program.unwind(&sampled);
    let cause = Cause::DumpEnd;
    assert_eq!(
        outcome.ending,
        Ending::Cut {
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
        Shape::Unsaid { words: 2 },
    ];
    let caller = |arch, function| {
        let program = Program::new(arch, Section::Searched, &shapes);
        let object = Object::parse(FileBytes::from(program.file), None).unwrap();
        let leaf = Leaf {
            arch,
            ip: START + start(function) + 8,
            link: START + start(1) + 0x20,
        };
        Unwinder::new().caller_of_leaf(leaf, &Loaded::new(Ok(&object)))
    };
    let expected = START + start(1) + 0x1f;
    assert_eq!(caller(Arch::Aarch64, 0), Some(expected));
    assert_eq!(caller(Arch::Aarch64, 1), None, "it has a frame");
    assert_eq!(caller(Arch::Aarch64, 2), None, "nobody knows");
    assert_eq!(caller(Arch::X86_64, 0), None, "there is no such register");
}

#[test]
fn functions_without_a_frame_hide_their_caller() {
    let shapes = [
        Shape::Moves { words: 3 },
        Shape::Frames { words: 6 },
        Shape::Unsaid { words: 2 },
    ];
    let hides = |arch, function| {
        let program = Program::new(arch, Section::Searched, &shapes);
        let object = Object::parse(FileBytes::from(program.file), None).unwrap();
        let ip = START + start(function) + 8;
        Unwinder::new().hides_caller(arch, ip, &Loaded::new(Ok(&object)))
    };
    assert_eq!(hides(Arch::X86_64, 0), Some(true));
    assert_eq!(hides(Arch::X86_64, 1), Some(false));
    assert_eq!(hides(Arch::X86_64, 2), None, "nobody knows");
    assert_eq!(hides(Arch::Aarch64, 0), None, "there is a link register");
}

#[test]
fn a_limit_is_kept() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let sampled = program.calls(&[0, 1, 2]);
    let object = Object::parse(FileBytes::from(program.file), None).unwrap();
    let loaded = Loaded::new(Ok(&object));
    for limit in 0..=4 {
        let (frames, outcome) = unwind(Arch::X86_64, &loaded, &sampled, limit);
        assert_eq!(frames, sampled.frames[..limit]);
        assert_eq!(outcome.ending, Ending::Limit);
    }
    let (_, outcome) = unwind(Arch::X86_64, &loaded, &sampled, 5);
    assert_eq!(outcome.ending, Ending::Complete);
}

#[test]
fn a_call_of_nothing_is_blamed_on_its_caller() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let mut sampled = program.calls(&[0, 1, 4]);
    // The last function's first instruction would have stood here.
    sampled.ip = 0xdead;
    let (frames, outcome) = program.unwind(&sampled);
    sampled.frames[0] = 0xdead;
    assert_eq!((frames, outcome.guessed), (sampled.frames, 1));
}

#[test]
fn an_object_that_is_gone_ends_the_stack_unless_it_keeps_frame_pointers() {
    let program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    for cause in [Cause::LostFile, Cause::NoFile] {
        let space = Loaded::new(Err(cause));
        let sampled = program.calls(&[1, 1, 1]);
        let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, 100);
        assert_eq!((frames, outcome.ending), (sampled.frames, Ending::Complete));
        let sampled = program.calls(&[0, 0, 0]);
        let (frames, outcome) = unwind(Arch::X86_64, &space, &sampled, 100);
        assert_eq!(frames, sampled.frames[..1]);
        let module = Some(ModuleId(3));
        assert_eq!(outcome.ending, Ending::Cut { cause, module });
    }
}

#[test]
fn what_returns_to_a_function_that_nobody_called_is_the_bottom() {
    // The function before the one that nobody called has frame information, or has none.
    for before in [Shape::Unsaid { words: 4 }, Shape::Saves { words: 4 }] {
        let shapes = [before, Shape::Moves { words: 3 }];
        let mut program = Program::new(Arch::X86_64, Section::Searched, &shapes);
        let mut sampled = program.calls(&[1, 1]);
        // The return address of the first call is the start of the second function, as the start of a coroutine has it.
        let bottom = START + start(1);
        let call = sampled.stack.len() - 0x108;
        sampled.stack[call..call + 8].copy_from_slice(&bottom.to_le_bytes());
        let expected = [&sampled.frames[..2], &[bottom - 1]].concat();
        // It follows what is no call.
        let end = usize::try_from(start(1)).unwrap();
        program.file[end - 16..end].fill(0x90);
        let (frames, outcome) = program.unwind(&sampled);
        assert_eq!((frames, outcome.ending), (expected, Ending::Complete));
    }
}

#[test]
fn a_frame_that_leads_to_itself_is_left() {
    let program = Program::new(
        Arch::Aarch64,
        Section::Searched,
        &[Shape::Moves { words: 0 }],
    );
    let mut sampled = program.calls(&[]);
    // Without frame: the return address, which is in no register, is the one of the frame before.
    sampled.ip = START + CODE.start + 0x80;
    let (frames, outcome) = program.unwind(&sampled);
    assert_eq!(frames.len(), 1);
    assert!(matches!(outcome.ending, Ending::Cut { .. }), "{outcome:?}");
}

#[test]
fn code_outside_of_the_segments_has_no_frames() {
    let mut program = Program::new(Arch::X86_64, Section::Searched, &SHAPES);
    let sampled = program.calls(&[0, 0]);
    // The offset and the size of the first segment in the file.
    program.file[0x48..0x50].copy_from_slice(&CODE.end.to_le_bytes());
    program.file[0x60..0x68].copy_from_slice(&u64::MAX.to_le_bytes());
    let (frames, outcome) = program.unwind(&sampled);
    let (cause, module) = (Cause::NoFrameInfo, Some(ModuleId(3)));
    assert_eq!(frames, sampled.frames[..1]);
    assert_eq!(outcome.ending, Ending::Cut { cause, module });
}

#[test]
fn what_is_no_object_is_refused() {
    let parse = |bytes: &[u8]| Object::parse(FileBytes::from(bytes.to_vec()), None).err();
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
