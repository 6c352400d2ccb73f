//! Places that the authors of programs marked: USDT, by the notes in `.note.stapsdt`
//! (<https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation>).

mod cached;
mod operand;

pub use cached::cached_list;

use rperf_events::matches_pattern;

use crate::definition::Argument;
use crate::error::Error;
use crate::field::Field;
use crate::object::{Object, nearest};
use crate::search::{Entry, Found, Probe, raw_fields};

/// The section with the notes, and the one that tells how far the object was moved after they were written.
const NOTES: &str = ".note.stapsdt";
const BASE: &str = ".stapsdt.base";
/// The owner of the notes and their type.
const OWNER: &[u8] = b"stapsdt\0";
const KIND: u32 = 3;

/// One marked place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// Who marked it: a program or library by its own name for itself.
    pub provider: String,
    /// What happens there.
    pub name: String,
    /// Its address.
    pub address: u64,
    /// The address of the counter that switches it on.
    pub semaphore: Option<u64>,
    /// Its values as the assembler wrote them: `8@%rbx -4@112(%rsp)`.
    pub arguments: String,
}

/// The marked places of an object, in the order of the notes; damaged ones are left out.
#[must_use]
pub fn markers(object: &Object<'_>) -> Vec<Marker> {
    let notes = object.section(NOTES).unwrap_or_default();
    let reader = Reader {
        size: object.pointer_size(),
        is_little_endian: object.is_little_endian(),
        base: object.section_address(BASE),
    };
    reader.markers(notes)
}

/// One note of an ELF file (elf(5), "Notes").
struct Note<'n> {
    owner: &'n [u8],
    kind: u32,
    content: &'n [u8],
}

/// How notes are read.
struct Reader {
    size: usize,
    is_little_endian: bool,
    base: Option<u64>,
}

impl Reader {
    fn markers(&self, mut notes: &[u8]) -> Vec<Marker> {
        let mut found = Vec::new();
        while let Some((note, rest)) = self.note(notes) {
            if note.owner == OWNER && note.kind == KIND {
                found.extend(self.marker(note.content));
            }
            notes = rest;
        }
        found
    }

    /// The first note, and what follows it.
    fn note<'n>(&self, bytes: &'n [u8]) -> Option<(Note<'n>, &'n [u8])> {
        let word = |at: usize| u32::try_from(self.number(bytes.get(at..at + 4)?)).ok();
        let (name_len, len, kind) = (word(0)? as usize, word(4)? as usize, word(8)?);
        let rest = bytes.get(12..)?;
        let owner = rest.get(..name_len)?;
        let rest = rest.get(name_len.checked_next_multiple_of(4)?..)?;
        let content = rest.get(..len)?;
        // The last note may lack the bytes that would align it.
        let end = len.checked_next_multiple_of(4)?.min(rest.len());
        let note = Note {
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

    /// Three addresses and three texts.
    fn marker(&self, content: &[u8]) -> Option<Marker> {
        let address = |index: usize| {
            let bytes = content.get(index * self.size..(index + 1) * self.size)?;
            Some(self.number(bytes))
        };
        let (location, base, semaphore) = (address(0)?, address(1)?, address(2)?);
        let mut texts = content.get(3 * self.size..)?.split(|byte| *byte == 0);
        let mut text = || Some(String::from_utf8_lossy(texts.next()?).into_owned());
        let moved = self.base.map_or(0, |own| own.wrapping_sub(base));
        Some(Marker {
            provider: text()?,
            name: text()?,
            arguments: text().unwrap_or_default(),
            address: location.wrapping_add(moved),
            semaphore: (semaphore != 0).then(|| semaphore.wrapping_add(moved)),
        })
    }
}

/// The marked places of this name or pattern, each with its own values, or those that were asked for.
pub(crate) fn find(
    object: &Object<'_>,
    provider: Option<&str>,
    name: &str,
    arguments: &[Argument],
) -> Result<Found, Error> {
    let all = markers(object);
    let is_wanted = |marker: &&Marker| {
        let provided = provider.is_none_or(|wanted| matches_pattern(wanted, &marker.provider));
        provided && matches_pattern(name, &marker.name)
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
    Ok(Found {
        probes,
        notes: Vec::new(),
    })
}

/// `None` for a place outside of the code.
fn probe(
    object: &Object<'_>,
    marker: &Marker,
    arguments: &[Argument],
) -> Result<Option<Probe>, Error> {
    let Some(file_offset) = object.offset_of(marker.address) else {
        return Ok(None);
    };
    let within = Entry {
        file_offset,
        is_entry: false,
        is_return: false,
    };
    let mut fields = raw_fields(object, arguments, within)?;
    if fields.is_empty() {
        fields = own_fields(object, marker);
    }
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

/// `arg1`, `arg2`, …: those that the kernel can fetch.
fn own_fields(object: &Object<'_>, marker: &Marker) -> Vec<Field> {
    let words = marker.arguments.split_ascii_whitespace().enumerate();
    let fields = words.filter_map(|(index, word)| {
        let operand = operand::parse(object.architecture(), word)?;
        let place = |name: &str| object.memory(object.symbol(name)?, marker.address);
        Some(Field {
            name: Some(format!("arg{}", index + 1)),
            base: match operand.base {
                operand::Base::Known(text) => text,
                operand::Base::Symbol(name, offset) => {
                    format!("@+{:#x}", place(&name)?.wrapping_add_signed(offset))
                }
            },
            reads: operand.reads,
            kind: Some(operand.kind),
        })
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const READER: Reader = Reader {
        size: 8,
        is_little_endian: true,
        base: Some(0x2010),
    };

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
    fn notes_are_read_and_moved() {
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
        fn cut_and_damaged_notes_do_no_harm(cut in 0usize..80, at in 0usize..80, byte: u8) {
            let mut bytes = note();
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
            bytes.truncate(cut);
            let _whatever = READER.markers(&bytes);
        }
    }
}
