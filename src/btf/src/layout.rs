//! Types with all that is needed to show values, independent of the BTF data.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::Btf;
use super::record::{BtfType, TypeKind};

/// `BTF_INT_SIGNED` and `BTF_INT_BOOL`, in the number that follows an integer type.
const SIGNED: u32 = 1 << 24;
const BOOLEAN: u32 = 1 << 26;
// The next three limit the work for a layout, since damaged types may refer to themselves.
/// Maximum depth of nested structures, unions and arrays.
const MAX_DEPTH: usize = 8;
/// Maximum number of typedefs, qualifiers and type tags in a row.
const MAX_ALIASES: usize = 32;
/// Maximum number of members in total, those of nested types included.
const MAX_MEMBERS: usize = 1 << 10;
/// The largest type of a bit field, in bytes.
const MAX_BIT_FIELD: usize = 8;
/// Maximum number of elements of an array that are shown.
const MAX_ELEMENTS: usize = 8;

/// The names of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Enumeration(Vec<Enumerator>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Enumerator {
    value: i64,
    name: String,
}

impl Enumeration {
    /// Returns the first name of a value.
    #[must_use]
    pub fn name(&self, value: i64) -> Option<&str> {
        let found = self.0.iter().find(|one| one.value == value)?;
        Some(&found.name)
    }
}

/// A type whose values can be shown as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeLayout {
    /// The size of a value in bytes.
    size: usize,
    kind: LayoutKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum LayoutKind {
    Number {
        is_signed: bool,
    },
    Boolean,
    Character {
        is_signed: bool,
    },
    Enumeration(Enumeration),
    Pointer,
    Array(Box<TypeLayout>),
    /// A structure or union.
    Members(Vec<MemberLayout>),
    /// Floating point, unknown, or nested too deeply.
    Opaque,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MemberLayout {
    /// Empty for anonymous structures and unions.
    name: String,
    /// In bits.
    offset: usize,
    /// In bits; 0 if it is no bit field.
    width: usize,
    layout: TypeLayout,
}

impl Btf<'_> {
    /// Returns the first enumeration of this name that has names of values; `None` if there is none.
    #[must_use]
    pub fn enumeration(&self, name: &str) -> Option<Enumeration> {
        let mut records = self.types().filter(|record| {
            matches!(
                record.kind,
                TypeKind::Enumeration | TypeKind::WideEnumeration
            ) && self.text(record.name_offset) == name
        });
        records.find_map(|record| {
            let names = self.enumerators(record);
            (!names.0.is_empty()).then_some(names)
        })
    }

    fn enumerators(&self, record: BtfType<'_>) -> Enumeration {
        // `struct btf_enum64`: name, low and high half of the value. `struct btf_enum`: name and value, signed with `kind_flag`.
        let words = if record.kind == TypeKind::WideEnumeration {
            3
        } else {
            2
        };
        let count = record.details.len() / (4 * words);
        let enumerators = (0..count).filter_map(|index| {
            let word = |at: usize| record.detail(index * words + at);
            let low = word(1)?;
            let value = match words {
                3 => (u64::from(word(2)?) << 32 | u64::from(low)).cast_signed(),
                _ if record.kind_flag => i64::from(low.cast_signed()),
                _ => i64::from(low),
            };
            Some(Enumerator {
                value,
                name: self.text(word(0)?).to_owned(),
            })
        });
        Enumeration(enumerators.collect())
    }

    /// Returns the layouts of the structures in `names`, with the names as keys; structures that are unknown or have no members
    /// are missing. `pointer_size` is in bytes.
    #[must_use]
    pub fn structures(
        &self,
        names: &BTreeSet<&str>,
        pointer_size: usize,
    ) -> BTreeMap<String, TypeLayout> {
        let mut found = BTreeMap::new();
        let structures = self
            .types()
            .filter(|record| record.kind == TypeKind::Structure && !record.details.is_empty());
        for record in structures {
            let name = self.text(record.name_offset);
            if names.contains(name) && !found.contains_key(name) {
                let mut reader = LayoutReader {
                    btf: self,
                    pointer_size,
                    members_read: 0,
                };
                found.insert(name.to_owned(), reader.layout(record, 0));
            }
        }
        found
    }
}

struct LayoutReader<'b> {
    btf: &'b Btf<'b>,
    /// In bytes.
    pointer_size: usize,
    /// The number of members read so far, for [`MAX_MEMBERS`].
    members_read: usize,
}

impl LayoutReader<'_> {
    fn layout(&mut self, record: BtfType<'_>, depth: usize) -> TypeLayout {
        let size = record.size as usize;
        let first_detail = || record.detail(0).unwrap_or_default();
        let (size, kind) = match record.kind {
            TypeKind::Integer if first_detail() & BOOLEAN != 0 => (size, LayoutKind::Boolean),
            TypeKind::Integer => {
                let is_signed = first_detail() & SIGNED != 0;
                let is_character = size == 1 && self.btf.text(record.name_offset).ends_with("char");
                match is_character {
                    true => (size, LayoutKind::Character { is_signed }),
                    false => (size, LayoutKind::Number { is_signed }),
                }
            }
            TypeKind::Enumeration | TypeKind::WideEnumeration => {
                (size, LayoutKind::Enumeration(self.btf.enumerators(record)))
            }
            TypeKind::Pointer => (self.pointer_size, LayoutKind::Pointer),
            TypeKind::Array if depth < MAX_DEPTH => {
                // `struct btf_array`: the types of the element and the index, and the number of elements.
                let element = self.referred(first_detail(), depth);
                let count = record.detail(2).unwrap_or_default() as usize;
                let size = element.size.saturating_mul(count);
                (size, LayoutKind::Array(Box::new(element)))
            }
            TypeKind::Structure | TypeKind::Union if depth < MAX_DEPTH => {
                (size, LayoutKind::Members(self.members(record, depth)))
            }
            TypeKind::Structure | TypeKind::Union | TypeKind::Float => (size, LayoutKind::Opaque),
            _ => (0, LayoutKind::Opaque),
        };
        TypeLayout { size, kind }
    }

    /// Returns the layout of a type by its id, without typedefs and aliases (qualifiers and type tags). `depth` is that of the
    /// type that refers to it.
    fn referred(&mut self, mut id: u32, depth: usize) -> TypeLayout {
        for _ in 0..MAX_ALIASES {
            match self.btf.type_with_id(id) {
                Some(record) if matches!(record.kind, TypeKind::Alias | TypeKind::Typedef) => {
                    id = record.refers_to;
                }
                Some(record) => return self.layout(record, depth + 1),
                None => break,
            }
        }
        TypeLayout {
            size: 0,
            kind: LayoutKind::Opaque,
        }
    }

    fn members(&mut self, record: BtfType<'_>, depth: usize) -> Vec<MemberLayout> {
        let mut members = Vec::new();
        for member in record.members() {
            self.members_read += 1;
            if self.members_read > MAX_MEMBERS {
                break;
            }
            members.push(MemberLayout {
                name: self.btf.text(member.name_offset).to_owned(),
                offset: member.bit_offset as usize,
                width: member.bit_width as usize,
                layout: self.referred(member.type_id, depth),
            });
        }
        members
    }
}

impl TypeLayout {
    /// Returns the size of a value in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns a little-endian value as text: `{ .tv_sec: 1, .tv_nsec: 5 }`, or `{1, 5}` without names. With names, members
    /// that are 0 are left out. Trailing elements of an array that are 0 are always left out. `None` if `bytes` are too short.
    #[must_use]
    pub fn text(&self, bytes: &[u8], with_names: bool) -> Option<String> {
        let mut text = String::new();
        self.write(bytes.get(..self.size)?, with_names, &mut text);
        Some(text)
    }

    fn write(&self, bytes: &[u8], with_names: bool, to: &mut String) {
        let number = unsigned(bytes);
        match &self.kind {
            LayoutKind::Number { is_signed: true } | LayoutKind::Character { is_signed: true } => {
                // Writing to a String does not fail.
                let _ = write!(to, "{}", signed(bytes));
            }
            LayoutKind::Number { is_signed: false }
            | LayoutKind::Character { is_signed: false } => {
                let _ = write!(to, "{number}");
            }
            LayoutKind::Boolean => to.push_str(if number == 0 { "false" } else { "true" }),
            LayoutKind::Enumeration(names) => {
                let value = signed(bytes);
                // `value` is sign-extended, but the values of an unsigned enumeration are not.
                let name = names.name(value);
                match name.or_else(|| names.name(number.cast_signed())) {
                    Some(name) => to.push_str(name),
                    None => drop(write!(to, "{value}")),
                }
            }
            LayoutKind::Pointer => drop(write!(to, "{number:#x}")),
            LayoutKind::Array(element) => write_array(element, bytes, with_names, to),
            LayoutKind::Members(members) => write_members(members, bytes, with_names, to),
            LayoutKind::Opaque => to.push_str("..."),
        }
    }
}

fn write_array(element: &TypeLayout, bytes: &[u8], with_names: bool, to: &mut String) {
    if matches!(element.kind, LayoutKind::Character { .. }) {
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        let _ = write!(to, "\"{}\"", text.escape_ascii());
        return;
    }
    to.push('[');
    // Trailing elements that are 0 are left out.
    let used_len = bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |at| at + 1);
    let elements = bytes.chunks(element.size.max(1));
    let element_count = used_len.div_ceil(element.size.max(1));
    for (index, one) in elements.take(element_count).enumerate() {
        to.push_str(if index == 0 { "" } else { ", " });
        if index == MAX_ELEMENTS {
            to.push_str("...");
            break;
        }
        element.write(one, with_names, to);
    }
    to.push(']');
}

fn write_members(members: &[MemberLayout], bytes: &[u8], with_names: bool, to: &mut String) {
    let (open, close) = if with_names { ("{ ", " }") } else { ("{", "}") };
    let mut is_empty = true;
    for member in members {
        let Some(value) = member.bytes(bytes) else {
            continue;
        };
        if with_names && value.iter().all(|byte| *byte == 0) {
            continue;
        }
        to.push_str(if is_empty { open } else { ", " });
        is_empty = false;
        if with_names && !member.name.is_empty() {
            let _ = write!(to, ".{}: ", member.name);
        }
        member.layout.write(&value, with_names, to);
    }
    to.push_str(if is_empty { "{}" } else { close });
}

impl MemberLayout {
    /// Returns the bytes of the member in `outer`, the value of the structure or union; for a bit field, its bits are moved to
    /// the lowest bits of its type. `None` if `outer` is too short, or the type of a bit field too large.
    fn bytes(&self, outer: &[u8]) -> Option<Vec<u8>> {
        let start = self.offset / 8;
        if self.width == 0 {
            return Some(
                outer
                    .get(start..start.checked_add(self.layout.size)?)?
                    .to_vec(),
            );
        }
        // Damaged data may have bit fields of types of any size.
        if self.layout.size > MAX_BIT_FIELD {
            return None;
        }
        let end = (self.offset + self.width).div_ceil(8);
        let bits = unsigned(outer.get(start..end)?);
        let bits = bits >> (self.offset % 8);
        let mask = u64::MAX >> (64 - self.width.min(64));
        let mut bytes = (bits & mask).to_le_bytes().to_vec();
        bytes.resize(self.layout.size, 0);
        Some(bytes)
    }
}

/// A little-endian number of up to 8 bytes; 0 for longer ones.
fn unsigned(bytes: &[u8]) -> u64 {
    let mut number = [0; 8];
    match number.get_mut(..bytes.len()) {
        Some(low) => low.copy_from_slice(bytes),
        None => return 0,
    }
    u64::from_le_bytes(number)
}

fn signed(bytes: &[u8]) -> i64 {
    let unused = 64_usize.saturating_sub(bytes.len() * 8);
    match unused {
        64 => 0,
        unused => (unsigned(bytes) << unused).cast_signed() >> unused,
    }
}
