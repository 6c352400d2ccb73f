//! Source lines of all functions of a dump as DWARF 4: `.debug_line`, and the one unit that refers to it.

use rustc_hash::FxHashMap;

use super::image::Writer;
use super::lines::LineEntries;

// Standard opcodes (`DW_LNS_*`).
const COPY: u8 = 1;
const ADVANCE_PC: u8 = 2;
const ADVANCE_LINE: u8 = 3;
const SET_FILE: u8 = 4;
// Extended opcodes (`DW_LNE_*`).
const END_SEQUENCE: u8 = 1;
const SET_ADDRESS: u8 = 2;
/// Numbers of operands of the standard opcodes 1 to 12.
const OPERANDS: [u8; 12] = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];

/// Collects the lines of functions.
pub(super) struct LineProgram<'a> {
    /// Whether the byte order is big-endian.
    big: bool,
    /// File names, in the order of their numbers from 1.
    files: Vec<&'a [u8]>,
    numbers: FxHashMap<&'a [u8], u64>,
    opcodes: Writer,
}

/// A function whose lines are added.
pub(super) struct LinedFunction {
    /// Its address in the object.
    pub(super) address: usize,
    /// Its run-time address when it was loaded: the addresses in its line entries refer to the code there.
    pub(super) loaded_at: u64,
    /// Size of its code.
    pub(super) len: usize,
}

impl<'a> LineProgram<'a> {
    pub(super) fn new(big: bool) -> Self {
        Self {
            big,
            files: Vec::new(),
            numbers: FxHashMap::default(),
            opcodes: Writer::new(big),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Adds the lines of a function. Entries for addresses outside of its code are ignored.
    pub(super) fn add(&mut self, function: &LinedFunction, entries: LineEntries<'a>) {
        let offset = |address: u64| {
            let offset = usize::try_from(address.checked_sub(function.loaded_at)?).ok()?;
            (offset < function.len).then_some(offset)
        };
        let placed = entries.filter_map(|entry| Some((offset(entry.address)?, entry)));
        let mut rows: Vec<_> = placed.collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|(offset, _)| *offset);
        // Before an extended opcode: 0, and the length of the opcode with its operand.
        self.opcodes.bytes.extend([0, 9, SET_ADDRESS]);
        self.opcodes.long(function.address);
        // The offset from the start of the function, and the initial line and file of a sequence.
        let (mut at, mut line, mut file) = (0, 1, 1);
        for (offset, entry) in rows {
            let number = self.file_number(entry.file);
            if number != file {
                self.opcodes.bytes.push(SET_FILE);
                self.opcodes.uleb(number);
                file = number;
            }
            self.advance_address(offset - at);
            self.opcodes.bytes.push(ADVANCE_LINE);
            self.opcodes.sleb(i64::from(entry.line) - line);
            self.opcodes.bytes.push(COPY);
            (at, line) = (offset, i64::from(entry.line));
        }
        self.advance_address(function.len - at);
        self.opcodes.bytes.extend([0, 1, END_SEQUENCE]);
    }

    fn advance_address(&mut self, bytes: usize) {
        self.opcodes.bytes.push(ADVANCE_PC);
        self.opcodes.uleb(bytes as u64);
    }

    /// The number of a file name, which is added if it is new.
    fn file_number(&mut self, name: &'a [u8]) -> u64 {
        let next = self.files.len() as u64 + 1;
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.files.push(name);
        }
        number
    }

    /// The content of `.debug_line`.
    pub(super) fn section(&self) -> Vec<u8> {
        let mut header = Writer::new(self.big);
        // Minimum instruction length, maximum operations per instruction, default is_stmt, line base (-5), line range, and the
        // number of the first special opcode.
        header.bytes.extend([1, 1, 1, 0xfb, 14, 13]);
        header.bytes.extend(OPERANDS);
        // The end of an empty directory table.
        header.bytes.push(0);
        for file in &self.files {
            header.bytes.extend_from_slice(file);
            // The end of the name; directory, time of modification and size are unknown.
            header.bytes.extend([0; 4]);
        }
        // The end of the file table.
        header.bytes.push(0);
        let mut section = Writer::new(self.big);
        // Length of the section after this field, DWARF version, and length of the header after this field.
        let after_length = 2 + 4 + header.bytes.len() + self.opcodes.bytes.len();
        section.word(u32::try_from(after_length).unwrap_or(u32::MAX));
        section.half(4);
        section.word(u32::try_from(header.bytes.len()).unwrap_or(u32::MAX));
        section.bytes.extend(header.bytes);
        section.bytes.extend_from_slice(&self.opcodes.bytes);
        section.bytes
    }
}

/// The content of `.debug_abbrev`: a unit without children, with a line program and a range of addresses.
pub(super) const ABBREVIATIONS: &[u8] = &[
    1, 0x11, 0, // abbreviation code, DW_TAG_compile_unit, DW_CHILDREN_no
    0x10, 0x17, // DW_AT_stmt_list, DW_FORM_sec_offset
    0x11, 0x01, // DW_AT_low_pc, DW_FORM_addr
    0x12, 0x07, // DW_AT_high_pc, DW_FORM_data8
    0, 0, 0, // end of the attributes, end of the abbreviations
];

/// The content of `.debug_info`: one unit with the code at these addresses.
pub(super) fn unit(big: bool, code: &std::ops::Range<usize>) -> Vec<u8> {
    let mut unit = Writer::new(big);
    // DWARF version, offset of the abbreviations, size of an address.
    unit.half(4);
    unit.word(0);
    unit.bytes.push(8);
    // Abbreviation code, then the attributes.
    unit.bytes.push(1);
    unit.word(0);
    unit.long(code.start);
    unit.long(code.len());
    let mut section = Writer::new(big);
    section.word(u32::try_from(unit.bytes.len()).unwrap_or(u32::MAX));
    section.bytes.extend(unit.bytes);
    section.bytes
}
