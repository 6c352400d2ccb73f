//! The names of an object's symbols.

use std::ffi::CStr;

use crate::files::FileBytes;

/// Position of a name in a [`NameTable`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NameAt(u32);

/// An ASCII string table in the file of [`NameTable`]. It ends within the first 2 GiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsciiNames {
    start: u32,
    len: u32,
}

impl AsciiNames {
    /// The position of the name at `offset` of the table; `None` if `offset` is beyond it.
    pub(crate) fn at(self, offset: u32) -> Option<NameAt> {
        (offset < self.len).then(|| NameAt(self.start + offset))
    }
}

/// Set in a [`NameAt`] that refers to the buffer of [`NameTable`] instead of the file.
const IN_BUFFER: u32 = 1 << 31;

/// Names that stay in the string tables of a mapped file. Other names, and those that aren't
/// UTF-8, are stored in a buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct NameTable {
    /// Names in it end with NUL.
    file: Option<FileBytes>,
    /// Names, each preceded by its length in LEB128.
    buffer: Vec<u8>,
}

impl NameTable {
    /// Creates an empty table for names that are mostly in `file`.
    pub(crate) fn of_file(file: FileBytes) -> Self {
        Self {
            file: Some(file),
            buffer: Vec::new(),
        }
    }

    /// The names of `strings`, a part of the file, if it is all ASCII and ends with NUL: they can be used without
    /// [`NameTable::push`], which checks each name.
    pub(crate) fn ascii_names(&self, strings: &[u8]) -> Option<AsciiNames> {
        let file = self.file.as_ref()?;
        let offset = strings.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
        let end = offset.checked_add(strings.len())?;
        let is_inside = end <= file.len().min(IN_BUFFER as usize);
        let is_ascii_table = is_inside && strings.last() == Some(&0) && strings.is_ascii();
        is_ascii_table.then_some(AsciiNames {
            start: offset as u32,
            len: strings.len() as u32,
        })
    }

    /// Returns the position of `name`, which is copied to the buffer if it is not a valid name in the file; invalid UTF-8 is
    /// replaced. `None` if the buffer is full (2 GiB).
    pub(crate) fn push(&mut self, name: &[u8]) -> Option<NameAt> {
        let Ok(text) = std::str::from_utf8(name) else {
            return self.copy(&String::from_utf8_lossy(name));
        };
        self.in_file(name).or_else(|| self.copy(text))
    }

    /// The position of `name` if it is a slice of the first 2 GiB of the file, followed there by a NUL.
    fn in_file(&self, name: &[u8]) -> Option<NameAt> {
        let file = self.file.as_ref()?;
        let offset = name.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
        let ends = file.get(offset.checked_add(name.len())?) == Some(&0);
        let offset = u32::try_from(offset)
            .ok()
            .filter(|at| at & IN_BUFFER == 0)?;
        ends.then_some(NameAt(offset))
    }

    fn copy(&mut self, name: &str) -> Option<NameAt> {
        let offset = u32::try_from(self.buffer.len()).ok()?;
        if offset & IN_BUFFER != 0 {
            return None;
        }
        let mut length = name.len();
        while length > 0x7f {
            self.buffer.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.buffer.push(length as u8);
        self.buffer.extend_from_slice(name.as_bytes());
        Some(NameAt(offset | IN_BUFFER))
    }

    /// Frees reserved memory.
    pub(crate) fn shrink(&mut self) {
        self.buffer.shrink_to_fit();
    }

    /// The name at a position. If the file was modified meanwhile, the name may be another one, or empty.
    pub(crate) fn get(&self, at: NameAt) -> &str {
        let bytes = match at.0 & IN_BUFFER {
            0 => self.name_in_file(at.0 as usize),
            _ => self.name_in_buffer((at.0 & !IN_BUFFER) as usize),
        };
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn name_in_file(&self, offset: usize) -> Option<&[u8]> {
        let rest = self.file.as_ref()?.get(offset..)?;
        Some(CStr::from_bytes_until_nul(rest).ok()?.to_bytes())
    }

    fn name_in_buffer(&self, offset: usize) -> Option<&[u8]> {
        let mut rest = self.buffer.get(offset..)?;
        let mut length = 0;
        let mut shift = 0;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            length |= usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        rest.get(..length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_of_the_file_are_copied_unless_terminated_and_valid() {
        let file = FileBytes::from(b"\0main\0caf\xe9\0cut".to_vec());
        let mut names = NameTable::of_file(file.clone());
        let mut pushed = |range| names.push(&file[range]).unwrap();
        let main = pushed(1..5);
        assert_eq!(main, NameAt(1));
        let others = [pushed(6..10), pushed(11..14), pushed(1..4)];
        assert!(others.iter().all(|at| at.0 & IN_BUFFER != 0));
        assert_eq!(names.get(main), "main");
        let others = others.map(|at| names.get(at));
        assert_eq!(others, ["caf\u{fffd}", "cut", "mai"]);
    }

    #[test]
    fn names_of_an_ascii_table_need_no_validation() {
        let file = FileBytes::from(b"\x7fELF\0main\0foo\0caf\xe9\0cut".to_vec());
        let names = NameTable::of_file(file.clone());
        let ascii_names = names.ascii_names(&file[4..14]).unwrap();
        assert_eq!(ascii_names.at(1).map(|at| names.get(at)), Some("main"));
        assert_eq!(ascii_names.at(6).map(|at| names.get(at)), Some("foo"));
        assert_eq!(ascii_names.at(0).map(|at| names.get(at)), Some(""));
        assert!(ascii_names.at(10).is_none());
        // No NUL at the end; a byte that is not ASCII; the end of the file, again without NUL.
        for other in [4..13, 4..19, 19..22] {
            assert!(names.ascii_names(&file[other]).is_none());
        }
        assert!(names.ascii_names(b"elsewhere\0").is_none());
        assert!(NameTable::default().ascii_names(b"\0").is_none());
    }

    proptest! {
        #[test]
        // Lengths up to 40,000 take one to three bytes in LEB128.
        fn copied_names_are_read_back(lengths in prop::collection::vec(0usize..40_000, 0..6)) {
            let listed: Vec<String> = lengths.iter().map(|length| "\u{1}".repeat(*length)).collect();
            let mut names = NameTable::default();
            let places: Vec<_> = listed.iter().map(|name| names.push(name.as_bytes()).unwrap()).collect();
            for (name, at) in listed.iter().zip(places) {
                prop_assert_eq!(names.get(at), name);
            }
        }
    }
}
