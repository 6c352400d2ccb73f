use proptest::prelude::*;

use super::*;

/// Bytes of a `long` of the kernel.
const LONG_SIZE: usize = 8;

const FORMAT: &str = "name: made_up\nID: 7\nformat:\n\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
\tfield:dev_t dev;\toffset:28;\tsize:4;\tsigned:0;\n\
\tfield:__data_loc char[] name;\toffset:32;\tsize:4;\tsigned:0;\n\
\tfield:const char * filename;\toffset:40;\tsize:8;\tsigned:0;\n\n\
print fmt: \"%d\", REC->prev_pid\n";

/// Parses a filter of `sys:made_up`. Only filters of `syscalls` events need `.ustring` to compare the text of `filename`.
fn parse(text: &str) -> Result<EventFilter, FilterError> {
    let format = Format::parse(FORMAT, LONG_SIZE).expect("a format file");
    EventFilter::parse(text, "sys:made_up", &format)
}

/// The error message, and the text at its position.
fn error_of(text: &str) -> (String, String) {
    let error = parse(text).expect_err(text);
    let word = text.get(error.position.clone()).expect("inside");
    (error.reason, word.to_owned())
}

#[test]
fn accepted_filters_are_passed_unchanged() {
    for text in [
        "prev_pid > 1",
        "prev_pid==0x10&&common_pid!=0",
        "!(prev_pid >= -1) || (prev_pid & 1)",
        r#"prev_comm == "x" && name ~ 'a*b'"#,
        r#"CPU == 0 || COMM ~ "x*""#,
        r#"filename ~ "/etc*""#,
        r#"filename.ustring == "x""#,
        "dev == 0x800000",
        "CPU & CPUS{0-1, 3} && prev_pid != CPUS{1}",
    ] {
        assert_eq!(parse(text).as_ref().map(EventFilter::as_str), Ok(text));
    }
}

#[test]
fn devices_may_be_given_by_their_two_numbers() {
    // The kernel's number has the major number above the 20 bits of the minor one. 5000 exceeds the 12 bits of the major one.
    let passed = |text| parse(text).map(|filter| filter.as_str().to_owned());
    for text in ["dev == 8:1", "dev == 8,1"] {
        assert_eq!(passed(text).as_deref(), Ok("dev == 8388609"), "{text}");
    }
    assert_eq!(
        passed("(dev==259:0)||prev_pid == 1").as_deref(),
        Ok("(dev==271581184)||prev_pid == 1")
    );
    assert_eq!(error_of("prev_pid == 8:1").1, "8:1");
    assert_eq!(error_of("dev == 5000:1").1, "5000:1");
}

#[test]
fn errors_have_the_position_of_the_word() {
    for (text, word, reason) in [
        (
            "prev_pid > 1 && prv_pid < 3",
            "prv_pid",
            "has no field `prv_pid', did you mean `prev_pid'?",
        ),
        ("prev_pid => 1", "=>", "did you mean `>='?"),
        ("prev_pid = 1", "=", "did you mean `=='?"),
        ("prev_comm > 3", ">", "is text"),
        ("prev_comm == x", "x", "in quotes"),
        ("prev_comm == \"x", "\"x", "in quotes"),
        ("prev_pid ~ \"a\"", "~", "is a number"),
        ("prev_pid == abc", "abc", "is a number"),
        ("prev_pid == \"1\"", "\"1\"", "is a number"),
        ("prev_pid >", "", "expected a value"),
        ("CPU & CPUS{}", "CPUS{}", "expected CPU numbers"),
        ("CPU < CPUS{1}", "CPUS{1}", "`<' does not compare with CPUs"),
        // Without the closing brace, a word like any other.
        ("CPU & CPUS{1", "CPUS{1", "is a number"),
        ("prev_comm == CPUS{1}", "CPUS{1}", "in quotes"),
        ("prev_pid", "", "expected an operator"),
        ("(prev_pid > 1", "(", "unbalanced"),
        ("prev_pid > 1)", ")", "unbalanced"),
        ("prev_pid == 1 or prev_pid == 2", "or", "expected `&&'"),
        ("prev_pid == 1 &&", "", "the name of a field"),
        ("", "", "the name of a field"),
        ("dev == 254,", "254,", "is a number"),
        ("sock->sk == 1", "sock-", "has no field `sock-'"),
    ] {
        let (message, marked) = error_of(text);
        assert!(message.contains(reason), "{text}: {message}");
        assert_eq!(marked, word, "{text}: {message}");
    }
    let deep = format!("{}prev_pid == 1", "(".repeat(5000));
    assert_eq!(error_of(&deep).0, "too many parentheses");
}

#[test]
fn text_of_user_pointers_needs_the_ustring_suffix() {
    let format = Format::parse(FORMAT, LONG_SIZE).expect("a format file");
    let parse = |text| EventFilter::parse(text, "syscalls:sys_enter_made_up", &format);
    for text in [
        r#"filename ~ "*passwd*""#,
        r#"prev_pid == 1 && filename == "x""#,
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(text.get(error.position.clone()), Some("filename"));
        let hint = error.hint.unwrap_or_default();
        assert!(hint.contains("`filename.ustring'"), "{hint}");
    }
    for text in [r#"filename.ustring ~ "*passwd*""#, "filename != 0"] {
        assert_eq!(parse(text).as_ref().map(EventFilter::as_str), Ok(text));
    }
}

#[test]
fn an_unknown_field_lists_the_real_ones() {
    let error = parse("nosuch > 1").expect_err("no such field");
    let hint = error.hint.as_deref().unwrap_or_default();
    assert!(
        hint.contains("prev_comm, prev_pid, dev, name, filename"),
        "{hint}"
    );
    assert_eq!(
        error.to_string(),
        "filter error: 'nosuch > 1'\n               \\___ sys:made_up has no field `nosuch'"
    );
}

#[test]
fn several_filters_are_joined() {
    assert_eq!(EventFilter::join(&["a == 1"]), "a == 1");
    assert_eq!(
        EventFilter::join(&["a == 1", "b || c"]),
        "(a == 1) && (b || c)"
    );
}

#[test]
fn malformed_filters_return_errors() {
    for text in [
        "é",
        "prev_pid == é",
        "\u{2003}",
        "'",
        "((((",
        "!",
        "&&",
        "prev_pid == |",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn filters_are_unchanged_or_errors_point_into_the_text(
        tokens in prop::collection::vec(
            prop::sample::select(vec![
                "prev_pid", "prev_comm", "dev", "CPU", "nosuch", "==", "=>", ">", "&", "~", "&&", "||", "!", "(", ")",
                "1", "-0x1f", "\"x*\"", "'", "é", " ", "x",
            ]),
            0..12,
        ),
    ) {
        let text = tokens.concat();
        match parse(&text) {
            Ok(filter) => prop_assert_eq!(filter.as_str(), text),
            Err(error) => {
                prop_assert!(text.get(error.position.clone()).is_some());
                prop_assert!(error.to_string().lines().count() == 2);
            }
        }
    }
}
