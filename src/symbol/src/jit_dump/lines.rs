//! `JIT_CODE_DEBUG_INFO`: which line of which file the instructions of a function come from.

use super::reader::Reader;

/// Before the name of an entry: the address, the line, a discriminator.
const ENTRY_HEADER: usize = 16;
/// Stands for the name of the entry before.
const SAME_NAME: &[u8] = b"\xff";

/// From `address` on, instructions come from this line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    pub(super) address: u64,
    pub(super) line: u32,
    pub(super) file: &'a [u8],
}

/// The entries of one record, as they stand there.
pub(super) struct Entries<'a> {
    reader: Reader,
    rest: &'a [u8],
    file: &'a [u8],
}

impl<'a> Entries<'a> {
    pub(super) fn new(reader: Reader, bytes: &'a [u8]) -> Self {
        Self {
            reader,
            rest: bytes,
            file: b"",
        }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        let address = self.reader.long(self.rest, 0)?;
        let line = self.reader.word(self.rest, 8)?;
        let named = self.rest.get(ENTRY_HEADER..)?;
        let end = named.iter().position(|byte| *byte == 0)?;
        let (name, behind) = named.split_at_checked(end)?;
        self.rest = behind.get(1..)?;
        if name != SAME_NAME {
            self.file = name;
        }
        Some(Entry {
            address,
            line,
            file: self.file,
        })
    }
}

/// The entry for the instruction at `address`: of those at or before it the nearest, of several at one place the last.
pub(super) fn entry_at(entries: Entries<'_>, address: u64) -> Option<Entry<'_>> {
    let before = entries.filter(|entry| entry.address <= address);
    before.max_by_key(|entry| entry.address)
}
