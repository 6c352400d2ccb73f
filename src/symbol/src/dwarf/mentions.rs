//! Which units may have an entry of some name, told by bytes of the sections before any entry is read.
//!
//! An entry has its name within it, or four or eight bytes that say where in `.debug_str` the name is. Both are looked for
//! like words in a text. What is found may be something else, so that the unit has to be read; what isn't found is not there.

use std::iter;

use gimli::{DwForm, Dwarf, Reader as _, RunTimeEndian, Section as _, UnitHeader, UnitType};
use memchr::memmem::Finder;

use super::leb;
use super::plan::{Sizes, Spec};
use super::sections::Slice;

/// So many texts are looked for in units. There are more for short names, which are the ends of many texts: the linker merges
/// these; and for patterns. Reading the entries is faster then.
const MAX_LOOKED_FOR: usize = 4;

/// The shortest beginning of names that is looked for among all texts.
const MIN_START: usize = 3;

/// Where the names of a function are, and what the entries of one of few names have in them.
pub(super) struct Mentions<'n> {
    /// In `.debug_str`, rising.
    places: Vec<usize>,
    looked_for: Option<LookedFor<'n>>,
}

/// What the entries of few names have in them.
struct LookedFor<'n> {
    /// How the names begin.
    start: Finder<'n>,
    /// The lower halves of references to them, as the file has them.
    references: Vec<Finder<'static>>,
}

impl<'n> Mentions<'n> {
    /// Of all names that begin with `start` and that `is_name` says yes to. `None` where that is the beginning of too many.
    pub(super) fn find(
        dwarf: &Dwarf<Slice<'_>>,
        start: &'n str,
        is_name: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        if start.len() < MIN_START {
            return None;
        }
        let start = Finder::new(start);
        let texts = dwarf.debug_str.reader().slice();
        let endian = dwarf.debug_info.reader().endian();
        let places: Vec<usize> = named(&start, texts, is_name).collect();
        let halves = places.iter().map(|at| low_half(*at, endian));
        let looked_for = (places.len() <= MAX_LOOKED_FOR).then(|| LookedFor {
            references: halves.map(|half| Finder::new(&half).into_owned()).collect(),
            start,
        });
        Some(Self { places, looked_for })
    }

    /// Where the names are in `.debug_str`, rising.
    pub(super) fn places(&self) -> &[usize] {
        &self.places
    }

    /// Whether a unit may have entries of these names.
    pub(super) fn may_be_in(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        is_name: &dyn Fn(&str) -> bool,
    ) -> bool {
        let Some(looked_for) = &self.looked_for else {
            return true;
        };
        let mut unit = *dwarf.debug_info.reader();
        let start = header.debug_info_offset().map_or(0, |offset| offset.0);
        let len = header.length_including_self();
        let is_cut = unit.skip(start).and_then(|()| unit.truncate(len));
        if is_cut.is_err() || matches!(header.type_(), UnitType::Skeleton(_)) {
            return true;
        }
        let bytes = unit.slice();
        let mut references = looked_for.references.iter();
        references.any(|reference| reference.find(bytes).is_some())
            || named(&looked_for.start, bytes, is_name).next().is_some()
            || !shows_names(dwarf, header).unwrap_or(false)
    }
}

/// Where texts begin in `bytes` that `is_name` says yes to, up to their zero.
fn named<'n>(
    start: &Finder<'n>,
    bytes: &'n [u8],
    is_name: &'n dyn Fn(&str) -> bool,
) -> impl Iterator<Item = usize> {
    let is_named = move |at: &usize| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let text = memchr::memchr(0, rest).and_then(|end| rest.get(..end));
        text.is_some_and(|text| is_name(&String::from_utf8_lossy(text)))
    };
    occurrences(start.clone(), bytes).filter(is_named)
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

/// Whether the entries of a unit, or others of the same unit that they refer to, have their names or offsets of texts in them.
/// `None` where the abbreviations are damaged.
fn shows_names(dwarf: &Dwarf<Slice<'_>>, header: &UnitHeader<Slice<'_>>) -> Option<bool> {
    let table = dwarf.debug_abbrev.reader().slice();
    let mut at = header.debug_abbrev_offset().0;
    let sizes = Sizes::new(header.encoding());
    while leb::unsigned(table, &mut at)? != 0 {
        let _tag = leb::unsigned(table, &mut at)?;
        let _has_children = *table.get(at)?;
        at += 1;
        while let Some(spec) = Spec::read(table, &mut at, &sizes)? {
            if spec.name == gimli::DW_AT_GNU_dwo_id || hides(spec.form) {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Whether what an attribute of this form refers to is in another unit or file, or behind an index.
fn hides(form: DwForm) -> bool {
    matches!(
        form,
        gimli::DW_FORM_indirect
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
    use super::*;

    #[test]
    fn names_are_whole_and_may_overlap() {
        let texts = b"vfs_read\0read<u8>\0reader\0read\0read";
        let is_name = |text: &str| text == "read" || text.starts_with("read<");
        let found: Vec<usize> = named(&Finder::new("read"), texts, &is_name).collect();
        assert_eq!(found, [4, 9, 25]);
        let found: Vec<usize> = named(&Finder::new("abab"), b"ababab\0", &|_| true).collect();
        assert_eq!(found, [0, 2]);
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Big), [2, 3, 4, 5]);
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Little), [5, 4, 3, 2]);
    }
}
