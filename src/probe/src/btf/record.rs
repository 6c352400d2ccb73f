//! Decodes one type of the section.

/// Size of `struct btf_type` in bytes.
const TYPE_SIZE: usize = 12;

/// The byte order of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ByteOrder {
    pub(super) is_little_endian: bool,
}

impl ByteOrder {
    /// Returns the 32-bit number at position `index` of `bytes`.
    pub(super) fn word(self, bytes: &[u8], index: usize) -> Option<u32> {
        let start = index.checked_mul(4)?;
        let bytes: [u8; 4] = bytes.get(start..start + 4)?.try_into().ok()?;
        Some(match self.is_little_endian {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        })
    }
}

/// `BTF_KIND_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypeKind {
    Integer,
    Pointer,
    Array,
    Structure,
    Union,
    Enumeration,
    /// With 64-bit values.
    WideEnumeration,
    Function,
    Prototype,
    Float,
    /// Forward types, qualifiers and tags.
    Alias,
    /// `typedef`, which has its own name.
    Typedef,
    /// Declarations without definition, variables, sections.
    Other,
}

/// A type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: TypeKind,
    /// The offset of its name.
    pub(super) name: u32,
    /// The size of a value in bytes, for kinds that have a size.
    pub(super) size: u32,
    /// The same field, for kinds that refer to another type.
    pub(super) refers_to: u32,
    /// Members, parameters, or the data of an integer or array.
    pub(super) details: &'a [u8],
    /// `kind_flag`: members have bit widths, enumerations are signed.
    pub(super) flag: bool,
    /// The offset of the next type.
    pub(super) end: usize,
    pub(super) layout: ByteOrder,
}

impl<'a> Record<'a> {
    /// Decodes the type at `at`; `None` if it is truncated or of an unknown kind, whose length is also unknown.
    pub(super) fn read(types: &'a [u8], at: usize, layout: ByteOrder) -> Option<Self> {
        let bytes = types.get(at..)?;
        let info = layout.word(bytes, 1)?;
        let size = layout.word(bytes, 2)?;
        let entries = (info & 0xffff) as usize;
        let (kind, len) = match info >> 24 & 0x1f {
            1 => (TypeKind::Integer, 4),
            2 => (TypeKind::Pointer, 0),
            3 => (TypeKind::Array, 12),
            4 => (TypeKind::Structure, entries * 12),
            5 => (TypeKind::Union, entries * 12),
            6 => (TypeKind::Enumeration, entries * 8),
            7 => (TypeKind::Other, 0),
            8 => (TypeKind::Typedef, 0),
            9..=11 | 18 => (TypeKind::Alias, 0),
            12 => (TypeKind::Function, 0),
            13 => (TypeKind::Prototype, entries * 8),
            14 => (TypeKind::Other, 4),
            15 => (TypeKind::Other, entries * 12),
            16 => (TypeKind::Float, 0),
            17 => (TypeKind::Other, 4),
            19 => (TypeKind::WideEnumeration, entries * 12),
            _ => return None,
        };
        Some(Self {
            kind,
            name: layout.word(bytes, 0)?,
            size,
            refers_to: size,
            details: bytes.get(TYPE_SIZE..TYPE_SIZE + len)?,
            flag: info >> 31 == 1,
            end: at.checked_add(TYPE_SIZE + len)?,
            layout,
        })
    }

    /// Returns the number at position `index` of the details.
    pub(super) fn detail(&self, index: usize) -> Option<u32> {
        self.layout.word(self.details, index)
    }
}
