//! Small formats and their output.

use rperf_wire::Endian;

use crate::{
    Abi, Format, FormatWarning, KernelSymbols, NoSymbols, PrintContext, PrintFmt, PrintkFormats,
};

const LITTLE: Abi = Abi {
    endian: Endian::Little,
    long_size: 8,
};

/// A format with `fields`, each a declaration (type and name) and a size in bytes, one after the other from offset 8.
/// Those declared `int` or `long` are signed.
fn format(fields: &[(&str, usize)], print_fmt: &str) -> Format {
    let mut text = "name: test\nID: 7\nformat:\n".to_owned();
    text.push_str("\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n");
    let mut offset = 8;
    for (declaration, size) in fields {
        let signed = u8::from(declaration.starts_with("int") || declaration.starts_with("long"));
        let line = format!("\tfield:{declaration};\toffset:{offset};\tsize:{size};");
        text.push_str(&format!("{line}\tsigned:{signed};\n"));
        offset += size;
    }
    text.push_str("\nprint fmt: ");
    text.push_str(print_fmt);
    Format::parse(&text, LITTLE.long_size.into()).expect("format")
}

/// Evaluates `print_fmt` for the bytes `body` after the common fields.
fn print(fields: &[(&str, usize)], print_fmt: &str, body: &[u8]) -> String {
    let printk = PrintkFormats::parse("0x1234 : \"a string\\n\"\n");
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &printk,
    };
    // `common_type` is the id of the format.
    let mut raw = vec![7, 0, 0, 0, 0, 0, 0, 0];
    raw.extend_from_slice(body);
    let mut out = Vec::new();
    PrintFmt::compile(&format(fields, print_fmt), LITTLE).write(&raw, &context, &mut out);
    String::from_utf8(out).expect("text")
}

/// Evaluates `print_fmt` for two fields, `a` of 32 bits and `b` of 64.
fn numbers(print_fmt: &str, a: i32, b: i64) -> String {
    let mut body = a.to_le_bytes().to_vec();
    body.extend_from_slice(&b.to_le_bytes());
    print(&[("int a", 4), ("long b", 8)], print_fmt, &body)
}

/// `%d` prints the sign of signed fields; Linux perf prints 250 for `a` and 65527 for `b`. `%u` prints the field's bits unsigned.
#[test]
fn small_fields_have_the_sign_of_their_type() {
    let fields = [("int a", 1), ("int b", 2), ("u8 c", 1)];
    let body = [0xfa, 0xf7, 0xff, 0xfa];
    let text = "\"%d %d %d %u\", REC->a, REC->b, REC->c, REC->a";
    assert_eq!(print(&fields, text, &body), "-6 -9 250 250");
}

#[test]
fn integers_are_formatted_by_flags_width_and_length() {
    let cases = [
        ("\"%d %u\", REC->a, REC->a", "-5 4294967291"),
        (
            "\"%x %X %o\", REC->a, REC->a, REC->a",
            "fffffffb FFFFFFFB 37777777773",
        ),
        (
            "\"[%8d|%-8d|%08d]\", REC->a, REC->a, REC->a",
            "[      -5|-5      |-0000005]",
        ),
        ("\"%#x %#010x %#o\", 255, 255, 8", "0xff 0x000000ff 010"),
        ("\"%hhx %hx\", REC->a, REC->a", "fb fffb"),
        ("\"%ld %llx\", REC->b, REC->b", "-2 fffffffffffffffe"),
        ("\"%.4d|%6.3d|%-6.3d|\", 7, 7, 7", "0007|   007|007   |"),
        ("\"%*d|%.*d\", 4, 7, 3, 7", "   7|007"),
        ("\"%#x\", 0", "0"),
        ("\"%lld\", 18446744073709551615", "-1"),
        // As in perf, a 32-bit field is never sign-extended to 64.
        ("\"%lld\", REC->a", "4294967291"),
        // As in perf, `z` without `l` prints the lower 32 bits, without a sign.
        ("\"%zu %zd\", REC->b, REC->b", "4294967294 4294967294"),
    ];
    for (print_fmt, expected) in cases {
        assert_eq!(numbers(print_fmt, -5, -2), expected, "{print_fmt}");
    }
}

#[test]
fn expressions_are_evaluated_as_in_perf_not_as_in_c() {
    let cases = [
        ("\"%d\", REC->a + 2 * 3", "16"),
        ("\"%d\", REC->a * 2 + 3", "23"),
        // Operators of equal precedence associate to the right.
        ("\"%d\", REC->a - 2 - 3", "11"),
        // Parentheses around a looser operator, `|`, have no effect after a tighter one, `&`.
        ("\"%d\", 6 & (REC->a | 1)", "3"),
        ("\"%d\", REC->a == 10 ? 1 : 2", "1"),
        ("\"%d\", !REC->a", "0"),
        ("\"%llx\", ~REC->b", "ffffffffffffff00"),
        ("\"%d\", (u8)REC->b", "255"),
        ("\"%d\", REC->a / 0", "0"),
        // `^` always gives 0.
        ("\"%d\", REC->a ^ 3", "0"),
        ("\"%d\", __builtin_expect(REC->a, 0)", "10"),
        ("\"%llx\", (unsigned long)(void *)REC->b", "ff"),
        ("\"%d\", 1 << REC->a", "1024"),
        // A character constant has the value of its leading digits; 0 if there are none.
        ("\"%d %d\", 'R', '7'", "0 7"),
    ];
    for (print_fmt, expected) in cases {
        assert_eq!(numbers(print_fmt, 10, 255), expected, "{print_fmt}");
    }
}

/// The output of perf 6.1 for each `print fmt`, with 10 in `a` and 255 in `b`.
const PERF: &str = include_str!("perf_6_1.tsv");

#[test]
fn odd_expressions_read_as_in_perf() {
    let mut differences = Vec::new();
    for line in PERF.lines() {
        let (print_fmt, expected) = line.split_once('\t').expect("two columns");
        let mut body = vec![10, 0, 0, 0, 0, 0, 0, 0];
        body.extend_from_slice(&[255, 0, 0, 0, 0, 0, 0, 0]);
        body.resize(32, 0);
        let fields = [("int a", 4), ("int padding", 4), ("long b", 8)];
        let text = print(&fields, print_fmt, &body).replace('\n', "\\n");
        // A `print fmt` that cannot be parsed lists the fields. The format that perf read has no field for the padding.
        let text = text.replace(" padding=0", "");
        if text != expected {
            differences.push(format!("{print_fmt}\n  perf: {expected}\n  ours: {text}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn tables_name_flags_and_symbols() {
    let flags = "\"%s\", __print_flags(REC->a, \"|\", {1, \"A\"}, {2, \"B\"}, {1 << 2, \"C\"})";
    for (value, expected) in [(0, ""), (1, "A"), (6, "B|C"), (9, "A|0x8"), (64, "0x40")] {
        assert_eq!(numbers(flags, value, 0), expected, "{value}");
    }
    let none = "\"%s\", __print_flags(REC->a, \"|\", {1, \"A\"}, {-1, \"none\"})";
    assert_eq!(numbers(none, 0, 0), "none");
    // As in perf, numbers without a name are not padded.
    let symbols = "\"%-4s|\", __print_symbolic(REC->a, {0, \"zero\"}, {3, \"three\"}, {4, \"4\"})";
    for (value, expected) in [(0, "zero|"), (3, "three|"), (4, "4   |"), (5, "0x5|")] {
        assert_eq!(numbers(symbols, value, 0), expected, "{value}");
    }
    let choice = "\"%s\", REC->a ? __print_symbolic(REC->a, {1, \"one\"}) : \"none\"";
    assert_eq!(numbers(choice, 0, 0), "none");
    assert_eq!(numbers(choice, 1, 0), "one");
}

#[test]
fn strings_are_fields_addresses_or_dynamic_data() {
    let comm = [("char comm[8]", 8)];
    assert_eq!(
        print(
            &comm,
            "\"%s|%3s|%.2s\", REC->comm, REC->comm, REC->comm",
            b"sleep\0xx"
        ),
        "sleep|sleep|sl"
    );
    let pointer = [("const char * s", 8)];
    let text = |address: u64| print(&pointer, "\"%s\", REC->s", &address.to_le_bytes());
    assert_eq!(
        (text(0x1234), text(0x1235)),
        ("a string".into(), "1235".into())
    );
    let dynamic = [("__data_loc char[] name", 4), ("__rel_loc char[] rel", 4)];
    // Length and offset of the data: from the start of the record, and from the end of the field.
    let mut body = (4_u32 << 16 | 16).to_le_bytes().to_vec();
    body.extend_from_slice(&(4_u32 << 16 | 4).to_le_bytes());
    body.extend_from_slice(b"abc\0xyz\0");
    let both = "\"%s %s %d\", __get_str(name), __get_rel_str(rel), __get_dynamic_array_len(name)";
    assert_eq!(print(&dynamic, both, &body), "abc xyz 4");
}

#[test]
fn arrays_and_masks_are_listed() {
    let fixed = [("u8 b[4]", 4), ("unsigned long args[2]", 16)];
    let mut body = vec![1, 0xab, 0, 0xff];
    body.extend_from_slice(&[9, 0, 0, 0, 0, 0, 0, 0, 5, 1, 0, 0, 0, 0, 0, 0]);
    let print_fmt =
        "\"%s %s %lx\", __print_hex(REC->b, 3), __print_hex_str(REC->b, 4), REC->args[1]";
    assert_eq!(print(&fixed, print_fmt, &body), "01 ab 00 01ab00ff 105");
    assert_eq!(
        print(&fixed, "\"%s\", __print_array(REC->args, 2, 8)", &body),
        "9 261"
    );
    let mask = [("__data_loc unsigned long[] mask", 4)];
    // Length and offset of the data.
    let mut body = (8_u32 << 16 | 12).to_le_bytes().to_vec();
    body.extend_from_slice(&[0x0f, 0, 0, 0x80, 1, 0, 0, 0]);
    assert_eq!(
        print(&mask, "\"%s\", __get_bitmask(mask)", &body),
        "00000001,8000000f"
    );
}

#[test]
fn pointer_formats_print_the_pointed_data() {
    let fields = [("u8 mac[6]", 6), ("u8 v4[4]", 4), ("u8 v6[16]", 16)];
    let mut body = vec![0xde, 0xad, 0xbe, 0xef, 0, 1, 10, 0, 0, 255];
    body.extend_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    let cases = [
        (
            "\"%pM %pm\", REC->mac, REC->mac",
            "de:ad:be:ef:00:01 deadbeef0001",
        ),
        (
            "\"%pI4 %pi4\", REC->v4, REC->v4",
            "10.0.0.255 010.000.000.255",
        ),
        ("\"%pI6c\", REC->v6", "2001:db8::1"),
        (
            "\"%pI6\", REC->v6",
            "2001:0db8:0000:0000:0000:0000:0000:0001",
        ),
        ("\"%pU\", REC->v6", "20010db8-0000-0000-0000-000000000001"),
        ("\"%pM\", REC->v4", "INVALIDMAC"),
        ("\"%pI4\", REC->v4 + 1", "ARG TYPE NOT FIELD BUT 11"),
        ("\"%p %p %pS\", 0, 16, 32", "(nil) 0x10 0x20"),
    ];
    for (print_fmt, expected) in cases {
        assert_eq!(print(&fields, print_fmt, &body), expected, "{print_fmt}");
    }
}

#[test]
fn function_pointers_are_printed_as_symbols() {
    struct FakeSymbol;
    impl KernelSymbols for FakeSymbol {
        fn symbol_at(&self, address: u64) -> Option<(&str, u64)> {
            (0x1000..0x2000)
                .contains(&address)
                .then_some(("tick", 0x1000))
        }
    }
    let format = format(
        &[("void * f", 8)],
        "\"%ps %pS %pf %pF\", REC->f, REC->f, REC->f, 1",
    );
    let mut raw = vec![0; 8];
    raw.extend_from_slice(&0x1010_u64.to_le_bytes());
    let mut out = Vec::new();
    let context = PrintContext {
        symbols: &FakeSymbol,
        printk: &PrintkFormats::default(),
    };
    PrintFmt::compile(&format, LITTLE).write(&raw, &context, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "tick tick+0x10 tick 0x1");
}

#[test]
fn escapes_and_unknown_conversions() {
    assert_eq!(
        numbers("\"a\\\"b\\n%%|%c|%d\", REC->a", 3, 0),
        "a\"b\n%|>c<|3"
    );
    assert_eq!(numbers("\"one \" \"two %d\", REC->a", 3, 0), "one two 3");
}

#[test]
fn unsupported_print_formats_list_the_fields() {
    let cases = [
        (
            "\"%s\", new_helper(REC->a)",
            FormatWarning::UnknownHelper("new_helper".into()),
        ),
        ("\"%d %d\", REC->a", FormatWarning::TooFewArguments),
        (
            "\"%lllx\", REC->a",
            FormatWarning::Conversion("%lllx".into()),
        ),
        ("\"%d\", REC->a @ 1", FormatWarning::Operator("@".into())),
    ];
    for (print_fmt, expected) in cases {
        let format = format(&[("int a", 4), ("long b", 8)], print_fmt);
        let program = PrintFmt::compile(&format, LITTLE);
        assert_eq!(program.warning(), Some(&expected), "{print_fmt}");
        assert_eq!(numbers(print_fmt, -1, -1), "[FAILED TO PARSE] a=-1 b=-1");
    }
    // More length modifiers than the parser's `i8` can count.
    for letter in ["h", "l", "hl", "L"] {
        let print_fmt = format!("\"%{}d\", REC->a", letter.repeat(40_000));
        let program = PrintFmt::compile(&format(&[("int a", 4)], &print_fmt), LITTLE);
        let warning = program.warning();
        assert!(
            matches!(warning, Some(FormatWarning::Conversion(_))),
            "{letter}"
        );
    }
    // More nested parentheses than the parser accepts.
    let deep = format!("\"%d\", {}1{}", "(".repeat(5000), ")".repeat(5000));
    let program = PrintFmt::compile(&format(&[], &deep), LITTLE);
    assert_eq!(program.warning(), Some(&FormatWarning::TooDeep));
}

#[test]
fn a_short_record_reads_as_zeros() {
    let long = [("int a", 4), ("long b[4]", 32), ("__data_loc char[] s", 4)];
    let print_fmt = "\"%d %lx %s|%s|\", REC->a, REC->b[3], __get_str(s), __print_hex(REC->b, 32)";
    // All fields together have 40 bytes.
    for length in 0..40 {
        let text = print(&long, print_fmt, &vec![0; length]);
        assert!(text.starts_with("0 0 "), "{length}: {text}");
    }
}

#[test]
fn big_endian_records_are_printed() {
    let format = format(&[("int a", 4), ("long b", 8)], "\"%d %lx\", REC->a, REC->b");
    let abi = Abi {
        endian: Endian::Big,
        long_size: 8,
    };
    let mut raw = vec![0; 8];
    raw.extend_from_slice(&(-3_i32).to_be_bytes());
    raw.extend_from_slice(&0x1234_u64.to_be_bytes());
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let mut out = Vec::new();
    PrintFmt::compile(&format, abi).write(&raw, &context, &mut out);
    assert_eq!(String::from_utf8_lossy(&out), "-3 1234");
}
