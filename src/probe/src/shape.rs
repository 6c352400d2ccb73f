//! Types as probes need them, whatever describes them: DWARF or BTF.

/// How many types are looked through from one to what it is made of.
pub(crate) const MAX_LAYERS: usize = 32;

/// How many records are looked through for a member, those within others included: damaged information may have each within each.
pub(crate) const MAX_RECORDS: usize = 1 << 10;

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
pub(crate) struct Step<T> {
    pub(crate) offset: i64,
    pub(crate) member: T,
    /// Width and distance from the lowest bit, in bits, and the bytes that they lie in.
    pub(crate) bits: Option<(u64, u64, u64)>,
}

/// A type, or what has one: a variable, a member.
pub(crate) trait Shape: Clone {
    /// Its name in the source.
    fn name(&self) -> Option<String>;

    /// What it refers to (the type of a variable, what a pointer points to, the element of an array), behind other names and
    /// qualifiers.
    fn real_type(&self) -> Option<Self>;

    fn kind(&self) -> Kind;

    /// Whether members are reached by `.` though it is a pointer.
    fn is_reference(&self) -> bool {
        false
    }

    /// Bytes of a value of this type, where it is known.
    fn byte_size(&self) -> Option<u64>;

    /// The numbers of an array's elements, the outermost dimension first; `None` for those that are not told.
    fn lengths(&self) -> Vec<Option<u64>>;

    /// Whether numbers of this type have a sign.
    fn is_signed(&self) -> bool;

    /// Whether characters of this type make text.
    fn is_character(&self) -> bool;

    /// The member of this name, also of unnamed members and of base classes.
    fn member(&self, name: &str) -> Option<Step<Self>>;

    /// The names of the members.
    fn member_names(&self) -> Vec<String>;

    /// Bytes of a value of this type, counted for arrays.
    fn whole_size(&self) -> Option<u64> {
        let mut shape = self.clone();
        let mut product = 1_u64;
        for _ in 0..MAX_LAYERS {
            if let Some(size) = shape.byte_size() {
                return product.checked_mul(size);
            }
            if shape.kind() != Kind::Array {
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
