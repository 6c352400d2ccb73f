//! Builds BPF programs: jumps go to labels, and maps are named by their position in a list.

use crate::{Condition, Helper, Instruction, Operand, Operation, Register, Width};

/// Opcodes. [`Operation`], [`Condition`] and [`Width`] add their bits to those that lack them.
mod opcode {
    /// `BPF_ALU64`, without the operation.
    pub(super) const OPERATE: u8 = 0x07;
    /// `BPF_JMP`, without the condition; `BPF_JA` if none is added.
    pub(super) const JUMP: u8 = 0x05;
    /// The bit `BPF_X`, if the second operand of an operation or a condition is a register.
    pub(super) const WITH_REGISTER: u8 = 0x08;
    /// `BPF_LDX | BPF_MEM`, without the width.
    pub(super) const LOAD: u8 = 0x61;
    /// `BPF_ST | BPF_MEM`, without the width.
    pub(super) const STORE_NUMBER: u8 = 0x62;
    /// `BPF_STX | BPF_MEM`, without the width.
    pub(super) const STORE_REGISTER: u8 = 0x63;
    /// `BPF_STX | BPF_ATOMIC | BPF_DW`; the immediate is the operation.
    pub(super) const ATOMIC: u8 = 0xdb;
    /// `BPF_LD | BPF_IMM | BPF_DW`, the first of two instructions.
    pub(super) const SET_WIDE: u8 = 0x18;
    /// `BPF_JMP | BPF_CALL`.
    pub(super) const CALL: u8 = 0x85;
    /// `BPF_JMP | BPF_EXIT`.
    pub(super) const EXIT: u8 = 0x95;
}

/// The target of jumps in a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label(usize);

/// A map by its position in the list that [`ProgramBuilder::instructions`] and [`ProgramBuilder::encode`] receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapId(pub usize);

/// Why a program cannot be encoded, with the index of the instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A jump to a label that was not placed.
    #[error("BPF instruction {0}: jump to a label that was not placed")]
    NoPlace(usize),
    /// A jump whose distance does not fit in 16 bits.
    #[error("BPF instruction {0}: jump too far")]
    TooFar(usize),
    /// A map that is not in the list.
    #[error("BPF instruction {0}: no such map")]
    NoMap(usize),
}

/// A program under construction.
#[derive(Debug, Clone, Default)]
pub struct ProgramBuilder {
    instructions: Vec<Instruction>,
    /// The index of the instruction of each label, once placed.
    labels: Vec<Option<usize>>,
    /// Indices of jumps, and their targets.
    jumps: Vec<(usize, Label)>,
    /// Indices of the instructions that load the address of a map, and their maps.
    maps: Vec<(usize, MapId)>,
}

impl ProgramBuilder {
    /// Creates an empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a label, to be placed once with [`ProgramBuilder::place`].
    pub fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label before the instruction that is added next.
    pub fn place(&mut self, label: Label) {
        if let Some(place) = self.labels.get_mut(label.0) {
            *place = Some(self.instructions.len());
        }
    }

    /// Adds an instruction whose second operand is a register or a number. Its offset is 0;
    /// [`ProgramBuilder::instructions`] sets those of jumps.
    fn push(&mut self, code: u8, to: Register, from: Operand) {
        let (bit, source, immediate) = match from {
            Operand::Register(register) => (opcode::WITH_REGISTER, register as u8, 0),
            Operand::Number(number) => (0, 0, number),
        };
        self.instructions.push(Instruction {
            code: code | bit,
            destination: to as u8,
            source,
            offset: 0,
            immediate,
        });
    }

    /// `to = to OPERATION from`, in 64 bits.
    pub fn operate(&mut self, operation: Operation, to: Register, from: impl Into<Operand>) {
        self.push(opcode::OPERATE | operation.code(), to, from.into());
    }

    /// `to = from`.
    pub fn set(&mut self, to: Register, from: impl Into<Operand>) {
        self.operate(Operation::Move, to, from);
    }

    /// `to = from + offset`.
    pub fn address(&mut self, to: Register, from: Register, offset: i32) {
        self.set(to, from);
        self.operate(Operation::Add, to, offset);
    }

    /// `to = number`, with 64 bits. Counts as two instructions.
    pub fn set_wide(&mut self, to: Register, number: u64) {
        let half = |shift: u32| (((number >> shift) & 0xffff_ffff) as u32).cast_signed();
        let plain_number = 0;
        self.wide(to, plain_number, [half(0), half(32)]);
    }

    /// `to = ` the address of a map. Counts as two instructions.
    pub fn map(&mut self, to: Register, map: MapId) {
        self.maps.push((self.instructions.len(), map));
        // BPF_PSEUDO_MAP_FD.
        let map_descriptor = 1;
        // `instructions` replaces the lower half by the file descriptor.
        self.wide(to, map_descriptor, [0, 0]);
    }

    /// Adds the two instructions of [`opcode::SET_WIDE`]. `source` says what the number is, such as a map's file descriptor.
    fn wide(&mut self, to: Register, source: u8, [low, high]: [i32; 2]) {
        let first = Instruction {
            code: opcode::SET_WIDE,
            destination: to as u8,
            source,
            offset: 0,
            immediate: low,
        };
        let second = Instruction {
            code: 0,
            destination: 0,
            source: 0,
            offset: 0,
            immediate: high,
        };
        self.instructions.extend([first, second]);
    }

    /// `to = *(from + offset)`, zero-extended.
    pub fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        // Not `push`: in this opcode, the bit of `WITH_REGISTER` is part of the width.
        self.instructions.push(Instruction {
            code: opcode::LOAD | width.code(),
            destination: to as u8,
            source: from as u8,
            offset,
            immediate: 0,
        });
    }

    /// `*(to + offset) = from`.
    pub fn store(&mut self, width: Width, to: Register, offset: i16, from: impl Into<Operand>) {
        let (code, source, immediate) = match from.into() {
            Operand::Register(register) => (opcode::STORE_REGISTER, register as u8, 0),
            Operand::Number(number) => (opcode::STORE_NUMBER, 0, number),
        };
        self.instructions.push(Instruction {
            code: code | width.code(),
            destination: to as u8,
            source,
            offset,
            immediate,
        });
    }

    /// `*(to + offset) += from`, 64 bits, atomically.
    pub fn atomic_add(&mut self, to: Register, offset: i16, from: Register) {
        self.instructions.push(Instruction {
            code: opcode::ATOMIC,
            destination: to as u8,
            source: from as u8,
            offset,
            // BPF_ADD.
            immediate: 0,
        });
    }

    /// `if left CONDITION right goto label`.
    pub fn jump_if(
        &mut self,
        condition: Condition,
        left: Register,
        right: impl Into<Operand>,
        label: Label,
    ) {
        self.jumps.push((self.instructions.len(), label));
        self.push(opcode::JUMP | condition.code(), left, right.into());
    }

    /// `goto label`.
    pub fn jump(&mut self, label: Label) {
        self.jumps.push((self.instructions.len(), label));
        self.push(opcode::JUMP, Register::R0, Operand::Number(0));
    }

    /// `R0 = helper(R1, ..., R5)`, a helper function of the kernel.
    pub fn call(&mut self, helper: Helper) {
        let number = Operand::Number(helper.number());
        self.push(opcode::CALL, Register::R0, number);
    }

    /// `R0 = function(R1, ..., R5)`, a function of the kernel (kfunc), by the id of its BTF type.
    pub fn call_function(&mut self, function: u32) {
        self.instructions.push(Instruction {
            code: opcode::CALL,
            destination: 0,
            // BPF_PSEUDO_KFUNC_CALL.
            source: 2,
            offset: 0,
            immediate: function.cast_signed(),
        });
    }

    /// Ends the program, which returns 0.
    pub fn exit(&mut self) {
        self.exit_with(0);
    }

    /// Ends the program, which returns a number.
    pub fn exit_with(&mut self, number: i32) {
        self.set(Register::R0, number);
        self.push(opcode::EXIT, Register::R0, Operand::Number(0));
    }

    /// Returns the instructions with the offsets of jumps, and with the file descriptors `maps`, indexed by [`MapId`].
    ///
    /// # Errors
    /// [`BuildError`]: a label is not placed, a jump is too far, or a map is not in the list.
    pub fn instructions(&self, maps: &[i32]) -> Result<Vec<Instruction>, BuildError> {
        let mut built = self.instructions.clone();
        for (at, label) in &self.jumps {
            let place = self.labels.get(label.0).copied().flatten();
            let place = place.ok_or(BuildError::NoPlace(*at))?;
            // The offset of a jump counts from the next instruction.
            let ends = i64::try_from(place).ok().zip(i64::try_from(at + 1).ok());
            let distance = ends.and_then(|(to, from)| i16::try_from(to - from).ok());
            if let Some(instruction) = built.get_mut(*at) {
                instruction.offset = distance.ok_or(BuildError::TooFar(*at))?;
            }
        }
        for (at, map) in &self.maps {
            if let Some(instruction) = built.get_mut(*at) {
                instruction.immediate = *maps.get(map.0).ok_or(BuildError::NoMap(*at))?;
            }
        }
        Ok(built)
    }

    /// Like [`ProgramBuilder::instructions`], encoded for the kernel.
    ///
    /// # Errors
    /// [`BuildError`]: a label is not placed, a jump is too far, or a map is not in the list.
    pub fn encode(&self, maps: &[i32]) -> Result<Vec<[u8; 8]>, BuildError> {
        let built = self.instructions(maps)?;
        Ok(built.into_iter().map(Instruction::encode).collect())
    }
}
