use proptest::prelude::*;

use super::Btf;
use crate::shape::{TypeCategory, TypeShape as _};

/// The strings of a BTF blob, and its types.
#[derive(Default)]
pub(crate) struct Blob {
    strings: Vec<u8>,
    types: Vec<u8>,
    /// The number of base types and the size of the base strings.
    base: (u32, u32),
    count: u32,
}

impl Blob {
    pub(crate) fn new() -> Self {
        Self {
            strings: vec![0],
            ..Self::default()
        }
    }

    /// Adds a string and returns its offset.
    pub(crate) fn text(&mut self, text: &str) -> u32 {
        let at = self.base.1 + self.strings.len() as u32;
        self.strings.extend(text.as_bytes());
        self.strings.push(0);
        at
    }

    /// Adds a type of kind `info >> 24` with its details; returns its id.
    pub(crate) fn add(&mut self, name: &str, info: u32, size: u32, details: &[u32]) -> u32 {
        let name = if name.is_empty() { 0 } else { self.text(name) };
        let words = [name, info, size]
            .into_iter()
            .chain(details.iter().copied());
        self.types.extend(words.flat_map(u32::to_le_bytes));
        self.count += 1;
        self.base.0 + self.count
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let (types, strings) = (self.types.len() as u32, self.strings.len() as u32);
        let mut bytes = vec![0x9f, 0xeb, 1, 0];
        let words = [24, 0, types, types, strings];
        bytes.extend(words.into_iter().flat_map(u32::to_le_bytes));
        bytes.extend(&self.types);
        bytes.extend(&self.strings);
        bytes
    }
}

const INT: u32 = 1 << 24;
const POINTER: u32 = 2 << 24;
const ARRAY: u32 = 3 << 24;
const STRUCT: u32 = 4 << 24;
const ENUM: u32 = 6 << 24;
const ENUM64: u32 = 19 << 24;
const TYPEDEF: u32 = 8 << 24;
const CONST: u32 = 10 << 24;
const FUNCTION: u32 = 12 << 24;
const PROTOTYPE: u32 = 13 << 24;
const SIGNED: u32 = 1 << 24;

/// Builds `long read(const struct file *file, size_t count, struct pair by_value, int last)`.
pub(crate) fn kernel() -> Blob {
    let mut blob = Blob::new();
    let int = blob.add("int", INT, 4, &[SIGNED | 32]);
    let long = blob.add("long int", INT, 8, &[SIGNED | 64]);
    let character = blob.add("char", INT, 1, &[SIGNED | 8]);
    let array = blob.add("", ARRAY, 0, &[character, int, 16]);
    let rows = blob.add("", ARRAY, 0, &[int, int, 4]);
    let table = blob.add("", ARRAY, 0, &[rows, int, 3]);
    let names = ["name", "table", "flag"].map(|name| blob.text(name));
    // The last is a bit field: 3 bits at offset 5.
    let inner = [names[2], int, 3 << 24 | 5];
    let inner = blob.add("", STRUCT | 1 << 31 | 1, 4, &inner);
    let members = [names[0], array, 64, names[1], table, 192, 0, inner, 0];
    let file = blob.add("file", STRUCT | 3, 72, &members);
    let unchanged = blob.add("", CONST, file, &[]);
    let pointer = blob.add("", POINTER, unchanged, &[]);
    let unsigned = blob.add("long unsigned int", INT, 8, &[64]);
    let size = blob.add("size_t", TYPEDEF, unsigned, &[]);
    let names = ["file", "count", "by_value", "last"].map(|name| blob.text(name));
    let parameters = [
        names[0], pointer, names[1], size, names[2], file, names[3], int,
    ];
    let prototype = blob.add("", PROTOTYPE | 4, long, &parameters);
    blob.add("vfs_read", FUNCTION, prototype, &[]);
    blob
}

#[test]
fn functions_their_parameters_and_members() {
    let bytes = kernel().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let prototype = *btf.prototypes("vfs_read").first().unwrap();
    let (parameters, returned) = btf.signature(prototype, 8).unwrap();
    let listed: Vec<_> = parameters
        .iter()
        .map(|parameter| (parameter.spelled(), parameter.name().unwrap()))
        .collect();
    let expected = [
        ("struct file*", "file"),
        ("size_t", "count"),
        ("struct file", "by_value"),
        ("int", "last"),
    ];
    assert_eq!(
        listed,
        expected.map(|(kind, name)| (kind.to_owned(), name.to_owned()))
    );
    assert!(returned.unwrap().real_type().unwrap().is_signed());
    let file = parameters[0].real_type().unwrap().real_type().unwrap();
    assert_eq!(file.kind(), TypeCategory::Record);
    let name = file.member("name").unwrap();
    assert_eq!((name.offset, name.bits), (8, None));
    let text = name.member.real_type().unwrap();
    assert_eq!(text.kind(), TypeCategory::Array);
    assert!(text.real_type().unwrap().is_character());
    let table = file.member("table").unwrap().member.real_type().unwrap();
    assert_eq!(table.whole_size(), Some(48));
    let flag = file.member("flag").unwrap();
    assert_eq!((flag.offset, flag.bits), (0, Some((3, 5, 4))));
    assert!(file.member("nosuch").is_none());
    assert_eq!(file.member_names(), ["name", "table"]);
}

#[test]
fn offsets_of_members() {
    let bytes = kernel().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.member_offset("file", "name"), Some(8));
    assert_eq!(btf.member_offset("file", "table"), Some(24));
    assert_eq!(btf.member_offset("file", "nosuch"), None);
    assert_eq!(btf.member_offset("nosuch", "name"), None);
}

#[test]
fn names_of_enumerations() {
    let mut blob = Blob::new();
    let names = ["OFF", "ON"].map(|name| blob.text(name));
    blob.add("mode", ENUM | 2, 4, &[names[0], 0, names[1], 7]);
    blob.add("sign", ENUM | 1 << 31 | 1, 4, &[names[0], u32::MAX]);
    blob.add("wide", ENUM64 | 1, 8, &[names[1], 1, 1]);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let name = |enumeration: &str, value| {
        let names = btf.enumeration(enumeration)?;
        names.name(value).map(str::to_owned)
    };
    assert_eq!(name("mode", 0).as_deref(), Some("OFF"));
    assert_eq!(name("mode", 7).as_deref(), Some("ON"));
    assert_eq!(name("mode", 1), None);
    assert_eq!(name("sign", -1).as_deref(), Some("OFF"));
    assert_eq!(name("wide", 1 << 32 | 1).as_deref(), Some("ON"));
    assert_eq!(name("nosuch", 0), None);
}

#[test]
fn values_of_structures() {
    let bytes = kernel().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let found = btf.structures(&["file", "nosuch"].into(), 8);
    assert_eq!(found.len(), 1);
    let file = &found["file"];
    // A text at 8, a table of 3 times 4 numbers at 24, and a flag of the bits 5 to 7 in an anonymous structure at 0.
    let mut value = vec![0; 72];
    value[0] = 0b1010_0000;
    value[8..12].copy_from_slice(b"a\"b\0");
    value[24] = 1;
    value[44] = 9;
    let expected = r#"{ .name: "a\"b", .table: [[1], [0, 9]], { .flag: 5 } }"#;
    assert_eq!(file.text(&value, true).as_deref(), Some(expected));
    let positional = r#"{"a\"b", [[1], [0, 9]], {5}}"#;
    assert_eq!(file.text(&value, false).as_deref(), Some(positional));
    assert_eq!(file.text(&[0; 72], true).as_deref(), Some("{}"));
    assert_eq!(file.text(&value[1..], true), None);
}

#[test]
fn module_type_ids_continue_the_kernels() {
    let base = kernel();
    let mut module = Blob {
        base: (base.count, base.strings.len() as u32),
        ..Blob::new()
    };
    let name = module.text("how");
    // Refers to a type of the kernel.
    let prototype = module.add("", PROTOTYPE | 1, 0, &[name, 1]);
    module.add("start", FUNCTION, prototype, &[]);
    let (base, module) = (base.bytes(), module.bytes());
    let btf = Btf::parse(&base).unwrap().with_module(&module).unwrap();
    let prototype = *btf.prototypes("start").first().unwrap();
    let (parameters, returned) = btf.signature(prototype, 8).unwrap();
    assert!(returned.is_none());
    let parameter = parameters.first().unwrap();
    assert_eq!(parameter.spelled(), "int");
    assert_eq!(parameter.name().as_deref(), Some("how"));
    assert_eq!(btf.prototypes("vfs_read").len(), 1);
}

/// Runs every query.
fn exercise(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else {
        return;
    };
    for layout in btf.structures(&["file", ""].into(), 8).values() {
        let value: Vec<u8> = (0..=255).collect();
        let _ = (layout.text(&value, true), layout.text(&value, false));
    }
    for number in 0..32 {
        let Some((parameters, returned)) = btf.signature(number, 8) else {
            continue;
        };
        for parameter in parameters.iter().chain(&returned) {
            let _ = (parameter.spelled(), parameter.name());
            let mut shape = parameter.real_type();
            for _ in 0..8 {
                let Some(found) = shape else {
                    break;
                };
                let _ = (found.whole_size(), found.lengths(), found.is_signed());
                let _ = (found.is_character(), found.member_names());
                let member = found.member("flag").map(|step| step.member);
                shape = member.unwrap_or(found).real_type();
            }
        }
    }
}

#[test]
fn truncation_at_every_byte_is_an_error() {
    let bytes = kernel().bytes();
    for end in 0..bytes.len() {
        assert!(Btf::parse(&bytes[..end]).is_err(), "truncated at {end}");
    }
    exercise(&bytes);
}

#[test]
fn recursive_types_terminate() {
    let mut blob = Blob::new();
    let name = blob.text("self");
    // An array of itself, which is also a parameter.
    let array = blob.add("", ARRAY, 0, &[1, 1, u32::MAX]);
    blob.add("", PROTOTYPE | 1, array, &[name, array]);
    exercise(&blob.bytes());
}

#[test]
fn bit_fields_of_huge_types_have_no_value() {
    let mut blob = Blob::new();
    let int = blob.add("int", INT, 4, &[SIGNED | 32]);
    let huge = blob.add("huge", STRUCT | 1, u32::MAX, &[0, int, 0]);
    let endless = blob.add("", ARRAY, 0, &[huge, int, u32::MAX]);
    let names = ["small", "huge", "endless"].map(|name| blob.text(name));
    let members = [names[0], int, 3 << 24, names[1], huge, 3 << 24 | 3];
    let members = [&members[..], &[names[2], endless, 3 << 24 | 6]].concat();
    blob.add("work", STRUCT | 1 << 31 | 3, 4, &members);
    let bytes = blob.bytes();
    let layouts = Btf::parse(&bytes).unwrap().structures(&["work"].into(), 8);
    let text = layouts["work"].text(&[0xff; 4], true);
    assert_eq!(text.as_deref(), Some("{ .small: 7 }"));
}

#[test]
fn nested_records_are_searched_up_to_a_limit() {
    let mut blob = Blob::new();
    let name = blob.text("self");
    // Ten anonymous members, each of the same type again.
    let members: Vec<u32> = [0, 1, 0].repeat(10);
    let record = blob.add("", STRUCT | 10, 8, &members);
    blob.add("", PROTOTYPE | 1, record, &[name, record]);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let (parameters, _) = btf.signature(2, 8).unwrap();
    let found = parameters[0].real_type().unwrap();
    assert_eq!(found.kind(), TypeCategory::Record);
    assert!(found.member("nosuch").is_none());
}

proptest! {
    #[test]
    fn damaged_data_does_not_panic(at in 0usize..600, bytes: [u8; 4]) {
        let mut blob = kernel().bytes();
        for (place, byte) in blob.iter_mut().skip(at).zip(bytes) {
            *place = byte;
        }
        exercise(&blob);
    }
}
