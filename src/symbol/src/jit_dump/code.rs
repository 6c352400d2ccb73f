//! The contents of a dump's functions besides their names: code, lines, frames.

use super::image::{ImageInputs, JitImage};
use super::lines::{LineEntries, entry_at};
use super::reader::DumpReader;
use crate::files::FileBytes;
use crate::table::SymbolIndex;

/// A range of a dump's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ByteRange {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Locations of the parts of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FunctionParts {
    /// The address at which the function was loaded, even if it was moved later: its lines refer to this address.
    pub(super) start: u64,
    pub(super) code: ByteRange,
    /// Entries of `JIT_CODE_DEBUG_INFO`.
    pub(super) lines: ByteRange,
    /// `.eh_frame`.
    pub(super) frames: ByteRange,
}

/// The functions of a dump, in the order of the corresponding [`SymbolTable`](crate::SymbolTable).
#[derive(Debug, Clone)]
pub struct JitCode {
    file: FileBytes,
    reader: DumpReader,
    /// `e_machine` of the ELF images.
    machine: u16,
    functions: Vec<FunctionParts>,
}

/// A source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitLine<'a> {
    /// The file as named by the runtime.
    pub file: &'a str,
    /// The line number as written by the runtime.
    pub line: u32,
}

impl JitCode {
    pub(super) fn new(
        file: FileBytes,
        reader: DumpReader,
        machine: u16,
        functions: Vec<FunctionParts>,
    ) -> Self {
        Self {
            file,
            reader,
            machine,
            functions,
        }
    }

    /// The source line of the instruction at `offset` in a function; `None` if the runtime didn't
    /// write one, the file name isn't UTF-8, or there is no such function.
    #[must_use]
    pub fn line(&self, function: SymbolIndex, offset: u64) -> Option<JitLine<'_>> {
        let parts = self.functions.get(function.as_usize())?;
        let entries = LineEntries::new(self.reader, self.bytes(parts.lines));
        let entry = entry_at(entries, parts.start.checked_add(offset)?)?;
        Some(JitLine {
            file: std::str::from_utf8(entry.file).ok()?,
            line: entry.line,
        })
    }

    /// Returns an ELF file in memory with the function's code and unwind tables; `None` if there is no such function.
    #[must_use]
    pub fn image(&self, function: SymbolIndex) -> Option<JitImage> {
        let parts = self.functions.get(function.as_usize())?;
        let inputs = ImageInputs {
            // Whether the dump is big-endian.
            big: self.reader.big,
            machine: self.machine,
            code: self.bytes(parts.code),
            frames: self.bytes(parts.frames),
        };
        Some(inputs.build())
    }

    /// Number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.functions.len()
    }

    /// Whether there are no functions.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    fn bytes(&self, range: ByteRange) -> &[u8] {
        self.file.get(range.start..range.end).unwrap_or_default()
    }
}
