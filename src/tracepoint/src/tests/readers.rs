//! Field readers with any format and any bytes.

use proptest::prelude::*;
use rperf_wire::Endian;

use crate::{Field, Format, Value};

const ENDIANS: [Endian; 2] = [Endian::Little, Endian::Big];

const SIGNED: bool = true;
const UNSIGNED: bool = false;

fn field(declaration: &str, offset: usize, size: usize, signed: bool) -> Field {
    let signed = u8::from(signed);
    let text = format!(
        "name: x\nID: 1\nformat:\n\tfield:{declaration};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
    );
    let long_size = 8;
    let format = Format::parse(&text, long_size).expect("a description");
    // No empty line precedes the only field: it counts as a common one.
    format.common_fields.into_iter().next().expect("a field")
}

/// Reference implementation: sums up the bytes of a number, the most significant first.
fn oracle(bytes: &[u8], signed: bool, endian: Endian) -> i64 {
    let mut big_endian = bytes.to_vec();
    if endian == Endian::Little {
        big_endian.reverse();
    }
    let number = big_endian
        .iter()
        .fold(0_i128, |sum, byte| sum << 8 | i128::from(*byte));
    let is_negative = signed && big_endian[0] >= 0x80;
    let modulus = 1_i128 << (8 * big_endian.len());
    (if is_negative {
        number - modulus
    } else {
        number
    }) as i64
}

#[test]
fn location_words_are_absolute_or_relative() {
    for endian in ENDIANS {
        // The location word: three bytes at offset 12. If absolute, the offset is from the start of the record: `ab\0`. If
        // relative, it is from the end of this word, so the bytes are at 16: `ef`, and the `g` that only `longer` has.
        let word = 3_u32 << 16 | 12;
        let word = match endian {
            Endian::Little => word.to_le_bytes(),
            Endian::Big => word.to_be_bytes(),
        };
        let raw = [&word[..], b"....", b"four", b"ab\0def"].concat();
        let absolute = field("__data_loc char[] name", 0, 4, UNSIGNED).reader(endian);
        assert_eq!(absolute.text(&raw), Some(&b"ab"[..]));
        assert_eq!(absolute.bytes(&raw), Some(&b"ab\0"[..]));
        let relative = field("__rel_loc char[] name", 0, 4, UNSIGNED).reader(endian);
        assert_eq!(relative.bytes(&raw), None);
        let longer = [&raw[..], b"g"].concat();
        assert_eq!(relative.bytes(&longer), Some(&b"efg"[..]));
        assert_eq!(absolute.bytes(&raw[..14]), None);
        assert_eq!(absolute.bytes(&raw[..3]), None);
    }
}

#[test]
fn locations_of_two_bytes_extend_to_the_nul_or_the_end() {
    let reader = field("__data_loc name", 0, 2, UNSIGNED).reader(Endian::Little);
    assert_eq!(reader.text(b"\x03\0.ab\0c"), Some(&b"ab"[..]));
    assert_eq!(reader.text(b"\x03\0.ab"), Some(&b"ab"[..]));
    assert_eq!(reader.text(b"\x03\0"), None);
}

#[test]
fn fields_are_read_by_their_type() {
    let raw = [0xff; 16];
    let number = field("int a", 4, 4, SIGNED).reader(Endian::Little);
    assert_eq!(
        (number.u64(&raw), number.i64(&raw)),
        (Some(0xffff_ffff), Some(-1))
    );
    assert!(number.is_number() && !number.is_text() && !number.is_array());
    assert_eq!((number.text(&raw), number.elements(&raw)), (None, None));
    let array = field("unsigned long a[2]", 0, 16, UNSIGNED).reader(Endian::Little);
    assert_eq!((array.u64(&raw), array.i64(&raw)), (None, None));
    let elements = array.elements(&raw).expect("an array");
    assert_eq!(
        (elements.len(), elements.get(1), elements.get(2)),
        (2, Some(u64::MAX), None)
    );
    // An array of size 0 extends to the end of the data, but its `end` is its offset.
    let rest = field("char a[]", 10, 0, UNSIGNED).reader(Endian::Little);
    assert_eq!(rest.bytes(&raw).map(<[u8]>::len), Some(6));
    assert_eq!((rest.end(), number.end(), array.end()), (10, 8, 16));
}

/// Declarations, with their possible sizes.
const DECLARATIONS: [(&str, &[usize]); 9] = [
    ("int a", &[1, 2, 4, 8]),
    ("unsigned long a", &[4, 8]),
    ("void * a", &[4, 8]),
    ("char a[16]", &[16]),
    ("u32 a[3]", &[12]),
    ("struct x a", &[3, 5, 16]),
    ("__data_loc char[] a", &[4, 2]),
    ("__rel_loc u16[] a", &[4]),
    ("__data_loc cpumask_t a", &[4]),
];

proptest! {
    #[test]
    fn numbers_match_their_bytes(
        raw in prop::collection::vec(any::<u8>(), 0..40),
        offset in 0_usize..40,
        size in prop::sample::select(vec![1_usize, 2, 4, 8]),
        signed: bool,
    ) {
        for endian in ENDIANS {
            let reader = field("int a", offset, size, signed).reader(endian);
            let bytes = raw.get(offset..offset + size);
            prop_assert_eq!(reader.i64(&raw), bytes.map(|bytes| oracle(bytes, signed, endian)));
            let unsigned = bytes.map(|bytes| oracle(bytes, UNSIGNED, endian).cast_unsigned());
            prop_assert_eq!(reader.u64(&raw), unsigned);
        }
    }

    #[test]
    fn truncated_data_have_the_same_value_or_none(
        // Small bytes, so that offsets in location words are often within the data.
        raw in prop::collection::vec(0_u8..40, 0..60),
        offset in 0_usize..60,
        declared in prop::sample::select(DECLARATIONS.to_vec()),
        // Selects one of the declaration's sizes, of which there are up to four.
        which in 0_usize..4,
        signed: bool,
    ) {
        let (declaration, sizes) = declared;
        let size = sizes[which % sizes.len()];
        for endian in ENDIANS {
            let reader = field(declaration, offset, size, signed).reader(endian);
            let complete = reader.value(&raw);
            prop_assert!(complete.is_none() || raw.len() >= reader.end());
            for length in 0..raw.len() {
                let truncated = reader.value(&raw[..length]);
                // A location word of two bytes has no length: the text ends with the data.
                let may_be_shorter = size == 2 && matches!(truncated, Some(Value::Str(_)));
                prop_assert!(truncated.is_none() || truncated == complete || may_be_shorter);
            }
        }
    }

    #[test]
    fn no_offset_or_size_panics(
        raw in prop::collection::vec(any::<u8>(), 0..60),
        offset: usize,
        size: usize,
        declared in prop::sample::select(DECLARATIONS.to_vec()),
    ) {
        for endian in ENDIANS {
            let reader = field(declared.0, offset, size, SIGNED).reader(endian);
            prop_assert!(reader.value(&raw).is_none() || reader.end() <= raw.len());
        }
    }
}
