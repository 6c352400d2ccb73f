//! The parts of an ELF file needed for symbol tables, for either class and byte order.

mod plt;
mod symbols;
#[cfg(test)]
pub(crate) mod tiny;

use std::ops::Range;

use std::ffi::CStr;

use object::elf::{
    FileHeader32, FileHeader64, PT_LOAD, PT_NOTE, SHF_EXECINSTR, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{Endianness, FileKind};

pub(crate) use symbols::{AddressRelocation, SymbolSource, load_symbols};

/// One section header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a [u8],
    /// `sh_type`.
    pub(crate) kind: u32,
    pub(crate) flags: u64,
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) size: u64,
    pub(crate) entry_size: u64,
    pub(crate) link: u32,
}

/// One `PT_LOAD`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) address: u64,
    pub(crate) offset: u64,
    pub(crate) file_size: u64,
    /// Includes zero-filled data, which is not in the file.
    pub(crate) memory_size: u64,
}

/// A parsed ELF file that borrows its bytes.
#[derive(Debug)]
pub(crate) struct ElfImage<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) endian: Endianness,
    pub(crate) is_64: bool,
    pub(crate) machine: u16,
    /// `e_type`.
    pub(crate) kind: u16,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) segments: Vec<Segment>,
    /// The contents of the `PT_NOTE` segments.
    pub(crate) notes: Vec<&'a [u8]>,
}

/// Locations of code in an ELF file, as file offsets and addresses.
#[derive(Debug, Default)]
pub struct CodeLayout {
    segments: Vec<Segment>,
    /// The file ranges of the code sections.
    sections: Vec<Range<u64>>,
}

impl CodeLayout {
    /// The layout of `file`; empty if it isn't an ELF file.
    #[must_use]
    pub fn of(file: &[u8]) -> Self {
        let Ok(image) = ElfImage::parse(file) else {
            return Self::default();
        };
        let is_code = |section: &&Section<'_>| {
            section.kind != SHT_NOBITS && section.flags & u64::from(SHF_EXECINSTR) != 0
        };
        let sections = image.sections.iter().filter(is_code);
        let mut sections: Vec<Range<u64>> = sections
            .map(|section| section.offset..section.offset.saturating_add(section.size))
            .collect();
        sections.sort_by_key(|range| range.start);
        Self {
            segments: image.segments,
            sections,
        }
    }

    /// The address of the data at file offset `offset`; `None` if no segment contains it.
    #[must_use]
    pub fn address(&self, offset: u64) -> Option<u64> {
        self.converted(offset, |segment| (segment.offset, segment.address))
    }

    /// The file offset of `address`; `None` if no segment contains it. For zero-filled data (`.bss`), which is not in the file,
    /// it is the offset that the data would have directly after the segment's bytes.
    #[must_use]
    pub fn offset(&self, address: u64) -> Option<u64> {
        self.converted(address, |segment| (segment.address, segment.offset))
    }

    /// Converts `value`, a file offset or an address, to the other kind. The zero-filled data of a segment counts as if it
    /// followed the segment's bytes in the file, but the bytes of other segments have precedence. `starts` returns where a
    /// segment starts: first as the kind of `value`, then as the other kind.
    fn converted(&self, value: u64, starts: impl Fn(&Segment) -> (u64, u64)) -> Option<u64> {
        let within = |size: fn(&Segment) -> u64| {
            self.segments.iter().find_map(|segment| {
                let (from, to) = starts(segment);
                let distance = value.checked_sub(from)?;
                (distance < size(segment)).then(|| to.wrapping_add(distance))
            })
        };
        within(|segment| segment.file_size).or_else(|| within(|segment| segment.memory_size))
    }

    /// The code sections as file ranges, by ascending offset.
    #[must_use]
    pub fn sections(&self) -> &[Range<u64>] {
        &self.sections
    }
}

impl<'a> ElfImage<'a> {
    /// Parses the headers. The error is a text for a [`SymbolFinding`](crate::SymbolFinding).
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, String> {
        match FileKind::parse(bytes) {
            Ok(FileKind::Elf32) => {
                let is_64 = false;
                Self::parse_class::<FileHeader32<Endianness>>(bytes, is_64)
            }
            Ok(FileKind::Elf64) => {
                let is_64 = true;
                Self::parse_class::<FileHeader64<Endianness>>(bytes, is_64)
            }
            _ => Err("not an ELF file".to_owned()),
        }
    }

    fn parse_class<E>(bytes: &'a [u8], is_64: bool) -> Result<Self, String>
    where
        E: FileHeader<Endian = Endianness>,
    {
        let damaged = |error: object::Error| format!("damaged ELF file: {error}");
        let header = E::parse(bytes).map_err(damaged)?;
        let endian = header.endian().map_err(damaged)?;
        let table = header.sections(endian, bytes).map_err(damaged)?;
        let sections = table.iter().map(|section| Section {
            name: table.section_name(endian, section).unwrap_or_default(),
            kind: section.sh_type(endian),
            flags: section.sh_flags(endian).into(),
            address: section.sh_addr(endian).into(),
            offset: section.sh_offset(endian).into(),
            size: section.sh_size(endian).into(),
            entry_size: section.sh_entsize(endian).into(),
            link: section.sh_link(endian),
        });
        let mut image = Self {
            bytes,
            endian,
            is_64,
            machine: header.e_machine(endian),
            kind: header.e_type(endian),
            sections: sections.collect(),
            segments: Vec::new(),
            notes: Vec::new(),
        };
        // A debug file's program headers may lie beyond its end; they aren't needed.
        for segment in header.program_headers(endian, bytes).unwrap_or_default() {
            match segment.p_type(endian) {
                PT_LOAD => image.segments.push(Segment {
                    address: segment.p_vaddr(endian).into(),
                    offset: segment.p_offset(endian).into(),
                    file_size: segment.p_filesz(endian).into(),
                    memory_size: segment.p_memsz(endian).into(),
                }),
                PT_NOTE => image.notes.extend(segment.data(endian, bytes).ok()),
                _ => {}
            }
        }
        Ok(image)
    }

    /// Whether all code sections have their contents in the file; also true if there are none. Debug files have only the headers
    /// of code sections.
    pub(crate) fn has_code_contents(&self) -> bool {
        let is_code = |flags: u64| flags & u64::from(SHF_EXECINSTR) != 0;
        let mut sections = self.sections.iter();
        !sections.any(|section| section.kind == SHT_NOBITS && is_code(section.flags))
    }

    /// The first section with this name, with its index. Section 0 is reserved (`SHN_UNDEF`).
    pub(crate) fn section_by_name(&self, name: &[u8]) -> Option<(usize, &Section<'a>)> {
        self.sections
            .iter()
            .enumerate()
            .skip(1)
            .find(|(_, section)| section.name == name)
    }

    /// The bytes of `section`; `None` if it has none in the file, or if its range exceeds the file.
    pub(crate) fn section_data(&self, section: &Section<'_>) -> Option<&'a [u8]> {
        if section.kind == SHT_NOBITS {
            return None;
        }
        let start = usize::try_from(section.offset).ok()?;
        let end = start.checked_add(usize::try_from(section.size).ok()?)?;
        self.bytes.get(start..end)
    }

    /// `.symtab`, if present.
    pub(crate) fn symtab(&self) -> Option<&Section<'a>> {
        let (_, section) = self.section_by_name(b".symtab")?;
        (section.kind == SHT_SYMTAB).then_some(section)
    }

    /// `.dynsym`, if present, with its index.
    pub(crate) fn dynsym(&self) -> Option<(usize, &Section<'a>)> {
        self.section_by_name(b".dynsym")
            .filter(|(_, section)| section.kind == SHT_DYNSYM)
    }

    /// The string tables of `.symtab` and `.dynsym`.
    pub(crate) fn string_tables(&self) -> Vec<&'a [u8]> {
        let tables = [self.symtab(), self.dynsym().map(|(_, section)| section)];
        let strings = tables
            .into_iter()
            .flatten()
            .filter_map(|table| self.sections.get(table.link as usize));
        strings
            .filter_map(|strings| self.section_data(strings))
            .collect()
    }

    /// The file name in `.gnu_debuglink`.
    pub(crate) fn debug_link(&self) -> Option<&'a [u8]> {
        let (_, section) = self.section_by_name(b".gnu_debuglink")?;
        let data = self.section_data(section)?;
        data.split(|&byte| byte == 0)
            .next()
            .filter(|name| !name.is_empty())
    }

    /// `.gnu_debugdata`: a small compressed ELF file with the symbols that stripping has removed.
    pub(crate) fn debug_data(&self) -> Option<&'a [u8]> {
        let (_, section) = self.section_by_name(b".gnu_debugdata")?;
        self.section_data(section)
    }

    /// The NUL-terminated string at `offset` of the string table `strings`.
    pub(crate) fn text(strings: &'a [u8], offset: u32) -> Option<&'a [u8]> {
        let rest = strings.get(usize::try_from(offset).ok()?..)?;
        Some(CStr::from_bytes_until_nul(rest).ok()?.to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zero_filled_data_does_not_hide_the_next_segment() {
        let segment = |offset, address, file_size, memory_size| Segment {
            address,
            offset,
            file_size,
            memory_size,
        };
        let layout = CodeLayout {
            segments: vec![
                segment(0x1000, 0x40_1000, 0x800, 0x3000),
                segment(0x1800, 0x40_4800, 0x400, 0x400),
            ],
            sections: Vec::new(),
        };
        for (offset, address) in [
            (0x1000, 0x40_1000),
            (0x17ff, 0x40_17ff),
            (0x1800, 0x40_4800),
            (0x1bff, 0x40_4bff),
        ] {
            assert_eq!(layout.address(offset), Some(address));
            assert_eq!(layout.offset(address), Some(offset));
        }
        // Zero-filled data of the first segment: at an offset after the bytes of both segments, and at its first address.
        assert_eq!(layout.address(0x1c00), Some(0x40_1c00));
        assert_eq!(layout.offset(0x40_1800), Some(0x1800));
        assert_eq!(layout.address(0x4000), None);
        assert_eq!(layout.offset(0x40_4000), None);
    }
}
