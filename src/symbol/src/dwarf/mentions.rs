//! Which units may have an entry of some name, told by bytes of the sections before any entry is read.
//!
//! An entry has its name within it, or four or eight bytes that say where in `.debug_str` the name is. Both are looked for
//! like words in a text. What is found may be something else, so that the unit has to be read; what isn't found is not there.

use std::iter;

use gimli::{
    DwAt, DwForm, Dwarf, Reader as _, RunTimeEndian, Section as _, UnitHeader, UnitOffset, UnitType,
};
use memchr::memmem::Finder;

use super::sections::Slice;

/// The most texts that a name is looked for by. Short names are the ends of many texts, which the linker merges.
const MAX_TEXTS: usize = 4096;

/// So many references are looked for one by one, which is several times faster than at once.
const MAX_SINGLE: usize = 3;

/// What the entries of one name have in them.
pub(super) struct Mentions<'n> {
    name: Finder<'n>,
    references: References,
}

/// References to texts, by their lower halves as the file has them.
struct References {
    sorted: Vec<u32>,
    /// A bit for the lower half of each.
    filter: Vec<bool>,
}

impl References {
    fn new(mut sorted: Vec<u32>) -> Self {
        sorted.sort_unstable();
        let mut filter = vec![false; 1 << 16];
        for reference in &sorted {
            if let Some(bit) = filter.get_mut(*reference as usize & 0xffff) {
                *bit = true;
            }
        }
        Self { sorted, filter }
    }

    /// Where they are in `bytes`.
    fn places(&self, bytes: &[u8]) -> Vec<usize> {
        if self.sorted.len() <= MAX_SINGLE {
            let words = self.sorted.iter().map(|word| word.to_ne_bytes());
            let found = words.flat_map(|word| occurrences(Finder::new(&word).into_owned(), bytes));
            return found.collect();
        }
        let word = |window: &[u8]| window.try_into().map_or(0, u32::from_ne_bytes);
        let windows = bytes.windows(size_of::<u32>()).map(word);
        let is_here = |word: u32| {
            let may_be = self.filter.get(word as usize & 0xffff);
            may_be == Some(&true) && self.sorted.binary_search(&word).is_ok()
        };
        let found = windows.enumerate().filter(|(_, word)| is_here(*word));
        found.map(|(at, _)| at).collect()
    }
}

/// Where the name is mentioned in a unit.
#[derive(Debug, Clone)]
pub struct Mentioned<'u> {
    /// The unit, header and all.
    unit: Slice<'u>,
    /// Places in entries that have it, rising.
    pub places: Vec<UnitOffset>,
}

impl<'n> Mentions<'n> {
    /// Of `name`, also where type arguments follow it (`name<u8>`). `None` where too many texts end like it.
    pub(super) fn find(dwarf: &Dwarf<Slice<'_>>, name: &'n str) -> Option<Self> {
        let name = Finder::new(name);
        let texts = dwarf.debug_str.reader();
        let endian = dwarf.debug_info.reader().endian();
        let mut references = Vec::new();
        for at in named(&name, texts.slice()) {
            if references.len() == MAX_TEXTS {
                return None;
            }
            references.push(u32::from_ne_bytes(low_half(at, endian)));
        }
        Some(Self {
            name,
            references: References::new(references),
        })
    }

    /// Where the name is in a unit. `None` where it may be in entries that don't show it.
    pub(super) fn within<'u>(
        &self,
        dwarf: &Dwarf<Slice<'u>>,
        header: &UnitHeader<Slice<'u>>,
    ) -> Option<Mentioned<'u>> {
        let are_shown = !matches!(header.type_(), UnitType::Skeleton(_))
            && shows_names(dwarf, header).unwrap_or(false);
        let start = header.debug_info_offset()?.0;
        let len = header.length_including_self();
        let mut unit = *dwarf.debug_info.reader();
        unit.skip(start).ok()?;
        unit.truncate(len).ok()?;
        let bytes = unit.slice();
        let referred = self.references.places(bytes).into_iter();
        let places = referred.chain(named(&self.name, bytes));
        let mut places: Vec<UnitOffset> = places.map(UnitOffset).collect();
        places.sort_unstable();
        are_shown.then_some(Mentioned { unit, places })
    }
}

impl Mentioned<'_> {
    /// Places in entries that may refer to the entry at `offset`, rising.
    #[must_use]
    pub fn referring_to(&self, offset: UnitOffset) -> Vec<UnitOffset> {
        let reference = low_half(offset.0, self.unit.endian());
        let found = occurrences(Finder::new(&reference), self.unit.slice());
        found.map(UnitOffset).collect()
    }
}

/// Where the whole name is, or the name before its type arguments.
fn named<'n>(name: &Finder<'n>, bytes: &'n [u8]) -> impl Iterator<Item = usize> {
    let len = name.needle().len();
    let is_whole = move |at: &usize| matches!(bytes.get(at + len), Some(0 | b'<'));
    occurrences(name.clone(), bytes).filter(is_whole)
}

/// Wherever it is, also where it overlaps itself.
fn occurrences<'n>(wanted: Finder<'n>, bytes: &'n [u8]) -> impl Iterator<Item = usize> {
    let mut start = 0;
    iter::from_fn(move || {
        let at = start + wanted.find(bytes.get(start..)?)?;
        start = at + 1;
        Some(at)
    })
}

/// The lower four bytes of an offset as a section has them.
fn low_half(offset: usize, endian: RunTimeEndian) -> [u8; 4] {
    let [.., a, b, c, d] = (offset as u64).to_be_bytes();
    match endian {
        RunTimeEndian::Little => [d, c, b, a],
        RunTimeEndian::Big => [a, b, c, d],
    }
}

/// Whether the entries of a unit have their names, or offsets of texts, in them, and refer to each other by offsets of four
/// bytes.
fn shows_names(dwarf: &Dwarf<Slice<'_>>, header: &UnitHeader<Slice<'_>>) -> gimli::Result<bool> {
    let mut table = *dwarf.debug_abbrev.reader();
    table.skip(header.debug_abbrev_offset().0)?;
    while table.read_uleb128()? != 0 {
        let _tag = table.read_uleb128()?;
        let _has_children = table.read_u8()?;
        loop {
            let name = DwAt(table.read_uleb128_u16()?);
            let form = DwForm(table.read_uleb128_u16()?);
            if form == gimli::DW_FORM_implicit_const {
                table.read_sleb128()?;
            }
            if name.0 == 0 && form.0 == 0 {
                break;
            }
            if name == gimli::DW_AT_GNU_dwo_id || hides(form) {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Whether what an attribute of this form refers to is in another unit or file, or behind an index.
fn hides(form: DwForm) -> bool {
    matches!(
        form,
        gimli::DW_FORM_indirect
            | gimli::DW_FORM_ref1
            | gimli::DW_FORM_ref2
            | gimli::DW_FORM_ref_udata
            | gimli::DW_FORM_ref_addr
            | gimli::DW_FORM_GNU_ref_alt
            | gimli::DW_FORM_ref_sup4
            | gimli::DW_FORM_ref_sup8
            | gimli::DW_FORM_GNU_strp_alt
            | gimli::DW_FORM_strp_sup
            | gimli::DW_FORM_GNU_str_index
            | gimli::DW_FORM_strx
            | gimli::DW_FORM_strx1
            | gimli::DW_FORM_strx2
            | gimli::DW_FORM_strx3
            | gimli::DW_FORM_strx4
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn references_are_found_wherever_they_are(
            bytes in proptest::collection::vec(0u8..3, 0..200),
            words in proptest::collection::vec(proptest::array::uniform4(0u8..3), 0..8),
        ) {
            let expected: Vec<usize> = (0..bytes.len())
                .filter(|at| words.iter().any(|word| bytes[*at..].starts_with(word)))
                .collect();
            let words = words.into_iter().map(u32::from_ne_bytes);
            let mut found = References::new(words.collect()).places(&bytes);
            found.sort_unstable();
            found.dedup();
            prop_assert_eq!(found, expected);
        }
    }

    #[test]
    fn names_are_whole_or_have_type_arguments() {
        let texts = b"vfs_read\0read<u8>\0reader\0read\0";
        let found: Vec<usize> = named(&Finder::new("read"), texts).collect();
        assert_eq!(found, [4, 9, 25]);
        let found: Vec<usize> = named(&Finder::new("abab"), b"ababab\0").collect();
        assert_eq!(found, [2]);
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Big), [2, 3, 4, 5]);
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Little), [5, 4, 3, 2]);
    }
}
