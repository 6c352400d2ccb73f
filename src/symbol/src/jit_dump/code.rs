//! What a dump has of its functions besides their names: code, lines, frames.

use super::image::{JitImage, Parts};
use super::lines::{Entries, entry_at};
use super::reader::Reader;
use crate::files::FileBytes;
use crate::table::SymbolIndex;

/// A range of a dump's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Where the parts of a function are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Body {
    /// The address that the function was loaded to, which its lines refer to.
    pub(super) start: u64,
    pub(super) code: Part,
    /// Entries of `JIT_CODE_DEBUG_INFO`.
    pub(super) lines: Part,
    /// `.eh_frame`.
    pub(super) frames: Part,
}

/// The functions of a dump, by their positions in the [`SymbolTable`](crate::SymbolTable) that was made with it.
#[derive(Debug, Clone)]
pub struct JitCode {
    file: FileBytes,
    reader: Reader,
    machine: u16,
    bodies: Vec<Body>,
}

/// A place in a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JitLine<'a> {
    /// The file, as the runtime calls it.
    pub file: &'a str,
    /// From 1.
    pub line: u32,
}

impl JitCode {
    pub(super) fn new(file: FileBytes, reader: Reader, machine: u16, bodies: Vec<Body>) -> Self {
        Self {
            file,
            reader,
            machine,
            bodies,
        }
    }

    /// The line that the instruction `offset` bytes into a function comes from; `None` where the runtime told nothing, and
    /// for files whose names aren't UTF-8.
    #[must_use]
    pub fn line(&self, function: SymbolIndex, offset: u64) -> Option<JitLine<'_>> {
        let body = self.bodies.get(function.as_usize())?;
        let entries = Entries::new(self.reader, self.part(body.lines));
        let entry = entry_at(entries, body.start.checked_add(offset)?)?;
        Some(JitLine {
            file: std::str::from_utf8(entry.file).ok()?,
            line: entry.line,
        })
    }

    /// The ELF file of a function.
    #[must_use]
    pub fn image(&self, function: SymbolIndex) -> Option<JitImage> {
        let body = self.bodies.get(function.as_usize())?;
        let parts = Parts {
            big: self.reader.big,
            machine: self.machine,
            code: self.part(body.code),
            frames: self.part(body.frames),
        };
        Some(parts.build())
    }

    /// The number of functions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    fn part(&self, part: Part) -> &[u8] {
        self.file.get(part.start..part.end).unwrap_or_default()
    }
}
