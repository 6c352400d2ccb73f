//! The names of an object's symbols.

use std::ffi::CStr;

use crate::files::FileBytes;

/// Where a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct NameAt(u32);

/// A string table of the file of [`Names`], of nothing but ASCII. Both numbers are below 2 GiB.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlainNames {
    start: u32,
    len: u32,
}

impl PlainNames {
    /// The place of the name at `offset` of the table.
    pub(crate) fn at(self, offset: u32) -> Option<NameAt> {
        (offset < self.len).then(|| NameAt(self.start + offset))
    }
}

/// Set in a [`NameAt`] that counts in the text of [`Names`], not in the file.
const OWN: u32 = 1 << 31;

/// Names that stay where they are: in the string tables of a mapped file. Those that are in no file, or aren't UTF-8, are
/// kept in one text.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// A zero ends each name in it.
    file: Option<FileBytes>,
    /// Before each name its length, seven bits to a byte, the lowest first.
    own: Vec<u8>,
}

impl Names {
    /// Names that are mostly in `file`.
    pub(crate) fn of_file(file: FileBytes) -> Self {
        Self {
            file: Some(file),
            own: Vec::new(),
        }
    }

    /// The names of `strings`, a part of the file, if there is nothing but ASCII in it: these need no second look.
    pub(crate) fn plain(&self, strings: &[u8]) -> Option<PlainNames> {
        let file = self.file.as_ref()?;
        let offset = strings.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
        let end = offset.checked_add(strings.len())?;
        let is_inside = end <= file.len().min(OWN as usize);
        let is_plain = is_inside && strings.last() == Some(&0) && strings.is_ascii();
        is_plain.then_some(PlainNames {
            start: offset as u32,
            len: strings.len() as u32,
        })
    }

    /// Keeps `name`; what isn't UTF-8 in it is replaced. `None` once the text is full (2 GiB).
    pub(crate) fn push(&mut self, name: &[u8]) -> Option<NameAt> {
        let Ok(text) = std::str::from_utf8(name) else {
            return self.copy(&String::from_utf8_lossy(name));
        };
        self.in_file(name).or_else(|| self.copy(text))
    }

    /// The place of `name` if it is a part of the file.
    fn in_file(&self, name: &[u8]) -> Option<NameAt> {
        let file = self.file.as_ref()?;
        let offset = name.as_ptr().addr().checked_sub(file.as_ptr().addr())?;
        let ends = file.get(offset.checked_add(name.len())?) == Some(&0);
        let offset = u32::try_from(offset).ok().filter(|at| at & OWN == 0)?;
        ends.then_some(NameAt(offset))
    }

    fn copy(&mut self, name: &str) -> Option<NameAt> {
        let offset = u32::try_from(self.own.len()).ok()?;
        if offset & OWN != 0 {
            return None;
        }
        let mut length = name.len();
        while length > 0x7f {
            self.own.push(length as u8 | 0x80);
            length >>= 7;
        }
        self.own.push(length as u8);
        self.own.extend_from_slice(name.as_bytes());
        Some(NameAt(offset | OWN))
    }

    /// Gives back the room that was held for more names.
    pub(crate) fn shrink(&mut self) {
        self.own.shrink_to_fit();
    }

    /// The name at a place; nothing where the file has changed meanwhile.
    pub(crate) fn get(&self, at: NameAt) -> &str {
        let bytes = match at.0 & OWN {
            0 => self.of_the_file(at.0 as usize),
            _ => self.copied((at.0 & !OWN) as usize),
        };
        std::str::from_utf8(bytes.unwrap_or_default()).unwrap_or_default()
    }

    fn of_the_file(&self, offset: usize) -> Option<&[u8]> {
        let rest = self.file.as_ref()?.get(offset..)?;
        Some(CStr::from_bytes_until_nul(rest).ok()?.to_bytes())
    }

    fn copied(&self, offset: usize) -> Option<&[u8]> {
        let mut rest = self.own.get(offset..)?;
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
    fn names_of_the_file_are_not_copied() {
        let file = FileBytes::from(b"\0main\0caf\xe9\0cut".to_vec());
        let mut names = Names::of_file(file.clone());
        let mut kept = |range| names.push(&file[range]).unwrap();
        let main = kept(1..5);
        assert_eq!(main, NameAt(1));
        let others = [kept(6..10), kept(11..14), kept(1..4)];
        assert!(others.iter().all(|at| at.0 & OWN != 0));
        assert_eq!(names.get(main), "main");
        let others = others.map(|at| names.get(at));
        assert_eq!(others, ["caf\u{fffd}", "cut", "mai"]);
    }

    #[test]
    fn names_of_a_plain_table_need_no_look() {
        let file = FileBytes::from(b"\x7fELF\0main\0foo\0caf\xe9\0cut".to_vec());
        let names = Names::of_file(file.clone());
        let plain = names.plain(&file[4..14]).unwrap();
        assert_eq!(plain.at(1).map(|at| names.get(at)), Some("main"));
        assert_eq!(plain.at(6).map(|at| names.get(at)), Some("foo"));
        assert_eq!(plain.at(0).map(|at| names.get(at)), Some(""));
        assert!(plain.at(10).is_none());
        for other in [4..13, 4..19, 19..22] {
            assert!(names.plain(&file[other]).is_none());
        }
        assert!(names.plain(b"elsewhere\0").is_none());
        assert!(Names::default().plain(b"\0").is_none());
    }

    proptest! {
        #[test]
        fn copied_names_come_back(lengths in prop::collection::vec(0usize..40_000, 0..6)) {
            let listed: Vec<String> = lengths.iter().map(|length| "\u{1}".repeat(*length)).collect();
            let mut names = Names::default();
            let places: Vec<_> = listed.iter().map(|name| names.push(name.as_bytes()).unwrap()).collect();
            for (name, at) in listed.iter().zip(places) {
                prop_assert_eq!(names.get(at), name);
            }
        }
    }
}
