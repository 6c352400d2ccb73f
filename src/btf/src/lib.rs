//! BTF: the kernel's types and function signatures (Documentation/bpf/btf.rst, include/uapi/linux/btf.h).

mod layout;
mod record;
#[cfg(test)]
mod tests;

use record::ByteOrder;

pub use layout::{Enumeration, TypeLayout};
pub use record::{BtfMember, BtfType, TypeKind};

/// `BTF_MAGIC`.
const MAGIC: u16 = 0xeb9f;
/// Size of the used part of `struct btf_header`, in bytes.
const HEADER: usize = 24;
/// The maximum number of nested anonymous structures and unions around a member; damaged data may nest without end.
const MAX_NESTING: usize = 8;

/// Why data cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BtfError {
    /// The data are damaged.
    #[error("the kernel's types (BTF) are damaged at byte {offset}")]
    Damaged {
        /// The offset of the damage from the beginning of the data, in bytes.
        offset: usize,
    },
    /// The data of a module have another byte order than those of the kernel.
    #[error("the types (BTF) of the module have another byte order than those of the kernel")]
    ModuleByteOrder,
    /// There is a module already.
    #[error("the types (BTF) of only one module can be read with those of the kernel")]
    SecondModule,
}

/// The types of the kernel, or of the kernel and one of its modules.
#[derive(Debug, Clone)]
pub struct Btf<'a> {
    /// The BTF of vmlinux, then that of the module if there is one.
    blobs: Vec<BtfBlob<'a>>,
    is_little_endian: bool,
}

/// The BTF of vmlinux or of a module. That of a module continues the kernel's type ids and string offsets.
#[derive(Debug, Clone)]
struct BtfBlob<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// The offset of each type in `types`.
    starts: Vec<u32>,
    /// The id of the first type.
    first_type: u32,
    /// The offset of the first string.
    first_string: u32,
}

/// Returns the byte order of data, by the magic number.
fn is_little_endian(bytes: &[u8]) -> Result<bool, BtfError> {
    match bytes.first_chunk::<2>() {
        Some(magic) if u16::from_le_bytes(*magic) == MAGIC => Ok(true),
        Some(magic) if u16::from_be_bytes(*magic) == MAGIC => Ok(false),
        _ => Err(BtfError::Damaged { offset: 0 }),
    }
}

impl<'a> Btf<'a> {
    /// Indexes all types of `/sys/kernel/btf/vmlinux`.
    ///
    /// # Errors
    ///
    /// [`BtfError`].
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BtfError> {
        let mut btf = Self {
            blobs: Vec::new(),
            is_little_endian: is_little_endian(bytes)?,
        };
        // Type 0 is void.
        let (first_type, first_string) = (1, 0);
        btf.add(bytes, first_type, first_string)?;
        Ok(btf)
    }

    /// Adds the types of a module, `/sys/kernel/btf/MODULE`. Only one can be added: the ids of two would overlap.
    ///
    /// # Errors
    ///
    /// [`BtfError`].
    pub fn with_module(mut self, bytes: &'a [u8]) -> Result<Self, BtfError> {
        let [base] = self.blobs.as_slice() else {
            return Err(BtfError::SecondModule);
        };
        if is_little_endian(bytes)? != self.is_little_endian {
            return Err(BtfError::ModuleByteOrder);
        }
        let first_type = base.first_type.saturating_add(to_u32(base.starts.len()));
        let first_string = base.first_string.saturating_add(to_u32(base.strings.len()));
        self.add(bytes, first_type, first_string)?;
        Ok(self)
    }

    fn add(&mut self, bytes: &'a [u8], first_type: u32, first_string: u32) -> Result<(), BtfError> {
        let damaged = |offset: usize| BtfError::Damaged { offset };
        let field = |at: usize| {
            let bytes = bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
            let value = bytes.map(|bytes| self.word(*bytes) as usize);
            value.ok_or_else(|| damaged(at))
        };
        // Offsets in `struct btf_header`: 4 is `hdr_len`, 8 `type_off` and `type_len`, 16 `str_off` and `str_len`.
        let header_len = field(4)?;
        let body = bytes.get(header_len..).filter(|_| header_len >= HEADER);
        let body = body.ok_or_else(|| damaged(4))?;
        let section = |at: usize| {
            let (start, len) = (field(at)?, field(at + 4)?);
            let end = start.checked_add(len);
            let section = end.and_then(|end| body.get(start..end));
            section.ok_or_else(|| damaged(at))
        };
        let (types, strings) = (section(8)?, section(16)?);
        let types_start = header_len + field(8)?;
        let mut starts = Vec::new();
        let mut at = 0;
        while at < types.len() {
            let record = BtfType::read(types, at, self.byte_order());
            let record = record.ok_or_else(|| damaged(types_start + at))?;
            starts.push(to_u32(at));
            at = record.end;
        }
        self.blobs.push(BtfBlob {
            types,
            strings,
            starts,
            first_type,
            first_string,
        });
        Ok(())
    }

    fn byte_order(&self) -> ByteOrder {
        ByteOrder {
            is_little_endian: self.is_little_endian,
        }
    }

    fn word(&self, bytes: [u8; 4]) -> u32 {
        match self.is_little_endian {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        }
    }

    /// Returns the type with this id; `None` for void (0) and for unknown ids.
    #[must_use]
    pub fn type_with_id(&self, id: u32) -> Option<BtfType<'a>> {
        let mut blobs = self.blobs.iter().rev();
        let blob = blobs.find(|blob| id >= blob.first_type)?;
        let start = blob.starts.get((id - blob.first_type) as usize)?;
        BtfType::read(blob.types, *start as usize, self.byte_order())
    }

    /// Returns the string at an offset, such as [`BtfType::name_offset`]; empty if there is none, or if it is not UTF-8.
    #[must_use]
    pub fn text(&self, at: u32) -> &'a str {
        let mut blobs = self.blobs.iter().rev();
        let blob = blobs.find(|blob| at >= blob.first_string);
        let bytes = blob.and_then(|blob| blob.strings.get((at - blob.first_string) as usize..));
        let text = bytes.and_then(|bytes| bytes.split(|byte| *byte == 0).next());
        std::str::from_utf8(text.unwrap_or_default()).unwrap_or_default()
    }

    /// Returns the prototypes (type ids) of all functions of this name: static functions of several files may share a name.
    #[must_use]
    pub fn prototypes(&self, name: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for record in self.types() {
            if record.kind == TypeKind::Function && self.text(record.name_offset) == name {
                found.push(record.refers_to);
            }
        }
        found
    }

    /// Returns the type id of a function, by which BPF programs call it; `None` if no function, or more than one, has this name.
    #[must_use]
    pub fn function(&self, name: &str) -> Option<u32> {
        let mut found = self.blobs.iter().flat_map(|blob| {
            let types = (blob.first_type..).zip(&blob.starts);
            types.filter(|(_, start)| {
                let record = BtfType::read(blob.types, **start as usize, self.byte_order());
                record.is_some_and(|record| {
                    record.kind == TypeKind::Function && self.text(record.name_offset) == name
                })
            })
        });
        let (id, _) = found.next()?;
        found.next().is_none().then_some(id)
    }

    /// Returns the offset in bytes of a member of the first structure of this name. The member may be within anonymous members.
    /// `None` if the structure or the member is unknown, or the member is a bit field.
    #[must_use]
    pub fn member_offset(&self, structure: &str, member: &str) -> Option<u32> {
        let mut structures = self.types().filter(|record| {
            record.kind == TypeKind::Structure && self.text(record.name_offset) == structure
        });
        self.offset_within(&structures.next()?, member, MAX_NESTING)
    }

    /// Returns the offset in bytes of a member of `record`. `depth` is the maximum number of nested anonymous
    /// members in which the member may be.
    fn offset_within(&self, record: &BtfType<'a>, member: &str, depth: usize) -> Option<u32> {
        record.members().find_map(|found| {
            let is_whole = found.bit_width == 0 && found.bit_offset % 8 == 0;
            let offset = is_whole.then_some(found.bit_offset / 8);
            match self.text(found.name_offset) {
                "" if depth > 0 => {
                    let inner = self.type_with_id(found.type_id)?;
                    let is_composite = matches!(inner.kind, TypeKind::Structure | TypeKind::Union);
                    let inner = is_composite.then_some(inner)?;
                    offset?.checked_add(self.offset_within(&inner, member, depth - 1)?)
                }
                name if name == member => offset,
                _ => None,
            }
        })
    }

    fn types(&self) -> impl Iterator<Item = BtfType<'a>> {
        let byte_order = self.byte_order();
        self.blobs.iter().flat_map(move |blob| {
            let starts = blob.starts.iter();
            starts.filter_map(move |start| BtfType::read(blob.types, *start as usize, byte_order))
        })
    }
}

/// Converts a length or an offset within a section. Sections are shorter than 4 GiB, as their lengths have 32 bits.
fn to_u32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
