//! The interface to types of DWARF and BTF.

/// Maximum length of a chain of type references, and maximum depth of nested records: damaged
/// information may be cyclic.
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
    /// For a bit field, its width and its offset from the lowest bit, in bits, and the size of the number that contains
    /// it, in bytes.
    pub(crate) bits: Option<(u64, u64, u64)>,
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
