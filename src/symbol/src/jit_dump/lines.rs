//! `JIT_CODE_DEBUG_INFO`: source lines of a function's instructions.

use super::reader::DumpReader;

/// Number of bytes of an entry before its name: address (8), line (4), discriminator (4).
const ENTRY_HEADER: usize = 16;
/// Written instead of a name that is the same as in the previous entry.
const SAME_NAME: &[u8] = b"\xff";

/// Instructions from `address` on have this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LineEntry<'a> {
    pub(super) address: u64,
    pub(super) line: u32,
    pub(super) file: &'a [u8],
}

/// The undecoded entries of one record.
pub(super) struct LineEntries<'a> {
    reader: DumpReader,
    rest: &'a [u8],
    /// The name in the previous entry.
    file: &'a [u8],
}

impl<'a> LineEntries<'a> {
    pub(super) fn new(reader: DumpReader, bytes: &'a [u8]) -> Self {
        Self {
            reader,
            rest: bytes,
            file: b"",
        }
    }
}

impl<'a> Iterator for LineEntries<'a> {
    type Item = LineEntry<'a>;

    fn next(&mut self) -> Option<LineEntry<'a>> {
        let address = self.reader.long(self.rest, 0)?;
        let line = self.reader.word(self.rest, 8)?;
        let named = self.rest.get(ENTRY_HEADER..)?;
        let end = named.iter().position(|byte| *byte == 0)?;
        let (name, after) = named.split_at_checked(end)?;
        self.rest = after.get(1..)?;
        if name != SAME_NAME {
            self.file = name;
        }
        Some(LineEntry {
            address,
            line,
            file: self.file,
        })
    }
}

/// The entry for the instruction at `address`: the one with the highest address that is not above `address`; if several have
/// it, the last.
pub(super) fn entry_at(entries: LineEntries<'_>, address: u64) -> Option<LineEntry<'_>> {
    let before = entries.filter(|entry| entry.address <= address);
    before.max_by_key(|entry| entry.address)
}
