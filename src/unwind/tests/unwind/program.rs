//! Generated programs: functions of known shapes, and the stack that results from calls between them.

use rperf_symbol::FileBytes;
use rperf_unwind::{
    AddressSpace, Arch, FrameInfo, ModuleId, ObjectOffset, Registers, Snapshot, StackBytes,
    TruncationCause, UnwindOutcome, Unwinder,
};
use rperf_wire::{Endian, Regs, RegsAbi, U64s};

use super::elf::{self, CODE, Entry, Section, numbers};

/// The mapping address of the file.
pub(crate) const MAPPING_ADDRESS: u64 = 0x4000_0000;
/// The end of the stack.
pub(crate) const STACK_END: u64 = 0x7000_0000;
/// The module id of the only object.
pub(crate) const MODULE: ModuleId = ModuleId(3);
/// The limit of frames in [`Program::unwind`].
pub(crate) const MAX_FRAMES: usize = 200;
/// Bytes between the starts of functions.
const SPACING: u64 = 0x80;

/// How a function uses the stack. Sizes of frames are in words and include the return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Moves the stack pointer only.
    Moves { words: u8 },
    /// Sets up a frame pointer.
    Frames { words: u8 },
    /// Saves a callee-saved register.
    Saves { words: u8 },
    /// Realigns its stack and finds its frame through memory.
    Realigns,
    /// Has no frame: the return address stays in its register.
    Leaf,
    /// Has popped its frame, including the saved frame pointer, so that only the return address is on the stack; innermost only.
    Ends,
    /// Has saved the frame pointer below the stack pointer (red zone), outside the captured stack; innermost only.
    SavesInRedZone,
    /// Sets up a frame pointer, but has no unwind information.
    WithoutInfo { words: u8 },
}

/// A program: its functions and its file.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) arch: Arch,
    pub(crate) file: Vec<u8>,
    shapes: Vec<Shape>,
}

/// A sample of a program's stack, and its expected frames.
#[derive(Debug, Clone)]
pub(crate) struct Sampled {
    pub(crate) ip: u64,
    pub(crate) stack_pointer: u64,
    pub(crate) frame_pointer: u64,
    /// The value of the callee-saved register that [`Shape::Saves`] saves.
    pub(crate) saved: u64,
    /// The stack from the stack pointer upwards.
    pub(crate) stack: Vec<u8>,
    /// The addresses that the unwinder should return, innermost first: `ip`, then the return addresses less one.
    pub(crate) frames: Vec<u64>,
}

/// The offset of a function in the file, by its index in the shapes. The outermost function, which has no index, is at the start
/// of the code.
pub(crate) fn function_offset(function: usize) -> u64 {
    CODE.start + (function as u64 + 1) * SPACING
}

impl Program {
    /// Creates a program with one function for each shape, after the outermost function, which has no caller.
    pub(crate) fn new(arch: Arch, section: Section, shapes: &[Shape]) -> Self {
        let numbers = numbers(arch);
        let mut entries = vec![Entry {
            start: CODE.start,
            size: SPACING,
            instructions: match section {
                // Empty instructions are written as EXIDX_CANTUNWIND: the stack ends here.
                Section::Exceptions => Vec::new(),
                // DW_CFA_def_cfa, DW_CFA_undefined
                _ => vec![0x0c, numbers.stack_pointer, 0, 0x07, numbers.return_address],
            },
            is_signal: false,
        }];
        for (index, shape) in shapes.iter().enumerate() {
            let instructions = match section {
                Section::Exceptions => exceptions(*shape),
                _ => instructions(arch, *shape),
            };
            entries.extend(instructions.map(|instructions| Entry {
                start: function_offset(index),
                size: SPACING,
                instructions,
                is_signal: false,
            }));
        }
        Self {
            arch,
            file: elf::build(arch, section, &entries),
            shapes: shapes.to_vec(),
        }
    }

    /// The sample of a stack after the outermost function and each of `functions` has called the next. The last one is running.
    pub(crate) fn calls(&self, functions: &[usize]) -> Sampled {
        let word = u64::from(numbers(self.arch).word);
        let mut memory = Memory::new(word);
        let mut state = Sampled {
            ip: MAPPING_ADDRESS + CODE.start + 0x12,
            stack_pointer: STACK_END - 0x100,
            frame_pointer: 0,
            saved: 0x5a5a,
            stack: Vec::new(),
            frames: vec![MAPPING_ADDRESS + CODE.start + 0x11],
        };
        for (depth, function) in functions.iter().enumerate() {
            memory.enter(&mut state, self.shapes[*function], depth as u64);
            // Return addresses at different offsets of a function; for deep calls at its end, as after a call that never
            // returns. Always even, as the lowest bit is not part of the address on 32-bit Arm.
            let inside = (depth as u64 * 37).min(SPACING - 1) | 1;
            state.ip = MAPPING_ADDRESS + function_offset(*function) + 1 + inside;
            state.frames.insert(0, state.ip - 1);
        }
        // The innermost function is running, so its address is not a return address: if it is the function's end, it is moved
        // back.
        if (state.ip - MAPPING_ADDRESS).is_multiple_of(SPACING) {
            state.ip -= 2;
        }
        state.frames[0] = state.ip;
        state.stack = memory.bytes_from(state.stack_pointer);
        state
    }

    pub(crate) fn unwind(&self, sampled: &Sampled) -> (Vec<u64>, UnwindOutcome) {
        let object = FrameInfo::parse(FileBytes::from(self.file.clone()), None).unwrap();
        unwind(self.arch, &Loaded::new(Ok(&object)), sampled, MAX_FRAMES)
    }
}

/// The DWARF unwind instructions of a shape; `None` for a shape without unwind information.
fn instructions(arch: Arch, shape: Shape) -> Option<Vec<u8>> {
    let n = numbers(arch);
    // DW_CFA_offset: the register is saved at this number of words below the canonical frame address.
    let offset = |register: u8, words: u8| [0x80 | register, words];
    // DW_CFA_def_cfa.
    let cfa = |register: u8, words: u8| [0x0c, register, words * n.word];
    let return_address = offset(n.return_address, 1);
    Some(match shape {
        Shape::Moves { words } => [&cfa(n.stack_pointer, words)[..], &return_address].concat(),
        Shape::Frames { .. } => {
            let saved = offset(n.frame_pointer, 2);
            [&cfa(n.frame_pointer, 2)[..], &return_address, &saved].concat()
        }
        Shape::Saves { words } => {
            let saved = offset(n.saved, 2);
            [&cfa(n.stack_pointer, words)[..], &return_address, &saved].concat()
        }
        Shape::Realigns => {
            let below = 0x80 - n.word;
            let base = 0x70 + n.frame_pointer;
            // DW_CFA_def_cfa_expression: DW_OP_breg, -1 word; DW_OP_deref. DW_CFA_expression: DW_OP_breg, 0.
            let cfa = [0x0f, 3, base, below, 0x06];
            let saved = [0x10, n.frame_pointer, 2, base, 0];
            [&cfa[..], &return_address, &saved].concat()
        }
        Shape::Leaf => cfa(n.stack_pointer, 0).to_vec(),
        Shape::Ends => {
            // DW_CFA_advance_loc 1, DW_CFA_def_cfa_offset, both twice. As in the output of compilers, the popped register keeps
            // its save location.
            let saved = offset(n.frame_pointer, 2);
            let pushed = [&[0x41, 0x0e, 2 * n.word][..], &saved].concat();
            let popped = [0x41, 0x0e, n.word];
            [
                &cfa(n.stack_pointer, 1)[..],
                &return_address,
                &pushed,
                &popped,
            ]
            .concat()
        }
        Shape::SavesInRedZone => {
            let saved = offset(n.frame_pointer, 2);
            [&cfa(n.stack_pointer, 1)[..], &return_address, &saved].concat()
        }
        Shape::WithoutInfo { .. } => return None,
    })
}

/// The unwind instructions of a shape in the exception tables of 32-bit Arm; `None` for a shape without unwind information.
///
/// # Panics
///
/// If the instructions cannot describe the shape.
fn exceptions(shape: Shape) -> Option<Vec<u8>> {
    // Adds this number of words to the stack pointer; zero needs no instruction.
    let skip = |words: u8| match words {
        0 => Vec::new(),
        more => vec![more - 1],
    };
    Some(match shape {
        // pop {lr}
        Shape::Moves { words } => [skip(words - 1), vec![0x84, 0x00]].concat(),
        // mov sp, r11; pop {r11, lr}
        Shape::Frames { .. } => vec![0x9b, 0x84, 0x80],
        // pop {r4, lr}
        Shape::Saves { words } => [skip(words - 2), vec![0xa8]].concat(),
        // finish
        Shape::Leaf => vec![0xb0],
        Shape::WithoutInfo { .. } => return None,
        other => panic!("{other:?} cannot be described"),
    })
}

/// The memory of the stack, written by word.
struct Memory {
    /// The size of a word in bytes.
    word: u64,
    bytes: Vec<u8>,
}

impl Memory {
    const SIZE: u64 = 0x1_0000;

    fn new(word: u64) -> Self {
        Self {
            word,
            bytes: vec![0xcc; Self::SIZE as usize],
        }
    }

    fn set(&mut self, address: u64, value: u64) {
        let at = (address - (STACK_END - Self::SIZE)) as usize;
        let bytes = &value.to_le_bytes()[..self.word as usize];
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn bytes_from(&self, address: u64) -> Vec<u8> {
        self.bytes[(address - (STACK_END - Self::SIZE)) as usize..].to_vec()
    }

    /// Simulates a call with the return address `state.ip`, and the prologue of the called function.
    fn enter(&mut self, state: &mut Sampled, shape: Shape, depth: u64) {
        let word = self.word;
        let cfa = state.stack_pointer;
        if shape != Shape::Leaf {
            self.set(cfa - word, state.ip);
        }
        state.stack_pointer = match shape {
            Shape::Leaf => cfa,
            Shape::Ends | Shape::SavesInRedZone => cfa - word,
            Shape::Moves { words } => cfa - u64::from(words) * word,
            Shape::Frames { words } | Shape::WithoutInfo { words } => {
                self.set(cfa - 2 * word, state.frame_pointer);
                state.frame_pointer = cfa - 2 * word;
                cfa - u64::from(words.max(2)) * word
            }
            Shape::Saves { words } => {
                self.set(cfa - 2 * word, state.saved);
                state.saved = depth;
                cfa - u64::from(words) * word
            }
            Shape::Realigns => {
                let frame = (cfa - 4 * word) & !63;
                self.set(frame, state.frame_pointer);
                self.set(frame - word, cfa);
                state.frame_pointer = frame;
                frame - 4 * word
            }
        };
    }
}

/// The only object of a process, or why it is missing.
pub(crate) struct Loaded<'m>(Result<&'m FrameInfo, TruncationCause>);

impl<'m> Loaded<'m> {
    pub(crate) fn new(object: Result<&'m FrameInfo, TruncationCause>) -> Self {
        Self(object)
    }
}

impl AddressSpace for Loaded<'_> {
    // Always the same, since the mappings never change.
    fn epoch(&self) -> u64 {
        1
    }

    fn code_at(&self, address: u64) -> Option<ObjectOffset<'_>> {
        let offset = address.checked_sub(MAPPING_ADDRESS)?;
        CODE.contains(&offset).then_some(ObjectOffset {
            module: MODULE,
            offset,
            frame_info: self.0,
        })
    }
}

/// The registers of a sample.
pub(crate) fn registers(arch: Arch, sampled: &Sampled) -> Registers {
    let mask: u64 = match arch {
        // bx, bp, sp, ip
        Arch::X86_64 | Arch::X86 => 1 << 1 | 1 << 6 | 1 << 7 | 1 << 8,
        // x19, x29, sp, pc
        Arch::Aarch64 => 1 << 19 | 1 << 29 | 1 << 31 | 1 << 32,
        // r4, r11, sp, pc
        Arch::Arm => 1 << 4 | 1 << 11 | 1 << 13 | 1 << 15,
    };
    // In the order of the bits.
    let values = [
        sampled.saved,
        sampled.frame_pointer,
        sampled.stack_pointer,
        sampled.ip,
    ];
    let values: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    let dumped = Regs {
        // Not used: the architecture is an argument of the unwinder.
        abi: RegsAbi::Bits64,
        mask,
        values: U64s::new(&values, Endian::Little),
    };
    Registers::of_sample(arch, &dumped).unwrap()
}

/// Unwinds a stack twice, the second time with cached steps.
pub(crate) fn unwind(
    arch: Arch,
    space: &impl AddressSpace,
    sampled: &Sampled,
    limit: usize,
) -> (Vec<u64>, UnwindOutcome) {
    let snapshot = Snapshot {
        arch,
        registers: registers(arch, sampled),
        stack: StackBytes {
            start: sampled.stack_pointer,
            bytes: &sampled.stack,
            // As if the stack continued beyond the copy.
            may_continue: true,
            endian: Endian::Little,
        },
    };
    let mut frames = Vec::new();
    let mut unwinder = Unwinder::new();
    let outcome = unwinder.unwind(&snapshot, space, limit, &mut frames);
    // The steps cached on the first run lead to the same result.
    let mut again = Vec::new();
    assert_eq!(
        unwinder.unwind(&snapshot, space, limit, &mut again),
        outcome
    );
    assert_eq!(frames, again);
    (frames, outcome)
}
