//! USDT markers from the notes in `.note.stapsdt` (<https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>).

mod cached;
mod operand;
mod values;

pub use cached::marker_cache_text;

use rperf_names::matches_pattern;

use crate::definition::Argument;
use crate::error::Error;
use crate::object::{ProbeObject, nearest};
use crate::search::{FetchAddress, Probe, ProbePoints};

use self::values::Values;

/// The section of the notes.
const NOTES: &str = ".note.stapsdt";
/// The section whose address shows how far the object was relocated after the notes were written.
const BASE: &str = ".stapsdt.base";
/// The owner of the notes.
const OWNER: &[u8] = b"stapsdt\0";
/// The type of the notes.
const KIND: u32 = 3;

/// One USDT marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The provider: the program's or library's name for itself.
    pub provider: String,
    /// The name of the marker.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// The address of its semaphore; `None` if it has none.
    pub semaphore: Option<u64>,
    /// Its arguments in assembler syntax: `8@%rbx -4@112(%rsp)`.
    pub arguments: String,
}

/// Returns the markers of an object in note order. Damaged markers and all notes after a truncated one are skipped.
#[must_use]
pub fn markers(object: &ProbeObject<'_>) -> Vec<Marker> {
    let notes = object.section(NOTES).unwrap_or_default();
    let reader = NoteReader {
        address_size: object.pointer_size(),
        is_little_endian: object.is_little_endian(),
        base: object.section_address(BASE),
    };
    reader.markers(notes)
}

/// One note of an ELF file (elf(5), "Notes").
struct ElfNote<'n> {
    owner: &'n [u8],
    kind: u32,
    content: &'n [u8],
}

/// Reads the notes of an object.
struct NoteReader {
    /// Size of an address in bytes.
    address_size: usize,
    is_little_endian: bool,
    /// The address of [`BASE`], if the object has this section.
    base: Option<u64>,
}

impl NoteReader {
    fn markers(&self, mut notes: &[u8]) -> Vec<Marker> {
        let mut markers = Vec::new();
        while let Some((note, rest)) = self.note(notes) {
            if note.owner == OWNER && note.kind == KIND {
                markers.extend(self.marker(note.content));
            }
            notes = rest;
        }
        markers
    }

    /// Splits off the first note; returns it and the bytes after it.
    fn note<'n>(&self, bytes: &'n [u8]) -> Option<(ElfNote<'n>, &'n [u8])> {
        let word = |at: usize| u32::try_from(self.number(bytes.get(at..at + 4)?)).ok();
        let (owner_len, content_len) = (word(0)? as usize, word(4)? as usize);
        let kind = word(8)?;
        let rest = bytes.get(12..)?;
        let owner = rest.get(..owner_len)?;
        let rest = rest.get(owner_len.checked_next_multiple_of(4)?..)?;
        let content = rest.get(..content_len)?;
        // The last note may lack its padding.
        let end = content_len.checked_next_multiple_of(4)?.min(rest.len());
        let note = ElfNote {
            owner,
            kind,
            content,
        };
        Some((note, rest.get(end..)?))
    }

    fn number(&self, bytes: &[u8]) -> u64 {
        let fold = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
        match self.is_little_endian {
            true => bytes.iter().rev().fold(0, fold),
            false => bytes.iter().fold(0, fold),
        }
    }

    /// Decodes the content of a note: three addresses and three strings.
    fn marker(&self, content: &[u8]) -> Option<Marker> {
        let address = |index: usize| {
            let bytes = content.get(index * self.address_size..(index + 1) * self.address_size)?;
            Some(self.number(bytes))
        };
        let (location, base_in_note, semaphore) = (address(0)?, address(1)?, address(2)?);
        let mut texts = content
            .get(3 * self.address_size..)?
            .split(|byte| *byte == 0);
        let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
        // How far the object was relocated after the note was written.
        let moved = self.base.map_or(0, |base| base.wrapping_sub(base_in_note));
        Some(Marker {
            provider: text()?,
            name: text()?,
            arguments: text().unwrap_or_default(),
            address: location.wrapping_add(moved),
            semaphore: (semaphore != 0).then(|| semaphore.wrapping_add(moved)),
        })
    }
}

/// Finds the markers that match `provider` and `name`, which may be patterns. A probe records `arguments`; if they are empty, all
/// arguments of the marker that the kernel can fetch.
pub(crate) fn find(
    object: &ProbeObject<'_>,
    provider: Option<&str>,
    name: &str,
    arguments: &[Argument],
) -> Result<ProbePoints, Error> {
    let all = markers(object);
    let is_wanted = |marker: &&Marker| {
        let is_of_provider =
            provider.is_none_or(|wanted| matches_pattern(wanted, &marker.provider));
        is_of_provider && matches_pattern(name, &marker.name)
    };
    let mut probes = Vec::new();
    for marker in all.iter().filter(is_wanted) {
        probes.extend(probe(object, marker, arguments)?);
    }
    if probes.is_empty() {
        let names: Vec<String> = all.into_iter().map(|marker| marker.name).collect();
        return Err(Error::NoPoint {
            point: format!("%{name}"),
            nearest: nearest(name, &names),
        });
    }
    Ok(ProbePoints {
        probes,
        // Messages for the user, not ELF notes.
        notes: Vec::new(),
    })
}

/// Returns the probe point of a marker, with arguments as in [`find`]; `None` if its address is in no segment of the file.
fn probe(
    object: &ProbeObject<'_>,
    marker: &Marker,
    arguments: &[Argument],
) -> Result<Option<Probe>, Error> {
    let Some(file_offset) = object.offset_of(marker.address) else {
        return Ok(None);
    };
    let fetch = FetchAddress {
        file_offset,
        is_entry: false,
        is_return: false,
    };
    let values = Values { object, marker };
    let fields = match arguments {
        [] => values.recordable_fields(),
        arguments => values.requested(arguments, fetch)?,
    };
    Ok(Some(Probe {
        symbol: format!("%{}", marker.name),
        offset: 0,
        name: marker.name.clone(),
        provider: Some(marker.provider.clone()),
        file_offset,
        semaphore: marker
            .semaphore
            .and_then(|address| object.offset_of(address)),
        is_return: false,
        is_inlined: false,
        fields,
    }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READER: NoteReader = NoteReader {
        address_size: 8,
        is_little_endian: true,
        base: Some(0x2010),
    };

    /// The note of a marker, written for an object whose [`BASE`] is 0x10 lower than that of [`READER`].
    fn note() -> Vec<u8> {
        let mut content = Vec::new();
        for address in [0x1132_u64, 0x2000, 0x3018] {
            content.extend(address.to_le_bytes());
        }
        content.extend(b"demo\0tick\0-4@%ebx 8@-8(%rbp)\0");
        let mut note = Vec::new();
        for word in [8, content.len() as u32, KIND] {
            note.extend(word.to_le_bytes());
        }
        note.extend(OWNER);
        note.extend(content);
        note
    }

    #[test]
    fn markers_are_read_and_moved() {
        let expected = Marker {
            provider: "demo".to_owned(),
            name: "tick".to_owned(),
            address: 0x1142,
            semaphore: Some(0x3028),
            arguments: "-4@%ebx 8@-8(%rbp)".to_owned(),
        };
        assert_eq!(READER.markers(&note()), [expected]);
    }

    proptest! {
        #[test]
        fn truncated_and_damaged_notes_do_not_panic(len in 0usize..80, at in 0usize..80, byte: u8) {
            let mut bytes = note();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(len);
            let _ = READER.markers(&bytes);
        }
    }
}
