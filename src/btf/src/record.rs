//! Decodes one type of the section of types (`struct btf_type` of include/uapi/linux/btf.h).

/// Size of `struct btf_type` in bytes.
const TYPE_SIZE: usize = 12;

/// The byte order of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteOrder {
    pub(super) is_little_endian: bool,
}

impl ByteOrder {
    /// Returns the 32-bit number with this index in `bytes`: 0 is in bytes 0 to 3, 1 in bytes 4 to 7.
    pub(super) fn word(self, bytes: &[u8], index: usize) -> Option<u32> {
        let start = index.checked_mul(4)?;
        let bytes: [u8; 4] = bytes.get(start..start + 4)?.try_into().ok()?;
        Some(match self.is_little_endian {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        })
    }
}

/// The kind of a type (`BTF_KIND_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TypeKind {
    /// `BTF_KIND_INT`.
    Integer,
    /// `BTF_KIND_PTR`.
    Pointer,
    /// `BTF_KIND_ARRAY`.
    Array,
    /// `BTF_KIND_STRUCT`.
    Structure,
    /// `BTF_KIND_UNION`.
    Union,
    /// `BTF_KIND_ENUM`.
    Enumeration,
    /// `BTF_KIND_ENUM64`.
    WideEnumeration,
    /// `BTF_KIND_FUNC`: refers to its prototype.
    Function,
    /// `BTF_KIND_FUNC_PROTO`: refers to the type that is returned, 0 for void.
    Prototype,
    /// `BTF_KIND_FLOAT`.
    Float,
    /// Qualifiers (`BTF_KIND_CONST`, `VOLATILE`, `RESTRICT`) and `BTF_KIND_TYPE_TAG`.
    Alias,
    /// `BTF_KIND_TYPEDEF`.
    Typedef,
    /// `BTF_KIND_FWD`, `VAR`, `DATASEC` and `DECL_TAG`.
    Other,
}

/// A member of a structure or union (`struct btf_member`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BtfMember {
    /// The offset of its name, for [`Btf::text`](crate::Btf::text).
    pub name_offset: u32,
    /// The id of its type.
    pub type_id: u32,
    /// The width of a bit field in bits; 0 for other members.
    pub bit_width: u32,
    /// The offset in the structure in bits.
    pub bit_offset: u32,
}

/// A type, with references into the data.
#[derive(Debug, Clone, Copy)]
pub struct BtfType<'a> {
    /// The kind of the type.
    pub kind: TypeKind,
    /// The offset of its name, for [`Btf::text`](crate::Btf::text).
    pub name_offset: u32,
    /// The size of a value in bytes, for kinds that have a size.
    pub size: u32,
    /// For kinds that refer to another type instead of having a size, the id of that type. It is the same word of the data as
    /// `size`.
    pub refers_to: u32,
    /// What follows `struct btf_type`: members, enumerators, parameters, or the data of another kind.
    pub(super) details: &'a [u8],
    /// `kind_flag`: if set, the offsets of members include the widths of bit fields, and enumerations are signed.
    pub kind_flag: bool,
    /// The offset of the next type in the section, in bytes.
    pub(super) end: usize,
    pub(super) byte_order: ByteOrder,
}

impl<'a> BtfType<'a> {
    /// Decodes the type at `at`; `None` if it is truncated or of an unknown kind, whose length is also unknown.
    pub(super) fn read(types: &'a [u8], at: usize, byte_order: ByteOrder) -> Option<Self> {
        let bytes = types.get(at..)?;
        // The three words: offset of the name, `info` (number of entries, kind, `kind_flag`), and size or type id.
        let info = byte_order.word(bytes, 1)?;
        let size = byte_order.word(bytes, 2)?;
        let entries = (info & 0xffff) as usize;
        let (kind, len) = match info >> 24 & 0x1f {
            1 => (TypeKind::Integer, 4),
            2 => (TypeKind::Pointer, 0),
            3 => (TypeKind::Array, 12),
            4 => (TypeKind::Structure, entries * 12),
            5 => (TypeKind::Union, entries * 12),
            6 => (TypeKind::Enumeration, entries * 8),
            // BTF_KIND_FWD.
            7 => (TypeKind::Other, 0),
            8 => (TypeKind::Typedef, 0),
            // BTF_KIND_VOLATILE, CONST, RESTRICT and TYPE_TAG.
            9..=11 | 18 => (TypeKind::Alias, 0),
            12 => (TypeKind::Function, 0),
            13 => (TypeKind::Prototype, entries * 8),
            // BTF_KIND_VAR, DATASEC.
            14 => (TypeKind::Other, 4),
            15 => (TypeKind::Other, entries * 12),
            16 => (TypeKind::Float, 0),
            // BTF_KIND_DECL_TAG.
            17 => (TypeKind::Other, 4),
            19 => (TypeKind::WideEnumeration, entries * 12),
            _ => return None,
        };
        Some(Self {
            kind,
            name_offset: byte_order.word(bytes, 0)?,
            size,
            refers_to: size,
            details: bytes.get(TYPE_SIZE..TYPE_SIZE + len)?,
            kind_flag: info >> 31 == 1,
            end: at.checked_add(TYPE_SIZE + len)?,
            byte_order,
        })
    }

    /// Returns the 32-bit number with this index in the details. A parameter has two: offset of its name, type id.
    #[must_use]
    pub fn detail(&self, index: usize) -> Option<u32> {
        self.byte_order.word(self.details, index)
    }

    /// Returns the members of a structure or union; none for other kinds.
    pub fn members(self) -> impl Iterator<Item = BtfMember> + use<'a> {
        (0..self.member_count()).filter_map(move |index| {
            let word = |at: usize| self.detail(index * 3 + at);
            let offset = word(2)?;
            // With `kind_flag`, the upper 8 bits are the width (`BTF_MEMBER_BITFIELD_SIZE`).
            let (bit_width, bit_offset) = match self.kind_flag {
                true => (offset >> 24, offset & 0xff_ffff),
                false => (0, offset),
            };
            Some(BtfMember {
                name_offset: word(0)?,
                type_id: word(1)?,
                bit_width,
                bit_offset,
            })
        })
    }

    /// Returns the number of members of a structure or union, 0 for other kinds.
    #[must_use]
    pub fn member_count(&self) -> usize {
        match self.kind {
            TypeKind::Structure | TypeKind::Union => self.details.len() / 12,
            _ => 0,
        }
    }

    /// Returns the number of parameters of a prototype, 0 for other kinds.
    #[must_use]
    pub fn parameter_count(&self) -> usize {
        match self.kind {
            TypeKind::Prototype => self.details.len() / 8,
            _ => 0,
        }
    }
}
