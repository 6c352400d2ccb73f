//! The abbreviations of a unit with the sizes of their entries: unneeded entries of a fixed size are skipped by one addition.

use gimli::{
    DebugAbbrevOffset, DwAt, DwForm, DwTag, Dwarf, Encoding, Format, Reader as _, Section as _,
};
use rustc_hash::FxHashMap;

use super::leb;
use super::sections::Slice;

/// Codes below this are in the dense table; compilers number from 1.
const DENSE_LIMIT: u64 = 1 << 16;

/// Codes from this on take more than one byte as LEB128.
const ONE_BYTE_LIMIT: usize = 0x80;

const INITIAL_CAPACITY: usize = 512;

/// One more than the largest form of the DWARF 5 standard. The forms from this on to 255 are unknown; GNU's are larger.
const FORM_LIMIT: u16 = gimli::DW_FORM_addrx4.0 + 1;

/// Name of attributes that are skipped.
pub(super) const SKIPPED: DwAt = DwAt(0);

/// Whether the scanner of a unit (`DieScanner`) reads an attribute.
fn is_read(name: DwAt) -> bool {
    matches!(
        name,
        gimli::DW_AT_name
            | gimli::DW_AT_linkage_name
            | gimli::DW_AT_MIPS_linkage_name
            | gimli::DW_AT_abstract_origin
            | gimli::DW_AT_specification
            | gimli::DW_AT_declaration
            | gimli::DW_AT_low_pc
            | gimli::DW_AT_ranges
            | gimli::DW_AT_entry_pc
            | gimli::DW_AT_decl_file
            | gimli::DW_AT_decl_line
            | gimli::DW_AT_call_file
            | gimli::DW_AT_call_line
            | gimli::DW_AT_language
            | gimli::DW_AT_str_offsets_base
            | gimli::DW_AT_GNU_dwo_id
            | gimli::DW_AT_GNU_dwo_name
            | gimli::DW_AT_dwo_name
    )
}

/// An attribute of an abbreviation.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttributeSpec {
    pub(super) name: DwAt,
    pub(super) form: DwForm,
    /// The value of `DW_FORM_implicit_const`, which is part of the abbreviation; otherwise 0.
    pub(super) implicit: i64,
    /// Size of the value in bytes, if all values of this form have the same size; for [`SKIPPED`], the sum of one or more
    /// consecutive attributes.
    pub(super) size: Option<u8>,
}

impl AttributeSpec {
    /// Reads the next attribute of an abbreviation: `Some(None)` at the end of the attributes, `None` if the table is damaged.
    pub(super) fn read(table: &[u8], at: &mut usize, sizes: &FormSizes) -> Option<Option<Self>> {
        let mut word = || u16::try_from(leb::unsigned(table, at)?).ok();
        let name = DwAt(word()?);
        let form = DwForm(word()?);
        let implicit = match form {
            gimli::DW_FORM_implicit_const => leb::signed(table, at)?,
            _ => 0,
        };
        if name.0 == 0 && form.0 == 0 {
            return Some(None);
        }
        Some(Some(Self {
            name,
            form,
            implicit,
            size: sizes.of(form),
        }))
    }
}

/// Where to find a number attribute in all entries of an abbreviation.
#[derive(Debug, Clone, Copy)]
pub(super) enum FixedNumber {
    /// The value is part of the abbreviation.
    Implicit(u64),
    /// A number of `size` bytes, `distance` bytes after the end of the code.
    At { distance: u32, size: u8 },
}

impl FixedNumber {
    fn of(spec: &AttributeSpec, distance: Option<u32>) -> Option<Self> {
        match spec.form {
            gimli::DW_FORM_implicit_const => Some(Self::Implicit(spec.implicit.try_into().ok()?)),
            gimli::DW_FORM_data1 | gimli::DW_FORM_data2 | gimli::DW_FORM_data4 => Some(Self::At {
                distance: distance?,
                size: spec.size?,
            }),
            _ => None,
        }
    }
}

/// Attributes of an abbreviation. Positions are distances in bytes from the end of an entry's code; names and origin have four
/// bytes each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FixedDistances {
    /// Distances of the name and of the linkage name, whose values are offsets in `.debug_str`.
    pub(super) names: [Option<u32>; 2],
    /// Distance of the reference to the abstract origin or specification, an entry of the same unit.
    pub(super) origin: Option<u32>,
    /// Whether `origin` is an abstract origin.
    pub(super) has_abstract_origin: bool,
    /// The source file of an inlined function's call site.
    pub(super) call_file: Option<FixedNumber>,
    pub(super) is_declaration: bool,
    /// Whether the entry has address attributes.
    pub(super) has_addresses: bool,
}

impl FixedDistances {
    /// Adds an attribute, located at `distance` if that is fixed. Returns `None` if a name or the origin is not at a fixed
    /// distance, if a name is not a four-byte `DW_FORM_strp` or an origin not a `DW_FORM_ref4`, or if there are two origins.
    fn with(self, spec: &AttributeSpec, distance: Option<u32>) -> Option<Self> {
        let name = || distance.filter(|_| spec.form == gimli::DW_FORM_strp && spec.size == Some(4));
        let [first, second] = self.names;
        let mut fixed = self;
        match spec.name {
            gimli::DW_AT_name => fixed.names = [Some(name()?), second],
            gimli::DW_AT_linkage_name | gimli::DW_AT_MIPS_linkage_name => {
                fixed.names = [first, Some(name()?)];
            }
            gimli::DW_AT_abstract_origin | gimli::DW_AT_specification => {
                let is_single = self.origin.is_none() && spec.form == gimli::DW_FORM_ref4;
                fixed.origin = Some(distance.filter(|_| is_single)?);
                fixed.has_abstract_origin = spec.name == gimli::DW_AT_abstract_origin;
            }
            gimli::DW_AT_low_pc | gimli::DW_AT_ranges | gimli::DW_AT_entry_pc => {
                fixed.has_addresses = true;
            }
            gimli::DW_AT_declaration => fixed.is_declaration = true,
            gimli::DW_AT_call_file => fixed.call_file = FixedNumber::of(spec, distance),
            _ => {}
        }
        Some(fixed)
    }
}

/// An abbreviation, and what its entries have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abbreviation {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    pub(super) is_wanted: bool,
    /// Size of an entry after its code in bytes, if all these entries have the same size.
    pub(super) size: Option<u32>,
    /// Distance in bytes from the end of the code to `DW_AT_sibling`, the four-byte offset of the end of the children.
    pub(super) sibling: Option<u32>,
    /// Whether its entries are skipped together with their children.
    pub(super) skips_children: bool,
    code: usize,
    /// Positions of the names and of the origin, if all of them are fixed. `None` for unwanted entries.
    pub(super) fixed: Option<FixedDistances>,
    /// Index range of its attributes. Empty if they aren't needed.
    specs: (u32, u32),
}

/// How to skip entries with a one-byte code.
#[derive(Debug, Clone, Copy)]
pub(super) struct SkipStep {
    /// Size of the entry including its code; `u32::MAX` if it isn't fixed, if the code is unknown or longer than one byte, if
    /// the entry is wanted, or if its children are skipped with it.
    pub(super) size: u32,
    /// Change of depth at the next entry.
    pub(super) depth_change: i32,
}

impl SkipStep {
    const UNKNOWN: Self = Self {
        size: u32::MAX,
        depth_change: 0,
    };
    /// A zero code ends the children of an entry.
    const UP: Self = Self {
        size: 1,
        depth_change: -1,
    };

    fn of(abbreviation: &Abbreviation) -> Self {
        let is_passed = !abbreviation.is_wanted && !abbreviation.skips_children;
        let size = abbreviation.size.filter(|_| is_passed);
        Self {
            size: size
                .and_then(|size| size.checked_add(1))
                .unwrap_or(u32::MAX),
            depth_change: abbreviation.has_children.into(),
        }
    }
}

/// The abbreviations of one unit.
#[derive(Debug)]
pub(super) struct AbbreviationTable {
    /// Indexed by the first byte of an entry.
    steps: Box<[SkipStep; 256]>,
    abbreviations: Vec<Abbreviation>,
    /// Index in `abbreviations` plus one, by code; 0 for codes that are not used.
    dense: Vec<u32>,
    /// The same for larger codes.
    sparse: FxHashMap<u64, u32>,
    specs: Vec<AttributeSpec>,
}

impl AbbreviationTable {
    /// Reads the abbreviations at `offset` for entries with this encoding, and marks those whose
    /// tag is accepted by `is_wanted`. `None` if they are damaged.
    pub(super) fn read(
        dwarf: &Dwarf<Slice<'_>>,
        offset: DebugAbbrevOffset,
        encoding: Encoding,
        is_wanted: &dyn Fn(DwTag) -> bool,
    ) -> Option<Self> {
        let mut result = Self {
            steps: Box::new([SkipStep::UNKNOWN; 256]),
            abbreviations: Vec::with_capacity(INITIAL_CAPACITY),
            dense: Vec::with_capacity(INITIAL_CAPACITY),
            sparse: FxHashMap::default(),
            specs: Vec::with_capacity(INITIAL_CAPACITY),
        };
        result.set_step(0, SkipStep::UP);
        let table = dwarf.debug_abbrev.reader().slice();
        let mut at = offset.0;
        let sizes = FormSizes::new(encoding);
        loop {
            let code = leb::unsigned(table, &mut at)?;
            if code == 0 {
                return Some(result);
            }
            let tag = DwTag(u16::try_from(leb::unsigned(table, &mut at)?).ok()?);
            let has_children = *table.get(at)? == gimli::DW_CHILDREN_yes.0;
            at += 1;
            let spec_index = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
            let first = result.specs.len();
            let mut abbreviation = Abbreviation {
                tag,
                has_children,
                is_wanted: is_wanted(tag),
                skips_children: false,
                code: usize::try_from(code).unwrap_or(usize::MAX),
                size: None,
                sibling: None,
                fixed: None,
                specs: (spec_index(first), spec_index(first)),
            };
            result.add_specs(table, &mut at, &sizes, &mut abbreviation)?;
            // An unwanted entry of a fixed size is skipped without its attributes.
            match abbreviation.is_wanted || abbreviation.size.is_none() {
                true => abbreviation.specs.1 = spec_index(result.specs.len()),
                false => result.specs.truncate(first),
            }
            result.add(code, abbreviation)?;
        }
    }

    /// Reads the attributes of `abbreviation`. Sets its size and its positions, and adds to `specs`.
    fn add_specs(
        &mut self,
        table: &[u8],
        at: &mut usize,
        sizes: &FormSizes,
        abbreviation: &mut Abbreviation,
    ) -> Option<()> {
        let mut distance = Some(0_u32);
        // Entries that aren't wanted need no names.
        let mut fixed = abbreviation.is_wanted.then(FixedDistances::default);
        while let Some(spec) = AttributeSpec::read(table, at, sizes)? {
            if spec.name == gimli::DW_AT_sibling && spec.form == gimli::DW_FORM_ref4 {
                abbreviation.sibling = distance;
            }
            fixed = fixed.and_then(|fixed| fixed.with(&spec, distance));
            distance = distance.and_then(|distance| distance.checked_add(spec.size?.into()));
            let is_read = abbreviation.is_wanted && is_read(spec.name);
            self.add_spec(spec, is_read, abbreviation.specs.0 as usize);
        }
        abbreviation.size = distance;
        abbreviation.fixed = fixed;
        Some(())
    }

    /// Adds an attribute of the abbreviation whose first attribute has index `first`. Consecutive
    /// unneeded ones of fixed size are merged.
    fn add_spec(&mut self, spec: AttributeSpec, is_read: bool, first: usize) {
        let (false, Some(size)) = (is_read, spec.size) else {
            self.specs.push(spec);
            return;
        };
        let specs = self.specs.get_mut(first..).unwrap_or_default();
        let run = specs.last_mut().filter(|last| last.name == SKIPPED);
        let merged = run.and_then(|run| {
            let sum = run.size?.checked_add(size)?;
            run.size = Some(sum);
            Some(())
        });
        if merged.is_none() {
            self.specs.push(AttributeSpec {
                name: SKIPPED,
                ..spec
            });
        }
    }

    /// Lets the scanner skip entries with a tag accepted by `is_skippable` together with their children, except those of wanted
    /// abbreviations and those without a `DW_AT_sibling` at a fixed distance.
    pub(super) fn skip_children_of(&mut self, is_skippable: &dyn Fn(DwTag) -> bool) {
        for abbreviation in &mut self.abbreviations {
            let may_skip = abbreviation.sibling.is_some()
                && abbreviation.has_children
                && !abbreviation.is_wanted;
            abbreviation.skips_children = may_skip && is_skippable(abbreviation.tag);
            if abbreviation.skips_children
                && let Some(slot) = self
                    .steps
                    .get_mut(abbreviation.code)
                    .filter(|_| abbreviation.code < ONE_BYTE_LIMIT)
            {
                // Such an entry has no fixed step: the scanner has to read its `DW_AT_sibling`.
                *slot = SkipStep::of(abbreviation);
            }
        }
    }

    /// Adds an abbreviation; `None` if its code is already in use.
    fn add(&mut self, code: u64, abbreviation: Abbreviation) -> Option<()> {
        if self.abbreviation(code).is_some() {
            return None;
        }
        self.abbreviations.push(abbreviation);
        let number = u32::try_from(self.abbreviations.len()).ok()?;
        let index = abbreviation.code;
        if code >= DENSE_LIMIT {
            self.sparse.insert(code, number);
            return Some(());
        }
        if self.dense.len() <= index {
            self.dense.resize(index + 1, 0);
        }
        *self.dense.get_mut(index)? = number;
        self.set_step(index, SkipStep::of(&abbreviation));
        Some(())
    }

    /// Sets how to skip entries with this code, if the code is encoded in one byte.
    fn set_step(&mut self, code: usize, step: SkipStep) {
        if let Some(slot) = self.steps.get_mut(code).filter(|_| code < ONE_BYTE_LIMIT) {
            *slot = step;
        }
    }

    /// How to skip an entry that begins with this byte.
    #[inline]
    pub(super) fn step(&self, first_byte: u8) -> SkipStep {
        // The table has an entry for each byte.
        self.steps
            .get(usize::from(first_byte))
            .copied()
            .unwrap_or(SkipStep::UNKNOWN)
    }

    /// The abbreviation with this code.
    pub(super) fn abbreviation(&self, code: u64) -> Option<&Abbreviation> {
        let number = match code {
            0..DENSE_LIMIT => *self.dense.get(usize::try_from(code).ok()?)?,
            _ => *self.sparse.get(&code)?,
        };
        self.abbreviations.get((number as usize).checked_sub(1)?)
    }

    /// The attributes of `abbreviation`.
    pub(super) fn specs(&self, abbreviation: &Abbreviation) -> &[AttributeSpec] {
        let (first, end) = abbreviation.specs;
        let specs = self.specs.get(first as usize..end as usize);
        specs.unwrap_or_default()
    }
}

/// Sizes of values by form, for one encoding.
pub(super) struct FormSizes {
    encoding: Encoding,
    /// For forms below 256.
    known: [Option<u8>; 256],
}

impl FormSizes {
    pub(super) fn new(encoding: Encoding) -> Self {
        let mut known = [None; 256];
        for (form, size) in (0..FORM_LIMIT).zip(&mut known) {
            *size = fixed_size(DwForm(form), encoding);
        }
        Self { encoding, known }
    }

    #[inline]
    fn of(&self, form: DwForm) -> Option<u8> {
        match self.known.get(usize::from(form.0)) {
            Some(size) => *size,
            None => fixed_size(form, self.encoding),
        }
    }
}

/// Size of a value of this form; `None` if it depends on the value, or if the form is unknown.
fn fixed_size(form: DwForm, encoding: Encoding) -> Option<u8> {
    let offset_size = match encoding.format {
        Format::Dwarf32 => 4,
        Format::Dwarf64 => 8,
    };
    Some(match form {
        gimli::DW_FORM_flag_present | gimli::DW_FORM_implicit_const => 0,
        gimli::DW_FORM_data1
        | gimli::DW_FORM_ref1
        | gimli::DW_FORM_flag
        | gimli::DW_FORM_strx1
        | gimli::DW_FORM_addrx1 => 1,
        gimli::DW_FORM_data2
        | gimli::DW_FORM_ref2
        | gimli::DW_FORM_strx2
        | gimli::DW_FORM_addrx2 => 2,
        gimli::DW_FORM_strx3 | gimli::DW_FORM_addrx3 => 3,
        gimli::DW_FORM_data4
        | gimli::DW_FORM_ref4
        | gimli::DW_FORM_strx4
        | gimli::DW_FORM_addrx4
        | gimli::DW_FORM_ref_sup4 => 4,
        gimli::DW_FORM_data8
        | gimli::DW_FORM_ref8
        | gimli::DW_FORM_ref_sig8
        | gimli::DW_FORM_ref_sup8 => 8,
        gimli::DW_FORM_data16 => 16,
        gimli::DW_FORM_strp
        | gimli::DW_FORM_line_strp
        | gimli::DW_FORM_sec_offset
        | gimli::DW_FORM_strp_sup
        | gimli::DW_FORM_GNU_ref_alt
        | gimli::DW_FORM_GNU_strp_alt => offset_size,
        gimli::DW_FORM_addr => encoding.address_size,
        // In DWARF 2, this reference has the size of an address.
        gimli::DW_FORM_ref_addr if encoding.version == 2 => encoding.address_size,
        gimli::DW_FORM_ref_addr => offset_size,
        _ => return None,
    })
}

/// Skips the value of attribute `spec` at `at`. `None` if its form is unknown, or if a value of variable size is damaged. A
/// value of fixed size may end after the unit.
#[inline]
pub(super) fn skip_value(
    unit: Slice<'_>,
    at: &mut usize,
    spec: &AttributeSpec,
    encoding: Encoding,
) -> Option<()> {
    if let Some(size) = spec.size {
        *at += usize::from(size);
        return Some(());
    }
    let bytes = unit.slice();
    let len = match spec.form {
        gimli::DW_FORM_udata
        | gimli::DW_FORM_sdata
        | gimli::DW_FORM_ref_udata
        | gimli::DW_FORM_strx
        | gimli::DW_FORM_addrx
        | gimli::DW_FORM_loclistx
        | gimli::DW_FORM_rnglistx
        | gimli::DW_FORM_GNU_addr_index
        | gimli::DW_FORM_GNU_str_index => return leb::skip(bytes, at),
        gimli::DW_FORM_block | gimli::DW_FORM_exprloc => {
            usize::try_from(leb::unsigned(bytes, at)?).ok()?
        }
        gimli::DW_FORM_string => memchr::memchr(0, bytes.get(*at..)?)? + 1,
        gimli::DW_FORM_block1 => number_at(unit, at, 1)?,
        gimli::DW_FORM_block2 => number_at(unit, at, 2)?,
        gimli::DW_FORM_block4 => number_at(unit, at, 4)?,
        gimli::DW_FORM_indirect => {
            let direct = resolve_indirect(bytes, at, spec, encoding)?;
            return skip_value(unit, at, &direct, encoding);
        }
        _ => return None,
    };
    // Limited, so that adding the sizes of the following values cannot overflow.
    *at = at.checked_add(len).filter(|at| *at <= bytes.len())?;
    Some(())
}

fn number_at(unit: Slice<'_>, at: &mut usize, size: usize) -> Option<usize> {
    let mut rest = unit;
    rest.skip(*at).ok()?;
    *at += size;
    usize::try_from(rest.read_uint(size).ok()?).ok()
}

/// Reads the form that precedes a value of `DW_FORM_indirect`. Returns the attribute with this form.
pub(super) fn resolve_indirect(
    bytes: &[u8],
    at: &mut usize,
    spec: &AttributeSpec,
    encoding: Encoding,
) -> Option<AttributeSpec> {
    let form = DwForm(u16::try_from(leb::unsigned(bytes, at)?).ok()?);
    let implicit = match form {
        gimli::DW_FORM_indirect => return None,
        gimli::DW_FORM_implicit_const => leb::signed(bytes, at)?,
        _ => 0,
    };
    Some(AttributeSpec {
        form,
        implicit,
        size: fixed_size(form, encoding),
        ..*spec
    })
}

#[cfg(test)]
mod tests {
    use gimli::{EndianSlice, RunTimeEndian};

    use super::*;

    #[test]
    fn values_of_variable_size_must_end_within_the_unit() {
        let encoding = Encoding {
            format: Format::Dwarf32,
            version: 5,
            address_size: 8,
        };
        let skipped = |form, bytes: &[u8]| {
            let spec = AttributeSpec {
                name: gimli::DW_AT_name,
                form,
                implicit: 0,
                size: None,
            };
            let mut at = 0;
            let unit = EndianSlice::new(bytes, RunTimeEndian::Little);
            skip_value(unit, &mut at, &spec, encoding).map(|()| at)
        };
        assert_eq!(skipped(gimli::DW_FORM_block, &[2, 0, 0]), Some(3));
        assert_eq!(skipped(gimli::DW_FORM_block, &[3, 0, 0]), None);
        assert_eq!(skipped(gimli::DW_FORM_block1, &[0xff]), None);
        assert_eq!(skipped(gimli::DW_FORM_string, b"a\0"), Some(2));
        assert_eq!(skipped(gimli::DW_FORM_string, b"a"), None);
        // This value would end close to the maximum position, so that adding the size of the next value would overflow.
        let largest = [[0xf4].as_slice(), &[0xff; 8], &[1]].concat();
        assert_eq!(skipped(gimli::DW_FORM_exprloc, &largest), None);
    }
}
