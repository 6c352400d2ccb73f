//! Entries of some tags and what finds a function of them, read without anything else. What is between them costs an
//! addition for each entry: see [`Plan`].

use gimli::{
    DebugStrOffsetsBase, DebugStrOffsetsIndex, DwLang, DwTag, Dwarf, Encoding, Format, Reader as _,
    Section as _, UnitHeader, UnitOffset,
};

use super::leb;
use super::plan::{Fixed, FixedNumber, Plan, Shape, Spec, UNREAD, directly, skip_value};
use super::sections::Slice;

/// Where an entry leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// An entry of the same unit.
    Here(UnitOffset),
    /// One of another unit or file.
    Elsewhere,
}

/// Where a text is that belongs to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    section: TextSection,
    /// Where it begins there, or its number in the unit's table of texts.
    at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextSection {
    /// The unit itself.
    Unit,
    Texts,
    /// The texts of the file that several objects share.
    SharedTexts,
    LineTexts,
    Table,
}

/// What is read of an entry.
#[derive(Debug, Clone, Copy)]
pub struct Skimmed {
    /// Where it is in its unit.
    pub offset: UnitOffset,
    /// What it is.
    pub tag: DwTag,
    /// How many entries it is below.
    pub depth: isize,
    /// Its names, as far as they stand in the entry itself: that in the source, that for the linker.
    pub names: [Option<Text>; 2],
    /// What it is a copy of, or completes.
    pub origin: Option<Origin>,
    /// Whether the origin is that of a copy.
    pub is_copy: bool,
    /// Whether it announces what is defined elsewhere.
    pub is_declaration: bool,
    /// Whether addresses are among its own attributes.
    pub has_addresses: bool,
    /// The source file of its declaration by its number, if that stands in the entry.
    pub declared_file: Option<u64>,
    /// The line of its declaration, if that stands in the entry.
    pub declared_line: Option<u64>,
    /// The source file that an inlined function is called from, by its number.
    pub call_file: Option<u64>,
    /// The line of that call.
    pub call_line: Option<u64>,
    language: Option<DwLang>,
    str_offsets_base: Option<DebugStrOffsetsBase>,
    /// Whether the entries of the unit are in another file.
    is_skeleton: bool,
}

/// A function that is inlined somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InlinedCall {
    /// The source file that it is called from, by its number.
    pub file: u64,
    /// The function.
    pub origin: UnitOffset,
}

/// Reads on in a unit, from one entry of the wanted tags to the next. Ends at damage.
#[derive(Debug)]
pub struct Skim<'d, 'u> {
    dwarf: &'d Dwarf<Slice<'u>>,
    encoding: Encoding,
    /// The unit, header and all.
    unit: Slice<'u>,
    at: usize,
    depth: isize,
    plan: Plan,
    str_offsets_base: DebugStrOffsetsBase,
    is_skeleton: bool,
}

impl<'d, 'u> Skim<'d, 'u> {
    /// All entries that `is_wanted` says yes to by their tags, which are those of functions and their parts. `None` where the unit is damaged or of types alone.
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
        let plan = Plan::read(dwarf, abbreviations, encoding, &with_root)?;
        let mut skim = Self {
            dwarf,
            encoding,
            unit,
            at: header.root_offset().0,
            depth: 0,
            plan,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(
                encoding,
                dwarf.file_type,
            ),
            is_skeleton: false,
        };
        let start = skim.at;
        let root = skim.next()?;
        if root.offset.0 != start {
            (skim.at, skim.depth) = (start, 0);
            return Some(skim);
        }
        let is_c = root.language.is_some_and(is_c);
        skim.plan.close(&|tag| holds_no_code(tag, is_c));
        skim.str_offsets_base = root.str_offsets_base.unwrap_or(skim.str_offsets_base);
        skim.is_skeleton = root.is_skeleton;
        Some(skim)
    }

    /// Whether the entries are in another file.
    pub(super) fn is_skeleton(&self) -> bool {
        self.is_skeleton
    }

    /// Whether one of an entry's names is one that `wanted` says yes to.
    pub fn has_name(&self, names: &[Option<Text>; 2], wanted: &dyn Fn(&str) -> bool) -> bool {
        let mut texts = names.iter().flatten().filter_map(|name| self.text(*name));
        texts.any(|name| match std::str::from_utf8(name) {
            Ok(name) => wanted(name),
            Err(_) => wanted(&String::from_utf8_lossy(name)),
        })
    }

    /// Whether the text at `at` of `.debug_str` is wanted.
    pub(super) fn is_text(&self, at: usize, wanted: &dyn Fn(&str) -> bool) -> bool {
        let text = Text {
            section: TextSection::Texts,
            at,
        };
        self.has_name(&[Some(text), None], wanted)
    }

    fn text(&self, text: Text) -> Option<&'u [u8]> {
        let (section, at) = match text.section {
            TextSection::Unit => (&self.unit, text.at),
            TextSection::Texts => (self.dwarf.debug_str.reader(), text.at),
            TextSection::SharedTexts => (self.dwarf.sup()?.debug_str.reader(), text.at),
            TextSection::LineTexts => (self.dwarf.debug_line_str.reader(), text.at),
            TextSection::Table => {
                let table = &self.dwarf.debug_str_offsets;
                let index = DebugStrOffsetsIndex(text.at);
                let format = self.encoding.format;
                let offset = table.get_str_offset(format, self.str_offsets_base, index);
                (self.dwarf.debug_str.reader(), offset.ok()?.0)
            }
        };
        let bytes = section.slice().get(at..)?;
        bytes.get(..memchr::memchr(0, bytes)?)
    }

    /// Goes on to the next entry of a wanted shape, and stands behind its code. Passes over those that have their names at
    /// fixed distances from the end of their code when `is_enough` says of start and end of the code that this is all that
    /// it takes.
    fn pass(
        &mut self,
        is_enough: &mut dyn FnMut(&Self, usize, usize, &Fixed) -> bool,
    ) -> Option<(usize, Shape)> {
        let bytes = self.unit.slice();
        let (mut at, mut depth) = (self.at, self.depth);
        loop {
            let start = at;
            let step = self.plan.step(*bytes.get(at)?);
            if step.size != u32::MAX {
                at += step.size as usize;
                depth += step.deeper as isize;
                continue;
            }
            let code = leb::unsigned(bytes, &mut at)?;
            if code == 0 {
                depth -= 1;
                continue;
            }
            let shape = self.plan.shape(code)?;
            let fixed = shape.fixed.as_ref();
            if shape.is_wanted && !fixed.is_some_and(|fixed| is_enough(self, start, at, fixed)) {
                (self.at, self.depth) = (at, depth);
                return Some((start, *shape));
            }
            if shape.is_closed
                && let Some(beyond) = self.sibling(at, shape)
            {
                at = beyond;
                continue;
            }
            depth += isize::from(shape.has_children);
            match shape.size {
                Some(size) => at += size as usize,
                None => {
                    for spec in self.plan.specs(shape) {
                        skip_value(self.unit, &mut at, spec, self.encoding)?;
                    }
                }
            }
        }
    }

    /// The next entry, passing over inlined functions that `is_unwanted` says yes to, where these are told by little of them.
    pub fn next_unless(
        &mut self,
        is_unwanted: &mut dyn FnMut(InlinedCall) -> bool,
    ) -> Option<Skimmed> {
        self.next_but(&mut |skim, _, at, fixed| {
            let file = fixed.call_file.and_then(|file| skim.number(at, file));
            let origin = fixed
                .origin
                .and_then(|distance| skim.word(at + distance as usize));
            match (file, origin) {
                (Some(file), Some(origin)) => is_unwanted(InlinedCall {
                    file,
                    origin: UnitOffset(origin),
                }),
                _ => false,
            }
        })
    }

    /// A number of an entry whose code ends at `at`.
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

    /// Hands over the entries that are copies of others by their own attributes, each with the other.
    pub fn for_each_copy(mut self, visit: &mut dyn FnMut(UnitOffset, Origin)) {
        while let Some(entry) = self.next_but(&mut |skim, start, at, fixed| {
            let Some(distance) = fixed.origin.filter(|_| fixed.is_copy) else {
                return true;
            };
            let origin = skim.word(at + distance as usize).map(UnitOffset);
            origin
                .map(|origin| visit(UnitOffset(start), Origin::Here(origin)))
                .is_some()
        }) {
            if let Some(origin) = entry.origin.filter(|_| entry.is_copy) {
                visit(entry.offset, origin);
            }
        }
    }

    /// The next entry, passing over those of which `is_enough` was read.
    pub(super) fn next_but(
        &mut self,
        is_enough: &mut dyn FnMut(&Self, usize, usize, &Fixed) -> bool,
    ) -> Option<Skimmed> {
        let found = self.pass(is_enough);
        self.finish(found)
    }

    fn finish(&mut self, found: Option<(usize, Shape)>) -> Option<Skimmed> {
        let found = found.and_then(|(start, shape)| self.entry(start, shape));
        if found.is_none() {
            self.at = self.unit.len();
        }
        found
    }

    /// The four bytes at `at`.
    pub(super) fn word(&self, at: usize) -> Option<usize> {
        let mut word = self.unit;
        word.skip(at).ok()?;
        usize::try_from(word.read_u32().ok()?).ok()
    }

    /// Where the entries end that are below the one whose code ends at `at`.
    fn sibling(&self, at: usize, shape: &Shape) -> Option<usize> {
        let beyond = self.word(at + shape.sibling? as usize)?;
        (beyond > at).then_some(beyond)
    }

    /// Reads the attributes of the entry that begins at `start`.
    fn entry(&mut self, start: usize, shape: Shape) -> Option<Skimmed> {
        let mut entry = Skimmed {
            offset: UnitOffset(start),
            tag: shape.tag,
            depth: self.depth,
            names: [None; 2],
            origin: None,
            is_copy: false,
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
        for spec in self.plan.specs(&shape) {
            if let (UNREAD, Some(size)) = (spec.name, spec.size) {
                self.at += usize::from(size);
                continue;
            }
            entry.take(self.unit, &mut self.at, spec, self.encoding)?;
        }
        self.depth += isize::from(shape.has_children);
        Some(entry)
    }
}

impl Iterator for Skim<'_, '_> {
    type Item = Skimmed;

    fn next(&mut self) -> Option<Skimmed> {
        let found = self.pass(&mut |_, _, _, _| false);
        self.finish(found)
    }
}

impl Skimmed {
    /// Whether it has code by its own attributes.
    pub(super) fn has_code(&self) -> bool {
        self.has_addresses && !self.is_declaration
    }

    /// Takes the attribute at `at`, or goes behind it.
    fn take(
        &mut self,
        unit: Slice<'_>,
        at: &mut usize,
        spec: &Spec,
        encoding: Encoding,
    ) -> Option<()> {
        let spec = match spec.form {
            gimli::DW_FORM_indirect => directly(unit.slice(), at, spec, encoding)?,
            _ => *spec,
        };
        let start = *at;
        skip_value(unit, at, &spec, encoding)?;
        let mut value = unit;
        value.skip(start).ok()?;
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
            gimli::DW_AT_name => self.names[0] = text(&mut value, start, &spec, encoding),
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                self.names[1] = text(&mut value, start, &spec, encoding);
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                self.is_copy |= spec.name == gimli::DW_AT_abstract_origin;
                let offset = is_local(spec.form).then(number).flatten();
                let here = offset.and_then(|offset| usize::try_from(offset).ok());
                self.origin =
                    Some(here.map_or(Origin::Elsewhere, |offset| Origin::Here(UnitOffset(offset))));
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

/// Whether no function can be below an entry with this tag. In C that is so of all types.
fn holds_no_code(tag: DwTag, is_c: bool) -> bool {
    match tag {
        gimli::DW_TAG_array_type | gimli::DW_TAG_subroutine_type => true,
        gimli::DW_TAG_structure_type
        | gimli::DW_TAG_union_type
        | gimli::DW_TAG_enumeration_type => is_c,
        _ => false,
    }
}

/// Whether the form is that of an offset within the unit.
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

/// A value that is a number, a flag or an offset; `None` of another one.
fn number(value: &mut Slice<'_>, spec: &Spec) -> Option<u64> {
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

/// Where the text is whose attribute is at `at`; `None` of what is no text.
fn text(value: &mut Slice<'_>, at: usize, spec: &Spec, encoding: Encoding) -> Option<Text> {
    let mut word = || match encoding.format {
        Format::Dwarf32 => value.read_u32().ok().map(u64::from),
        Format::Dwarf64 => value.read_u64().ok(),
    };
    let (section, at) = match spec.form {
        gimli::DW_FORM_strp => (TextSection::Texts, word()?),
        gimli::DW_FORM_line_strp => (TextSection::LineTexts, word()?),
        gimli::DW_FORM_strp_sup | gimli::DW_FORM_GNU_strp_alt => {
            (TextSection::SharedTexts, word()?)
        }
        gimli::DW_FORM_string => (TextSection::Unit, at as u64),
        gimli::DW_FORM_strx | gimli::DW_FORM_GNU_str_index => {
            (TextSection::Table, value.read_uleb128().ok()?)
        }
        gimli::DW_FORM_strx1 | gimli::DW_FORM_strx2 | gimli::DW_FORM_strx4 => {
            (TextSection::Table, number(value, spec)?)
        }
        gimli::DW_FORM_strx3 => (TextSection::Table, value.read_uint(3).ok()?),
        _ => return None,
    };
    let at = usize::try_from(at).ok()?;
    Some(Text { section, at })
}
