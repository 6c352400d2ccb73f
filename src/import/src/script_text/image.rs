//! Symbol tables as files that readers find by their build-id.

use rperf_wire::{Encoder, Endian};

use crate::digest::digest;

/// The kind of an object, which determines the format of its symbol file and the file's place in the build-id cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolFileKind {
    /// The kernel's functions, as text of `/proc/kallsyms`.
    Kernel,
    /// The functions of the vdso, as an ELF file.
    Vdso,
    /// The functions of any other object, as an ELF file.
    Object,
}

/// The functions of one object, without their code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SymbolFile {
    /// The kind of the object.
    pub kind: SymbolFileKind,
    /// The object's name in the recording.
    pub name: String,
    /// Hash of the symbols, used as build-id.
    pub build_id: [u8; 20],
    /// The content.
    pub bytes: Vec<u8>,
}

// Sizes of ELF structures in bytes.
const FILE_HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SECTION_HEADER: u64 = 64;
const SYMBOL: u64 = 24;
/// Header of a note, its name `GNU`, and a build-id of 20 bytes.
const NOTE: u64 = 12 + 4 + 20;
/// Content of the section `.shstrtab`.
const NAMES: &[u8] = b"\0.text\0.note.gnu.build-id\0.symtab\0.strtab\0.shstrtab\0";

const ET_DYN: u16 = 3;
/// The machine of all files, whatever the recording's architecture: they have no code to decode.
const EM_X86_64: u16 = 62;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// `PF_R | PF_X`.
const READ_EXECUTE: u32 = 5;
/// `PF_R`.
const READ: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;
const SHT_SYMTAB: u32 = 2;
const SHT_STRTAB: u32 = 3;
const SHT_NOTE: u32 = 7;
const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;
/// A global function (`STB_GLOBAL`, `STT_FUNC`).
const FUNCTION: u8 = 1 << 4 | 2;

/// A section header; `name` is an offset in [`NAMES`].
struct SectionHeader {
    name: u32,
    kind: u32,
    flags: u64,
    address: u64,
    offset: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
    /// Size of an entry of a table, otherwise 0.
    entry_size: u64,
}

/// Builds an ELF file (System V ABI, 64 bits, little-endian) with these functions: address, size, name. A function's address is
/// also its file offset, to which mappings refer, although the file has no code: `.text` has no bytes (`SHT_NOBITS`). Returns
/// the file and its build-id.
pub(super) fn elf_file(functions: &[(u64, u64, &str)]) -> (Vec<u8>, [u8; 20]) {
    let mut strings = vec![0];
    let mut symbols = vec![0; SYMBOL as usize];
    // End of the code and of the loaded segment: at least a page, so that the segment includes the note.
    let mut end = 0x1000;
    for (address, size, name) in functions {
        let mut to = Encoder::new(&mut symbols, Endian::Little);
        to.u32(strings.len() as u32);
        to.bytes(&[FUNCTION, 0]);
        // Index of the section `.text`.
        to.u16(1);
        to.u64(*address);
        to.u64(*size);
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
        end = end.max(address.saturating_add(*size));
    }
    let build_id = digest(&[&symbols[..], &strings].concat());
    let note_at = FILE_HEADER + 2 * PROGRAM_HEADER;
    let symbols_at = (note_at + NOTE).next_multiple_of(8);
    let strings_at = symbols_at + symbols.len() as u64;
    let names_at = strings_at + strings.len() as u64;
    let sections_at = (names_at + NAMES.len() as u64).next_multiple_of(8);
    let mut file = Vec::new();
    put_headers(&mut file, note_at, sections_at, end);
    put_note(&mut file, &build_id);
    file.resize(symbols_at as usize, 0);
    file.extend_from_slice(&symbols);
    file.extend_from_slice(&strings);
    file.extend_from_slice(NAMES);
    file.resize(sections_at as usize, 0);
    let places = SectionPlaces {
        end,
        note_at,
        symbols: (symbols_at, symbols.len() as u64),
        strings: (strings_at, strings.len() as u64),
        names_at,
    };
    for header in places.headers() {
        put_section(&mut file, &header);
    }
    (file, build_id)
}

/// Places of sections in the file: offsets, or offset and size, in bytes.
struct SectionPlaces {
    /// End of the code.
    end: u64,
    note_at: u64,
    symbols: (u64, u64),
    strings: (u64, u64),
    names_at: u64,
}

impl SectionPlaces {
    fn headers(&self) -> [SectionHeader; 6] {
        let section = |name, kind, (offset, size)| SectionHeader {
            name,
            kind,
            flags: 0,
            address: 0,
            offset,
            size,
            link: 0,
            info: 0,
            align: 1,
            entry_size: 0,
        };
        // The null section, `.text`, `.note.gnu.build-id`, `.symtab`, `.strtab` and `.shstrtab`.
        [
            section(0, 0, (0, 0)),
            SectionHeader {
                flags: SHF_ALLOC | SHF_EXECINSTR,
                ..section(1, SHT_NOBITS, (0, self.end))
            },
            SectionHeader {
                flags: SHF_ALLOC,
                address: self.note_at,
                align: 4,
                ..section(7, SHT_NOTE, (self.note_at, NOTE))
            },
            SectionHeader {
                // Index of the section `.strtab`, and of the first global symbol.
                link: 4,
                info: 1,
                align: 8,
                entry_size: SYMBOL,
                ..section(26, SHT_SYMTAB, self.symbols)
            },
            section(34, SHT_STRTAB, self.strings),
            section(42, SHT_STRTAB, (self.names_at, NAMES.len() as u64)),
        ]
    }
}

/// Appends the file header and the program headers.
fn put_headers(file: &mut Vec<u8>, note_at: u64, sections_at: u64, end: u64) {
    let mut to = Encoder::new(file, Endian::Little);
    // 64 bits, little-endian, version 1.
    to.bytes(b"\x7fELF\x02\x01\x01");
    to.zeros(9);
    to.u16(ET_DYN);
    to.u16(EM_X86_64);
    // Version, entry point, offsets of the program and section headers, flags.
    to.u32(1);
    to.u64(0);
    to.u64(FILE_HEADER);
    to.u64(sections_at);
    to.u32(0);
    // Sizes and counts of the headers, and the index of the section `.shstrtab`.
    for field in [FILE_HEADER, PROGRAM_HEADER, 2, SECTION_HEADER, 6, 5] {
        to.u16(field as u16);
    }
    for (kind, flags, offset, size) in [
        (PT_LOAD, READ_EXECUTE, 0, end),
        (PT_NOTE, READ, note_at, NOTE),
    ] {
        to.u32(kind);
        to.u32(flags);
        // Offset, virtual and physical address, size in the file and in memory, alignment.
        for word in [offset, offset, offset, size, size, 4] {
            to.u64(word);
        }
    }
}

fn put_note(file: &mut Vec<u8>, build_id: &[u8; 20]) {
    let mut to = Encoder::new(file, Endian::Little);
    // Size of the name `GNU`, size of the build-id, type.
    to.u32(4);
    to.u32(build_id.len() as u32);
    to.u32(NT_GNU_BUILD_ID);
    to.bytes(b"GNU\0");
    to.bytes(build_id);
}

fn put_section(file: &mut Vec<u8>, header: &SectionHeader) {
    let mut to = Encoder::new(file, Endian::Little);
    to.u32(header.name);
    to.u32(header.kind);
    for word in [header.flags, header.address, header.offset, header.size] {
        to.u64(word);
    }
    to.u32(header.link);
    to.u32(header.info);
    to.u64(header.align);
    to.u64(header.entry_size);
}
