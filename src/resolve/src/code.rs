//! The bytes of code, as the files of objects, the dumps of runtimes and the memory of kernels have them.

use rperf_symbol::{FileBytes, KernelCode};

use crate::frame::Frame;
use crate::resolver::Resolver;

/// Code at some address, from there on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code<'r> {
    /// The ELF file that it is in, or the start of it, which tells whose instructions these are.
    pub file: &'r [u8],
    /// The code.
    pub bytes: &'r [u8],
}

/// Where an object's code is.
pub(crate) enum CodeOf {
    /// In the file that was mapped.
    File(FileBytes),
    /// A kernel's, or that of one of its modules.
    Kernel(KernelCode),
}

impl Resolver<'_> {
    /// The code at `frame`; `None` where nothing has it: no file of the object is at hand, no dump of its runtime, and for a
    /// kernel neither its image nor its memory.
    #[must_use]
    pub fn code(&self, frame: &Frame) -> Option<Code<'_>> {
        if let Some((function, offset)) = self.made_at(frame) {
            return function.code(offset);
        }
        match self.code_of(frame)? {
            CodeOf::File(file) => Some(Code {
                file,
                bytes: file.get(usize::try_from(frame.address).ok()?..)?,
            }),
            CodeOf::Kernel(code) => Some(Code {
                file: &code.header,
                bytes: code.at(frame.ip)?,
            }),
        }
    }
}
