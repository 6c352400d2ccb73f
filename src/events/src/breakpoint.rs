//! `mem:ADDRESS[/length][:access]`: stops at an address of data or code.

use rperf_wire::{Attr, EventType};

use crate::Catalogue;
use crate::number::number;

/// `HW_BREAKPOINT_R`, `_W` and `_X` of `linux/hw_breakpoint.h`.
const ACCESSES: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];
/// Bytes watched where nobody says, for data.
const DATA_LENGTH: u64 = 4;
/// The same for code: a `long` of the kernel, which is what it asks for there.
const CODE_LENGTH: u64 = 8;
/// Lengths that the kernel can watch.
const LENGTHS: [u64; 4] = [1, 2, 4, 8];

/// A breakpoint and the modifiers behind it.
#[derive(Debug)]
pub(crate) struct Breakpoint<'a> {
    pub(crate) attr: Attr,
    /// Offset of the modifiers in the word, and their letters.
    pub(crate) modifiers: Option<(usize, &'a str)>,
}

/// A part that is wrong, by its offset in the word.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

impl<'a> Breakpoint<'a> {
    /// The prefix of such words.
    pub(crate) const PREFIX: &'static str = "mem:";

    /// Reads a word that begins with [`Breakpoint::PREFIX`]. The address may be a symbol of the kernel.
    pub(crate) fn parse(word: &'a str, catalogue: &Catalogue<'_>) -> Result<Self, Wrong> {
        let start = Self::PREFIX.len();
        let rest = word.get(start..).unwrap_or_default();
        let (place, behind) = match rest.split_once(':') {
            Some((place, behind)) => (place, Some(behind)),
            None => (rest, None),
        };
        let (address, length) = match place.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (place, None),
        };
        let after_place = start + place.len() + 1;
        let (access, modifiers) = split_access(behind, after_place)?;
        let is_code = access & 4 != 0;
        let length = match length {
            Some(text) => watched(text, start + address.len() + 1)?,
            None if is_code => CODE_LENGTH,
            None => DATA_LENGTH,
        };
        let attr = Attr {
            kind: EventType::BREAKPOINT,
            bp_type: access,
            config1: locate(address, start, catalogue)?,
            config2: length,
            sample_period: 1,
            ..Attr::default()
        };
        Ok(Self { attr, modifiers })
    }
}

fn locate(address: &str, offset: usize, catalogue: &Catalogue<'_>) -> Result<u64, Wrong> {
    let known = number(address).or_else(|| catalogue.machine.kernel_symbol(address));
    known.ok_or_else(|| Wrong {
        offset,
        reason: format!("expected an address such as 0x404040, or a symbol of the kernel; `{address}' is neither"),
    })
}

fn watched(text: &str, offset: usize) -> Result<u64, Wrong> {
    let length = number(text).filter(|length| LENGTHS.contains(length));
    length.ok_or_else(|| Wrong {
        offset,
        reason: "a breakpoint watches 1, 2, 4 or 8 bytes".to_owned(),
    })
}

/// The access, which is reading and writing where it is not said, and the modifiers, which may stand alone.
type Access<'a> = (u32, Option<(usize, &'a str)>);

fn split_access(text: Option<&str>, offset: usize) -> Result<Access<'_>, Wrong> {
    let Some(text) = text else {
        return Ok((3, None));
    };
    let (letters, modifiers) = match text.split_once(':') {
        Some((letters, modifiers)) => {
            let at = offset + letters.len() + 1;
            (letters, Some((at, modifiers)))
        }
        None => (text, None),
    };
    let mut access = 0;
    for (index, letter) in letters.char_indices() {
        let known = ACCESSES.iter().find(|(known, _)| *known == letter);
        let Some((_, bit)) = known.filter(|(_, bit)| access & bit == 0) else {
            // `mem:0x1000:u` has modifiers and no access.
            if index == 0 && modifiers.is_none() {
                return Ok((3, Some((offset, letters))));
            }
            return Err(Wrong {
                offset: offset + index,
                reason: format!("`{letter}' is no access: r reads, w writes, x executes"),
            });
        };
        access |= bit;
    }
    if access == 0 {
        let reason = "expected an access: r reads, w writes, x executes".to_owned();
        return Err(Wrong { offset, reason });
    }
    Ok((access, modifiers))
}
