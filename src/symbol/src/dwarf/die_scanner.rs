//! Scans a unit for entries with certain tags and reads a few of their attributes. Entries with other tags are skipped, most of
//! them by an addition: see [`AbbreviationTable`].

use gimli::{
    DebugStrOffsetsBase, DebugStrOffsetsIndex, DwLang, DwTag, Dwarf, Encoding, Format, Reader as _,
    Section as _, UnitHeader, UnitOffset,
};

use super::abbreviations::{
    Abbreviation, AbbreviationTable, AttributeSpec, FixedDistances, FixedNumber, SKIPPED,
    resolve_indirect, skip_value,
};
use super::leb;
use super::sections::Slice;
use super::units::str_offset;

/// The entry referenced by another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DieReference {
    /// An entry in the same unit.
    SameUnit(UnitOffset),
    /// An entry in another unit or file.
    OtherUnit,
}

/// Location of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StringLocation {
    section: TextSection,
    /// Its offset there, or its index in the unit's string offsets table.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSection {
    /// The unit itself (inline).
    Unit,
    /// `.debug_str`.
    DebugStr,
    /// `.debug_str` of the supplementary file.
    SupplementaryStr,
    /// `.debug_line_str`.
    DebugLineStr,
    /// `.debug_str`, by way of `.debug_str_offsets`.
    StrOffsets,
}

/// An entry with the attributes that are read.
#[derive(Debug, Clone, Copy)]
pub struct ScannedDie {
    /// Offset in its unit.
    pub offset: UnitOffset,
    /// Its tag.
    pub tag: DwTag,
    /// Its depth below the unit's root entry, which has depth 0.
    pub depth: isize,
    /// Its names in the entry itself: source name and linkage name.
    pub names: [Option<StringLocation>; 2],
    /// Its abstract origin or specification.
    pub origin: Option<DieReference>,
    /// Whether it has an abstract origin.
    pub has_abstract_origin: bool,
    /// Whether it is a declaration.
    pub is_declaration: bool,
    /// Whether it has address attributes.
    pub has_addresses: bool,
    /// The file index of its declaration, if in the entry.
    pub declared_file: Option<u64>,
    /// The line of its declaration, if in the entry.
    pub declared_line: Option<u64>,
    /// The file index of an inlined function's call site.
    pub call_file: Option<u64>,
    /// The line of the call site.
    pub call_line: Option<u64>,
    language: Option<DwLang>,
    str_offsets_base: Option<DebugStrOffsetsBase>,
    /// Whether the entries of the unit are in another file.
    is_skeleton: bool,
}

/// An inlined call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlinedCall {
    /// The file index of the call site.
    pub file: u64,
    /// The inlined function.
    pub origin: UnitOffset,
}

/// Iterates over the entries with wanted tags of a unit. Ends at damaged entries.
#[derive(Debug)]
pub struct DieScanner<'d, 'u> {
    dwarf: &'d Dwarf<Slice<'u>>,
    encoding: Encoding,
    /// The unit including its header.
    unit: Slice<'u>,
    at: usize,
    depth: isize,
    abbreviations: AbbreviationTable,
    str_offsets_base: DebugStrOffsetsBase,
    is_skeleton: bool,
}

impl<'d, 'u> DieScanner<'d, 'u> {
    /// Creates an iterator over the entries below the root with a tag that `is_wanted` accepts. Types that hold no code are
    /// skipped with their children. `None` if the unit is damaged, or not in `.debug_info`.
    pub fn new(
        dwarf: &'d Dwarf<Slice<'u>>,
        header: &UnitHeader<Slice<'u>>,
        is_wanted: &dyn Fn(DwTag) -> bool,
    ) -> Option<Self> {
        let mut unit = *dwarf.debug_info.reader();
        unit.skip(header.debug_info_offset()?.0).ok()?;
        unit.truncate(header.length_including_self()).ok()?;
        let encoding = header.encoding();
        let abbreviations = header.debug_abbrev_offset();
        let with_root = |tag| is_wanted(tag) || is_root(tag);
        let abbreviations = AbbreviationTable::read(dwarf, abbreviations, encoding, &with_root)?;
        let mut scanner = Self {
            dwarf,
            encoding,
            unit,
            at: header.root_offset().0,
            depth: 0,
            abbreviations,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding,
                dwarf.file_type,
            ),
            is_skeleton: false,
        };
        let start = scanner.at;
        let root = scanner.next()?;
        // `next` skips a root without the tag of a unit, like any unwanted entry: the scan begins again, with the defaults.
        if root.offset.0 != start {
            (scanner.at, scanner.depth) = (start, 0);
            return Some(scanner);
        }
        let is_c = root.language.is_some_and(is_c);
        scanner
            .abbreviations
            .skip_children_of(&|tag| holds_no_code(tag, is_c));
        scanner.str_offsets_base = root.str_offsets_base.unwrap_or(scanner.str_offsets_base);
        scanner.is_skeleton = root.is_skeleton;
        Some(scanner)
    }

    /// Whether the entries are in another file.
    pub(super) fn is_skeleton(&self) -> bool {
        self.is_skeleton
    }

    /// Whether one of an entry's names is accepted by `wanted`.
    pub fn has_name(
        &self,
        names: &[Option<StringLocation>; 2],
        wanted: &dyn Fn(&str) -> bool,
    ) -> bool {
        let mut texts = names.iter().flatten().filter_map(|name| self.text(*name));
        texts.any(|name| match std::str::from_utf8(name) {
            Ok(name) => wanted(name),
            Err(_) => wanted(&String::from_utf8_lossy(name)),
        })
    }

    /// Whether the string at `at` of `.debug_str` is accepted by `wanted`.
    pub(super) fn accepts_string(&self, at: usize, wanted: &dyn Fn(&str) -> bool) -> bool {
        let text = StringLocation {
            section: TextSection::DebugStr,
            at,
        };
        self.has_name(&[Some(text), None], wanted)
    }

    fn text(&self, text: StringLocation) -> Option<&'u [u8]> {
        let (section, at) = match text.section {
            TextSection::Unit => (&self.unit, text.at),
            TextSection::DebugStr => (self.dwarf.debug_str.reader(), text.at),
            TextSection::SupplementaryStr => (self.dwarf.sup()?.debug_str.reader(), text.at),
            TextSection::DebugLineStr => (self.dwarf.debug_line_str.reader(), text.at),
            TextSection::StrOffsets => {
                let index = DebugStrOffsetsIndex(text.at);
                let format = self.encoding.format;
                let offset = str_offset(self.dwarf, format, self.str_offsets_base, index)?;
                (self.dwarf.debug_str.reader(), offset.0)
            }
        };
        let bytes = section.slice().get(at..)?;
        bytes.get(..memchr::memchr(0, bytes)?)
    }

    /// Advances to the end of the abbreviation code of the next entry with a wanted abbreviation. `is_enough` gets the start and
    /// the end of the code of a wanted entry whose names and origin are at fixed distances, and these distances; if it returns
    /// true, the entry needs no further reading and is skipped. Returns the start of the found entry and its abbreviation.
    fn pass(
        &mut self,
        is_enough: &mut dyn FnMut(&Self, usize, usize, &FixedDistances) -> bool,
    ) -> Option<(usize, Abbreviation)> {
        let bytes = self.unit.slice();
        let (mut at, mut depth) = (self.at, self.depth);
        loop {
            let start = at;
            let step = self.abbreviations.step(*bytes.get(at)?);
            // `u32::MAX`: the entry cannot be skipped by an addition.
            if step.size != u32::MAX {
                at += step.size as usize;
                depth += step.depth_change as isize;
                continue;
            }
            let code = leb::unsigned(bytes, &mut at)?;
            if code == 0 {
                depth -= 1;
                continue;
            }
            let abbreviation = self.abbreviations.abbreviation(code)?;
            let fixed = abbreviation.fixed.as_ref();
            if abbreviation.is_wanted
                && !fixed.is_some_and(|fixed| is_enough(self, start, at, fixed))
            {
                (self.at, self.depth) = (at, depth);
                return Some((start, *abbreviation));
            }
            if abbreviation.skips_children
                && let Some(beyond) = self.sibling(at, abbreviation)
            {
                at = beyond;
                continue;
            }
            depth += isize::from(abbreviation.has_children);
            match abbreviation.size {
                Some(size) => at += size as usize,
                None => {
                    for spec in self.abbreviations.specs(abbreviation) {
                        skip_value(self.unit, &mut at, spec, self.encoding)?;
                    }
                }
            }
        }
    }

    /// The next entry. Inlined functions whose attributes are at fixed distances are skipped if `is_unwanted` returns true.
    pub fn next_unless(
        &mut self,
        is_unwanted: &mut dyn FnMut(InlinedCall) -> bool,
    ) -> Option<ScannedDie> {
        self.next_to_read(&mut |scanner, _, at, fixed| {
            let file = fixed.call_file.and_then(|file| scanner.number(at, file));
            let origin = fixed
                .origin
                .and_then(|distance| scanner.word(at + distance as usize));
            match (file, origin) {
                (Some(file), Some(origin)) => is_unwanted(InlinedCall {
                    file,
                    origin: UnitOffset(origin),
                }),
                _ => false,
            }
        })
    }

    /// Reads a number of an entry whose code ends at `at`.
    fn number(&self, at: usize, number: FixedNumber) -> Option<u64> {
        match number {
            FixedNumber::Implicit(number) => Some(number),
            FixedNumber::At { distance, size } => {
                let mut value = self.unit;
                value.skip(at + distance as usize).ok()?;
                value.read_uint(size.into()).ok()
            }
        }
    }

    /// Calls `visit` for the instances of functions: entries with an abstract origin, inlined or not, with the entry's offset and
    /// that origin.
    pub fn for_each_instance(mut self, visit: &mut dyn FnMut(UnitOffset, DieReference)) {
        while let Some(entry) = self.next_to_read(&mut |scanner, start, at, fixed| {
            // All attributes that matter are at fixed distances here, so an entry without an abstract origin needs no reading.
            let Some(distance) = fixed.origin.filter(|_| fixed.has_abstract_origin) else {
                return true;
            };
            let origin = scanner.word(at + distance as usize).map(UnitOffset);
            origin
                .map(|origin| visit(UnitOffset(start), DieReference::SameUnit(origin)))
                .is_some()
        }) {
            if let Some(origin) = entry.origin.filter(|_| entry.has_abstract_origin) {
                visit(entry.offset, origin);
            }
        }
    }

    /// Reads the next entry, skipping those for which `is_enough` returns true: their attributes at fixed distances suffice; see
    /// [`Self::pass`].
    pub(super) fn next_to_read(
        &mut self,
        is_enough: &mut dyn FnMut(&Self, usize, usize, &FixedDistances) -> bool,
    ) -> Option<ScannedDie> {
        let found = self.pass(is_enough);
        self.read_found(found)
    }

    /// Reads the attributes of the entry that [`Self::pass`] found. Without one, or if it is damaged, the scan ends.
    fn read_found(&mut self, found: Option<(usize, Abbreviation)>) -> Option<ScannedDie> {
        let entry = found.and_then(|(start, abbreviation)| self.entry(start, abbreviation));
        if entry.is_none() {
            self.at = self.unit.len();
        }
        entry
    }

    /// Reads four bytes at `at`.
    pub(super) fn word(&self, at: usize) -> Option<usize> {
        let mut word = self.unit;
        word.skip(at).ok()?;
        usize::try_from(word.read_u32().ok()?).ok()
    }

    /// The end of the children of the entry whose code ends at `at`; `None` if it is not given, or not after `at`.
    fn sibling(&self, at: usize, abbreviation: &Abbreviation) -> Option<usize> {
        let beyond = self.word(at + abbreviation.sibling? as usize)?;
        (beyond > at).then_some(beyond)
    }

    /// Reads the attributes of the entry at `start`.
    fn entry(&mut self, start: usize, abbreviation: Abbreviation) -> Option<ScannedDie> {
        let mut entry = ScannedDie {
            offset: UnitOffset(start),
            tag: abbreviation.tag,
            depth: self.depth,
            names: [None; 2],
            origin: None,
            has_abstract_origin: false,
            is_declaration: false,
            has_addresses: false,
            declared_file: None,
            declared_line: None,
            call_file: None,
            call_line: None,
            language: None,
            str_offsets_base: None,
            is_skeleton: false,
        };
        for spec in self.abbreviations.specs(&abbreviation) {
            if let (SKIPPED, Some(size)) = (spec.name, spec.size) {
                self.at += usize::from(size);
                continue;
            }
            entry.take(self.unit, &mut self.at, spec, self.encoding)?;
        }
        self.depth += isize::from(abbreviation.has_children);
        Some(entry)
    }
}

impl Iterator for DieScanner<'_, '_> {
    type Item = ScannedDie;

    fn next(&mut self) -> Option<ScannedDie> {
        // The attributes at fixed distances are never enough: each wanted entry is read.
        let found = self.pass(&mut |_, _, _, _| false);
        self.read_found(found)
    }
}

impl ScannedDie {
    /// Whether it has code by its own attributes.
    pub(super) fn has_code(&self) -> bool {
        self.has_addresses && !self.is_declaration
    }

    /// Reads or skips the attribute at `at`.
    fn take(
        &mut self,
        unit: Slice<'_>,
        at: &mut usize,
        spec: &AttributeSpec,
        encoding: Encoding,
    ) -> Option<()> {
        let spec = match spec.form {
            gimli::DW_FORM_indirect => resolve_indirect(unit.slice(), at, spec, encoding)?,
            _ => *spec,
        };
        let start = *at;
        skip_value(unit, at, &spec, encoding)?;
        let mut value = unit;
        value.skip(start).ok()?;
        // The value as a number: the free function `number`, not the scanner's method for fixed distances.
        let mut number = || number(&mut value, &spec);
        match spec.name {
            gimli::DW_AT_declaration => self.is_declaration = true,
            gimli::DW_AT_low_pc | gimli::DW_AT_ranges | gimli::DW_AT_entry_pc => {
                self.has_addresses = true;
            }
            gimli::DW_AT_decl_file => self.declared_file = number(),
            gimli::DW_AT_decl_line => self.declared_line = number(),
            gimli::DW_AT_call_file => self.call_file = number(),
            gimli::DW_AT_call_line => self.call_line = number(),
            gimli::DW_AT_name => {
                self.names[0] = string_location(&mut value, start, &spec, encoding)
            }
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.names[1] = string_location(&mut value, start, &spec, encoding);
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.has_abstract_origin |= spec.name == gimli::DW_AT_abstract_origin;
                let offset = is_local(spec.form).then(number).flatten();
                let local = offset.and_then(|offset| usize::try_from(offset).ok());
                self.origin = Some(local.map_or(DieReference::OtherUnit, |offset| {
                    DieReference::SameUnit(UnitOffset(offset))
                }));
            }
            gimli::DW_AT_language => {
                let language = number().and_then(|code| u16::try_from(code).ok());
                self.language = language.map(DwLang);
            }
            gimli::DW_AT_str_offsets_base => {
                let base = number().and_then(|base| usize::try_from(base).ok());
                self.str_offsets_base = base.map(DebugStrOffsetsBase);
            }
            gimli::DW_AT_GNU_dwo_id | gimli::DW_AT_GNU_dwo_name | gimli::DW_AT_dwo_name => {
                self.is_skeleton = true;
            }
            _ => {}
        }
        Some(())
    }
}

fn is_root(tag: DwTag) -> bool {
    matches!(
        tag,
        gimli::DW_TAG_compile_unit
            | gimli::DW_TAG_partial_unit
            | gimli::DW_TAG_type_unit
            | gimli::DW_TAG_skeleton_unit
    )
}

fn is_c(language: DwLang) -> bool {
    matches!(
        language,
        gimli::DW_LANG_C89
            | gimli::DW_LANG_C
            | gimli::DW_LANG_C99
            | gimli::DW_LANG_C11
            | gimli::DW_LANG_C17
    )
}

/// Whether entries with this tag can't contain functions. In C that includes structures, unions and enumerations.
fn holds_no_code(tag: DwTag, is_c: bool) -> bool {
    match tag {
        gimli::DW_TAG_array_type | gimli::DW_TAG_subroutine_type => true,
        gimli::DW_TAG_structure_type
        | gimli::DW_TAG_union_type
        | gimli::DW_TAG_enumeration_type => is_c,
        _ => false,
    }
}

/// Whether the form is an offset within the unit.
fn is_local(form: gimli::DwForm) -> bool {
    matches!(
        form,
        gimli::DW_FORM_ref1
            | gimli::DW_FORM_ref2
            | gimli::DW_FORM_ref4
            | gimli::DW_FORM_ref8
            | gimli::DW_FORM_ref_udata
    )
}

/// Reads a LEB128 number, a constant or flag of the abbreviation, or any value of 1, 2, 4 or 8 bytes; `None` for others.
fn number(value: &mut Slice<'_>, spec: &AttributeSpec) -> Option<u64> {
    match (spec.form, spec.size) {
        (gimli::DW_FORM_flag_present, _) => Some(1),
        (gimli::DW_FORM_implicit_const, _) => u64::try_from(spec.implicit).ok(),
        (gimli::DW_FORM_udata | gimli::DW_FORM_ref_udata, _) => value.read_uleb128().ok(),
        (gimli::DW_FORM_sdata, _) => u64::try_from(value.read_sleb128().ok()?).ok(),
        (_, Some(1)) => value.read_u8().ok().map(u64::from),
        (_, Some(2)) => value.read_u16().ok().map(u64::from),
        (_, Some(4)) => value.read_u32().ok().map(u64::from),
        (_, Some(8)) => value.read_u64().ok(),
        _ => None,
    }
}

/// The location of the string of an attribute whose `value` begins at `at` in the unit; `None` if it is not a string.
fn string_location(
    value: &mut Slice<'_>,
    at: usize,
    spec: &AttributeSpec,
    encoding: Encoding,
) -> Option<StringLocation> {
    let mut word = || match encoding.format {
        Format::Dwarf32 => value.read_u32().ok().map(u64::from),
        Format::Dwarf64 => value.read_u64().ok(),
    };
    let (section, at) = match spec.form {
        gimli::DW_FORM_strp => (TextSection::DebugStr, word()?),
        gimli::DW_FORM_line_strp => (TextSection::DebugLineStr, word()?),
        gimli::DW_FORM_strp_sup | gimli::DW_FORM_GNU_strp_alt => {
            (TextSection::SupplementaryStr, word()?)
        }
        gimli::DW_FORM_string => (TextSection::Unit, at as u64),
        gimli::DW_FORM_strx | gimli::DW_FORM_GNU_str_index => {
            (TextSection::StrOffsets, value.read_uleb128().ok()?)
        }
        gimli::DW_FORM_strx1 | gimli::DW_FORM_strx2 | gimli::DW_FORM_strx4 => {
            (TextSection::StrOffsets, number(value, spec)?)
        }
        gimli::DW_FORM_strx3 => (TextSection::StrOffsets, value.read_uint(3).ok()?),
        _ => return None,
    };
    let at = usize::try_from(at).ok()?;
    Some(StringLocation { section, at })
}
