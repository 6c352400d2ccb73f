//! What the abbreviations of a unit say of the size of its entries, worked out once, so that entries which nobody asks for
//! are passed over by one addition.

use gimli::{
    DebugAbbrevOffset, DwAt, DwForm, DwTag, Dwarf, Encoding, Format, Reader as _, Section as _,
};
use rustc_hash::FxHashMap;

use super::leb;
use super::sections::Slice;

/// The highest code that is looked up by its position; compilers number from 1.
const MAX_DENSE: u64 = 1 << 16;

/// How many abbreviations most units have at most.
const USUAL_SHAPES: usize = 512;

/// What the standard's forms are below.
const FORMS: u16 = gimli::DW_FORM_addrx4.0 + 1;

/// The name of attributes that stand for nothing but their bytes.
pub(super) const UNREAD: DwAt = DwAt(0);

/// Whether an attribute says anything of an entry that is skimmed.
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

/// One attribute of an abbreviation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    pub(super) name: DwAt,
    pub(super) form: DwForm,
    /// The value that stands in the abbreviation.
    pub(super) implicit: i64,
    /// Bytes of the value, where all of this form have the same.
    pub(super) size: Option<u8>,
}

impl Spec {
    /// The next one of an abbreviation, unless there is no more; `None` where it is damaged.
    pub(super) fn read(table: &[u8], at: &mut usize, sizes: &Sizes) -> Option<Option<Self>> {
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

/// A number that all entries of an abbreviation have at one place.
#[derive(Debug, Clone, Copy)]
pub(super) enum FixedNumber {
    /// In the abbreviation.
    Implicit(u64),
    /// In so many bytes that begin so far behind the code.
    At { distance: u32, size: u8 },
}

impl FixedNumber {
    fn of(spec: &Spec, distance: Option<u32>) -> Option<Self> {
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

/// What finds the names of an entry, by distances from the end of its code: in four bytes each.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fixed {
    /// Where in `.debug_str` the names are.
    pub(super) names: [Option<u32>; 2],
    /// Which entry of the unit it is a copy of, or completes.
    pub(super) origin: Option<u32>,
    /// Whether the origin is that of a copy.
    pub(super) is_copy: bool,
    /// The source file that an inlined function is called from.
    pub(super) call_file: Option<FixedNumber>,
    pub(super) is_declaration: bool,
    /// Whether addresses are among the attributes.
    pub(super) has_addresses: bool,
}

impl Fixed {
    /// The same with one attribute more, which is at this distance if that is fixed.
    fn with(self, spec: &Spec, distance: Option<u32>) -> Option<Self> {
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
                fixed.is_copy = spec.name == gimli::DW_AT_abstract_origin;
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

/// The entries of one abbreviation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub(super) tag: DwTag,
    pub(super) has_children: bool,
    pub(super) is_wanted: bool,
    /// Bytes behind the code, where all such entries have the same.
    pub(super) size: Option<u32>,
    /// How far behind the code it stands where the entries below end, in four bytes.
    pub(super) sibling: Option<u32>,
    /// Whether nothing that is below is wanted.
    pub(super) is_closed: bool,
    code: usize,
    /// Where the names are and the reference to the entry with more of them, if all are at fixed distances.
    pub(super) fixed: Option<Fixed>,
    /// Position of the first attribute among all, and of that behind the last. Empty where no one needs them.
    specs: (u32, u32),
}

/// How entries with one code of one byte are passed over.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// Bytes of the entry; `u32::MAX` where more must be known of it.
    pub(super) size: u32,
    /// How many entries deeper the next one is.
    pub(super) deeper: i32,
}

impl Step {
    const UNKNOWN: Self = Self {
        size: u32::MAX,
        deeper: 0,
    };
    /// A zero ends what is below an entry.
    const UP: Self = Self {
        size: 1,
        deeper: -1,
    };

    fn of(shape: &Shape) -> Self {
        let is_passed = !shape.is_wanted && !shape.is_closed;
        let size = shape.size.filter(|_| is_passed);
        Self {
            size: size
                .and_then(|size| size.checked_add(1))
                .unwrap_or(u32::MAX),
            deeper: shape.has_children.into(),
        }
    }
}

/// The abbreviations of one unit.
#[derive(Debug)]
pub(super) struct Plan {
    /// By the first byte of an entry.
    steps: Box<[Step; 256]>,
    shapes: Vec<Shape>,
    /// Positions among the shapes, plus one, by code.
    dense: Vec<u32>,
    /// The same by higher codes.
    sparse: FxHashMap<u64, u32>,
    specs: Vec<Spec>,
}

impl Plan {
    /// Reads the abbreviations at `offset` for entries of this encoding, and marks those that `is_wanted` says yes to by their
    /// tag. `None` where they are damaged.
    pub(super) fn read(
        dwarf: &Dwarf<Slice<'_>>,
        offset: DebugAbbrevOffset,
        encoding: Encoding,
        is_wanted: &dyn Fn(DwTag) -> bool,
    ) -> Option<Self> {
        let mut plan = Self {
            steps: Box::new([Step::UNKNOWN; 256]),
            shapes: Vec::with_capacity(USUAL_SHAPES),
            dense: Vec::with_capacity(USUAL_SHAPES),
            sparse: FxHashMap::default(),
            specs: Vec::with_capacity(USUAL_SHAPES),
        };
        plan.set_step(0, Step::UP);
        let table = dwarf.debug_abbrev.reader().slice();
        let mut at = offset.0;
        let sizes = Sizes::new(encoding);
        loop {
            let code = leb::unsigned(table, &mut at)?;
            if code == 0 {
                return Some(plan);
            }
            let tag = DwTag(u16::try_from(leb::unsigned(table, &mut at)?).ok()?);
            let has_children = *table.get(at)? == gimli::DW_CHILDREN_yes.0;
            at += 1;
            let position = |len: usize| u32::try_from(len).unwrap_or(u32::MAX);
            let first = plan.specs.len();
            let mut shape = Shape {
                tag,
                has_children,
                is_wanted: is_wanted(tag),
                is_closed: false,
                code: usize::try_from(code).unwrap_or(usize::MAX),
                size: None,
                sibling: None,
                fixed: None,
                specs: (position(first), position(first)),
            };
            plan.add_specs(table, &mut at, &sizes, &mut shape)?;
            match shape.is_wanted || shape.size.is_none() {
                true => shape.specs.1 = position(plan.specs.len()),
                false => plan.specs.truncate(first),
            }
            plan.add(code, shape)?;
        }
    }

    /// Reads the attributes of one abbreviation into `shape`.
    fn add_specs(
        &mut self,
        table: &[u8],
        at: &mut usize,
        sizes: &Sizes,
        shape: &mut Shape,
    ) -> Option<()> {
        let mut sum = Some(0_u32);
        // What nobody reads needs no names.
        let mut fixed = shape.is_wanted.then(Fixed::default);
        while let Some(spec) = Spec::read(table, at, sizes)? {
            if spec.name == gimli::DW_AT_sibling && spec.form == gimli::DW_FORM_ref4 {
                shape.sibling = sum;
            }
            fixed = fixed.and_then(|fixed| fixed.with(&spec, sum));
            let more = |sum: u32| sum.checked_add(u32::from(spec.size?));
            sum = sum.and_then(more);
            let is_read = shape.is_wanted && is_read(spec.name);
            self.add_spec(spec, is_read, shape.specs.0 as usize);
        }
        shape.size = sum;
        shape.fixed = fixed;
        Some(())
    }

    /// Adds an attribute of the abbreviation whose first is at `first`. Those that nobody reads are passed over as one.
    fn add_spec(&mut self, spec: Spec, is_read: bool, first: usize) {
        let (false, Some(size)) = (is_read, spec.size) else {
            self.specs.push(spec);
            return;
        };
        let own = self.specs.get_mut(first..).unwrap_or_default();
        let run = own.last_mut().filter(|last| last.name == UNREAD);
        let both = run.and_then(|run| {
            let sum = run.size?.checked_add(size)?;
            run.size = Some(sum);
            Some(())
        });
        if both.is_none() {
            self.specs.push(Spec {
                name: UNREAD,
                ..spec
            });
        }
    }

    /// Closes the entries that `is_closed` says yes to by their tag: what is below them is passed over where they say how
    /// far that goes.
    pub(super) fn close(&mut self, is_closed: &dyn Fn(DwTag) -> bool) {
        for shape in &mut self.shapes {
            let may_close = shape.sibling.is_some() && shape.has_children && !shape.is_wanted;
            shape.is_closed = may_close && is_closed(shape.tag);
            if shape.is_closed
                && let Some(slot) = self.steps.get_mut(shape.code).filter(|_| shape.code < 0x80)
            {
                *slot = Step::of(shape);
            }
        }
    }

    /// `None` where the code is taken.
    fn add(&mut self, code: u64, shape: Shape) -> Option<()> {
        if self.shape(code).is_some() {
            return None;
        }
        self.shapes.push(shape);
        let number = u32::try_from(self.shapes.len()).ok()?;
        let at = shape.code;
        if code >= MAX_DENSE {
            self.sparse.insert(code, number);
            return Some(());
        }
        if self.dense.len() <= at {
            self.dense.resize(at + 1, 0);
        }
        *self.dense.get_mut(at)? = number;
        self.set_step(at, Step::of(&shape));
        Some(())
    }

    /// Codes from 128 on have more than one byte.
    fn set_step(&mut self, code: usize, step: Step) {
        if let Some(slot) = self.steps.get_mut(code).filter(|_| code < 0x80) {
            *slot = step;
        }
    }

    /// How an entry that begins with this byte is passed over.
    #[inline]
    pub(super) fn step(&self, first: u8) -> Step {
        // There is one for each byte.
        self.steps
            .get(usize::from(first))
            .copied()
            .unwrap_or(Step::UNKNOWN)
    }

    /// What entries with this code are like.
    pub(super) fn shape(&self, code: u64) -> Option<&Shape> {
        let number = match code {
            0..MAX_DENSE => *self.dense.get(usize::try_from(code).ok()?)?,
            _ => *self.sparse.get(&code)?,
        };
        self.shapes.get((number as usize).checked_sub(1)?)
    }

    /// The attributes of such entries.
    pub(super) fn specs(&self, shape: &Shape) -> &[Spec] {
        let (first, end) = shape.specs;
        let specs = self.specs.get(first as usize..end as usize);
        specs.unwrap_or_default()
    }
}

/// Bytes of values by their form, for one encoding.
pub(super) struct Sizes {
    encoding: Encoding,
    /// Of forms below 256.
    known: [Option<u8>; 256],
}

impl Sizes {
    pub(super) fn new(encoding: Encoding) -> Self {
        let mut known = [None; 256];
        for (form, size) in (0..FORMS).zip(&mut known) {
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

/// Bytes of a value of this form; `None` where that depends on the value.
fn fixed_size(form: DwForm, encoding: Encoding) -> Option<u8> {
    let word = match encoding.format {
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
        | gimli::DW_FORM_GNU_strp_alt => word,
        gimli::DW_FORM_addr => encoding.address_size,
        // DWARF 2 had no word of its own for it.
        gimli::DW_FORM_ref_addr if encoding.version == 2 => encoding.address_size,
        gimli::DW_FORM_ref_addr => word,
        _ => return None,
    })
}

/// Goes behind the value of this form at `at`. `None` where the form is unknown, or the value damaged.
#[inline]
pub(super) fn skip_value(
    unit: Slice<'_>,
    at: &mut usize,
    spec: &Spec,
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
            let direct = directly(bytes, at, spec, encoding)?;
            return skip_value(unit, at, &direct, encoding);
        }
        _ => return None,
    };
    // Only so far that the sizes of what follows can be added.
    *at = at.checked_add(len).filter(|at| *at <= bytes.len())?;
    Some(())
}

fn number_at(unit: Slice<'_>, at: &mut usize, size: usize) -> Option<usize> {
    let mut rest = unit;
    rest.skip(*at).ok()?;
    *at += size;
    usize::try_from(rest.read_uint(size).ok()?).ok()
}

/// The form of a value that says so itself.
pub(super) fn directly(
    bytes: &[u8],
    at: &mut usize,
    spec: &Spec,
    encoding: Encoding,
) -> Option<Spec> {
    let form = DwForm(u16::try_from(leb::unsigned(bytes, at)?).ok()?);
    let implicit = match form {
        gimli::DW_FORM_indirect => return None,
        gimli::DW_FORM_implicit_const => leb::signed(bytes, at)?,
        _ => 0,
    };
    Some(Spec {
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
    fn nothing_leads_further_than_the_end_of_the_unit() {
        let encoding = Encoding {
            format: Format::Dwarf32,
            version: 5,
            address_size: 8,
        };
        let skipped = |form, bytes: &[u8]| {
            let spec = Spec {
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
        // So near to the highest number that the size of the next value could not be added.
        let largest = [[0xf4].as_slice(), &[0xff; 8], &[1]].concat();
        assert_eq!(skipped(gimli::DW_FORM_exprloc, &largest), None);
    }
}
