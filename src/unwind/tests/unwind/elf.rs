//! Small ELF files with unwind information.

use rperf_unwind::Arch;

use super::exceptions;

/// The content of the section with the section names.
const NAMES: &[u8] = b"\0.eh_frame\0.debug_frame\0.ARM.extab\0.ARM.exidx\0.names\0";

// The offset of each name in NAMES.
const EH_FRAME_NAME: u64 = 1;
const DEBUG_FRAME_NAME: u64 = 11;
pub(crate) const ARM_EXTAB_NAME: u64 = 24;
pub(crate) const ARM_EXIDX_NAME: u64 = 35;
const NAMES_NAME: u64 = 46;

// The types of sections and segments.
pub(crate) const SHT_PROGBITS: u64 = 1;
const SHT_STRTAB: u64 = 3;
pub(crate) const SHT_ARM_EXIDX: u64 = 0x7000_0001;
const PT_LOAD: u64 = 1;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
pub(crate) const PT_ARM_EXIDX: u64 = 0x7000_0001;

/// The virtual address of the file's first byte.
pub(crate) const BASE: u64 = 0x20_0000;
/// The file offsets of the code.
pub(crate) const CODE: std::ops::Range<u64> = 0x1000..0x3000;

/// The unwind information of a range of code.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    /// The offset in the file.
    pub(crate) start: u64,
    /// In bytes.
    pub(crate) size: u64,
    /// The unwind instructions of the range; the CIE has none. For `.ARM.exidx` an empty list means no information.
    pub(crate) instructions: Vec<u8>,
    pub(crate) is_signal: bool,
}

/// The location of the unwind information.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    /// `.eh_frame` with a search table.
    Searched,
    /// `.eh_frame` alone.
    Plain,
    /// `.eh_frame` with a search table, in a file without section headers.
    Headless,
    /// `.debug_frame`.
    Debug,
    /// `.ARM.exidx` and `.ARM.extab`.
    Exceptions,
}

/// DWARF register numbers and sizes of an architecture.
pub(crate) struct Numbers {
    /// `e_machine`.
    pub(crate) machine: u16,
    /// The size of a word in bytes.
    pub(crate) word: u8,
    pub(crate) stack_pointer: u8,
    pub(crate) frame_pointer: u8,
    /// A callee-saved register other than the frame pointer.
    pub(crate) saved: u8,
    pub(crate) return_address: u8,
}

pub(crate) fn numbers(arch: Arch) -> Numbers {
    let (machine, word, stack_pointer, frame_pointer, saved, return_address) = match arch {
        Arch::X86_64 => (62, 8, 7, 6, 3, 16),
        Arch::X86 => (3, 4, 4, 5, 3, 8),
        Arch::Aarch64 => (183, 8, 31, 29, 19, 30),
        Arch::Arm => (40, 4, 13, 11, 4, 14),
    };
    Numbers {
        machine,
        word,
        stack_pointer,
        frame_pointer,
        saved,
        return_address,
    }
}

/// A file under construction. All numbers are little-endian.
pub(crate) struct File {
    bytes: Vec<u8>,
    /// The size of a word in bytes.
    word: u8,
}

impl File {
    /// Appends the lowest `size` bytes of `value`.
    pub(crate) fn put(&mut self, value: u64, size: u8) {
        let bytes = value.to_le_bytes();
        self.bytes.extend_from_slice(&bytes[..usize::from(size)]);
    }

    fn put_word(&mut self, value: u64) {
        self.put(value, self.word);
    }

    /// The offset at which the next byte is appended.
    pub(crate) fn next_offset(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Appends zeros up to the offset `to`.
    fn pad(&mut self, to: u64) {
        self.bytes.resize(usize::try_from(to).unwrap(), 0);
    }
}

/// A file with these entries.
pub(crate) fn build(arch: Arch, section: Section, entries: &[Entry]) -> Vec<u8> {
    let Numbers { machine, word, .. } = numbers(arch);
    let mut file = File {
        bytes: Vec::new(),
        word,
    };
    file.pad(CODE.start);
    // All bytes of the code are equal, so that a call precedes every return address: `e8 e8 e8 e8 e8` is x86's `call rel32`,
    // 0x9494_9494 is `bl` of 64-bit Arm. On 32-bit Arm, the unwinder doesn't check for a call.
    let call = if arch == Arch::Aarch64 { 0x94 } else { 0xe8 };
    file.bytes.resize(usize::try_from(CODE.end).unwrap(), call);
    let parts = match section {
        Section::Exceptions => exceptions::put(&mut file, entries),
        _ => put_tables(&mut file, arch, section, entries),
    };
    let names = file.next_offset();
    file.bytes.extend_from_slice(NAMES);
    let names_end = file.next_offset();
    let headers = names_end.next_multiple_of(8);
    file.pad(headers);
    // The null section.
    put_section_header(&mut file, 0, 0, 0..0);
    for part in &parts.sections {
        put_section_header(&mut file, part.name, part.kind, part.range.clone());
    }
    put_section_header(&mut file, NAMES_NAME, SHT_STRTAB, names..names_end);
    let layout = Layout {
        machine,
        section_headers: (section != Section::Headless).then_some(headers),
        // The null section and the section names are not in `parts`.
        section_count: parts.sections.len() as u64 + 2,
        segment: parts.segment,
    };
    put_headers(&mut file, &layout);
    file.bytes
}

/// The sections and the segment of the unwind information.
pub(crate) struct Parts {
    pub(crate) sections: Vec<Part>,
    /// The type and the range in the file.
    pub(crate) segment: Option<(u64, std::ops::Range<u64>)>,
}

/// A section.
pub(crate) struct Part {
    /// The offset of the name in the section names.
    pub(crate) name: u64,
    pub(crate) kind: u64,
    pub(crate) range: std::ops::Range<u64>,
}

/// Writes `.eh_frame` or `.debug_frame`, and a search table. The table is always written, but only for [`Section::Searched`] and
/// [`Section::Headless`] does a segment refer to it.
fn put_tables(file: &mut File, arch: Arch, section: Section, entries: &[Entry]) -> Parts {
    let frames = file.next_offset();
    let locations = put_frames(file, arch, section, entries);
    let frames_end = file.next_offset();
    put_search_table(file, frames, &locations);
    let has_table = matches!(section, Section::Searched | Section::Headless);
    Parts {
        sections: vec![Part {
            name: match section {
                Section::Debug => DEBUG_FRAME_NAME,
                _ => EH_FRAME_NAME,
            },
            kind: SHT_PROGBITS,
            range: frames..frames_end,
        }],
        segment: has_table.then(|| (PT_GNU_EH_FRAME, frames_end..file.next_offset())),
    }
}

/// Writes an FDE with its CIE for each entry. Returns the start of the code and the offset of the FDE in the file for each entry,
/// by ascending start.
fn put_frames(file: &mut File, arch: Arch, section: Section, entries: &[Entry]) -> Vec<(u64, u64)> {
    let is_debug = section == Section::Debug;
    let section_start = file.next_offset();
    let mut locations = Vec::new();
    for entry in entries {
        let cie = file.next_offset();
        put_cie(file, arch, is_debug, entry.is_signal);
        locations.push((entry.start, file.next_offset()));
        put_fde(file, is_debug, cie - section_start, section_start, entry);
    }
    locations.sort_unstable();
    // The terminator of `.eh_frame`; readers of `.debug_frame` skip it.
    file.put(0, 4);
    locations
}

fn put_cie(file: &mut File, arch: Arch, is_debug: bool, is_signal: bool) {
    let Numbers {
        word,
        return_address,
        ..
    } = numbers(arch);
    let mut body = Vec::new();
    // The number that marks a CIE.
    body.extend_from_slice(&if is_debug { [0xff; 4] } else { [0; 4] });
    // The version.
    body.push(1);
    // `R`: the encoding of addresses follows; `S`: the caller was interrupted by a signal.
    let augmentation: &[u8] = match (is_debug, is_signal) {
        (true, _) => b"\0",
        (false, false) => b"zR\0",
        (false, true) => b"zRS\0",
    };
    body.extend_from_slice(augmentation);
    // The factor of code offsets is 1, that of data offsets is the negated size of a word (as SLEB128).
    body.extend_from_slice(&[1, 0x80 - word, return_address]);
    if !is_debug {
        // One byte of augmentation data: addresses are 32-bit PC-relative offsets.
        body.extend_from_slice(&[1, 0x1b]);
    }
    put_padded(file, body);
}

/// Writes the FDE of an entry. `cie` is the offset of its CIE in the section, `section_start` that of the section in the file.
fn put_fde(file: &mut File, is_debug: bool, cie: u64, section_start: u64, entry: &Entry) {
    let mut body = Vec::new();
    // The pointer to the CIE follows the FDE's length.
    let pointer_at = file.next_offset() + 4;
    let pointer = if is_debug {
        cie
    } else {
        pointer_at - (section_start + cie)
    };
    body.extend_from_slice(&(pointer as u32).to_le_bytes());
    if is_debug {
        for value in [BASE + entry.start, entry.size] {
            body.extend_from_slice(&value.to_le_bytes()[..usize::from(file.word)]);
        }
    } else {
        // The start of the code relative to this field, which follows the pointer.
        let offset = entry.start.wrapping_sub(pointer_at + 4) as u32;
        body.extend_from_slice(&offset.to_le_bytes());
        body.extend_from_slice(&(entry.size as u32).to_le_bytes());
        // There is no augmentation data.
        body.push(0);
    }
    body.extend_from_slice(&entry.instructions);
    put_padded(file, body);
}

/// Pads `body` with `DW_CFA_nop`, and writes its length, padding included, and then itself.
fn put_padded(file: &mut File, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(usize::from(file.word)), 0);
    file.put(body.len() as u64, 4);
    file.bytes.extend_from_slice(&body);
}

/// Writes `.eh_frame_hdr`. `frames` is the offset of `.eh_frame`, `locations` are those of [`put_frames`].
fn put_search_table(file: &mut File, frames: u64, locations: &[(u64, u64)]) {
    let start = file.next_offset();
    // The version, and the encodings of the pointer to `.eh_frame`, of the number of entries and of the table.
    file.bytes.extend_from_slice(&[1, 0x1b, 0x03, 0x3b]);
    file.put(frames.wrapping_sub(start + 4), 4);
    file.put(locations.len() as u64, 4);
    for (code, fde) in locations {
        file.put(code.wrapping_sub(start), 4);
        file.put(fde.wrapping_sub(start), 4);
    }
}

/// Writes a section header for the bytes `range` of the file; also the null section's, whose range is `0..0`.
fn put_section_header(file: &mut File, name: u64, kind: u64, range: std::ops::Range<u64>) {
    let address = if range.start == 0 {
        0
    } else {
        BASE + range.start
    };
    file.put(name, 4);
    file.put(kind, 4);
    // The flags: SHF_ALLOC, for simplicity in all sections.
    file.put_word(2);
    file.put_word(address);
    file.put_word(range.start);
    file.put_word(range.end - range.start);
    // sh_link and sh_info, sh_addralign, sh_entsize.
    file.put(0, 8);
    file.put_word(1);
    file.put_word(0);
}

/// What the headers of the file refer to.
struct Layout {
    machine: u16,
    /// The offset of the section headers, if there are any.
    section_headers: Option<u64>,
    section_count: u64,
    /// As in [`Parts`].
    segment: Option<(u64, std::ops::Range<u64>)>,
}

/// Writes the file header and the segment headers into the space reserved for them before the code.
fn put_headers(file: &mut File, layout: &Layout) {
    let file_size = file.next_offset();
    let is_64 = file.word == 8;
    let mut head = File {
        bytes: b"\x7fELF".to_vec(),
        word: file.word,
    };
    // The class, the byte order (little-endian) and the version.
    head.bytes
        .extend_from_slice(&[if is_64 { 2 } else { 1 }, 1, 1]);
    head.pad(16);
    let (header_size, segment_header_size) = if is_64 { (64, 56) } else { (52, 32) };
    let segment_count = 1 + u64::from(layout.segment.is_some());
    // ET_DYN.
    head.put(3, 2);
    head.put(layout.machine.into(), 2);
    // The version and the entry point.
    head.put(1, 4);
    head.put_word(0);
    // The segment headers follow this header.
    head.put_word(header_size);
    head.put_word(layout.section_headers.unwrap_or(0));
    // The flags.
    head.put(0, 4);
    let section_count = layout.section_headers.map_or(0, |_| layout.section_count);
    let section_header_size = if is_64 { 64 } else { 40 };
    // The section names are the last section.
    let names_index = section_count.max(1) - 1;
    for value in [
        header_size,
        segment_header_size,
        segment_count,
        section_header_size,
        section_count,
        names_index,
    ] {
        head.put(value, 2);
    }
    put_segment_header(&mut head, PT_LOAD, 0..file_size);
    if let Some((kind, range)) = &layout.segment {
        put_segment_header(&mut head, *kind, range.clone());
    }
    file.bytes[..head.bytes.len()].copy_from_slice(&head.bytes);
}

/// Writes a program header for the bytes `range` of the file.
fn put_segment_header(head: &mut File, kind: u64, range: std::ops::Range<u64>) {
    let size = range.end - range.start;
    let readable_executable = 5;
    head.put(kind, 4);
    if head.word == 8 {
        head.put(readable_executable, 4);
    }
    for value in [
        range.start,
        BASE + range.start,
        BASE + range.start,
        size,
        size,
    ] {
        head.put_word(value);
    }
    if head.word == 4 {
        head.put(readable_executable, 4);
    }
    // The alignment.
    head.put_word(0x1000);
}
