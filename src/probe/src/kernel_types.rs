//! The kernel's types (BTF) as probes need them.

#[cfg(test)]
mod tests;

use rperf_btf::{Btf, BtfType, TypeKind};

use crate::shape::{BitField, MAX_LAYERS, MAX_RECORDS, RecordMember, TypeCategory, TypeShape};

/// `BTF_INT_SIGNED`, in the word that follows an integer type.
const SIGNED: u32 = 1 << 24;
/// `BTF_INT_CHAR`, in the same word.
const CHARACTER: u32 = 1 << 25;

/// A type, or a parameter, return value or member, which has a type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BtfShape<'b> {
    btf: &'b Btf<'b>,
    /// The name of the parameter or member, `$retval` for a return value; `None` for a type. (An anonymous member has an empty
    /// name; the name of a type is in `btf`.)
    name: Option<&'b str>,
    type_id: u32,
    /// The size of a pointer in bytes.
    pointer_size: u64,
}

/// A parameter of a function.
pub(crate) type Parameter<'b> = BtfShape<'b>;

impl<'b> BtfShape<'b> {
    /// Returns the parameters of a prototype in order, and the return value (`None` for void). `None` if the type
    /// with the id `prototype` is of another kind.
    pub(crate) fn signature(
        btf: &'b Btf<'b>,
        prototype: u32,
        pointer_size: u64,
    ) -> Option<(Vec<Parameter<'b>>, Option<Self>)> {
        let btf_type = btf.type_with_id(prototype)?;
        if btf_type.kind != TypeKind::Prototype {
            return None;
        }
        let value = |name: &'b str, type_id: u32| Self {
            btf,
            name: Some(name),
            type_id,
            pointer_size,
        };
        // `detail` returns a word of the data after the type: a parameter has two.
        let parameters = (0..btf_type.parameter_count()).filter_map(|index| {
            let (name, type_id) = (btf_type.detail(index * 2)?, btf_type.detail(index * 2 + 1)?);
            // The last parameter of a variadic function has no type.
            (type_id != 0).then(|| value(btf.text(name), type_id))
        });
        let returned = (btf_type.refers_to != 0).then(|| value("$retval", btf_type.refers_to));
        Some((parameters.collect(), returned))
    }
}

impl<'b> BtfShape<'b> {
    /// Returns the type itself, or the type of the parameter, return value or member; `None` for void.
    fn btf_type(&self) -> Option<BtfType<'b>> {
        self.btf.type_with_id(self.type_id)
    }

    fn with_type(&self, type_id: u32) -> Self {
        Self {
            name: None,
            type_id,
            ..*self
        }
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
        let btf_type = self.btf_type()?;
        let members = || self.members(btf_type);
        if let Some(found) = members().find(|found| found.member.name == Some(name)) {
            return Some(found);
        }
        // Members of anonymous members belong to the containing record.
        let mut unnamed = members().filter(|found| found.member.name.is_some_and(str::is_empty));
        unnamed.find_map(|outer| {
            let inner = outer
                .member
                .real_type()?
                .member_within(name, layers, records)?;
            Some(RecordMember {
                offset: outer.offset.wrapping_add(inner.offset),
                ..inner
            })
        })
    }

    fn members(&self, btf_type: BtfType<'b>) -> impl Iterator<Item = RecordMember<Self>> {
        let record = *self;
        btf_type.members().filter_map(move |found| {
            let member = Self {
                name: Some(record.btf.text(found.name_offset)),
                type_id: found.type_id,
                ..record
            };
            member.at_bit(found.bit_width.into(), found.bit_offset.into())
        })
    }

    /// Returns this member with its offset and bits. It is at bit `bit` of its record; `width` is 0 unless it is a bit field.
    fn at_bit(self, width: u64, bit: u64) -> Option<RecordMember<Self>> {
        if width == 0 {
            return Some(RecordMember {
                offset: i64::try_from(bit / 8).ok()?,
                member: self,
                bits: None,
            });
        }
        let size = self.real_type()?.byte_size()?;
        let (field, offset) = BitField::at_bit(bit, width, size)?;
        Some(RecordMember {
            offset,
            member: self,
            bits: Some(field),
        })
    }
}

impl TypeShape for BtfShape<'_> {
    fn name(&self) -> Option<String> {
        let name = match self.name {
            Some(name) => name,
            None => self.btf.text(self.btf_type()?.name_offset),
        };
        (!name.is_empty()).then(|| name.to_owned())
    }

    fn real_type(&self) -> Option<Self> {
        let mut type_id = match self.name {
            // The type of a parameter, return value or member.
            Some(_) => self.type_id,
            // The element type of an array type, or the target of a pointer type.
            None => {
                let btf_type = self.btf_type()?;
                match btf_type.kind {
                    TypeKind::Array => btf_type.detail(0)?,
                    TypeKind::Pointer => btf_type.refers_to,
                    _ => return None,
                }
            }
        };
        // `Alias` is used for qualifiers and type tags.
        for _ in 0..MAX_LAYERS {
            let btf_type = self.btf.type_with_id(type_id)?;
            match btf_type.kind {
                TypeKind::Alias | TypeKind::Typedef => type_id = btf_type.refers_to,
                _ => return Some(self.with_type(type_id)),
            }
        }
        None
    }

    fn kind(&self) -> TypeCategory {
        match self.btf_type().map(|btf_type| btf_type.kind) {
            Some(TypeKind::Pointer) => TypeCategory::Pointer,
            Some(TypeKind::Array) => TypeCategory::Array,
            Some(TypeKind::Structure | TypeKind::Union) => TypeCategory::Record,
            _ => TypeCategory::Other,
        }
    }

    fn byte_size(&self) -> Option<u64> {
        let btf_type = self.btf_type()?;
        match btf_type.kind {
            TypeKind::Integer
            | TypeKind::Enumeration
            | TypeKind::WideEnumeration
            | TypeKind::Structure
            | TypeKind::Union
            | TypeKind::Float => Some(u64::from(btf_type.size)),
            TypeKind::Pointer => Some(self.pointer_size),
            _ => None,
        }
    }

    /// Returns the length of an array. There is at most one: in BTF, multi-dimensional arrays are arrays of arrays.
    fn lengths(&self) -> Vec<Option<u64>> {
        let btf_type = self
            .btf_type()
            .filter(|btf_type| btf_type.kind == TypeKind::Array);
        let length = btf_type.map(|btf_type| btf_type.detail(2).map(u64::from));
        length.into_iter().collect()
    }

    fn is_signed(&self) -> bool {
        let btf_type = self.btf_type();
        btf_type.is_some_and(|btf_type| match btf_type.kind {
            TypeKind::Integer => btf_type
                .detail(0)
                .is_some_and(|encoding| encoding & SIGNED != 0),
            _ => false,
        })
    }

    fn is_character(&self) -> bool {
        let btf_type = self
            .btf_type()
            .filter(|btf_type| btf_type.kind == TypeKind::Integer);
        btf_type.is_some_and(|btf_type| {
            let encoding = btf_type.detail(0).unwrap_or_default();
            btf_type.size == 1
                && (encoding & CHARACTER != 0
                    || matches!(
                        self.btf.text(btf_type.name_offset),
                        "char" | "unsigned char" | "signed char"
                    ))
        })
    }

    fn member(&self, name: &str) -> Option<RecordMember<Self>> {
        let mut records = MAX_RECORDS;
        self.member_within(name, MAX_LAYERS, &mut records)
    }

    fn member_names(&self) -> Vec<String> {
        let Some(btf_type) = self.btf_type() else {
            return Vec::new();
        };
        let names = self.members(btf_type).filter_map(|found| found.member.name);
        let named = names.filter(|name| !name.is_empty());
        named.map(str::to_owned).collect()
    }
}

impl BtfShape<'_> {
    /// Formats the type in C, as in lists of variables: `struct file*`, `size_t`.
    pub(crate) fn spelled(&self) -> String {
        let mut stars = String::new();
        let mut type_id = self.type_id;
        for _ in 0..MAX_LAYERS {
            let Some(btf_type) = self.btf.type_with_id(type_id) else {
                return format!("void{stars}");
            };
            type_id = match btf_type.kind {
                TypeKind::Alias => btf_type.refers_to,
                TypeKind::Pointer => {
                    stars.push('*');
                    btf_type.refers_to
                }
                TypeKind::Array => {
                    stars.push('*');
                    btf_type.detail(0).unwrap_or_default()
                }
                TypeKind::Prototype => return format!("(function_type){stars}"),
                kind => {
                    let word = match kind {
                        TypeKind::Structure => "struct ",
                        TypeKind::Union => "union ",
                        TypeKind::Enumeration | TypeKind::WideEnumeration => "enum ",
                        _ => "",
                    };
                    let name = self.btf.text(btf_type.name_offset);
                    let name = if name.is_empty() {
                        "(unknown_type)"
                    } else {
                        name
                    };
                    return format!("{word}{name}{stars}");
                }
            };
        }
        // More than `MAX_LAYERS` references, which only damaged BTF has.
        "void".to_owned()
    }
}
