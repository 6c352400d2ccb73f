//! What the caller knows: which code is where.

use crate::object_file::Object;
use crate::outcome::Cause;

/// The caller's number of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ModuleId(pub u32);

/// The code of one process at one moment.
pub trait AddressSpace {
    /// A number for this state of the address space: where two are equal, all answers are.
    fn epoch(&self) -> u64;

    /// What code is at `address`, if any.
    fn code_at(&self, address: u64) -> Option<Code<'_>>;
}

/// A place in an object.
#[derive(Debug, Clone, Copy)]
pub struct Code<'m> {
    /// The object.
    pub module: ModuleId,
    /// Offset in its file.
    pub offset: u64,
    /// What it says of its frames, or why it can't be asked: [`Cause::NoFile`] or [`Cause::LostFile`].
    pub object: Result<&'m Object, Cause>,
}
