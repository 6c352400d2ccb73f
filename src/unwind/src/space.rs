//! The interface to the code mappings of a process.

use crate::object_file::FrameInfo;
use crate::outcome::TruncationCause;

/// Number of an object, assigned by the implementation of [`AddressSpace`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// The code mappings of a process at one moment.
pub trait AddressSpace {
    /// A number for this state of the address space: equal numbers mean equal mappings, also in different address spaces.
    fn epoch(&self) -> u64;

    /// The code at `address`, if any.
    fn code_at(&self, address: u64) -> Option<ObjectOffset<'_>>;
}

/// A location in an object.
#[derive(Debug, Clone, Copy)]
pub struct ObjectOffset<'m> {
    /// The object.
    pub module: ModuleId,
    /// Offset in the object's file, in bytes.
    pub offset: u64,
    /// The object's frame information, or why it is unavailable: [`TruncationCause::NoFile`] or [`TruncationCause::LostFile`].
    pub frame_info: Result<&'m FrameInfo, TruncationCause>,
}
