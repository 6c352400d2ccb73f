//! Mutations of ELF files, and the parts of such a file (elf(5)) that they need.

use crate::mutate::{self, Field, number};
use crate::names;
use crate::random::Random;

/// A section: its name, the offset of its header, and the offset and size of its contents.
#[derive(Debug, Clone)]
struct Section {
    name: String,
    header: usize,
    start: usize,
    size: usize,
}

/// The sections of a file, and the fields of its ELF header and program headers.
#[derive(Debug)]
struct Layout {
    is_32: bool,
    sections: Vec<Section>,
    /// Fields of the ELF header.
    header: Vec<Field>,
    /// The program headers of all segments, as words of 4 or 8 bytes.
    segments: Vec<Field>,
}

/// Prefixes of the names of sections that readers use.
const READ_PREFIXES: [&str; 14] = [
    ".debug_",
    ".zdebug_",
    ".eh_frame",
    ".symtab",
    ".strtab",
    ".dynsym",
    ".dynstr",
    ".note",
    ".gnu",
    ".rela",
    ".plt",
    ".text",
    ".shstrtab",
    ".modinfo",
];

impl Layout {
    /// Returns `None` unless `bytes` is a little-endian ELF file that contains all of its sections and their names.
    fn of(bytes: &[u8]) -> Option<Self> {
        if !bytes.starts_with(b"\x7fELF") || bytes.get(5) != Some(&1) {
            return None;
        }
        let is_32 = bytes.get(4) == Some(&1);
        let word = if is_32 { 4 } else { 8 };
        // From offset 24: e_entry, e_phoff, e_shoff, and e_flags of 4 bytes.
        let (phoff_at, shoff_at) = (24 + word, 24 + 2 * word);
        // e_ehsize, e_phentsize, e_phnum, e_shentsize, e_shnum and e_shstrndx, of 2 bytes each.
        let counts_at = 24 + 3 * word + 4;
        let [
            _,
            segment_size,
            segment_count,
            section_size,
            section_count,
            names_section,
        ] = [0, 1, 2, 3, 4, 5].map(|index| number(bytes, counts_at + index * 2, 2) as usize);
        let segments_start = number(bytes, phoff_at, word) as usize;
        let segments_end = segments_start + segment_size * segment_count;
        let sections_start = number(bytes, shoff_at, word) as usize;
        let mut layout = Self {
            is_32,
            sections: Vec::new(),
            header: Vec::new(),
            segments: Field::all(segments_start, segments_end.min(bytes.len()), word).collect(),
        };
        // e_type and e_machine; e_entry, e_phoff and e_shoff; the sizes and counts.
        layout.header.extend(Field::all(16, 20, 2));
        layout.header.extend(Field::all(24, 24 + 3 * word, word));
        layout
            .header
            .extend(Field::all(counts_at, counts_at + 12, 2));
        for index in 0..section_count {
            let header = sections_start + index * section_size;
            // After sh_name and sh_type, of 4 bytes each, words 0 to 3: sh_flags, sh_addr, sh_offset and sh_size.
            let word_at = |place: usize| number(bytes, header + 8 + place * word, word) as usize;
            // Types without contents in the file: SHT_NULL and SHT_NOBITS.
            let is_empty = matches!(number(bytes, header + 4, 4), 0 | 8);
            let (start, size) = (word_at(2), if is_empty { 0 } else { word_at(3) });
            if start.checked_add(size)? > bytes.len() {
                return None;
            }
            layout.sections.push(Section {
                name: String::new(),
                header,
                start,
                size,
            });
        }
        layout.read_names(bytes, names_section)?;
        Some(layout)
    }

    /// Sets the names of all sections, which are in the section with the index `names_section`.
    fn read_names(&mut self, bytes: &[u8], names_section: usize) -> Option<()> {
        let names_start = self.sections.get(names_section)?.start;
        for section in &mut self.sections {
            let at = names_start + number(bytes, section.header, 4) as usize;
            let name = bytes.get(at..)?.split(|byte| *byte == 0).next()?;
            section.name = String::from_utf8_lossy(name).into_owned();
        }
        Some(())
    }

    /// A random section with content that readers use.
    fn section(&self, random: &mut Random) -> Option<&Section> {
        let is_read = |section: &&Section| {
            section.size > 0
                && READ_PREFIXES
                    .iter()
                    .any(|prefix| section.name.starts_with(prefix))
        };
        let candidates: Vec<&Section> = self.sections.iter().filter(is_read).collect();
        random.try_pick(&candidates).copied()
    }

    /// All ten fields of a section's header, in order.
    fn section_fields(&self, section: &Section) -> Vec<Field> {
        let word = if self.is_32 { 4 } else { 8 };
        let at = section.header;
        let words = Field::all(at + 8, at + 8 + 4 * word, word);
        let links = Field::all(at + 8 + 4 * word, at + 16 + 4 * word, 4);
        let alignment_and_entry_size = Field::all(at + 16 + 4 * word, at + 16 + 6 * word, word);
        Field::all(at, at + 8, 4)
            .chain(words)
            .chain(links)
            .chain(alignment_and_entry_size)
            .collect()
    }
}

/// Mutates an object file, possibly with bytes of `other`.
pub(crate) fn mutate(seed: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    let Some(layout) = Layout::of(seed) else {
        for _ in 0..1 + random.below(5) {
            mutate::bytes(&mut bytes, other, random);
        }
        return bytes;
    };
    for _ in 0..1 + random.below(4) {
        match random.weighted(&[1, 1, 4, 12, 2, 2]) {
            0 => corrupt(&layout.header, &mut bytes, random),
            1 => corrupt(&layout.segments, &mut bytes, random),
            2 => {
                if let Some(section) = layout.section(random) {
                    corrupt(&layout.section_fields(section), &mut bytes, random);
                }
            }
            3 => change_content(&layout, &mut bytes, other, random),
            4 => copy_header_fields(&layout, &mut bytes, random),
            _ => rename_strings(&layout, &mut bytes, random),
        }
    }
    if random.one_in(25) {
        mutate::truncate(&mut bytes, random);
    }
    bytes
}

/// Corrupts one of the fields.
fn corrupt(fields: &[Field], bytes: &mut [u8], random: &mut Random) {
    if let Some(field) = random.try_pick(fields) {
        field.corrupt(bytes, random);
    }
}

/// Changes bytes inside a section.
fn change_content(layout: &Layout, bytes: &mut [u8], other: &[u8], random: &mut Random) {
    let Some(section) = layout.section(random) else {
        return;
    };
    // Often only the start changes: many sections begin with the size of a table or unit.
    let max_size = *random.pick(&[32, 256, usize::MAX]);
    let range = section.start..section.start + section.size.min(max_size);
    if random.one_in(2) {
        let width = *random.pick(&[1, 2, 4, 8]);
        let fields: Vec<Field> = Field::all(range.start, range.end, width).collect();
        return corrupt(&fields, bytes, random);
    }
    let mut content = bytes[range.clone()].to_vec();
    mutate::bytes(&mut content, other, random);
    content.resize(range.len(), 0);
    bytes[range].copy_from_slice(&content);
}

/// Gives a section the name, the offset, the offset and size, or all header fields of another section.
fn copy_header_fields(layout: &Layout, bytes: &mut [u8], random: &mut Random) {
    let (Some(target), Some(source)) = (layout.section(random), layout.section(random)) else {
        return;
    };
    let (to, from) = (layout.section_fields(target), layout.section_fields(source));
    // Of all fields of a section header, counted from 0, field 0 is the name, 4 the offset and 5 the size.
    let all: Vec<usize> = (0..to.len()).collect();
    let chosen = match random.below(4) {
        0 => &all[..1],
        1 => &all[4..5],
        2 => &all[4..6],
        _ => &all[..],
    };
    for index in chosen {
        to[*index].write(bytes, from[*index].read(bytes));
    }
}

/// Replaces NUL-terminated texts that begin with `prefix`, such as names of symbols, with hostile names.
pub(crate) fn with_hostile_symbols(seed: &[u8], prefix: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for text in mutate::texts(seed) {
        if seed[text.start..].starts_with(prefix.as_bytes()) {
            mutate::replace_text(&mut bytes, text, &names::hostile(random));
        }
    }
    bytes
}

/// Replaces names in a section of strings with hostile ones, which are truncated to fit.
fn rename_strings(layout: &Layout, bytes: &mut [u8], random: &mut Random) {
    let has_strings = |section: &&Section| {
        let name = section.name.as_str();
        name.ends_with("str") || name.starts_with(".debug_line") || name == ".gnu_debuglink"
    };
    let string_sections: Vec<&Section> = layout.sections.iter().filter(has_strings).collect();
    let Some(section) = random.try_pick(&string_sections) else {
        return;
    };
    let content = &mut bytes[section.start..section.start + section.size];
    let replaceable = mutate::texts(content);
    for _ in 0..1 + random.below(4) {
        if let Some(text) = random.try_pick(&replaceable) {
            mutate::replace_text(content, *text, &names::hostile(random));
        }
    }
}

/// The build-id of a file, in hexadecimal; `None` if it has none of 20 bytes.
pub(crate) fn build_id(bytes: &[u8]) -> Option<String> {
    let note = bytes
        .windows(16)
        .position(|window| window == b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0")?;
    let id = bytes.get(note + 16..note + 36)?;
    Some(id.iter().map(|byte| format!("{byte:02x}")).collect())
}
