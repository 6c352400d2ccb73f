//! An object file in a format suited to fuzzers: independent parts without offsets.
//!
//! ```text
//! flags:u8 machine:u8 { MARK kind:u8 address:u32-le content }
//! ```
//!
//! Bits of the flags: 0 ELFCLASS32, 1 big-endian, 2 relocatable. The machine is x86-64, x86, 64-bit Arm or 32-bit Arm (0 to 3).
//! The kind is the index of a section name, with the bit 0x80 for sections of the split DWARF file, or 0x40 and more for an
//! [`Extra`].

use crate::elf;

/// The start marker of each part.
const MARK: [u8; 4] = *b"\xf5\xc1PT";
/// The size of a part's header.
const HEAD: usize = MARK.len() + 5;
/// The bit of a kind that puts the section into the split DWARF file (`.dwo`).
const SPLIT: u8 = 0x80;
/// The kind of the first [`Extra`].
const FIRST_EXTRA: u8 = 0x40;

/// The names of sections that rperf reads, by kind.
const NAMES: [&str; 38] = [
    ".text",
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_str",
    ".debug_line_str",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".debug_addr",
    ".debug_str_offsets",
    ".debug_loc",
    ".debug_loclists",
    ".debug_types",
    ".debug_frame",
    ".eh_frame",
    ".eh_frame_hdr",
    ".ARM.exidx",
    ".ARM.extab",
    ".symtab",
    ".strtab",
    ".dynsym",
    ".dynstr",
    ".plt",
    ".rela.plt",
    ".rel.plt",
    ".note.gnu.build-id",
    ".note.stapsdt",
    ".stapsdt.base",
    ".probes",
    ".gnu_debuglink",
    ".gnu_debugaltlink",
    ".gnu_debugdata",
    ".debug_cu_index",
    ".debug_tu_index",
    ".rela.debug_info",
    ".rela.debug_line",
    ".plt.sec",
];

/// Parts that are not sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extra {
    /// Probe definitions, one per line.
    Definitions,
    /// The registers of a sample.
    Registers,
    /// The copied stack.
    Stack,
}

impl Extra {
    fn kind(self) -> u8 {
        FIRST_EXTRA + self as u8
    }
}

/// A section of the generated file.
#[derive(Debug, Clone, Copy)]
pub struct Section<'b> {
    /// The name.
    pub name: &'static str,
    /// The address.
    pub address: u64,
    /// The contents.
    pub content: &'b [u8],
}

/// The parts of one input.
#[derive(Debug)]
pub struct Parts<'b> {
    flags: u8,
    machine: u8,
    /// Kind, address and content of each part.
    parts: Vec<(u8, u32, &'b [u8])>,
}

impl<'b> Parts<'b> {
    /// Splits any bytes into parts.
    #[must_use]
    pub fn of(bytes: &'b [u8]) -> Self {
        let (start, mut rest) = bytes.split_at(bytes.len().min(2));
        let mut parts = Vec::new();
        while let Some(found) = find(rest) {
            rest = &rest[found..];
            let Some((header, content)) = rest.split_at_checked(HEAD) else {
                break;
            };
            let end = find(content).unwrap_or(content.len());
            let address = [header[5], header[6], header[7], header[8]];
            parts.push((header[4], u32::from_le_bytes(address), &content[..end]));
            rest = &content[end..];
        }
        Self {
            flags: start.first().copied().unwrap_or_default(),
            machine: start.get(1).copied().unwrap_or_default(),
            parts,
        }
    }

    /// The bytes from which [`Parts::of`] reads an object with `sections`, and its split DWARF file with the sections `split`.
    /// Sections with unknown names are omitted, and addresses are truncated to 32 bits.
    #[must_use]
    pub fn write(layout: elf::Layout, sections: &[Section<'_>], split: &[Section<'_>]) -> Vec<u8> {
        let mut out = vec![layout.flags(), layout.machine_index()];
        let of_main = sections.iter().map(|section| (0, section));
        for (bit, section) in of_main.chain(split.iter().map(|section| (SPLIT, section))) {
            if let Some(kind) = NAMES.iter().position(|name| *name == section.name) {
                put(
                    &mut out,
                    kind as u8 | bit,
                    section.address as u32,
                    section.content,
                );
            }
        }
        out
    }

    /// Appends a part that is not a section.
    pub fn add(out: &mut Vec<u8>, extra: Extra, content: &[u8]) {
        put(out, extra.kind(), 0, content);
    }

    /// The sections of the object, or with `split` those of the split DWARF file.
    pub fn sections(&self, split: bool) -> impl Iterator<Item = Section<'b>> {
        let bit = if split { SPLIT } else { 0 };
        self.parts
            .iter()
            .filter_map(move |(kind, address, content)| {
                Some(Section {
                    // The xor gives the index of the name for sections of the file asked for. For those of the other file, the
                    // result has the bit `SPLIT`, and for extra parts it is at least `FIRST_EXTRA`: beyond the names, so they are
                    // left out.
                    name: NAMES.get(usize::from(kind ^ bit))?,
                    address: (*address).into(),
                    content,
                })
            })
    }

    /// The contents of the first part of this kind; empty if there is none.
    #[must_use]
    pub fn extra(&self, extra: Extra) -> &'b [u8] {
        let mut parts = self.parts.iter();
        let found = parts.find(|(kind, _, _)| *kind == extra.kind());
        found.map_or(&[], |(_, _, content)| content)
    }

    /// The layout of the object.
    #[must_use]
    pub fn layout(&self) -> elf::Layout {
        elf::Layout::new(self.flags, self.machine)
    }

    /// The object.
    #[must_use]
    pub fn file(&self) -> Vec<u8> {
        let split = false;
        let sections: Vec<_> = self.sections(split).collect();
        elf::build(self.layout(), &sections)
    }

    /// The split DWARF file; `None` if it has no sections.
    #[must_use]
    pub fn split_file(&self) -> Option<Vec<u8>> {
        let split = true;
        let sections: Vec<_> = self.sections(split).collect();
        (!sections.is_empty()).then(|| elf::build(self.layout().split(), &sections))
    }
}

/// The position of the first [`MARK`].
fn find(bytes: &[u8]) -> Option<usize> {
    bytes.windows(MARK.len()).position(|window| *window == MARK)
}

fn put(out: &mut Vec<u8>, kind: u8, address: u32, content: &[u8]) {
    out.extend(MARK);
    out.push(kind);
    out.extend(address.to_le_bytes());
    out.extend(content);
}
