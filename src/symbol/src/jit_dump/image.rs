//! A dumped function as an ELF file in memory, for callers that read code and unwind tables from ELF files.
//!
//! The layout is that of the files written by `perf inject --jit`: a dump's `.eh_frame` has relative addresses of the code,
//! which are correct only if `.eh_frame` follows the code as in this layout.

use std::ops::Range;

use object::elf::{
    ELFCLASS64, ELFDATA2LSB, ELFDATA2MSB, ELFMAG, ET_DYN, EV_CURRENT, PF_R, PF_X, PT_LOAD,
    SHF_ALLOC, SHF_EXECINSTR, SHT_NULL, SHT_PROGBITS, SHT_STRTAB,
};

use crate::files::FileBytes;

/// The offset of the code in the file, which is also its address.
const TEXT: usize = 0x80;
/// Size of `Elf64_Ehdr`, in bytes.
pub(super) const FILE_HEADER: u16 = 64;
/// Size of `Elf64_Phdr`, in bytes.
const PROGRAM_HEADER: u16 = 56;
/// Size of `Elf64_Shdr`, in bytes.
const SECTION_HEADER: u16 = 64;
/// The content of `.shstrtab`. The following constants are offsets of names in it.
const NAMES: &[u8] = b"\0.text\0.eh_frame\0.shstrtab\0";
const TEXT_NAME: u32 = 1;
const FRAMES_NAME: u32 = 7;
const NAMES_NAME: u32 = 17;

/// The ELF file of a function.
#[derive(Debug, Clone)]
pub struct JitImage {
    /// Its content.
    pub file: FileBytes,
    /// The file range of the code, which is also its address range.
    pub text: Range<usize>,
}

/// Inputs of an image.
pub(super) struct ImageInputs<'a> {
    /// Whether the byte order is big-endian.
    pub(super) big: bool,
    /// `EM_*`.
    pub(super) machine: u16,
    pub(super) code: &'a [u8],
    /// `.eh_frame`; empty if the runtime didn't write any.
    pub(super) frames: &'a [u8],
}

struct Section {
    name: u32,
    kind: u32,
    flags: u32,
    /// The file range, which is also the address range.
    at: Range<usize>,
}

impl ImageInputs<'_> {
    pub(super) fn build(&self) -> JitImage {
        let text = TEXT..TEXT + self.code.len();
        let frames_start = text.end.next_multiple_of(8);
        let frames = frames_start..frames_start + self.frames.len();
        let names = frames.end..frames.end + NAMES.len();
        let sections = [
            Section::new(0, SHT_NULL, 0, 0..0),
            Section::new(
                TEXT_NAME,
                SHT_PROGBITS,
                SHF_ALLOC | SHF_EXECINSTR,
                text.clone(),
            ),
            Section::new(FRAMES_NAME, SHT_PROGBITS, SHF_ALLOC, frames),
            Section::new(NAMES_NAME, SHT_STRTAB, 0, names.clone()),
        ];
        let section_headers = names.end.next_multiple_of(8);
        let mut out = Writer {
            big: self.big,
            bytes: Vec::with_capacity(
                section_headers + sections.len() * usize::from(SECTION_HEADER),
            ),
        };
        // One segment, with the code.
        out.file_header(self.machine, TEXT, section_headers, 1, sections.len());
        out.program_header(&text);
        out.part(text.start, self.code);
        out.part(frames_start, self.frames);
        out.part(names.start, NAMES);
        // Only the zeros before the section headers.
        out.part(section_headers, &[]);
        for section in &sections {
            out.section_header(section);
        }
        JitImage {
            file: out.bytes.into(),
            text,
        }
    }
}

impl Section {
    fn new(name: u32, kind: u32, flags: u32, at: Range<usize>) -> Self {
        Self {
            name,
            kind,
            flags,
            at,
        }
    }
}

/// Encodes numbers in either byte order.
pub(super) struct Writer {
    pub(super) big: bool,
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(big: bool) -> Self {
        let bytes = Vec::new();
        Self { big, bytes }
    }

    /// Appends an unsigned LEB128 number.
    pub(super) fn uleb(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends a signed LEB128 number.
    pub(super) fn sleb(&mut self, mut number: i64) {
        while !(-0x40..0x40).contains(&number) {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8 & 0x7f);
    }

    pub(super) fn half(&mut self, number: u16) {
        self.bytes.extend(match self.big {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        });
    }

    pub(super) fn word(&mut self, number: u32) {
        self.bytes.extend(match self.big {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        });
    }

    pub(super) fn long(&mut self, number: usize) {
        let number = number as u64;
        self.bytes.extend(match self.big {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        });
    }

    /// Appends zeros up to `offset`, which is not before the current end, and then bytes.
    pub(super) fn part(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes.resize(offset.max(self.bytes.len()), 0);
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends `Elf64_Ehdr` of elf(5). `entry` is the entry point, `headers` the file offset of the section headers; `segments`
    /// and `sections` are the numbers of program and section headers.
    pub(super) fn file_header(
        &mut self,
        machine: u16,
        entry: usize,
        headers: usize,
        segments: usize,
        sections: usize,
    ) {
        let order = if self.big { ELFDATA2MSB } else { ELFDATA2LSB };
        self.bytes.extend(ELFMAG);
        self.bytes.extend([ELFCLASS64, order, EV_CURRENT]);
        // The rest of `e_ident`.
        self.bytes.extend([0; 9]);
        self.half(ET_DYN);
        self.half(machine);
        self.word(u32::from(EV_CURRENT));
        // Entry point, offsets of the program and section headers, flags.
        self.long(entry);
        self.long(usize::from(FILE_HEADER));
        self.long(headers);
        self.word(0);
        // Sizes and numbers of headers.
        self.half(FILE_HEADER);
        self.half(PROGRAM_HEADER);
        self.half(segments as u16);
        self.half(SECTION_HEADER);
        // The section names are in the last section.
        self.half(sections as u16);
        self.half(sections as u16 - 1);
    }

    /// Appends `Elf64_Phdr` of elf(5).
    fn program_header(&mut self, text: &Range<usize>) {
        self.word(PT_LOAD);
        self.word(PF_R | PF_X);
        let (start, size) = (text.start, text.len());
        // File offset, virtual and physical address, size in the file and in memory, alignment.
        for number in [start, start, start, size, size, 1] {
            self.long(number);
        }
    }

    /// Appends `Elf64_Shdr` of elf(5).
    fn section_header(&mut self, section: &Section) {
        self.word(section.name);
        self.word(section.kind);
        self.long(section.flags as usize);
        // Address and file offset are equal.
        self.long(section.at.start);
        self.long(section.at.start);
        self.long(section.at.len());
        // No linked section, no further information.
        self.word(0);
        self.word(0);
        // Alignment and size of entries.
        self.long(1);
        self.long(0);
    }
}

#[cfg(test)]
mod tests {
    use object::{Architecture, Object as _, ObjectSection as _, ObjectSegment as _};

    use super::*;

    #[test]
    fn an_elf_reader_finds_code_and_frames() {
        for big in [false, true] {
            let inputs = ImageInputs {
                big,
                machine: object::elf::EM_AARCH64,
                code: &[1, 2, 3],
                frames: &[4; 13],
            };
            let image = inputs.build();
            assert_eq!(&image.file[image.text.clone()], [1, 2, 3]);
            let file = object::File::parse(&*image.file).unwrap();
            assert_eq!(file.architecture(), Architecture::Aarch64);
            assert_eq!(file.is_little_endian(), !big);
            let frames = file.section_by_name(".eh_frame").unwrap();
            assert_eq!(
                (frames.address(), frames.data().unwrap()),
                (0x88, &[4; 13][..])
            );
            let segment = file.segments().next().unwrap();
            assert_eq!((segment.address(), segment.file_range()), (0x80, (0x80, 3)));
        }
    }
}
