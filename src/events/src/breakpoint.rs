//! `mem:ADDRESS[/length][:access][:modifiers]`: data and code breakpoints.

use rperf_wire::{Attr, EventType};

use crate::Catalogue;
use crate::number::number;

/// `HW_BREAKPOINT_R` of `linux/hw_breakpoint.h`.
const READ: u32 = 1;
/// `HW_BREAKPOINT_W`.
const WRITE: u32 = 2;
/// `HW_BREAKPOINT_X`.
const EXECUTE: u32 = 4;
/// The letters of the access.
const ACCESSES: [(char, u32); 3] = [('r', READ), ('w', WRITE), ('x', EXECUTE)];
/// The access if none is given.
const DEFAULT_ACCESS: u32 = READ | WRITE;
/// Default length of data in bytes.
const DATA_LENGTH: u64 = 4;
/// Default length of code in bytes: that of a `long`, the only length that x86 accepts for execute breakpoints.
const CODE_LENGTH: u64 = 8;
/// The accepted lengths in bytes: on every machine, those that the kernel supports on x86. The other lengths of arm64 (3, 5, 6
/// and 7) are refused.
const LENGTHS: [u64; 4] = [1, 2, 4, 8];

/// A breakpoint and its modifiers.
#[derive(Debug)]
pub(crate) struct Breakpoint<'a> {
    pub(crate) attr: Attr,
    /// Offset of the modifiers in the word, and their letters.
    pub(crate) modifiers: Option<(usize, &'a str)>,
}

/// An invalid part, by its offset in the word.
#[derive(Debug)]
pub(crate) struct InvalidPart {
    pub(crate) offset: usize,
    pub(crate) reason: String,
}

impl<'a> Breakpoint<'a> {
    /// The prefix of breakpoint events.
    pub(crate) const PREFIX: &'static str = "mem:";

    /// Parses a word that begins with [`Breakpoint::PREFIX`]. The address may be a kernel symbol.
    pub(crate) fn parse(word: &'a str, catalogue: &Catalogue<'_>) -> Result<Self, InvalidPart> {
        let start = Self::PREFIX.len();
        let rest = word.get(start..).unwrap_or_default();
        let (place, suffix) = match rest.split_once(':') {
            Some((place, suffix)) => (place, Some(suffix)),
            None => (rest, None),
        };
        let (address, length) = match place.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (place, None),
        };
        let suffix_offset = start + place.len() + 1;
        let (access, modifiers) = split_access(suffix, suffix_offset)?;
        let is_code = access & EXECUTE != 0;
        let length = match length {
            Some(text) => parse_length(text, start + address.len() + 1)?,
            None if is_code => CODE_LENGTH,
            None => DATA_LENGTH,
        };
        let attr = Attr {
            kind: EventType::BREAKPOINT,
            bp_type: access,
            config1: parse_address(address, start, catalogue)?,
            config2: length,
            // As in perf, each access is a sample.
            sample_period: 1,
            ..Attr::default()
        };
        Ok(Self { attr, modifiers })
    }
}

fn parse_address(
    address: &str,
    offset: usize,
    catalogue: &Catalogue<'_>,
) -> Result<u64, InvalidPart> {
    let known = number(address).or_else(|| catalogue.machine.kernel_symbol(address));
    known.ok_or_else(|| InvalidPart {
        offset,
        reason: format!("expected an address such as 0x404040, or a symbol of the kernel; `{address}' is neither"),
    })
}

fn parse_length(text: &str, offset: usize) -> Result<u64, InvalidPart> {
    let length = number(text).filter(|length| LENGTHS.contains(length));
    length.ok_or_else(|| InvalidPart {
        offset,
        reason: "a breakpoint watches 1, 2, 4 or 8 bytes".to_owned(),
    })
}

/// The access, or [`DEFAULT_ACCESS`], and the modifiers with their offset in the word; `None` without modifiers.
type AccessSuffix<'a> = (u32, Option<(usize, &'a str)>);

/// Splits `access:modifiers`, `access` or `modifiers`, which are at `offset` in the word.
fn split_access(text: Option<&str>, offset: usize) -> Result<AccessSuffix<'_>, InvalidPart> {
    let Some(text) = text else {
        return Ok((DEFAULT_ACCESS, None));
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
        let Some((_, bit)) = known else {
            // `mem:0x1000:u` has modifiers but no access.
            if index == 0 && modifiers.is_none() {
                return Ok((DEFAULT_ACCESS, Some((offset, letters))));
            }
            return Err(InvalidPart {
                offset: offset + index,
                reason: format!("`{letter}' is not an access: r reads, w writes, x executes"),
            });
        };
        if access & bit != 0 {
            return Err(InvalidPart {
                offset: offset + index,
                reason: format!("the access `{letter}' is given twice"),
            });
        }
        access |= bit;
    }
    if access == 0 {
        let reason = "expected an access: r reads, w writes, x executes".to_owned();
        return Err(InvalidPart { offset, reason });
    }
    Ok((access, modifiers))
}
