//! Assembles an ELF file from sections (elf(5)).

use crate::parts::Section;

const EM_386: u16 = 3;
const EM_ARM: u16 = 40;
const EM_X86_64: u16 = 62;
const EM_AARCH64: u16 = 183;

/// The machines, by their index in an input.
const MACHINES: [u16; 4] = [EM_X86_64, EM_386, EM_AARCH64, EM_ARM];

const ET_REL: u64 = 1;
const ET_DYN: u64 = 3;
const PT_LOAD: u64 = 1;
const PT_NOTE: u64 = 4;
const PT_GNU_EH_FRAME: u64 = 0x6474_e550;
const PT_ARM_EXIDX: u64 = 0x7000_0001;
const SHT_PROGBITS: u64 = 1;
const SHT_SYMTAB: u64 = 2;
const SHT_STRTAB: u64 = 3;
const SHT_RELA: u64 = 4;
const SHT_NOTE: u64 = 7;
const SHT_REL: u64 = 9;
const SHT_DYNSYM: u64 = 11;
const SHF_ALLOC: u64 = 2;
const SHF_EXECINSTR: u64 = 4;

/// Class, byte order, type and machine of a file.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    is_32: bool,
    is_big: bool,
    is_relocatable: bool,
    /// Whether the names of the sections end in `.dwo`.
    is_split: bool,
    machine: u16,
}

impl Layout {
    /// The layout that an input's first two bytes describe: the flags, and the index of the machine.
    pub(crate) fn new(flags: u8, machine: u8) -> Self {
        Self {
            is_32: flags & 1 != 0,
            is_big: flags & 2 != 0,
            is_relocatable: flags & 4 != 0,
            is_split: false,
            machine: MACHINES[usize::from(machine) % MACHINES.len()],
        }
    }

    /// The layout of a little-endian `file`; the machine is x86-64 if it is unknown.
    #[must_use]
    pub fn of_file(file: &[u8]) -> Self {
        // The class is at byte 4, the type at 16, the machine at 18.
        let byte = |at: usize| file.get(at).copied().unwrap_or_default();
        let machine = MACHINES
            .iter()
            .position(|machine| *machine == u16::from(byte(18)));
        let relocatable = u8::from(u64::from(byte(16)) == ET_REL);
        let flags = u8::from(byte(4) == 1) | relocatable << 2;
        Self::new(flags, machine.unwrap_or_default() as u8)
    }

    /// The layout of the split DWARF file (`.dwo`) of an object with this layout. It has no relocations, so that it need not be
    /// relocatable (`ET_REL`), as those of compilers are.
    pub(crate) fn split(self) -> Self {
        Self {
            is_split: true,
            is_relocatable: false,
            ..self
        }
    }

    /// The flags for [`Layout::new`].
    pub(crate) fn flags(self) -> u8 {
        u8::from(self.is_32) | u8::from(self.is_big) << 1 | u8::from(self.is_relocatable) << 2
    }

    /// The index of the machine for [`Layout::new`].
    pub(crate) fn machine_index(self) -> u8 {
        let index = MACHINES.iter().position(|machine| *machine == self.machine);
        index.unwrap_or_default() as u8
    }

    /// Whether it is ELFCLASS32.
    #[must_use]
    pub fn is_32(self) -> bool {
        self.is_32
    }

    /// Whether it is big-endian.
    #[must_use]
    pub fn is_big(self) -> bool {
        self.is_big
    }

    /// The output of `uname -m` on machines that run programs of this layout: the 64-bit machine for 32-bit ones, too.
    #[must_use]
    pub fn machine_name(self) -> &'static str {
        match self.machine {
            EM_AARCH64 | EM_ARM => "aarch64",
            _ => "x86_64",
        }
    }
}

/// A section, and the fields of its header that are determined by its name and place.
struct Placed<'b> {
    section: Section<'b>,
    /// The offset of its name in the section names.
    name: u64,
    /// The offset of its contents in the file.
    offset: u64,
    kind: u64,
    flags: u64,
}

/// Builds the file: header, program headers, contents of the sections, names of the sections, section headers.
pub(crate) fn build(layout: Layout, sections: &[Section<'_>]) -> Vec<u8> {
    let mut out = Writer {
        layout,
        bytes: Vec::new(),
    };
    let (header_size, segment_size) = if layout.is_32 { (52, 32) } else { (64, 56) };
    let mapped = sections.iter().filter(|section| flags(section.name) != 0);
    let segments: Vec<(u64, &Section<'_>)> = mapped.flat_map(segments).collect();
    let start = header_size + segment_size * segments.len();
    let (mut names, mut content) = (vec![0], Vec::new());
    let mut placed = Vec::new();
    for section in sections {
        content.resize(content.len().next_multiple_of(8), 0);
        placed.push(Placed {
            section: *section,
            name: names.len() as u64,
            offset: (start + content.len()) as u64,
            kind: kind(section.name),
            flags: flags(section.name),
        });
        names.extend(section.name.as_bytes());
        names.extend(if layout.is_split {
            &b".dwo\0"[..]
        } else {
            b"\0"
        });
        content.extend(section.content);
    }
    let names_at = start + content.len();
    content.extend(&names);
    content.resize(content.len().next_multiple_of(8), 0);
    // Two more sections: the empty one with index 0, and the section names, which are last.
    out.file_header(segments.len(), start + content.len(), sections.len() + 2);
    for (kind, section) in &segments {
        // The place of this very section: another may have the same name.
        let place = placed
            .iter()
            .find(|place| std::ptr::eq(place.section.content, section.content));
        out.segment(*kind, place.map_or(0, |place| place.offset), section);
    }
    out.bytes.extend(content);
    out.section(&[0; 10]);
    out.sections(&placed);
    let size = names.len() as u64;
    let names_at = names_at as u64;
    out.section(&[0, SHT_STRTAB, 0, 0, names_at, size, 0, 0, 1, 0]);
    out.bytes
}

/// The segments of a mapped section, with their types.
fn segments<'s, 'b>(section: &'s Section<'b>) -> impl Iterator<Item = (u64, &'s Section<'b>)> {
    let special = match section.name {
        ".eh_frame_hdr" => Some(PT_GNU_EH_FRAME),
        ".ARM.exidx" => Some(PT_ARM_EXIDX),
        ".note.gnu.build-id" => Some(PT_NOTE),
        _ => None,
    };
    [Some(PT_LOAD), special]
        .into_iter()
        .flatten()
        .map(move |kind| (kind, section))
}

/// `sh_type` of the section of this name.
fn kind(name: &str) -> u64 {
    match name {
        ".symtab" => SHT_SYMTAB,
        ".strtab" | ".dynstr" => SHT_STRTAB,
        ".rela.plt" | ".rela.debug_info" | ".rela.debug_line" => SHT_RELA,
        ".rel.plt" => SHT_REL,
        ".dynsym" => SHT_DYNSYM,
        _ if name.starts_with(".note") => SHT_NOTE,
        _ => SHT_PROGBITS,
    }
}

/// `sh_flags` of the section of this name; 0 if it is not mapped.
fn flags(name: &str) -> u64 {
    match name {
        ".text" | ".plt" | ".plt.sec" => SHF_ALLOC | SHF_EXECINSTR,
        ".eh_frame" | ".eh_frame_hdr" | ".ARM.exidx" | ".ARM.extab" | ".note.gnu.build-id"
        | ".probes" | ".dynsym" | ".dynstr" => SHF_ALLOC,
        _ => 0,
    }
}

/// The section for `sh_link`, and the size of an entry (0 for sections that are not tables).
fn links(name: &str, layout: Layout) -> (Option<&'static str>, u64) {
    let (symbol, rela, rel) = if layout.is_32 {
        (16, 12, 8)
    } else {
        (24, 24, 16)
    };
    match name {
        ".symtab" => (Some(".strtab"), symbol),
        ".dynsym" => (Some(".dynstr"), symbol),
        ".rela.plt" => (Some(".dynsym"), rela),
        ".rel.plt" => (Some(".dynsym"), rel),
        ".rela.debug_info" | ".rela.debug_line" => (Some(".symtab"), rela),
        _ => (None, 0),
    }
}

/// The name of the section that a section of relocations applies to, for `sh_info`; empty for other sections.
fn related(name: &str) -> &str {
    name.strip_prefix(".rela")
        .or_else(|| name.strip_prefix(".rel"))
        .unwrap_or_default()
}

struct Writer {
    layout: Layout,
    bytes: Vec<u8>,
}

impl Writer {
    fn number(&mut self, number: u64, size: usize) {
        match self.layout.is_big {
            true => self.bytes.extend(&number.to_be_bytes()[8 - size..]),
            false => self.bytes.extend(&number.to_le_bytes()[..size]),
        }
    }

    /// Appends a number as wide as an address.
    fn word(&mut self, number: u64) {
        self.number(number, if self.layout.is_32 { 4 } else { 8 });
    }

    /// Appends the file header. The last of the `sections` contains the section names.
    fn file_header(&mut self, segments: usize, sections_at: usize, sections: usize) {
        let class = if self.layout.is_32 { 1 } else { 2 };
        let order = if self.layout.is_big { 2 } else { 1 };
        self.bytes.extend([0x7f, b'E', b'L', b'F', class, order, 1]);
        self.bytes.extend([0; 9]);
        let kind = if self.layout.is_relocatable {
            ET_REL
        } else {
            ET_DYN
        };
        self.number(kind, 2);
        self.number(self.layout.machine.into(), 2);
        // The version.
        self.number(1, 4);
        let (header_size, segment_size, section_size) = if self.layout.is_32 {
            (52, 32, 40)
        } else {
            (64, 56, 64)
        };
        // The entry point, and the offsets of the program headers and of the section headers.
        for place in [0, header_size, sections_at as u64] {
            self.word(place);
        }
        // The flags.
        self.number(0, 4);
        for count in [
            header_size,
            segment_size,
            segments as u64,
            section_size,
            sections as u64,
            sections as u64 - 1,
        ] {
            self.number(count, 2);
        }
    }

    /// Appends a program header. Its flags come second in 64-bit files, and before the alignment in 32-bit ones.
    fn segment(&mut self, kind: u64, offset: u64, section: &Section<'_>) {
        const READ_AND_RUN: u64 = 5;
        self.number(kind, 4);
        if !self.layout.is_32 {
            self.number(READ_AND_RUN, 4);
        }
        let size = section.content.len() as u64;
        for number in [offset, section.address, section.address, size, size] {
            self.word(number);
        }
        if self.layout.is_32 {
            self.number(READ_AND_RUN, 4);
        }
        self.word(1);
    }

    /// Appends the section headers of `placed`, which refer to each other by index.
    fn sections(&mut self, placed: &[Placed<'_>]) {
        let position = |name: &str| {
            let found = placed.iter().position(|place| place.section.name == name);
            found.map_or(0, |found| found as u64 + 1)
        };
        for place in placed {
            let name = place.section.name;
            let (link, entry) = links(name, self.layout);
            self.section(&[
                place.name,
                place.kind,
                place.flags,
                place.section.address,
                place.offset,
                place.section.content.len() as u64,
                link.map_or(0, position),
                link.map_or(0, |_| position(related(name))),
                1,
                entry,
            ]);
        }
    }

    /// Appends a section header: name, type, flags, address, offset, size, link, info, alignment, entry size.
    fn section(&mut self, numbers: &[u64; 10]) {
        for (index, number) in numbers.iter().enumerate() {
            match index {
                0 | 1 | 6 | 7 => self.number(*number, 4),
                _ => self.word(*number),
            }
        }
    }
}
