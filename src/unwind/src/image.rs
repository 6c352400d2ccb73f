//! The segments of an object file: addresses of file offsets, and file ranges of addresses.

use std::ops::Range;

use object::Endianness;
use object::elf::{PF_X, PT_LOAD};
use object::read::elf::{ElfFile, FileHeader, ProgramHeader as _};
use rperf_symbol::FileBytes;

/// The file, and its loaded segments.
#[derive(Debug)]
pub(crate) struct Image {
    pub(crate) file: FileBytes,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    /// Offset in the file.
    offset: u64,
    /// Size in the file.
    size: u64,
    /// Virtual address in the object, of the byte at `offset`.
    address: u64,
    is_code: bool,
}

impl Image {
    /// Reads the segments of `elf`, whose bytes are `file`.
    pub(crate) fn new<E: FileHeader<Endian = Endianness>>(
        elf: &ElfFile<'_, E>,
        file: FileBytes,
    ) -> Self {
        let endian = elf.endian();
        let headers = elf.elf_program_headers().iter();
        let loaded = headers.filter(|header| header.p_type(endian) == PT_LOAD);
        let segments = loaded.map(|header| Segment {
            offset: header.p_offset(endian).into(),
            size: header.p_filesz(endian).into(),
            address: header.p_vaddr(endian).into(),
            is_code: header.p_flags(endian) & PF_X != 0,
        });
        Self {
            segments: segments.collect(),
            file,
        }
    }

    /// The address of the code at file offset `offset`; `None` if no executable segment contains it.
    pub(crate) fn code_address(&self, offset: u64) -> Option<u64> {
        let mut code = self.segments.iter().filter(|segment| segment.is_code);
        code.find_map(|segment| {
            let inside = offset.checked_sub(segment.offset)?;
            (inside < segment.size).then(|| segment.address.wrapping_add(inside))
        })
    }

    /// The file range from `address` to the end of its segment; `None` if no segment has bytes in the file for it (as in `.bss`),
    /// or the file is too short.
    pub(crate) fn range_from(&self, address: u64) -> Option<Range<usize>> {
        self.segments.iter().find_map(|segment| {
            let inside = address.checked_sub(segment.address)?;
            let rest = segment.size.checked_sub(inside).filter(|rest| *rest > 0)?;
            let start = usize::try_from(segment.offset.checked_add(inside)?).ok()?;
            let end = start.checked_add(usize::try_from(rest).ok()?)?;
            self.file.get(start..end).map(|_| start..end)
        })
    }
}
