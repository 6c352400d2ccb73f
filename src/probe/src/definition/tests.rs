//! Parsed definitions, and messages for invalid ones.

use proptest::prelude::*;

use super::*;

fn point(text: &str) -> Point {
    parse(text).unwrap().point
}

fn function(name: &str, place: FunctionPlace) -> Point {
    let name = name.to_owned();
    let file = None;
    Point::Function { name, file, place }
}

fn line(line: u32) -> FunctionPlace {
    FunctionPlace::Source(SourcePlace::Line(line))
}

#[test]
fn points_are_parsed() {
    for (text, expected) in [
        ("f", function("f", FunctionPlace::Offset(0))),
        ("f+0x10", function("f", FunctionPlace::Offset(16))),
        ("f%return", function("f", FunctionPlace::Return)),
        ("f:0", function("f", FunctionPlace::Offset(0))),
        ("f:", function("f", FunctionPlace::Offset(0))),
        ("f:1", function("f", line(1))),
        ("ns::f:2", function("ns::f", line(2))),
        ("a::b::f", function("a::b::f", FunctionPlace::Offset(0))),
    ] {
        assert_eq!(point(text), expected, "{text}");
    }
    assert_eq!(
        point(r"ns\:\:f"),
        function("ns::f", FunctionPlace::Offset(0))
    );
    assert_eq!(
        point("'f;a = b*'"),
        function("f", FunctionPlace::Offset(0)).with_pattern("a = b*")
    );
    let expected = Point::File {
        file: "a.c".to_owned(),
        place: SourcePlace::Line(7),
    };
    assert_eq!(point("a.c:7"), expected);
    assert_eq!(
        point("0x1200+4"),
        Point::Address {
            address: 0x1204,
            is_return: false
        }
    );
    // SDT probes.
    let marker = |provider: Option<&str>| Point::Marker {
        provider: provider.map(str::to_owned),
        name: "tick".to_owned(),
    };
    assert_eq!(point("%sdt_demo:tick"), marker(Some("demo")));
    assert_eq!(point("sdt_demo:tick"), marker(Some("demo")));
    assert_eq!(point("%tick"), marker(None));
}

impl Point {
    /// Returns a point in the same function, at the lines that match `pattern`.
    fn with_pattern(self, pattern: &str) -> Self {
        match self {
            Self::Function { name, file, .. } => Self::Function {
                name,
                file,
                place: FunctionPlace::Source(SourcePlace::Pattern(pattern.to_owned())),
            },
            other => other,
        }
    }
}

/// `GROUP:EVENT=` precedes the whole probe point, that is, the function and the place in it.
#[test]
fn names_precede_the_place() {
    let definition = parse("grp:ev=f@a.c:3 x").unwrap();
    assert_eq!(definition.group.as_deref(), Some("grp"));
    assert_eq!(definition.event.as_deref(), Some("ev"));
    // A point is displayed as in perf's output, with the line before the file. `displayed_points_are_parsed_back` below tests
    // that this form is parsed, too.
    assert_eq!(definition.point.to_string(), "f:3@a.c");
    assert_eq!(parse("ev=f").unwrap().group, None);
}

#[test]
fn arguments_are_parsed() {
    let definition =
        parse(r"f it->name:string it.b[2].c %di a=+8(%si):u64 $vars \5 p->q[1]@user n:u8").unwrap();
    let names: Vec<Option<String>> = definition
        .arguments
        .iter()
        .map(Argument::field_name)
        .collect();
    let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
    let expected = [
        Some("name"),
        Some("c"),
        None,
        Some("a"),
        None,
        None,
        Some("q"),
        // As in perf, the type is a part of the name if the argument is only a variable.
        Some("n_u8"),
    ];
    assert_eq!(names, expected);
    let values: Vec<&ArgumentValue> = definition
        .arguments
        .iter()
        .map(|argument| &argument.value)
        .collect();
    let name = "it".to_owned();
    let members = vec![
        Member::Field("b".to_owned()),
        Member::Element(2),
        Member::Field("c".to_owned()),
    ];
    assert_eq!(values[1], &ArgumentValue::Variable { name, members });
    assert_eq!(values[2], &ArgumentValue::Raw("%di".to_owned()));
    assert_eq!(values[4], &ArgumentValue::Variables);
    assert_eq!(values[5], &ArgumentValue::Raw(r"\5".to_owned()));
    assert!(definition.arguments[6].is_user && !definition.arguments[0].is_user);
    assert!(definition.needs_debug_info() && !parse("f %di $retval").unwrap().needs_debug_info());
}

#[test]
fn numbers_have_digits_after_their_prefix() {
    for (text, expected) in [
        ("0", Some(0)),
        ("10", Some(10)),
        ("010", Some(8)),
        ("0x1f", Some(0x1f)),
        ("", None),
        ("0x", None),
        ("08", None),
        ("+5", None),
        ("0+5", None),
        ("0x+5", None),
    ] {
        assert_eq!(number(text), expected, "{text}");
    }
}

#[test]
fn syntax_errors_have_positions() {
    for (text, position, part) in [
        ("", 0, "no probe point"),
        ("f:x", 2, "number of a line"),
        ("f+x", 2, "number of bytes"),
        ("f%retrun", 2, "%return"),
        ("f@a.c@b.c", 6, "two source files"),
        ("f:3+4", 0, "exclude"),
        ("a.c:0", 0, "counted from 1"),
        ("a.c:", 0, "counted from 1"),
        ("9a=f", 0, "not a valid name"),
        ("f x=", 4, "no argument to record"),
        ("f a-b", 3, "'->'"),
        ("f a[x]", 3, "[NUMBER]"),
        ("f a[1]b", 6, "expected '.', '->' or"),
        ("f a->", 5, "expected the name of"),
        ("f a:u7", 4, "'u7' is not a"),
        ("f a:b9@0/8", 4, "'b9@0/8' is not a"),
        ("f 5", 2, "neither"),
        ("f 'a", 2, "not closed"),
        ("f \\", 2, "backslash"),
        ("0xzz", 0, "not an address"),
        ("%:", 0, "%sdt_"),
        ("f x=$vars", 2, "no name"),
    ] {
        let fault = parse(text).expect_err(text);
        assert_eq!(fault.position, position, "{text}: {fault}");
        assert!(fault.message.contains(part), "{text}: {fault}");
    }
    // After `;`, a colon is part of the pattern.
    assert!(parse("f;x:3").is_ok());
    let fault = parse("f a:u7").unwrap_err();
    assert_eq!(fault.with_marker("f a:u7"), ["  f a:u7", "      ^"]);
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-c.:;=@+%>\\[\\]0-9x\\-\\\\ '$]{0,24}") {
        if let Err(fault) = parse(&text) {
            prop_assert!(fault.position <= text.len());
            prop_assert!(text.is_char_boundary(fault.position));
        }
    }

    #[test]
    fn displayed_points_are_parsed_back(
        name in "[a-z_][a-z0-9_]{0,8}",
        file in prop::option::of("[a-z]{1,5}\\.c"),
        place in prop_oneof![
            (0u64..9999).prop_map(FunctionPlace::Offset),
            Just(FunctionPlace::Return),
            (1u32..9999).prop_map(line),
            "[a-z]{1,5}".prop_map(|text| FunctionPlace::Source(SourcePlace::Pattern(text))),
        ],
    ) {
        let point = Point::Function { name, file, place };
        prop_assert_eq!(parse(&point.to_string()).unwrap().point, point);
    }
}
