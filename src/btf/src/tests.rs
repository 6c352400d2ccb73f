use proptest::prelude::*;
use rperf_testkit::btf::{
    ARRAY, Blob, ENUM, ENUM64, FUNCTION, INT, PROTOTYPE, SIGNED, STRUCT, UNION, kernel,
};

use super::{Btf, BtfError};

/// The size of a pointer in bytes.
const POINTER_SIZE: usize = 8;
// The second argument of `TypeLayout::text`.
const WITH_NAMES: bool = true;
const WITHOUT_NAMES: bool = false;
/// `kind_flag` in the `info` of a type. An enumeration with it is signed; in a structure with it, the last word of a member is
/// `width << 24 | offset` in bits, where only bit fields have a width.
const KIND_FLAG: u32 = 1 << 31;

#[test]
fn functions_have_ids_and_nested_members_have_offsets() {
    let mut blob = Blob::new();
    let int = blob.add("int", INT, 4, &[SIGNED | 32]);
    let prototype = blob.add("", PROTOTYPE, int, &[]);
    let first = blob.add("first", FUNCTION, prototype, &[]);
    for _ in 0..2 {
        blob.add("twice", FUNCTION, prototype, &[]);
    }
    // `struct outer { int a; struct { int b; union { int c; }; }; }`.
    let names = ["a", "b", "c"].map(|name| blob.text(name));
    let inmost = blob.add("", UNION | 1, 4, &[names[2], int, 0]);
    let inner = blob.add("", STRUCT | 2, 8, &[names[1], int, 0, 0, inmost, 32]);
    blob.add("outer", STRUCT | 2, 12, &[names[0], int, 0, 0, inner, 32]);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.function("first"), Some(first));
    assert_eq!(btf.function("twice"), None);
    assert_eq!(btf.function("int"), None);
    let offsets = ["a", "b", "c"].map(|name| btf.member_offset("outer", name));
    assert_eq!(offsets, [Some(0), Some(4), Some(8)]);
}

#[test]
fn offsets_of_members() {
    let bytes = kernel().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert_eq!(btf.member_offset("file", "name"), Some(8));
    assert_eq!(btf.member_offset("file", "table"), Some(24));
    assert_eq!(btf.member_offset("file", "nosuch"), None);
    assert_eq!(btf.member_offset("nosuch", "name"), None);
    // A bit field, in an anonymous member: it has no offset in bytes.
    assert_eq!(btf.member_offset("file", "flag"), None);
}

#[test]
fn names_of_enumerations() {
    let mut blob = Blob::new();
    let names = ["OFF", "ON"].map(|name| blob.text(name));
    blob.add("mode", ENUM | 2, 4, &[names[0], 0, names[1], 7]);
    blob.add("sign", ENUM | KIND_FLAG | 1, 4, &[names[0], u32::MAX]);
    blob.add("wide", ENUM64 | 1, 8, &[names[1], 1, 1]);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let name = |enumeration: &str, value| {
        let found = btf.enumeration(enumeration)?;
        found.name(value).map(str::to_owned)
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
    let found = btf.structures(&["file", "nosuch"].into(), POINTER_SIZE);
    assert_eq!(found.len(), 1);
    let file = &found["file"];
    // A text at 8, a table of 3 times 4 numbers at 24, and a flag of the bits 5 to 7 in an anonymous structure at 0. Zeros at the
    // end of arrays and members that are zero are omitted.
    let mut value = vec![0; 72];
    value[0] = 0b1010_0000;
    value[8..12].copy_from_slice(b"a\"b\0");
    value[24] = 1;
    value[44] = 9;
    let expected = r#"{ .name: "a\"b", .table: [[1], [0, 9]], { .flag: 5 } }"#;
    assert_eq!(file.text(&value, WITH_NAMES).as_deref(), Some(expected));
    let positional = r#"{"a\"b", [[1], [0, 9]], {5}}"#;
    assert_eq!(
        file.text(&value, WITHOUT_NAMES).as_deref(),
        Some(positional)
    );
    assert_eq!(file.text(&[0; 72], WITH_NAMES).as_deref(), Some("{}"));
    assert_eq!(file.text(&value[1..], WITH_NAMES), None);
}

/// Runs queries and ignores their results.
fn exercise(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else {
        return;
    };
    for layout in btf.structures(&["file", ""].into(), POINTER_SIZE).values() {
        let value: Vec<u8> = (0..=255).collect();
        let _ = (
            layout.text(&value, WITH_NAMES),
            layout.text(&value, WITHOUT_NAMES),
        );
    }
    let _ = (btf.member_offset("file", "name"), btf.enumeration("mode"));
    // More ids than the test data have types.
    for id in 0..32 {
        let Some(found) = btf.type_with_id(id) else {
            continue;
        };
        // A member has three details, a parameter two.
        for index in 0..3 * (found.member_count() + found.parameter_count()) {
            let _ = found.detail(index).map(|at| btf.text(at));
        }
    }
}

#[test]
fn truncation_at_every_byte_is_an_error() {
    let bytes = kernel().bytes();
    for end in 0..bytes.len() {
        assert!(Btf::parse(&bytes[..end]).is_err(), "truncated at {end}");
    }
    // Not truncated: the queries work on all of it.
    exercise(&bytes);
}

#[test]
fn recursive_types_terminate() {
    let mut blob = Blob::new();
    let name = blob.text("self");
    // The first type, whose id is 1: an array of itself, which is also a parameter.
    let array = blob.add("", ARRAY, 0, &[1, 1, u32::MAX]);
    blob.add("", PROTOTYPE | 1, array, &[name, array]);
    // A structure whose members are this array and the structure itself, whose id is `array + 2`.
    let structure = blob.add("", STRUCT | 2, 8, &[name, array, 0, name, array + 2, 0]);
    assert_eq!(structure, array + 2);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    assert!(!btf.structures(&[""].into(), POINTER_SIZE).is_empty());
    exercise(&bytes);
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
    blob.add("work", STRUCT | KIND_FLAG | 3, 4, &members);
    let bytes = blob.bytes();
    let layouts = Btf::parse(&bytes)
        .unwrap()
        .structures(&["work"].into(), POINTER_SIZE);
    let text = layouts["work"].text(&[0xff; 4], WITH_NAMES);
    assert_eq!(text.as_deref(), Some("{ .small: 7 }"));
}

#[test]
fn module_type_ids_continue_the_kernels() {
    let base = kernel();
    let mut module = base.module();
    let name = module.text("how");
    module.add("", PROTOTYPE | 1, 0, &[name, 1]);
    let (base, module) = (base.bytes(), module.bytes());
    let kernel_only = Btf::parse(&base).unwrap();
    let first_of_module = (1..)
        .find(|id| kernel_only.type_with_id(*id).is_none())
        .unwrap();
    let btf = kernel_only.with_module(&module).unwrap();
    let prototype = btf.type_with_id(first_of_module).unwrap();
    assert_eq!(
        (prototype.parameter_count(), prototype.detail(1)),
        (1, Some(1))
    );
    assert_eq!(prototype.detail(0).map(|at| btf.text(at)), Some("how"));
}

#[test]
fn modules_that_cannot_be_added_are_refused() {
    let base = kernel();
    let (base, module) = (base.bytes(), base.module().bytes());
    let parsed = || Btf::parse(&base).unwrap();
    let both = parsed().with_module(&module).unwrap();
    assert_eq!(
        both.with_module(&module).unwrap_err(),
        BtfError::SecondModule
    );
    let mut mirrored = module.clone();
    mirrored.swap(0, 1);
    let refused = parsed().with_module(&mirrored).unwrap_err();
    assert_eq!(refused, BtfError::ModuleByteOrder);
    let refused = parsed().with_module(b"no types").unwrap_err();
    assert_eq!(refused, BtfError::Damaged { offset: 0 });
}

proptest! {
    // The range of `at` ends after the data.
    #[test]
    fn damaged_data_does_not_panic(at in 0usize..600, bytes: [u8; 4]) {
        let mut blob = kernel().bytes();
        for (place, byte) in blob.iter_mut().skip(at).zip(bytes) {
            *place = byte;
        }
        exercise(&blob);
    }
}
