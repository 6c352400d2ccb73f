//! Types in DWARF: their [`TypeShape`], and their names in C.

use gimli::{AttributeValue, DwTag, Operation};

use super::die::Die;
use crate::shape::{BitField, MAX_LAYERS, MAX_RECORDS, RecordMember, TypeCategory, TypeShape};

impl TypeShape for Die<'_, '_> {
    fn name(&self) -> Option<String> {
        self.name()
    }

    fn real_type(&self) -> Option<Self> {
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

    fn kind(&self) -> TypeCategory {
        match self.tag() {
            gimli::DW_TAG_pointer_type
            | gimli::DW_TAG_reference_type
            | gimli::DW_TAG_rvalue_reference_type => TypeCategory::Pointer,
            gimli::DW_TAG_array_type => TypeCategory::Array,
            gimli::DW_TAG_structure_type | gimli::DW_TAG_union_type | gimli::DW_TAG_class_type => {
                TypeCategory::Record
            }
            _ => TypeCategory::Other,
        }
    }

    fn is_reference(&self) -> bool {
        self.kind() == TypeCategory::Pointer && self.tag() != gimli::DW_TAG_pointer_type
    }

    fn byte_size(&self) -> Option<u64> {
        let stated_size = self.number(gimli::DW_AT_byte_size);
        let pointer = || u64::from(self.unit().header.address_size());
        stated_size.or_else(|| (self.kind() == TypeCategory::Pointer).then(pointer))
    }

    fn lengths(&self) -> Vec<Option<u64>> {
        let ranges = self.children().into_iter();
        let ranges = ranges.filter(|range| range.tag() == gimli::DW_TAG_subrange_type);
        let length = |range: Self| {
            let count = range.number(gimli::DW_AT_count);
            let bound = range.number(gimli::DW_AT_upper_bound);
            count.or_else(|| bound?.checked_add(1))
        };
        ranges.map(length).collect()
    }

    fn is_signed(&self) -> bool {
        matches!(
            self.own(gimli::DW_AT_encoding),
            Some(AttributeValue::Encoding(
                gimli::DW_ATE_signed | gimli::DW_ATE_signed_char | gimli::DW_ATE_signed_fixed
            ))
        )
    }

    fn is_character(&self) -> bool {
        let name = self.name().unwrap_or_default();
        matches!(
            name.as_str(),
            "char" | "unsigned char" | "signed char" | "char8_t" | "u8" | "i8"
        )
    }

    fn member(&self, name: &str) -> Option<RecordMember<Self>> {
        let mut records = MAX_RECORDS;
        self.member_within(name, MAX_LAYERS, &mut records)
    }

    fn member_names(&self) -> Vec<String> {
        let children = self.children();
        let members = children
            .iter()
            .filter(|child| child.tag() == gimli::DW_TAG_member);
        members.filter_map(Die::name).collect()
    }
}

impl Die<'_, '_> {
    /// Returns the type that this entry refers to.
    fn type_of(&self) -> Option<Self> {
        // The entry that has the attribute: this one or its origin.
        let (holder, _) = self.find(gimli::DW_AT_type)?;
        let found = holder.reference(gimli::DW_AT_type)?;
        // A type in a type unit is only declared here.
        Some(found.reference(gimli::DW_AT_signature).unwrap_or(found))
    }

    /// Searches for a member; `layers` is the remaining depth, `records` the remaining number of records to search.
    fn member_within(
        &self,
        name: &str,
        layers: usize,
        records: &mut usize,
    ) -> Option<RecordMember<Self>> {
        let layers = layers.checked_sub(1)?;
        *records = records.checked_sub(1)?;
        let children = self.children();
        let parts = || {
            let is_part =
                |tag: DwTag| tag == gimli::DW_TAG_member || tag == gimli::DW_TAG_inheritance;
            children.iter().filter(move |child| is_part(child.tag()))
        };
        let named = |child: &&Self| child.name().as_deref() == Some(name);
        if let Some(member) = parts().find(named) {
            return member.record_member();
        }
        // Members of anonymous members and of base classes belong to the containing record.
        let nested = parts()
            .filter(|child| child.name().is_none() || child.tag() == gimli::DW_TAG_inheritance);
        nested.into_iter().find_map(|part| {
            let outer = part.record_member()?;
            let inner = part.real_type()?.member_within(name, layers, records)?;
            Some(RecordMember {
                offset: outer.offset.wrapping_add(inner.offset),
                ..inner
            })
        })
    }

    /// Returns this member with its offset in its record; `None` if the offset is computed at run time, or if the size of a
    /// bit field's container is unknown or too small. A bit field without an attribute for its bit position is taken to begin at
    /// the container's highest bit.
    fn record_member(&self) -> Option<RecordMember<Self>> {
        let member_offset = self.member_offset()?;
        let Some(width) = self.number(gimli::DW_AT_bit_size) else {
            return Some(RecordMember {
                offset: member_offset,
                member: self.clone(),
                bits: None,
            });
        };
        // With `DW_AT_bit_offset`, a bit field itself states the size of its container; otherwise it is that of the field's type.
        let size = self.byte_size();
        let size = size.or_else(|| self.real_type()?.byte_size())?;
        // `offset` is that of the container in the record.
        let (field, offset) = match self.number(gimli::DW_AT_data_bit_offset) {
            // The distance from the beginning of the record to the field.
            Some(bit) => BitField::at_bit(bit, width, size)?,
            // DWARF 2 and 3, GCC also later: the distance from the container's highest bit to that of the field. The container
            // is at the member's offset.
            None => {
                let high = self.number(gimli::DW_AT_bit_offset).unwrap_or(0);
                let container = size.checked_mul(8)?;
                let low = container.checked_sub(high.checked_add(width)?)?;
                let (field, _) = BitField::at_bit(low, width, size)?;
                (field, member_offset)
            }
        };
        Some(RecordMember {
            offset,
            member: self.clone(),
            bits: Some(field),
        })
    }

    /// Returns the offset of this member in its record; `None` if it is computed at run time, as for a virtual base class.
    fn member_offset(&self) -> Option<i64> {
        let Some((holder, value)) = self.find(gimli::DW_AT_data_member_location) else {
            // Members of a union may have no offset, and bit fields may have `DW_AT_data_bit_offset` instead.
            return Some(0);
        };
        let offset = match value {
            // Usual in DWARF 2: an expression that adds the offset to the address of the record.
            AttributeValue::Exprloc(expression) => {
                let mut operations = expression.operations(holder.unit().header.encoding());
                match (operations.next(), operations.next()) {
                    (Ok(Some(Operation::PlusConstant { value })), Ok(None)) => value,
                    _ => return None,
                }
            }
            value => value.udata_value()?,
        };
        i64::try_from(offset).ok()
    }

    /// Formats the type of this variable in C, without qualifiers: `struct item*`, `long int`.
    pub(crate) fn type_name(&self) -> String {
        match self.type_of() {
            Some(found) => found.spelled(MAX_LAYERS),
            None => "void".to_owned(),
        }
    }

    /// Formats this type; after `layers` nested types the rest is `void`.
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
            | gimli::DW_TAG_atomic_type
            | gimli::DW_TAG_shared_type => below(),
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
