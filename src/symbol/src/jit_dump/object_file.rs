//! All functions of a dump as one ELF file, which rperf's `inject --jit` writes: code, symbols, frames and lines.
//!
//! Addresses of code and frames equal file offsets. A function that was loaded twice has two symbols.
//!
//! A function is "loaded" by a `JIT_CODE_LOAD` record. An ELF section is "loaded" if it is part of a segment (`SHF_ALLOC`).

use std::ops::Range;

use object::elf::{
    PF_R, PF_X, PT_GNU_EH_FRAME, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHT_NULL, SHT_PROGBITS,
    SHT_STRTAB, SHT_SYMTAB, STB_GLOBAL, STT_FUNC,
};
use rustc_hash::FxHashMap;

use super::code::ByteRange;
use super::image::{FILE_HEADER, Writer};
use super::line_program::{ABBREVIATIONS, LineProgram, LinedFunction, unit};
use super::lines::LineEntries;
use super::merged_frames::MergedFrames;
use super::{JitDump, JitFunction};

/// Size of `Elf64_Sym`, in bytes.
const SYMBOL: usize = 24;
/// Address and file offset of the first byte of code; also the size of a page.
const TEXT: usize = 0x1000;
/// Alignment of functions, as compilers align them.
const FUNCTION_ALIGN: usize = 16;
/// `.eh_frame` and its index are omitted if they would begin at this address or later: their relative addresses have 32 bits.
const FRAMES_LIMIT: usize = 1 << 31;

/// An object with all functions of a dump.
#[derive(Debug)]
pub struct JitObjectFile {
    /// The ELF file.
    pub bytes: Vec<u8>,
    /// The file offset of each function's code, in the order of [`JitDump::functions`]; `None` if its code is not in the dump.
    pub offsets: Vec<Option<u64>>,
}

/// A section and its content.
struct Section {
    name: &'static str,
    kind: u32,
    flags: u32,
    /// Address and file offset of a section that is loaded; 0 for others.
    address: usize,
    bytes: Vec<u8>,
    /// For `.symtab`: number of the section of its string table. 0 for others.
    link: u32,
    /// For `.symtab`: number of the first global symbol. 0 for others.
    info: u32,
    /// For `.symtab`: size of an entry. 0 for others.
    entry: usize,
}

impl Section {
    /// `flags` and `address` are 0 for a section that is not loaded.
    fn new(name: &'static str, kind: u32, flags: u32, address: usize, bytes: Vec<u8>) -> Self {
        Self {
            name,
            kind,
            flags,
            address,
            bytes,
            link: 0,
            info: 0,
            entry: 0,
        }
    }

    fn end(&self) -> usize {
        self.address + self.bytes.len()
    }
}

/// The code of all functions, and where that of each one is.
struct PlacedCode {
    /// The content of `.text`.
    text: Vec<u8>,
    /// For each function, the address range of its code in the object. The key is the offset of this code in the dump.
    places: FxHashMap<usize, Range<usize>>,
}

impl JitDump {
    /// Builds the object. It has only one copy of the code of a function that was moved.
    #[must_use]
    pub fn object_file(&self) -> JitObjectFile {
        let code = self.place_code();
        let offsets = self.functions.iter().map(|function| {
            let place = code.places.get(&function.parts.code.start)?;
            Some(place.start as u64)
        });
        let offsets = offsets.collect();
        let mut sections = vec![Section::new("", SHT_NULL, 0, 0, Vec::new())];
        let text = TEXT..TEXT + code.text.len();
        let frames_address = text.end.next_multiple_of(8);
        let frames = self.merged_frames(&code, frames_address);
        let flags = SHF_ALLOC | SHF_EXECINSTR;
        sections.push(Section::new(".text", SHT_PROGBITS, flags, TEXT, code.text));
        if !frames.is_empty() {
            let (eh_frame, eh_frame_hdr) = frames.sections();
            let header_address = (frames_address + eh_frame.len()).next_multiple_of(8);
            sections.push(Section::new(
                ".eh_frame",
                SHT_PROGBITS,
                SHF_ALLOC,
                frames_address,
                eh_frame,
            ));
            sections.push(Section::new(
                ".eh_frame_hdr",
                SHT_PROGBITS,
                SHF_ALLOC,
                header_address,
                eh_frame_hdr,
            ));
        }
        self.add_symbols(&code.places, &mut sections);
        self.add_lines(&code.places, &text, &mut sections);
        JitObjectFile {
            bytes: elf(self.reader.big, self.machine, sections),
            offsets,
        }
    }

    fn bytes(&self, part: ByteRange) -> &[u8] {
        self.file.get(part.start..part.end).unwrap_or_default()
    }

    fn place_code(&self) -> PlacedCode {
        let mut placed_code = PlacedCode {
            text: Vec::new(),
            places: FxHashMap::default(),
        };
        for function in &self.functions {
            let code = self.bytes(function.parts.code);
            if code.is_empty() || placed_code.places.contains_key(&function.parts.code.start) {
                continue;
            }
            let start = placed_code.text.len().next_multiple_of(FUNCTION_ALIGN);
            placed_code.text.resize(start, 0);
            placed_code.text.extend_from_slice(code);
            let place = TEXT + start..TEXT + placed_code.text.len();
            placed_code.places.insert(function.parts.code.start, place);
        }
        placed_code
    }

    /// The functions that were loaded and have code in the dump, without the entries for their moves; each with the addresses
    /// of its code.
    fn placed<'p>(
        &'p self,
        places: &'p FxHashMap<usize, Range<usize>>,
    ) -> impl Iterator<Item = (&'p JitFunction, &'p Range<usize>)> {
        let functions = self.functions.iter();
        let loaded = functions.filter(|function| function.moved_from.is_none());
        loaded.filter_map(|function| Some((function, places.get(&function.parts.code.start)?)))
    }

    fn merged_frames(&self, code: &PlacedCode, start: usize) -> MergedFrames {
        let mut frames = MergedFrames::new(self.reader, start);
        if start < FRAMES_LIMIT {
            for (function, place) in self.placed(&code.places) {
                frames.add(self.bytes(function.parts.frames), place);
            }
        }
        frames
    }

    fn add_symbols(&self, places: &FxHashMap<usize, Range<usize>>, sections: &mut Vec<Section>) {
        let mut symbols = Writer::new(self.reader.big);
        // The null symbol.
        symbols.bytes.resize(SYMBOL, 0);
        let mut names = vec![0];
        for (function, place) in self.placed(places) {
            // Offset of the name, binding and type, visibility; then the section, address and size.
            symbols.word(u32::try_from(names.len()).unwrap_or_default());
            symbols.bytes.extend([STB_GLOBAL << 4 | STT_FUNC, 0]);
            // The index of .text.
            symbols.half(1);
            symbols.long(place.start);
            symbols.long(place.len());
            names.extend_from_slice(self.names.get(function.name).as_bytes());
            names.push(0);
        }
        let number = u32::try_from(sections.len()).unwrap_or_default();
        let mut table = Section::new(".symtab", SHT_SYMTAB, 0, 0, symbols.bytes);
        // The string table is the next section; the first global symbol follows the null symbol.
        (table.link, table.info, table.entry) = (number + 1, 1, SYMBOL);
        sections.push(table);
        sections.push(Section::new(".strtab", SHT_STRTAB, 0, 0, names));
    }

    fn add_lines(
        &self,
        places: &FxHashMap<usize, Range<usize>>,
        text: &Range<usize>,
        sections: &mut Vec<Section>,
    ) {
        let big = self.reader.big;
        let mut lines = LineProgram::new(big);
        for (function, place) in self.placed(places) {
            let lined = LinedFunction {
                address: place.start,
                loaded_at: function.parts.start,
                len: place.len(),
            };
            let entries = LineEntries::new(self.reader, self.bytes(function.parts.lines));
            lines.add(&lined, entries);
        }
        if lines.is_empty() {
            return;
        }
        for (name, bytes) in [
            (".debug_abbrev", ABBREVIATIONS.to_vec()),
            (".debug_info", unit(big, text)),
            (".debug_line", lines.section()),
        ] {
            sections.push(Section::new(name, SHT_PROGBITS, 0, 0, bytes));
        }
    }
}

/// Returns the file with these sections. The file offset of a loaded section is its address; the others follow.
fn elf(big: bool, machine: u16, mut sections: Vec<Section>) -> Vec<u8> {
    let mut names = vec![0];
    sections.push(Section::new(".shstrtab", SHT_STRTAB, 0, 0, Vec::new()));
    let mut name_offsets = vec![0];
    for section in sections.iter().skip(1) {
        name_offsets.push(u32::try_from(names.len()).unwrap_or_default());
        names.extend_from_slice(section.name.as_bytes());
        names.push(0);
    }
    if let Some(last) = sections.last_mut() {
        last.bytes = names;
    }
    let segments: Vec<(u32, u32, Range<usize>)> = segments(&sections);
    let mut out = Writer::new(big);
    // Zeros in place of the file header, which is filled in last.
    out.part(usize::from(FILE_HEADER), &[]);
    for (kind, flags, range) in &segments {
        out.segment(*kind, *flags, range);
    }
    let mut offsets = Vec::new();
    for section in &sections {
        let after = out.bytes.len().next_multiple_of(8);
        let offset = if section.flags & SHF_ALLOC == 0 {
            after
        } else {
            section.address
        };
        let offset = if section.kind == SHT_NULL { 0 } else { offset };
        offsets.push(offset);
        if section.kind != SHT_NULL {
            out.part(offset, &section.bytes);
        }
    }
    let headers = out.bytes.len().next_multiple_of(8);
    // Appends only the padding before the section headers.
    out.part(headers, &[]);
    for ((section, name), offset) in sections.iter().zip(name_offsets).zip(offsets) {
        out.section(section, name, offset);
    }
    let mut header = Writer::new(big);
    header.file_header(machine, TEXT, headers, segments.len(), sections.len());
    if let Some(zeros) = out.bytes.get_mut(..usize::from(FILE_HEADER)) {
        zeros.copy_from_slice(&header.bytes);
    }
    out.bytes
}

/// Returns type, flags and addresses of the segments: one with all loaded sections, and one for `.eh_frame_hdr` if it exists.
fn segments(sections: &[Section]) -> Vec<(u32, u32, Range<usize>)> {
    let loaded = sections
        .iter()
        .filter(|section| section.flags & SHF_ALLOC != 0);
    let end = loaded.map(Section::end).max().unwrap_or(TEXT);
    let mut segments = vec![(PT_LOAD, PF_R | PF_X, TEXT..end)];
    let index = sections
        .iter()
        .find(|section| section.name == ".eh_frame_hdr");
    segments.extend(index.map(|index| (PT_GNU_EH_FRAME, PF_R, index.address..index.end())));
    segments
}

impl Writer {
    /// `Elf64_Phdr` of elf(5).
    fn segment(&mut self, kind: u32, flags: u32, range: &Range<usize>) {
        self.word(kind);
        self.word(flags);
        let (start, size) = (range.start, range.len());
        // The loaded segment is aligned to pages.
        let align = if kind == PT_LOAD { TEXT } else { 4 };
        // File offset, virtual and physical address, size in the file and in memory, alignment.
        for number in [start, start, start, size, size, align] {
            self.long(number);
        }
    }

    /// `Elf64_Shdr` of elf(5).
    fn section(&mut self, section: &Section, name: u32, offset: usize) {
        self.word(name);
        self.word(section.kind);
        self.long(section.flags as usize);
        self.long(section.address);
        self.long(offset);
        self.long(section.bytes.len());
        self.word(section.link);
        self.word(section.info);
        // Alignment.
        self.long(if section.flags & SHF_EXECINSTR == 0 {
            1
        } else {
            FUNCTION_ALIGN
        });
        self.long(section.entry);
    }
}
