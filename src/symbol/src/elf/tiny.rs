//! A small synthetic ELF file for tests, of either class and byte order. The machine is always x86-64.

use object::Endianness;
use object::elf::{
    EM_X86_64, SHF_ALLOC, SHT_DYNSYM, SHT_NOTE, SHT_PROGBITS, SHT_RELA, SHT_STRTAB, SHT_SYMTAB,
};

/// Address of `.text`.
pub(crate) const TEXT_ADDRESS: u64 = 0x40_1000;
/// File offset of `.text`, the first section. `.plt` is the next one.
pub(crate) const TEXT_OFFSET: u64 = 0x100;
/// Size of an entry of `.plt`.
pub(crate) const PLT_ENTRY: u64 = 16;
/// `STB_GLOBAL`, `STT_FUNC`.
const GLOBAL_FUNCTION: u8 = 0x12;
/// `.text` is section 1.
const TEXT_SECTION: u16 = 1;

/// Content of the file.
pub(crate) struct TinyElf {
    pub(crate) endian: Endianness,
    pub(crate) is_64: bool,
    /// `.symtab`: name, value, size.
    pub(crate) symbols: Vec<(&'static str, u64, u64)>,
    /// The names in `.dynsym`, each with an entry in `.plt`.
    pub(crate) imports: Vec<&'static str>,
    pub(crate) build_id: [u8; 20],
}

impl Default for TinyElf {
    fn default() -> Self {
        Self {
            endian: Endianness::Little,
            is_64: true,
            symbols: vec![
                ("_Z5firstv", TEXT_ADDRESS, 8),
                ("second", TEXT_ADDRESS + 16, 0),
            ],
            imports: vec!["puts", "_Z1fi"],
            build_id: [0xab; 20],
        }
    }
}

struct TinySection {
    name: &'static str,
    kind: u32,
    address: u64,
    content: Vec<u8>,
    link: u64,
    entry_size: u64,
}

impl TinySection {
    fn new(name: &'static str, kind: u32, content: Vec<u8>) -> Self {
        Self {
            name,
            kind,
            address: 0,
            content,
            link: 0,
            entry_size: 0,
        }
    }
}

impl TinyElf {
    /// The file's bytes.
    pub(crate) fn build(&self) -> Vec<u8> {
        let mut sections = self.sections();
        let mut names = vec![0];
        let mut name_offsets = Vec::new();
        for section in &sections {
            name_offsets.push(names.len() as u64);
            names.extend(section.name.as_bytes());
            names.push(0);
        }
        name_offsets.push(names.len() as u64);
        names.extend(b".shstrtab\0");
        sections.push(TinySection::new(".shstrtab", SHT_STRTAB, names));

        let mut body = Vec::new();
        // Section 0 is the null section.
        let mut section_headers = self.section_header([0; 10]);
        for (section, name) in sections.iter().zip(name_offsets) {
            body.resize(body.len().next_multiple_of(8), 0);
            let offset = TEXT_OFFSET + body.len() as u64;
            let size = section.content.len() as u64;
            // The same for all, although real files do not load `.symtab` and `.strtab`.
            let flags = u64::from(SHF_ALLOC);
            // In the order of `Elf64_Shdr`; the numbers are sh_info and sh_addralign.
            let fields = [
                name,
                section.kind.into(),
                flags,
                section.address,
                offset,
                size,
                section.link,
                0,
                1,
                section.entry_size,
            ];
            section_headers.extend(self.section_header(fields));
            body.extend(&section.content);
        }
        body.resize(body.len().next_multiple_of(8), 0);
        let section_headers_at = TEXT_OFFSET + body.len() as u64;
        let mut file = self.file_headers(section_headers_at, sections.len() as u64 + 1);
        file.resize(TEXT_OFFSET as usize, 0);
        file.extend(body);
        file.extend(section_headers);
        file
    }

    /// All sections except the null section and `.shstrtab`. `link` is the number of one of them, counted from 1.
    fn sections(&self) -> Vec<TinySection> {
        let (symbols, strings) = self.symbol_table(&self.symbols);
        let imports: Vec<_> = self.imports.iter().map(|&name| (name, 0, 0)).collect();
        let (dynamic, dynamic_strings) = self.symbol_table(&imports);
        let mut relocations = Vec::new();
        for number in 1..=self.imports.len() as u64 {
            let info = if self.is_64 {
                number << 32
            } else {
                number << 8
            };
            // Offset, number of the symbol in the upper bits of the info, addend.
            for field in [0, info, 0] {
                self.word(&mut relocations, field);
            }
        }
        let symbol_size = if self.is_64 { 24 } else { 16 };
        let mut note = Vec::new();
        // Size of the name, size of the build-id, NT_GNU_BUILD_ID.
        for field in [4, 20, 3] {
            self.put(&mut note, field, 4);
        }
        note.extend(b"GNU\0");
        note.extend(self.build_id);
        let plt = (self.imports.len() + 1) * PLT_ENTRY as usize;
        vec![
            TinySection {
                address: TEXT_ADDRESS,
                ..TinySection::new(".text", SHT_PROGBITS, vec![0x90; 32])
            },
            TinySection {
                address: TEXT_ADDRESS + 32,
                entry_size: PLT_ENTRY,
                ..TinySection::new(".plt", SHT_PROGBITS, vec![0; plt])
            },
            TinySection {
                link: 4,
                entry_size: symbol_size,
                ..TinySection::new(".symtab", SHT_SYMTAB, symbols)
            },
            TinySection::new(".strtab", SHT_STRTAB, strings),
            TinySection {
                link: 6,
                entry_size: symbol_size,
                ..TinySection::new(".dynsym", SHT_DYNSYM, dynamic)
            },
            TinySection::new(".dynstr", SHT_STRTAB, dynamic_strings),
            TinySection {
                link: 5,
                ..TinySection::new(".rela.plt", SHT_RELA, relocations)
            },
            TinySection::new(".note.gnu.build-id", SHT_NOTE, note),
        ]
    }

    /// A symbol table and its string table; symbols with the value 0 are undefined.
    fn symbol_table(&self, symbols: &[(&'static str, u64, u64)]) -> (Vec<u8>, Vec<u8>) {
        let mut strings = vec![0];
        let mut table = vec![0; if self.is_64 { 24 } else { 16 }];
        for &(name, value, size) in symbols {
            let section = if value == 0 { 0 } else { TEXT_SECTION };
            self.put(&mut table, strings.len() as u64, 4);
            if !self.is_64 {
                self.word(&mut table, value);
                self.word(&mut table, size);
            }
            table.extend([GLOBAL_FUNCTION, 0]);
            self.put(&mut table, section.into(), 2);
            if self.is_64 {
                self.word(&mut table, value);
                self.word(&mut table, size);
            }
            strings.extend(name.as_bytes());
            strings.push(0);
        }
        (table, strings)
    }

    /// The file header and the only program header, for `sections` section headers at the offset `section_headers_at`.
    fn file_headers(&self, section_headers_at: u64, sections: u64) -> Vec<u8> {
        let mut file = b"\x7fELF".to_vec();
        let big = self.endian == Endianness::Big;
        // Class, byte order, version.
        file.extend([1 + u8::from(self.is_64), 1 + u8::from(big), 1]);
        file.resize(16, 0);
        let (header_size, segment_size, section_size) = if self.is_64 {
            (64, 56, 64)
        } else {
            (52, 32, 40)
        };
        // Type ET_EXEC, machine; version; entry point, offsets of the program and section headers; flags.
        for field in [2, EM_X86_64.into()] {
            self.put(&mut file, field, 2);
        }
        self.put(&mut file, 1, 4);
        for field in [TEXT_ADDRESS, header_size, section_headers_at] {
            self.word(&mut file, field);
        }
        self.put(&mut file, 0, 4);
        // The section names are in the last section.
        let last = sections - 1;
        for field in [header_size, segment_size, 1, section_size, sections, last] {
            self.put(&mut file, field, 2);
        }
        // PT_LOAD of .text and the bytes after it. Its flags, PF_R | PF_X, are the second field in 64-bit files, and the last but
        // one in 32-bit files.
        self.put(&mut file, 1, 4);
        if self.is_64 {
            self.put(&mut file, 5, 4);
        }
        for field in [TEXT_OFFSET, TEXT_ADDRESS, TEXT_ADDRESS, 0x100, 0x100] {
            self.word(&mut file, field);
        }
        if !self.is_64 {
            self.put(&mut file, 5, 4);
        }
        self.word(&mut file, 8);
        file
    }

    fn section_header(&self, fields: [u64; 10]) -> Vec<u8> {
        let mut header = Vec::new();
        for (number, field) in fields.into_iter().enumerate() {
            // Name, type, link and info have four bytes in both classes.
            if matches!(number, 0 | 1 | 6 | 7) {
                self.put(&mut header, field, 4);
            } else {
                self.word(&mut header, field);
            }
        }
        header
    }

    fn word(&self, into: &mut Vec<u8>, value: u64) {
        self.put(into, value, if self.is_64 { 8 } else { 4 });
    }

    fn put(&self, into: &mut Vec<u8>, value: u64, size: usize) {
        match self.endian {
            Endianness::Little => into.extend(&value.to_le_bytes()[..size]),
            Endianness::Big => into.extend(&value.to_be_bytes()[8 - size..]),
        }
    }
}
