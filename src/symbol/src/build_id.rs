//! Build-ids, and where ELF files and notes in sysfs store them.

use std::fmt;
use std::path::Path;

use object::Endianness;

use crate::elf::ElfImage;
use crate::finding::SymbolFinding;

/// The owner name of a GNU note, with its terminating zero.
const GNU_OWNER: &[u8] = b"GNU\0";
/// `NT_GNU_BUILD_ID` of elf.h.
const NOTE_BUILD_ID: u32 = 3;
/// Sections that may contain a build-id, in perf's order: the usual one, the kernel's, an old
/// vdso's.
const NOTE_SECTIONS: [&[u8]; 3] = [b".note.gnu.build-id", b".notes", b".note"];

/// A build-id of up to twenty bytes (`PERF_RECORD_MMAP2` and the feature section HEADER_BUILD_ID hold no more).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BuildId {
    bytes: [u8; Self::MAX_LEN],
    len: u8,
}

impl BuildId {
    /// Maximum number of bytes, which is the length of a SHA-1 (perf's `BUILD_ID_SIZE`).
    pub const MAX_LEN: usize = 20;

    /// Creates a build-id from `bytes`; bytes beyond [`Self::MAX_LEN`] are dropped. `None` if it is
    /// empty or all zeros, which identifies nothing.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let truncated = bytes.get(..Self::MAX_LEN).unwrap_or(bytes);
        if truncated.iter().all(|&byte| byte == 0) {
            return None;
        }
        let mut id = Self {
            bytes: [0; Self::MAX_LEN],
            len: u8::try_from(truncated.len()).ok()?,
        };
        id.bytes
            .get_mut(..truncated.len())?
            .copy_from_slice(truncated);
        Some(id)
    }

    /// Parses the hexadecimal form written by [`Display`](fmt::Display). `None` if it is invalid, empty, all zeros or too long.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if !digits.len().is_multiple_of(2) || digits.len() > 2 * Self::MAX_LEN {
            return None;
        }
        let mut bytes = Vec::with_capacity(digits.len() / 2);
        for pair in digits.chunks_exact(2) {
            let [high, low] = pair else { return None };
            let high = char::from(*high).to_digit(16)?;
            let low = char::from(*low).to_digit(16)?;
            bytes.push(u8::try_from(high << 4 | low).ok()?);
        }
        Self::from_bytes(&bytes)
    }

    /// The bytes, as many as were passed to [`Self::from_bytes`], at most [`Self::MAX_LEN`].
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.len))
            .unwrap_or(&self.bytes)
    }

    /// Whether both identify the same image. Old files store build-ids padded to twenty bytes
    /// without their length, so trailing zeros are ignored.
    pub fn matches(&self, other: &Self) -> bool {
        self.bytes == other.bytes
    }
}

impl fmt::Display for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BuildId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BuildId({self})")
    }
}

/// The build-id in a sequence of ELF notes: `/sys/kernel/notes`,
/// `/sys/module/M/notes/.note.gnu.build-id`, or the content of a note section. `None` if there is
/// none, if it is invalid ([`BuildId::from_bytes`]), or if it or a note before it is truncated.
pub fn build_id_of_notes(mut notes: &[u8], endian: Endianness) -> Option<BuildId> {
    let word = |bytes: &[u8]| -> Option<u32> {
        let bytes: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
        Some(match endian {
            Endianness::Little => u32::from_le_bytes(bytes),
            Endianness::Big => u32::from_be_bytes(bytes),
        })
    };
    loop {
        let name_len = usize::try_from(word(notes)?).ok()?;
        let desc_len = usize::try_from(word(notes.get(4..)?)?).ok()?;
        let kind = word(notes.get(8..)?)?;
        let body = notes.get(12..)?;
        let desc = body.get(name_len.checked_next_multiple_of(4)?..)?;
        if kind == NOTE_BUILD_ID && body.get(..name_len)? == GNU_OWNER {
            return BuildId::from_bytes(desc.get(..desc_len)?);
        }
        notes = desc.get(desc_len.checked_next_multiple_of(4)?..)?;
    }
}

/// The build-id of an ELF file: from the first of its note sections in perf's order, or from
/// `PT_NOTE` segments if it has none of these sections.
pub fn build_id_of_elf(bytes: &[u8]) -> Option<BuildId> {
    build_id_of_image(&ElfImage::parse(bytes).ok()?)
}

/// Whether an ELF file contains USDT probes.
pub fn has_usdt_probes(bytes: &[u8]) -> bool {
    let image = ElfImage::parse(bytes);
    image.is_ok_and(|image| image.section_by_name(b".note.stapsdt").is_some())
}

/// Parses `bytes`, the content of the ELF file at `path`. Fails if the file is invalid or does not have the build-id `wanted`;
/// with `None`, any build-id or none is accepted.
pub(crate) fn image_with_build_id<'a>(
    path: &Path,
    bytes: &'a [u8],
    wanted: Option<&BuildId>,
) -> Result<ElfImage<'a>, SymbolFinding> {
    let to_path = || path.to_owned();
    let image = ElfImage::parse(bytes).map_err(|reason| SymbolFinding::Damaged {
        path: to_path(),
        reason,
    })?;
    let Some(wanted) = wanted else {
        return Ok(image);
    };
    let found = build_id_of_image(&image);
    if found.is_some_and(|found| found.matches(wanted)) {
        return Ok(image);
    }
    Err(SymbolFinding::BuildIdMismatch {
        path: to_path(),
        found,
        wanted: *wanted,
    })
}

pub(crate) fn build_id_of_image(image: &ElfImage<'_>) -> Option<BuildId> {
    let section = NOTE_SECTIONS
        .iter()
        .find_map(|name| image.section_by_name(name));
    match section {
        Some((_, section)) => build_id_of_notes(image.section_data(section)?, image.endian),
        None => image
            .notes
            .iter()
            .find_map(|notes| build_id_of_notes(notes, image.endian)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(endian: Endianness, kind: u32, owner: &[u8], desc: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for word in [owner.len() as u32, desc.len() as u32, kind] {
            bytes.extend(match endian {
                Endianness::Little => word.to_le_bytes(),
                Endianness::Big => word.to_be_bytes(),
            });
        }
        for part in [owner, desc] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    #[test]
    fn other_notes_are_skipped_and_truncated_ones_have_no_build_id() {
        for endian in [Endianness::Little, Endianness::Big] {
            let mut bytes = note(endian, NOTE_BUILD_ID, b"Xen\0", &[1; 5]);
            bytes.extend(note(endian, 1, GNU_OWNER, &[2; 16]));
            bytes.extend(note(endian, NOTE_BUILD_ID, GNU_OWNER, &[0xab; 20]));
            let id = build_id_of_notes(&bytes, endian).expect("a build-id");
            assert_eq!(id.to_string(), "ab".repeat(20));
            assert_eq!(BuildId::from_hex(&id.to_string()), Some(id));
            for len in 0..bytes.len() {
                assert_eq!(build_id_of_notes(&bytes[..len], endian), None);
            }
        }
    }

    #[test]
    fn padded_build_ids_match_but_are_not_equal() {
        let short = BuildId::from_bytes(&[5; 8]).expect("a build-id");
        let mut padded = [0; 20];
        padded[..8].fill(5);
        let padded = BuildId::from_bytes(&padded).expect("a build-id");
        assert!(short.matches(&padded) && short != padded);
    }

    #[test]
    fn zeros_and_odd_digits_are_no_build_id() {
        assert_eq!(BuildId::from_bytes(&[0; 20]), None);
        assert_eq!(BuildId::from_hex("abc"), None);
    }
}
