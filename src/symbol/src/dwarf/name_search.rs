//! Finds the units that may have an entry with a given name by searching section bytes before
//! parsing entries.
//!
//! Names inside entries (`DW_FORM_string`), and the offsets of names in `.debug_str`, are searched as byte strings. A match may
//! be a false positive, so the unit must be parsed; without a match the name is not there. Skeleton units, and units with string
//! indices or with references to other units or files, are always parsed.

use std::iter;

use gimli::{DwForm, Dwarf, Reader as _, RunTimeEndian, Section as _, UnitHeader, UnitType};
use memchr::memmem::Finder;

use super::abbreviations::{AttributeSpec, FormSizes};
use super::leb;
use super::sections::Slice;

/// Maximum number of offsets to search for. With more, parsing the entries is faster. Even a single name may have several, one in
/// each longer string that ends with it: the linker may have merged the name into any of them.
const MAX_OFFSETS: usize = 4;

/// Minimum length of a name prefix to search for in all strings.
const MIN_PREFIX: usize = 3;

/// Offsets of a function's names and, if there are few offsets, byte strings to search for.
pub(super) struct NameSearch<'n> {
    /// In `.debug_str`, ascending.
    offsets: Vec<usize>,
    /// `None` if there are more than [`MAX_OFFSETS`] offsets.
    terms: Option<SearchTerms<'n>>,
}

/// Byte strings to search a unit for: an entry with one of these names contains the name itself or its offset.
struct SearchTerms<'n> {
    /// Prefix of the names.
    prefix: Finder<'n>,
    /// The lower four bytes of the names' offsets in `.debug_str`, in the file's byte order. Entries store four or eight bytes.
    encoded_offsets: Vec<Finder<'static>>,
}

impl<'n> NameSearch<'n> {
    /// Finds all names that begin with `prefix` and are accepted by `is_name`. `None` if `prefix` is shorter than [`MIN_PREFIX`]
    /// bytes: too many strings contain it.
    pub(super) fn find(
        dwarf: &Dwarf<Slice<'_>>,
        prefix: &'n str,
        is_name: &dyn Fn(&str) -> bool,
    ) -> Option<Self> {
        if prefix.len() < MIN_PREFIX {
            return None;
        }
        let prefix = Finder::new(prefix);
        let texts = dwarf.debug_str.reader().slice();
        let endian = dwarf.debug_info.reader().endian();
        let offsets: Vec<usize> = named(&prefix, texts, is_name).collect();
        let halves = offsets.iter().map(|at| low_half(*at, endian));
        let terms = (offsets.len() <= MAX_OFFSETS).then(|| SearchTerms {
            encoded_offsets: halves.map(|half| Finder::new(&half).into_owned()).collect(),
            prefix,
        });
        Some(Self { offsets, terms })
    }

    /// Offsets of the names in `.debug_str`, ascending.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// Whether a unit may have entries with these names. `is_name` must be the one given to [`Self::find`].
    pub(super) fn may_be_in(
        &self,
        dwarf: &Dwarf<Slice<'_>>,
        header: &UnitHeader<Slice<'_>>,
        is_name: &dyn Fn(&str) -> bool,
    ) -> bool {
        let Some(terms) = &self.terms else {
            return true;
        };
        let mut unit = *dwarf.debug_info.reader();
        let start = header.debug_info_offset().map_or(0, |offset| offset.0);
        let len = header.length_including_self();
        let narrowed = unit.skip(start).and_then(|()| unit.truncate(len));
        // The names of a skeleton unit's entries are in another file. A unit beyond the section's end is left to the parser.
        if narrowed.is_err() || matches!(header.type_(), UnitType::Skeleton(_)) {
            return true;
        }
        let bytes = unit.slice();
        let mut encoded_offsets = terms.encoded_offsets.iter();
        encoded_offsets.any(|offset| offset.find(bytes).is_some())
            || named(&terms.prefix, bytes, is_name).next().is_some()
            || !has_searchable_names(dwarf, header).unwrap_or(false)
    }
}

/// Offsets of the NUL-terminated strings in `bytes` that begin with `prefix` and are accepted by `is_name`. Suffixes of longer
/// strings are such strings, too.
fn named<'n>(
    prefix: &Finder<'n>,
    bytes: &'n [u8],
    is_name: &'n dyn Fn(&str) -> bool,
) -> impl Iterator<Item = usize> {
    let is_named = move |at: &usize| {
        let rest = bytes.get(*at..).unwrap_or_default();
        let text = memchr::memchr(0, rest).and_then(|end| rest.get(..end));
        text.is_some_and(|text| is_name(&String::from_utf8_lossy(text)))
    };
    occurrences(prefix.clone(), bytes).filter(is_named)
}

/// All occurrences, including overlapping ones.
fn occurrences<'n>(text: Finder<'n>, bytes: &'n [u8]) -> impl Iterator<Item = usize> {
    let mut start = 0;
    iter::from_fn(move || {
        let at = start + text.find(bytes.get(start..)?)?;
        start = at + 1;
        Some(at)
    })
}

/// The lower four bytes of an offset, as stored in a section.
fn low_half(offset: usize, endian: RunTimeEndian) -> [u8; 4] {
    let [.., a, b, c, d] = (offset as u64).to_be_bytes();
    match endian {
        RunTimeEndian::Little => [d, c, b, a],
        RunTimeEndian::Big => [a, b, c, d],
    }
}

/// Whether the names of a unit's entries are all in the entries or given by offsets, and no entry may have its name in another
/// unit or file. `None` if the abbreviations are damaged.
fn has_searchable_names(dwarf: &Dwarf<Slice<'_>>, header: &UnitHeader<Slice<'_>>) -> Option<bool> {
    let table = dwarf.debug_abbrev.reader().slice();
    let mut at = header.debug_abbrev_offset().0;
    let sizes = FormSizes::new(header.encoding());
    while leb::unsigned(table, &mut at)? != 0 {
        let _tag = leb::unsigned(table, &mut at)?;
        let _has_children = *table.get(at)?;
        at += 1;
        while let Some(spec) = AttributeSpec::read(table, &mut at, &sizes)? {
            // `DW_AT_GNU_dwo_id` marks a skeleton unit before DWARF 5.
            if spec.name == gimli::DW_AT_GNU_dwo_id || is_unsearchable(spec.form) {
                return Some(false);
            }
        }
    }
    Some(true)
}

/// Whether an attribute of this form may refer to another unit or file, or is an index of a string. Not `DW_FORM_ref_sig8`: it
/// refers to a type, whose name is not searched for.
fn is_unsearchable(form: DwForm) -> bool {
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
    fn names_match_completely_and_may_overlap() {
        let texts = b"vfs_read\0read<u8>\0reader\0read\0read";
        let is_name = |text: &str| text == "read" || text.starts_with("read<");
        let found: Vec<usize> = named(&Finder::new("read"), texts, &is_name).collect();
        // The last `read` has no NUL at its end.
        assert_eq!(found, [4, 9, 25]);
        let any_name = |_: &str| true;
        let found: Vec<usize> = named(&Finder::new("abab"), b"ababab\0", &any_name).collect();
        assert_eq!(found, [0, 2]);
    }

    #[test]
    fn the_low_half_is_in_the_byte_order_of_the_file() {
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Big), [2, 3, 4, 5]);
        assert_eq!(low_half(0x1_0203_0405, RunTimeEndian::Little), [5, 4, 3, 2]);
    }
}
