use proptest::prelude::*;
use rperf_btf::Btf;
use rperf_testkit::btf::{ARRAY, Blob, FUNCTION, PROTOTYPE, STRUCT, kernel};

use super::BtfShape;
use crate::shape::{BitField, TypeCategory, TypeShape as _};

/// The size of a pointer in bytes.
const POINTER_SIZE: u64 = 8;

#[test]
fn functions_have_parameters_with_members() {
    // The BTF has the function `vfs_read` and its types.
    let bytes = kernel().bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let prototype = *btf.prototypes("vfs_read").first().unwrap();
    let (parameters, returned) = BtfShape::signature(&btf, prototype, POINTER_SIZE).unwrap();
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
    // The parameter's type is a pointer, and that pointer's target is the structure.
    let file = parameters[0].real_type().unwrap().real_type().unwrap();
    assert_eq!(file.kind(), TypeCategory::Record);
    let name = file.member("name").unwrap();
    assert_eq!((name.offset, name.bits), (8, None));
    let array = name.member.real_type().unwrap();
    assert_eq!(array.kind(), TypeCategory::Array);
    assert!(array.real_type().unwrap().is_character());
    let table = file.member("table").unwrap().member.real_type().unwrap();
    // 3 rows of 4 numbers of 4 bytes.
    assert_eq!(table.whole_size(), Some(48));
    let flag = file.member("flag").unwrap();
    // 3 bits from bit 5 of a number of 4 bytes.
    let bits = BitField {
        width: 3,
        low: 5,
        container_size: 4,
    };
    assert_eq!((flag.offset, flag.bits), (0, Some(bits)));
    assert!(file.member("nosuch").is_none());
    // `flag` is a member of an anonymous structure, and not listed.
    assert_eq!(file.member_names(), ["name", "table"]);
}

#[test]
fn module_type_ids_continue_the_kernels() {
    let base = kernel();
    let mut module = base.module();
    let name = module.text("how");
    // The id of a type in the kernel's own BTF.
    let int = 1;
    let prototype = module.add("", PROTOTYPE | 1, 0, &[name, int]);
    module.add("start", FUNCTION, prototype, &[]);
    let (base, module) = (base.bytes(), module.bytes());
    let btf = Btf::parse(&base).unwrap().with_module(&module).unwrap();
    let prototype = *btf.prototypes("start").first().unwrap();
    let (parameters, returned) = BtfShape::signature(&btf, prototype, POINTER_SIZE).unwrap();
    assert!(returned.is_none());
    let parameter = parameters.first().unwrap();
    assert_eq!(parameter.spelled(), "int");
    assert_eq!(parameter.name().as_deref(), Some("how"));
    // The kernel's own functions are still found.
    assert_eq!(btf.prototypes("vfs_read").len(), 1);
}

#[test]
fn nested_records_are_searched_up_to_a_limit() {
    let mut blob = Blob::new();
    let name = blob.text("self");
    // Ten members: no name, type 1 (the structure itself), offset 0.
    let members: Vec<u32> = [0, 1, 0].repeat(10);
    let record = blob.add("", STRUCT | 10, 8, &members);
    let prototype = blob.add("", PROTOTYPE | 1, record, &[name, record]);
    let bytes = blob.bytes();
    let btf = Btf::parse(&bytes).unwrap();
    let (parameters, _) = BtfShape::signature(&btf, prototype, POINTER_SIZE).unwrap();
    let record = parameters[0].real_type().unwrap();
    assert_eq!(record.kind(), TypeCategory::Record);
    assert!(record.member("nosuch").is_none());
}

/// Queries the parameters of prototypes among the first 32 type ids, and their types.
fn exercise(bytes: &[u8]) {
    let Ok(btf) = Btf::parse(bytes) else {
        return;
    };
    for number in 0..32 {
        let Some((parameters, returned)) = BtfShape::signature(&btf, number, POINTER_SIZE) else {
            continue;
        };
        for parameter in parameters.iter().chain(&returned) {
            let _ = (parameter.spelled(), parameter.name());
            let mut shape = parameter.real_type();
            // A recursive type would be followed without end.
            for _ in 0..8 {
                let Some(current) = shape else {
                    break;
                };
                let _ = (current.whole_size(), current.lengths(), current.is_signed());
                let _ = (current.is_character(), current.member_names());
                let member = current.member("flag").map(|step| step.member);
                shape = member.unwrap_or(current).real_type();
            }
        }
    }
}

#[test]
fn recursive_types_terminate() {
    let mut blob = Blob::new();
    let name = blob.text("self");
    // An array of itself: the types of its elements and of its index are type 1, the array. The function returns this array, and
    // has it as parameter.
    let array = blob.add("", ARRAY, 0, &[1, 1, u32::MAX]);
    blob.add("", PROTOTYPE | 1, array, &[name, array]);
    exercise(&blob.bytes());
}

proptest! {
    // The data is shorter than 600 bytes: if `at` is behind its end, nothing is damaged.
    #[test]
    fn damaged_data_does_not_panic(at in 0usize..600, bytes: [u8; 4]) {
        let mut blob = kernel().bytes();
        for (place, byte) in blob.iter_mut().skip(at).zip(bytes) {
            *place = byte;
        }
        exercise(&blob);
    }
}
