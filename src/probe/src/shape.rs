//! The interface to types of DWARF and BTF.

/// Maximum length of a chain of type references, and maximum depth of nested records (structures, unions,
/// classes): damaged information may be cyclic.
pub(crate) const MAX_LAYERS: usize = 32;

/// Maximum number of records searched for a member, including nested ones: in damaged information,
/// the number may grow exponentially with the depth.
pub(crate) const MAX_RECORDS: usize = 1 << 10;

/// The category of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeCategory {
    Pointer,
    Array,
    /// Structures, unions and classes.
    Record,
    Other,
}

/// A member of a record.
#[derive(Debug, Clone)]
pub(crate) struct RecordMember<T> {
    /// Its offset in the record in bytes; for a bit field, that of the number that contains it.
    pub(crate) offset: i64,
    pub(crate) member: T,
    pub(crate) bits: Option<BitField>,
}

/// A bit field, as the kernel reads it: as a part of a number (the container).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitField {
    /// In bits.
    pub(crate) width: u64,
    /// The distance of its lowest bit from that of the container, in bits.
    pub(crate) low: u64,
    /// The size of the container in bytes.
    pub(crate) container_size: u64,
}

impl BitField {
    /// Returns the field of `width` bits that begins at bit `bit` of a record, and the offset of its container in the record, in
    /// bytes; `None` if it does not fit into a container. Little-endian.
    ///
    /// A container of `container_size` bytes begins at a multiple of its size, unless the field would continue after it (in
    /// packed records): then the container begins at the byte with the first bit of the field.
    pub(crate) fn at_bit(bit: u64, width: u64, container_size: u64) -> Option<(Self, i64)> {
        let container_bits = container_size.checked_mul(8).filter(|bits| *bits > 0)?;
        let alignments = [container_bits, 8];
        let starts = alignments.map(|bits| bit / bits * bits);
        let start = starts.into_iter().find(|start| {
            let end = (bit - start).checked_add(width);
            end.is_some_and(|end| end <= container_bits)
        })?;
        let field = Self {
            width,
            low: bit - start,
            container_size,
        };
        Some((field, i64::try_from(start / 8).ok()?))
    }
}

/// A type, or an entity with a type: a variable, a member. `name` and `real_type` are for both; the other methods are meant for
/// types that `real_type` has returned.
pub(crate) trait TypeShape: Clone {
    /// The name in the source.
    fn name(&self) -> Option<String>;

    /// Returns the type of a variable or member, the target of a pointer type, or the element type of an array type, without
    /// typedefs and qualifiers.
    fn real_type(&self) -> Option<Self>;

    fn kind(&self) -> TypeCategory;

    /// Whether it is a C++ reference: a pointer whose members are accessed with `.`.
    fn is_reference(&self) -> bool {
        false
    }

    /// Returns the size of a value in bytes; `None` if the type does not state it, like most arrays.
    fn byte_size(&self) -> Option<u64>;

    /// Returns the dimensions of an array, the outermost first; `None` for unknown ones.
    fn lengths(&self) -> Vec<Option<u64>>;

    /// Whether it is a signed number type.
    fn is_signed(&self) -> bool;

    /// Whether it is a character type.
    fn is_character(&self) -> bool;

    /// Returns the member of this name, including members of anonymous members and of base classes.
    fn member(&self, name: &str) -> Option<RecordMember<Self>>;

    /// Returns the names of the members of the record itself, without those of anonymous members and of base classes.
    fn member_names(&self) -> Vec<String>;

    /// Returns the size of a value in bytes, computed for arrays; `None` if unknown.
    fn whole_size(&self) -> Option<u64> {
        let mut shape = self.clone();
        let mut product = 1_u64;
        for _ in 0..MAX_LAYERS {
            if let Some(size) = shape.byte_size() {
                return product.checked_mul(size);
            }
            if shape.kind() != TypeCategory::Array {
                return None;
            }
            for length in shape.lengths() {
                product = product.checked_mul(length?)?;
            }
            shape = shape.real_type()?;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_field_is_in_a_single_container() {
        let at = |bit, width, container_size| {
            let (field, offset) = BitField::at_bit(bit, width, container_size)?;
            Some((offset, field.low, field.container_size))
        };
        assert_eq!(at(5, 3, 4), Some((0, 5, 4)));
        assert_eq!(at(30, 2, 4), Some((0, 30, 4)));
        assert_eq!(at(32, 32, 4), Some((4, 0, 4)));
        // Of a packed record: bits 30 to 39 are in bytes 3 and 4.
        assert_eq!(at(30, 10, 4), Some((3, 6, 4)));
        assert_eq!(at(30, 32, 4), None, "in five bytes");
        assert_eq!(at(0, 33, 4), None);
        assert_eq!(at(0, u64::MAX, 4), None);
        assert_eq!(at(0, 1, 0), None);
        assert_eq!(at(u64::MAX, 1, 1), Some((i64::MAX >> 2, 7, 1)));
    }
}
