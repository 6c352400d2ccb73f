//! Format files and the values of fields.

use rperf_wire::Endian;

use crate::{Error, Format, Value};

/// Size of a `long` of the kernel, in bytes.
const LONG_SIZE: usize = 8;

const SWITCH: &str = "name: sched_switch
ID: 372
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:char prev_comm[16];	offset:8;	size:16;	signed:0;
	field:pid_t prev_pid;	offset:24;	size:4;	signed:1;
	field:long prev_state;	offset:32;	size:8;	signed:1;
	field:void * task;	offset:40;	size:8;	signed:1;
	field:char rwbs[RWBS_LEN];	offset:48;	size:8;	signed:0;
	field:__data_loc u32[] ids;	offset:56;	size:4;	signed:0;
	field:__data_loc cpumask_t mask;	offset:60;	size:4;	signed:0;
	field:unsigned long args[2];	offset:64;	size:16;	signed:0;

print fmt: \"prev_comm=%s\", REC->prev_comm
";

fn raw() -> Vec<u8> {
    let mut raw = vec![0; 80];
    raw[..2].copy_from_slice(&372_u16.to_le_bytes());
    raw[8..13].copy_from_slice(b"sleep");
    raw[24..28].copy_from_slice(&(-2_i32).to_le_bytes());
    raw[32..40].copy_from_slice(&(-1_i64).to_le_bytes());
    raw[40..48].fill(0xff);
    raw[48..50].copy_from_slice(b"WS");
    // Location words: the size of the data in the upper half, their offset in the lower.
    raw[56..60].copy_from_slice(&(8_u32 << 16 | 80).to_le_bytes());
    raw[60..64].copy_from_slice(&(2_u32 << 16 | 88).to_le_bytes());
    raw[64] = 3;
    raw[72] = 4;
    raw.extend_from_slice(&[1, 0, 0, 0, 2, 0, 0, 0, 0xf, 0]);
    raw
}

#[test]
fn fields_have_values_of_their_types() {
    let format = Format::parse(SWITCH, LONG_SIZE).expect("format");
    assert_eq!((format.name.as_str(), format.id), ("sched_switch", 372));
    assert_eq!((format.common_fields.len(), format.fields.len()), (2, 8));
    let raw = raw();
    let value = |name: &str| {
        let field = format.field(name).expect("field");
        field
            .reader(Endian::Little)
            .value(&raw)
            .expect("in the record")
    };
    let list = |value: Value<'_>| match value {
        Value::Array(elements) => elements.iter().collect::<Vec<_>>(),
        other => panic!("{other:?}"),
    };
    assert_eq!(value("common_type"), Value::Unsigned(372));
    assert_eq!(value("prev_comm"), Value::Str(b"sleep"));
    assert_eq!(value("prev_pid"), Value::Signed(-2));
    assert_eq!(value("prev_state"), Value::Signed(-1));
    assert_eq!(value("task"), Value::Unsigned(u64::MAX));
    assert_eq!(value("rwbs"), Value::Str(b"WS"));
    assert_eq!(list(value("ids")), [1, 2]);
    assert_eq!(value("mask"), Value::Bytes(&[0xf, 0]));
    assert_eq!(list(value("args")), [3, 4]);
    assert!(format.field("nosuch").is_none());
}

#[test]
fn a_record_too_short_for_a_field_has_no_value() {
    let format = Format::parse(SWITCH, LONG_SIZE).expect("format");
    let raw = raw();
    for field in &format.fields {
        let short = &raw[..field.offset];
        let value = field.reader(Endian::Little).value(short);
        assert_eq!(value, None, "{}", field.name);
    }
}

#[test]
fn an_event_without_fields_or_print_fmt_is_normal() {
    let format = Format::parse("name: empty\nID: 1\nformat:\n", LONG_SIZE).expect("format");
    assert_eq!((format.fields.len(), format.print_fmt.as_str()), (0, ""));
}

#[test]
fn malformed_formats_are_reported() {
    let error = |text: &str| Format::parse(text, LONG_SIZE).expect_err("bad format");
    assert_eq!(error(""), Error::Missing("name"));
    assert_eq!(error("name: x\n"), Error::Missing("ID"));
    let id = error("name: x\nID: many\n");
    assert_eq!(id.to_string(), "format of x: `many` is not an event id");
    let field = error("name: x\nID: 1\nformat:\n\tfield:int;\toffset:0;\tsize:4;\n");
    let expected =
        "line 4 of the format of x: cannot read the field `field:int;\toffset:0;\tsize:4;`";
    assert_eq!(field.to_string(), expected);
}
