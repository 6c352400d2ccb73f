//! Names of values compared with the text of the whole `print fmt`.

use proptest::prelude::*;

use super::kernels::{Content, of_machine, raw, variants, variants_with};
use crate::typed::{EventLayout, TypedEvent};
use crate::{NoSymbols, PrintContext, PrintkFormats, Tracepoint, ValueNames};

/// The part of the evaluated `print fmt` between `before` and `after`; up to the end if there is no `after`.
fn text_between(tracepoint: &Tracepoint, raw: &[u8], before: &str, after: &str) -> String {
    let context = PrintContext {
        symbols: &NoSymbols,
        printk: &PrintkFormats::default(),
    };
    let mut out = Vec::new();
    tracepoint.print_fmt().write(raw, &context, &mut out);
    let text = String::from_utf8(out).expect("text");
    let (_, rest) = text.split_once(before).expect("its text");
    let (between, _) = rest.split_once(after).unwrap_or((rest, ""));
    between.to_owned()
}

/// The typed event's name for the value of its field.
fn name_of_value(tracepoint: &Tracepoint, raw: &[u8]) -> String {
    let layout = EventLayout::resolve(tracepoint).expect("its fields");
    match layout.expect("a typed event").read(raw).expect("complete") {
        TypedEvent::SchedSwitch(event) => event.prev_state().to_string(),
        TypedEvent::SoftirqRaise(event) => event.vec().to_string(),
        TypedEvent::Kmalloc(event) => event.gfp_flags().to_string(),
        TypedEvent::ContentionBegin(event) => event.flags().to_string(),
        other => panic!("{other:?}"),
    }
}

/// Events with named values: tracepoint, field, and the text before and after the name.
const NAMED: [(&str, &str, &str, &str); 4] = [
    ("sched:sched_switch", "prev_state", "prev_state=", " ==>"),
    ("irq:softirq_raise", "vec", "action=", "]"),
    ("kmem:kmalloc", "gfp_flags", "gfp_flags=", " "),
    ("lock:contention_begin", "flags", "flags=", ")"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn value_names_match_the_print_format(bits: u32, small in 0_u32..12) {
        for (name, field, before, after) in NAMED {
            for tracepoint in variants(name) {
                // Values of 31 bits, which are not negative in a signed field.
                for value in [bits >> 1, small, 1 << (bits % 31), 0] {
                    let raw = raw(&tracepoint, &[(field, Content::Number(value.into()))]);
                    let expected = text_between(&tracepoint, &raw, before, after);
                    prop_assert_eq!(name_of_value(&tracepoint, &raw), expected);
                }
            }
        }
    }
}

#[test]
fn page_allocations_have_the_flag_names_of_kmalloc() {
    let (Some(pages), Some(kmalloc)) =
        (of_machine("kmem:mm_page_alloc"), of_machine("kmem:kmalloc"))
    else {
        return rperf_testkit::skip(
            "page_allocations_have_the_flag_names_of_kmalloc",
            "no such tracepoints",
        );
    };
    let names = |tracepoint: &Tracepoint| ValueNames::of(&tracepoint.format, "gfp_flags");
    assert!(names(&pages).is_some());
    assert_eq!(names(&pages), names(&kmalloc));
}

#[test]
fn a_field_without_a_table_has_no_names() {
    for tracepoint in variants("sched:sched_switch") {
        assert_eq!(ValueNames::of(&tracepoint.format, "prev_pid"), None);
        assert_eq!(ValueNames::of(&tracepoint.format, "nosuch"), None);
    }
}

#[test]
fn a_table_may_name_zero() {
    // As in perf, an entry with a negative value names the value 0.
    let table = "__print_flags(REC->prev_prio, \"|\", {1, \"A\"}, {2 + 1, \"B\"}, {-1, \"none\"})";
    let print_fmt = format!("\"prio=%s;\", {table}");
    let no_replacement = [];
    for tracepoint in variants_with("sched:sched_switch", &no_replacement, &print_fmt) {
        let names = ValueNames::of(&tracepoint.format, "prev_prio").expect("a table");
        for value in 0..8 {
            let raw = raw(&tracepoint, &[("prev_prio", Content::Number(value))]);
            let mut text = String::new();
            let written = names.write(value.cast_unsigned(), &mut text);
            written.expect("memory");
            assert_eq!(
                text,
                text_between(&tracepoint, &raw, "prio=", ";"),
                "{value}"
            );
        }
        let mut text = String::new();
        names.write(0, &mut text).expect("memory");
        assert_eq!(text, "none");
    }
}
