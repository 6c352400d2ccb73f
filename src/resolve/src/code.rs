//! The bytes of code, as the files of objects have them.

use crate::frame::Frame;
use crate::resolver::Resolver;

/// Code at some address, from there to the end of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code<'r> {
    /// The whole file.
    pub file: &'r [u8],
    /// The code.
    pub bytes: &'r [u8],
}

impl Resolver<'_> {
    /// The code at `frame`; `None` where no file of the object is at hand, which is so for the kernel and for code made at
    /// run time.
    #[must_use]
    pub fn code(&self, frame: &Frame) -> Option<Code<'_>> {
        let file = self.code_file(frame.dso?)?;
        let start = usize::try_from(frame.address).ok()?;
        let bytes = file.get(start..)?;
        Some(Code { file, bytes })
    }
}
