//! One type as it stands in the section.

/// Bytes of `struct btf_type`.
const HEAD: usize = 12;

/// How numbers are stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    pub(super) is_little_endian: bool,
}

impl Layout {
    /// The 32-bit number at position `index` of `bytes`.
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
pub(super) enum Kind {
    Integer,
    Pointer,
    Array,
    Structure,
    Union,
    Enumeration,
    Function,
    Prototype,
    Float,
    /// Other names and qualifiers of a type, and marks on it.
    Alias,
    /// `typedef`, which has a name of its own.
    Typedef,
    /// What is declared and nowhere defined, variables, sections.
    Other,
}

/// A type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) kind: Kind,
    /// The place of its name.
    pub(super) name: u32,
    /// Bytes of a value, of kinds that have a size.
    pub(super) size: u32,
    /// The same number, of kinds that refer to another type.
    pub(super) refers_to: u32,
    /// Members, parameters, what is told of an integer or an array.
    pub(super) details: &'a [u8],
    /// `kind_flag`: members have widths, enumerations signs.
    pub(super) flag: bool,
    /// Where the next one begins.
    pub(super) end: usize,
    pub(super) layout: Layout,
}

impl<'a> Record<'a> {
    /// Reads the type that begins at `at`; `None` where it is cut short or of an unknown kind, whose length is unknown too.
    pub(super) fn read(types: &'a [u8], at: usize, layout: Layout) -> Option<Self> {
        let bytes = types.get(at..)?;
        let info = layout.word(bytes, 1)?;
        let size = layout.word(bytes, 2)?;
        let entries = (info & 0xffff) as usize;
        let (kind, len) = match info >> 24 & 0x1f {
            1 => (Kind::Integer, 4),
            2 => (Kind::Pointer, 0),
            3 => (Kind::Array, 12),
            4 => (Kind::Structure, entries * 12),
            5 => (Kind::Union, entries * 12),
            6 => (Kind::Enumeration, entries * 8),
            7 => (Kind::Other, 0),
            8 => (Kind::Typedef, 0),
            9..=11 | 18 => (Kind::Alias, 0),
            12 => (Kind::Function, 0),
            13 => (Kind::Prototype, entries * 8),
            14 => (Kind::Other, 4),
            15 => (Kind::Other, entries * 12),
            16 => (Kind::Float, 0),
            17 => (Kind::Other, 4),
            19 => (Kind::Enumeration, entries * 12),
            _ => return None,
        };
        Some(Self {
            kind,
            name: layout.word(bytes, 0)?,
            size,
            refers_to: size,
            details: bytes.get(HEAD..HEAD + len)?,
            flag: info >> 31 == 1,
            end: at.checked_add(HEAD + len)?,
            layout,
        })
    }

    /// The number at position `index` of the details.
    pub(super) fn detail(&self, index: usize) -> Option<u32> {
        self.layout.word(self.details, index)
    }
}
