//! Result of unwinding a stack.

use std::fmt;

use crate::space::ModuleId;

/// How unwinding a stack ended, and the reliability of its frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnwindOutcome {
    /// Why unwinding ended.
    pub ending: Ending,
    /// Number of frames found by heuristics instead of frame information.
    pub guessed: u32,
}

/// Why unwinding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The outermost frame was reached.
    Complete,
    /// The requested number of frames was reached.
    Limit,
    /// Frames are missing.
    Truncated {
        /// Why.
        cause: TruncationCause,
        /// The object whose file or frame information is the cause, if any.
        module: Option<ModuleId>,
    },
}

/// Why frames of a stack are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum TruncationCause {
    /// The stack continues beyond the sample's copy of it.
    DumpEnd,
    /// The sample has no copy of the stack, or lacks the stack pointer or the instruction pointer.
    NoStack,
    /// The frame is not on the copied stack: it is on another stack, or damaged.
    OtherStack,
    /// No code is mapped at the frame's address, or the address is invalid.
    Unmapped,
    /// The code is in no file, such as JIT-compiled code.
    NoFile,
    /// The file cannot be read, was replaced, or has another architecture.
    LostFile,
    /// The object has no frame information for the address.
    NoFrameInfo,
    /// The object's frame information is invalid or unsupported.
    BadFrameInfo,
    /// A frame leads to itself or an inner frame, or there are more frames than the copy can hold.
    Stuck,
    /// The architecture or register ABI is not supported.
    UnknownArch,
}

impl TruncationCause {
    /// All causes.
    pub const ALL: [Self; 10] = [
        Self::DumpEnd,
        Self::NoStack,
        Self::OtherStack,
        Self::Unmapped,
        Self::NoFile,
        Self::LostFile,
        Self::NoFrameInfo,
        Self::BadFrameInfo,
        Self::Stuck,
        Self::UnknownArch,
    ];
}

impl fmt::Display for TruncationCause {
    /// Describes where frames are missing; the text follows a number of stacks, or `stack truncated`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DumpEnd => "at the end of the stack copy",
            Self::NoStack => "without a copy",
            Self::OtherStack => "on a stack that was not copied",
            Self::Unmapped => "at unmapped addresses",
            // Code without usable frame information is unwound by frame pointers; a cause is reported only if that fails, too.
            Self::NoFile => "in JIT code without frame pointers",
            Self::LostFile => "in missing or replaced files",
            Self::NoFrameInfo => "in code without unwind information or frame pointers",
            Self::BadFrameInfo => "in code with unsupported unwind information",
            Self::Stuck => "in a loop of frames",
            Self::UnknownArch => "of an unsupported architecture",
        })
    }
}
