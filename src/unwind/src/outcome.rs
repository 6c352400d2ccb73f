//! How the unwinding of a stack ended.

use std::fmt;

use crate::space::ModuleId;

/// How a stack ended, and how sure its frames are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Why there are no more frames.
    pub ending: Ending,
    /// Frames that rest on a frame-pointer chain, for want of anything better.
    pub guessed: u32,
}

/// Why there are no more frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The outermost frame was reached.
    Complete,
    /// As many frames as were asked for.
    Limit,
    /// Frames are missing.
    Cut {
        /// Why.
        cause: Cause,
        /// The object that the last frame is in, if it is known.
        module: Option<ModuleId>,
    },
}

/// Why frames of a stack are missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// The stack goes on above what was copied of it.
    DumpEnd,
    /// The sample has registers, but no copy of the stack.
    NoStack,
    /// The frame is elsewhere than on the stack that was copied: another stack, or damage.
    OtherStack,
    /// Nothing is mapped at the frame's address.
    Unmapped,
    /// The code was made at run time and has no file.
    NoFile,
    /// The file can't be read any more, or is another one.
    LostFile,
    /// The object says nothing of how its frames are laid out.
    NoFrameInfo,
    /// What the object says can't be followed.
    BadFrameInfo,
    /// A frame leads to itself or back.
    Stuck,
    /// The architecture, or the width of its registers, is not known.
    UnknownArch,
}

impl Cause {
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

impl fmt::Display for Cause {
    /// Where frames are lost, to be put behind the number of stacks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DumpEnd => "at the end of what was copied",
            Self::NoStack => "without a copy",
            Self::OtherStack => "on another stack than the one that was copied",
            Self::Unmapped => "at addresses where nothing is mapped",
            Self::NoFile => "in code made at run time, without frame pointers",
            Self::LostFile => "in files that are gone or were replaced",
            Self::NoFrameInfo => "in code without unwind information or frame pointers",
            Self::BadFrameInfo => "in code whose unwind information can't be followed",
            Self::Stuck => "at frames that lead back to themselves",
            Self::UnknownArch => "of an architecture that is not known",
        })
    }
}
