//! `.eh_frame` of all functions of a dump as one section with its index, `.eh_frame_hdr`.
//!
//! The tables of a function are its CIEs and FDEs. In an FDE, the address of the code is relative to the field that holds it. The
//! run-time compiler computed it for a file with this function alone ([`super::image`]): the code, then the tables at the next
//! multiple of eight. In the merged section the distance between code and tables differs, so these addresses are changed.

use std::ops::Range;

use super::image::Writer;
use super::reader::DumpReader;

/// The bits of an encoding (`DW_EH_PE_*`) with the format of the address.
const FORMAT_BITS: u8 = 0x0f;
/// The bits of an encoding with the origin of the address.
const ORIGIN_BITS: u8 = 0x70;
/// `DW_EH_PE_absptr`, the encoding if the CIE does not have one.
const ABSOLUTE: u8 = 0x00;
/// `DW_EH_PE_pcrel`.
const PC_RELATIVE: u8 = 0x10;
/// Formats of four bytes: `DW_EH_PE_udata4` and `_sdata4`.
const DATA4: [u8; 2] = [0x03, 0x0b];
/// Formats of eight bytes: `DW_EH_PE_absptr` (the object is 64-bit), `_udata8` and `_sdata8`.
const DATA8: [u8; 3] = [0x00, 0x04, 0x0c];

/// Collects the tables of functions.
pub(super) struct MergedFrames {
    reader: DumpReader,
    /// Address of the section in the object.
    start: usize,
    bytes: Vec<u8>,
    index: Vec<IndexEntry>,
}

/// An entry of the index, `.eh_frame_hdr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct IndexEntry {
    /// Address of the function.
    code: usize,
    /// Address of its FDE.
    fde: usize,
}

/// The place of the field in an FDE that has the address of the code.
struct CodeAddress {
    /// Offset of the FDE in the function's tables.
    fde: usize,
    /// Offset of the field in the function's tables.
    place: usize,
    /// Size of the address in bytes.
    size: usize,
}

impl MergedFrames {
    /// Creates an empty section at this address.
    pub(super) fn new(reader: DumpReader, start: usize) -> Self {
        Self {
            reader,
            start,
            bytes: Vec::new(),
            index: Vec::new(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Adds the tables of a function at `code` in the object. Tables that can't be moved are omitted.
    pub(super) fn add(&mut self, tables: &[u8], code: &Range<usize>) {
        let Some((len, addresses)) = code_addresses(self.reader, tables) else {
            return;
        };
        let offset = self.bytes.len().next_multiple_of(8);
        // In the function's own file, the tables are at this distance from the start of the code.
        let distance = code.len().next_multiple_of(8);
        let mut moved = tables.get(..len).unwrap_or_default().to_vec();
        let mut index = Vec::new();
        for address in addresses {
            let Some(field) = moved.get(address.place..address.place + address.size) else {
                return;
            };
            let dumped = match address.size {
                4 => i64::from(self.reader.word(field, 0).unwrap_or_default().cast_signed()),
                _ => self.reader.long(field, 0).unwrap_or_default().cast_signed(),
            };
            let code_offset = dumped.wrapping_add((distance + address.place) as i64);
            let target = (code.start as i64).wrapping_add(code_offset);
            // Relative to the field's new place.
            let relative = target.wrapping_sub((self.start + offset + address.place) as i64);
            if !self.replace_address(&mut moved, &address, relative) {
                return;
            }
            index.push(IndexEntry {
                code: usize::try_from(target).unwrap_or_default(),
                fde: self.start + offset + address.fde,
            });
        }
        self.bytes.resize(offset, 0);
        self.bytes.append(&mut moved);
        self.index.append(&mut index);
    }

    /// Replaces an address in `tables` by `value`; `false` if `value` does not fit.
    fn replace_address(&self, tables: &mut [u8], address: &CodeAddress, value: i64) -> bool {
        let mut number = Writer::new(self.reader.big);
        match (address.size, i32::try_from(value)) {
            (4, Ok(value)) => number.word(value.cast_unsigned()),
            (4, Err(_)) => return false,
            _ => number.long(value as usize),
        }
        let place = tables.get_mut(address.place..address.place + address.size);
        place.is_some_and(|place| {
            place.copy_from_slice(&number.bytes);
            true
        })
    }

    /// Returns the sections `.eh_frame` and `.eh_frame_hdr`. The second one must follow the first at the next multiple of eight.
    pub(super) fn sections(mut self) -> (Vec<u8>, Vec<u8>) {
        // An entry of length 0 ends the section.
        self.bytes.extend([0; 4]);
        // The address of the header; `self.start` is that of `.eh_frame`.
        let start = (self.start + self.bytes.len()).next_multiple_of(8);
        self.index.sort_unstable();
        let mut header = Writer::new(self.reader.big);
        // Version 1; encodings of the address of .eh_frame (relative to its field), of the number of entries (absolute), and of
        // the addresses in the entries (relative to .eh_frame_hdr).
        header.bytes.extend([1, 0x1b, 0x03, 0x3b]);
        let relative =
            |address: usize, origin: usize| (address as i64 - origin as i64).cast_unsigned() as u32;
        header.word(relative(self.start, start + 4));
        header.word(u32::try_from(self.index.len()).unwrap_or(u32::MAX));
        for entry in &self.index {
            header.word(relative(entry.code, start));
            header.word(relative(entry.fde, start));
        }
        (self.bytes, header.bytes)
    }
}

/// Returns the length of a function's tables without the terminating entry, and the place of each FDE's address. `None` if the
/// tables are damaged, or the encoding of their addresses is not supported.
fn code_addresses(reader: DumpReader, tables: &[u8]) -> Option<(usize, Vec<CodeAddress>)> {
    let mut addresses = Vec::new();
    // The offset of each CIE, and the encoding of addresses in its FDEs.
    let mut encodings: Vec<(usize, u8)> = Vec::new();
    let mut at = 0;
    while let Some(length) = reader.word(tables, at).filter(|length| *length != 0) {
        let id_place = at + 4;
        let end = id_place.checked_add(usize::try_from(length).ok()?)?;
        let entry = tables.get(id_place..end)?;
        let id = reader.word(entry, 0)?;
        if id == 0 {
            encodings.push((at, encoding(entry.get(4..)?)?));
        } else {
            let cie = id_place.checked_sub(usize::try_from(id).ok()?)?;
            let (_, encoding) = encodings.iter().find(|(offset, _)| *offset == cie)?;
            let size = match encoding & FORMAT_BITS {
                format if DATA4.contains(&format) => 4,
                format if DATA8.contains(&format) => 8,
                _ => return None,
            };
            if encoding & ORIGIN_BITS != PC_RELATIVE {
                return None;
            }
            addresses.push(CodeAddress {
                fde: at,
                place: id_place + 4,
                size,
            });
        }
        at = end;
    }
    Some((at, addresses))
}

/// Returns the encoding of addresses (`DW_EH_PE_*`) in the FDEs that refer to a CIE. `cie` begins with the CIE's version. `None`
/// if it is damaged, or has an augmentation that is not supported, such as a personality routine.
fn encoding(cie: &[u8]) -> Option<u8> {
    let (version, rest) = cie.split_first()?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    let (augmentation, rest) = rest.split_at_checked(end)?;
    let mut rest = rest.get(1..)?;
    // Code alignment and data alignment, then the return address register.
    rest = after_leb(after_leb(rest)?)?;
    rest = match version {
        1 => rest.get(1..)?,
        _ => after_leb(rest)?,
    };
    let Some(letters) = augmentation.strip_prefix(b"z") else {
        return augmentation.is_empty().then_some(ABSOLUTE);
    };
    rest = after_leb(rest)?;
    for letter in letters {
        match letter {
            b'R' => return rest.first().copied(),
            // The encoding of the address of language-specific data.
            b'L' => rest = rest.get(1..)?,
            // Signal frame, signed return addresses: no data.
            b'S' | b'B' => {}
            _ => return None,
        }
    }
    Some(ABSOLUTE)
}

/// The bytes after the LEB128 number at the start of `bytes`.
fn after_leb(bytes: &[u8]) -> Option<&[u8]> {
    let last = bytes.iter().position(|byte| byte & 0x80 == 0)?;
    bytes.get(last + 1..)
}
