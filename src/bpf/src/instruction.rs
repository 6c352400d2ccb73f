//! BPF instructions (Documentation/bpf/standardization/instruction-set.rst).

/// A register, 0 to 10. `R0` has the result of a call, `R1` to `R5` its arguments; a call overwrites all six. `R6` to `R9`
/// keep their values. `R10` points to the end of the stack of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are the numbers")]
pub enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10,
}

/// The second operand: a register, or a number that is sign-extended to 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// A register.
    Register(Register),
    /// A number.
    Number(i32),
}

impl From<Register> for Operand {
    fn from(register: Register) -> Self {
        Self::Register(register)
    }
}

impl From<i32> for Operand {
    fn from(number: i32) -> Self {
        Self::Number(number)
    }
}

/// A 64-bit operation (`BPF_ALU64`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of the standard")]
pub enum Operation {
    Add,
    Sub,
    Mul,
    Or,
    And,
    ShiftLeft,
    /// Logical.
    ShiftRight,
    Xor,
    Move,
}

impl Operation {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Add => 0x00,
            Self::Sub => 0x10,
            Self::Mul => 0x20,
            Self::Or => 0x40,
            Self::And => 0x50,
            Self::ShiftLeft => 0x60,
            Self::ShiftRight => 0x70,
            Self::Xor => 0xa0,
            Self::Move => 0xb0,
        }
    }
}

/// A comparison of 64-bit numbers, unsigned unless its name says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are those of the comparisons")]
pub enum Condition {
    Equal,
    NotEqual,
    Above,
    AtLeast,
    Below,
    AtMost,
    SignedLess,
    /// `(left & right) != 0`.
    HasBits,
}

impl Condition {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Equal => 0x10,
            Self::Above => 0x20,
            Self::AtLeast => 0x30,
            Self::HasBits => 0x40,
            Self::NotEqual => 0x50,
            Self::Below => 0xa0,
            Self::AtMost => 0xb0,
            Self::SignedLess => 0xc0,
        }
    }
}

/// The width of an access to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes.
    Half,
    /// Four bytes.
    Word,
    /// Eight bytes.
    Double,
}

impl Width {
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Word => 0x00,
            Self::Half => 0x08,
            Self::Byte => 0x10,
            Self::Double => 0x18,
        }
    }
}

/// A function of the kernel that programs may call (`enum bpf_func_id`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the kernel's names without bpf_")]
pub enum Helper {
    MapLookupElem,
    MapUpdateElem,
    MapDeleteElem,
    KtimeGetNs,
    GetSmpProcessorId,
    GetCurrentPidTgid,
    GetCurrentUidGid,
    GetCurrentComm,
    PerfEventOutput,
    PerfEventReadValue,
    GetStackid,
    GetCurrentTask,
    CurrentTaskUnderCgroup,
    GetCurrentCgroupId,
    GetCurrentAncestorCgroupId,
    ProbeReadUser,
    ProbeReadKernel,
    ProbeReadUserStr,
    ProbeReadKernelStr,
}

impl Helper {
    /// Returns the number of the function in `enum bpf_func_id`.
    #[must_use]
    pub fn number(self) -> i32 {
        match self {
            Self::MapLookupElem => 1,
            Self::MapUpdateElem => 2,
            Self::MapDeleteElem => 3,
            Self::KtimeGetNs => 5,
            Self::GetSmpProcessorId => 8,
            Self::GetCurrentPidTgid => 14,
            Self::GetCurrentUidGid => 15,
            Self::GetCurrentComm => 16,
            Self::PerfEventOutput => 25,
            Self::GetStackid => 27,
            Self::GetCurrentTask => 35,
            Self::CurrentTaskUnderCgroup => 37,
            Self::PerfEventReadValue => 55,
            Self::GetCurrentCgroupId => 80,
            Self::ProbeReadUser => 112,
            Self::ProbeReadKernel => 113,
            Self::ProbeReadUserStr => 114,
            Self::ProbeReadKernelStr => 115,
            Self::GetCurrentAncestorCgroupId => 123,
        }
    }
}

/// One instruction (`struct bpf_insn`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    /// The opcode.
    pub code: u8,
    /// The destination register.
    pub destination: u8,
    /// The source register, or the kind of the immediate (`BPF_PSEUDO_*`).
    pub source: u8,
    /// The offset of a jump in instructions, or of memory in bytes.
    pub offset: i16,
    /// The constant operand, a map's file descriptor, the number of a helper, or the type id (BTF) of a kernel function. A
    /// constant of 64 bits takes two consecutive instructions, each of which has 32 bits of it.
    pub immediate: i32,
}

impl Instruction {
    /// Encodes the instruction in the byte order of this machine.
    #[must_use]
    pub fn encode(self) -> [u8; 8] {
        let (low, high) = match cfg!(target_endian = "little") {
            true => (self.destination, self.source),
            false => (self.source, self.destination),
        };
        let [o0, o1] = self.offset.to_ne_bytes();
        let [i0, i1, i2, i3] = self.immediate.to_ne_bytes();
        [self.code, high << 4 | low & 15, o0, o1, i0, i1, i2, i3]
    }
}
