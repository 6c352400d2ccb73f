//! Types: what a variable is made of, and how a value of it is shown.

use gimli::{AttributeValue, DwTag};

use super::die::Die;

/// How many types are looked through from one to what it stands for.
const MAX_LAYERS: usize = 32;

/// What can be done with a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Pointer,
    Array,
    /// Structures, unions and classes.
    Record,
    Other,
}

/// A member of a record: how far from its start, and what it is.
#[derive(Debug, Clone)]
pub(crate) struct Step<'w, 'u> {
    pub(crate) offset: i64,
    pub(crate) member: Die<'w, 'u>,
    /// Width and distance from the lowest bit, in bits, and the bytes that they lie in.
    pub(crate) bits: Option<(u64, u64, u64)>,
}

impl<'w, 'u> Die<'w, 'u> {
    /// The type that this entry refers to.
    fn type_of(&self) -> Option<Self> {
        let (holder, _) = self.find(gimli::DW_AT_type)?;
        holder.reference(gimli::DW_AT_type)
    }

    /// The same behind other names and qualifiers.
    pub(crate) fn real_type(&self) -> Option<Self> {
        let mut found = self.type_of()?;
        for _ in 0..MAX_LAYERS {
            match found.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type
                | gimli::DW_TAG_shared_type => found = found.type_of()?,
                _ => return Some(found),
            }
        }
        None
    }

    pub(crate) fn kind(&self) -> Kind {
        match self.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => Kind::Pointer,
            gimli::DW_TAG_array_type => Kind::Array,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_class_type => {
                Kind::Record
            }
            _ => Kind::Other,
        }
    }

    /// Bytes of a value of this type, where the entry says so or it is a pointer.
    pub(crate) fn byte_size(&self) -> Option<u64> {
        let said = self.number(gimli::DW_AT_byte_size);
        let pointer = || u64::from(self.unit().header.address_size());
        said.or_else(|| (self.kind() == Kind::Pointer).then(pointer))
    }

    /// Bytes of a value of this type, counted for arrays.
    pub(crate) fn whole_size(&self) -> Option<u64> {
        if self.kind() != Kind::Array {
            return self.byte_size();
        }
        let element = self.real_type()?.whole_size()?;
        self.byte_size()
            .or_else(|| element.checked_mul(self.elements()?))
    }

    /// The number of an array's elements.
    fn elements(&self) -> Option<u64> {
        let ranges = self.children();
        let mut counts = ranges
            .iter()
            .filter(|range| range.tag() == gimli::DW_TAG_subrange_type)
            .map(|range| {
                let count = range.number(gimli::DW_AT_count);
                let bound = range.number(gimli::DW_AT_upper_bound);
                count.or_else(|| bound?.checked_add(1))
            });
        counts.try_fold(1_u64, |product, count| product.checked_mul(count?))
    }

    /// The number of an array's dimensions.
    pub(crate) fn dimensions(&self) -> usize {
        let ranges = self.children();
        let is_range = |die: &&Self| die.tag() == gimli::DW_TAG_subrange_type;
        ranges.iter().filter(is_range).count()
    }

    /// Whether numbers of this type have a sign.
    pub(crate) fn is_signed(&self) -> bool {
        matches!(
            self.own(gimli::DW_AT_encoding),
            Some(AttributeValue::Encoding(
                gimli::DW_ATE_signed | gimli::DW_ATE_signed_char | gimli::DW_ATE_signed_fixed
            ))
        )
    }

    /// Whether characters of this type make text.
    pub(crate) fn is_character(&self) -> bool {
        let name = self.name().unwrap_or_default();
        matches!(
            name.as_str(),
            "char" | "unsigned char" | "signed char" | "char8_t" | "u8" | "i8"
        )
    }

    /// The member of this name, also of unnamed members and of base classes.
    pub(crate) fn member(&self, name: &str) -> Option<Step<'w, 'u>> {
        self.member_within(name, MAX_LAYERS)
    }

    fn member_within(&self, name: &str, layers: usize) -> Option<Step<'w, 'u>> {
        let layers = layers.checked_sub(1)?;
        let children = self.children();
        let parts = || {
            let is_part =
                |tag: DwTag| tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            children.iter().filter(move |child| is_part(child.tag()))
        };
        let named = |child: &&Self| child.name().as_deref() == Some(name);
        if let Some(member) = parts().find(named) {
            return member.step();
        }
        // What is inside of unnamed parts counts as if it stood here.
        let unnamed = parts()
            .filter(|child| child.name().is_none() || child.tag() == gimli::DW_TAG_inheritance);
        unnamed.into_iter().find_map(|part| {
            let outer = part.step()?;
            let inner = part.real_type()?.member_within(name, layers)?;
            Some(Step {
                offset: outer.offset.wrapping_add(inner.offset),
                ..inner
            })
        })
    }

    /// The names of the members.
    pub(crate) fn member_names(&self) -> Vec<String> {
        let children = self.children();
        let members = children
            .iter()
            .filter(|child| child.tag() == gimli::DW_TAG_member);
        members.filter_map(Self::name).collect()
    }

    /// Where this member is in its record.
    fn step(&self) -> Option<Step<'w, 'u>> {
        let offset = self.number(gimli::DW_AT_data_member_location);
        let offset = offset.and_then(|offset| i64::try_from(offset).ok());
        let Some(width) = self.number(gimli::DW_AT_bit_size) else {
            return Some(Step {
                // A union's members need not say that they begin at its start.
                offset: offset.unwrap_or(0),
                member: self.clone(),
                bits: None,
            });
        };
        let size = self.byte_size();
        let size = size.or_else(|| self.real_type()?.byte_size())?;
        let container = size.checked_mul(8).filter(|bits| *bits > 0)?;
        let (start, low) = match self.number(gimli::DW_AT_data_bit_offset) {
            Some(distance) => (distance / container * size, distance % container),
            // Before DWARF 4: counted from the highest bit of the container.
            None => {
                let high = self.number(gimli::DW_AT_bit_offset).unwrap_or(0);
                let start = u64::try_from(offset?).ok()?;
                (start, container.checked_sub(high.checked_add(width)?)?)
            }
        };
        Some(Step {
            offset: i64::try_from(start).ok()?,
            member: self.clone(),
            bits: Some((width, low, size)),
        })
    }

    /// The name of this variable's type in C: `struct item*`, `long int`.
    pub(crate) fn type_name(&self) -> String {
        match self.type_of() {
            Some(found) => found.spelled(MAX_LAYERS),
            None => "void".to_owned(),
        }
    }

    fn spelled(&self, layers: usize) -> String {
        let below = || match (self.type_of(), layers.checked_sub(1)) {
            (Some(found), Some(layers)) => found.spelled(layers),
            _ => "void".to_owned(),
        };
        match self.tag() {
            gimli::DW_TAG_pointer_type | gimli::DW_TAG_array_type => below() + "*",
            gimli::DW_TAG_reference_type => below() + "&",
            gimli::DW_TAG_rvalue_reference_type => below() + "&&",
            gimli::DW_TAG_subroutine_type => "(function_type)".to_owned(),
            gimli::DW_TAG_const_type
            | gimli::DW_TAG_volatile_type
            | gimli::DW_TAG_restrict_type
            | gimli::DW_TAG_atomic_type => below(),
            tag => {
                let word = match tag {
                    gimli::DW_TAG_structure_type => "struct ",
                    gimli::DW_TAG_union_type => "union ",
                    gimli::DW_TAG_enumeration_type => "enum ",
                    _ => "",
                };
                let name = self.name().unwrap_or_else(|| "(unknown_type)".to_owned());
                format!("{word}{name}")
            }
        }
    }
}
