//! Two texts, line by line.

use std::collections::HashSet;
use std::fmt::Write as _;

/// Differing lines that are shown.
const SHOWN: usize = 10;

/// Accepts what docs/compatibility.md says of objects whose symbols perf reads with an error (some that were optimised
/// after linking): it leaves the first address in such an object without a name, and names all others.
fn is_unnamed_first(perf: &str, rperf: &str, objects: &mut HashSet<String>) -> bool {
    let Some((start, object)) = perf.split_once(" [unknown] (") else {
        return false;
    };
    let named = rperf
        .strip_prefix(start)
        .is_some_and(|rest| rest.ends_with(&format!(" ({object}")));
    named && objects.insert(object.to_owned())
}

/// Of so many lines perf may have lost the mappings of one.
const LOST_OF: usize = 500;

/// Whether perf knows no mapping where rperf names a function: docs/compatibility.md tells when.
fn is_lost_mapping(perf: &str, rperf: &str) -> bool {
    const UNKNOWN: &str = " [unknown] ([unknown])";
    perf.ends_with(UNKNOWN) && rperf.ends_with(')') && !rperf.ends_with(UNKNOWN)
}

/// The first differing lines of both texts, each with the line before it; `None` where the texts are equal.
pub(crate) fn difference(expected: &str, actual: &str) -> Option<String> {
    if expected == actual {
        return None;
    }
    let (expected, actual): (Vec<_>, Vec<_>) =
        (expected.lines().collect(), actual.lines().collect());
    let longest = expected.len().max(actual.len());
    let mut text = String::new();
    let mut different = 0;
    let mut unnamed = HashSet::new();
    let mut lost = longest / LOST_OF;
    for number in 0..longest {
        let (left, right) = (expected.get(number), actual.get(number));
        if left == right {
            continue;
        }
        if let (Some(left), Some(right)) = (left, right)
            && is_unnamed_first(left, right, &mut unnamed)
        {
            continue;
        }
        if let (Some(left), Some(right)) = (left, right)
            && lost > 0
            && is_lost_mapping(left, right)
        {
            lost -= 1;
            continue;
        }
        different += 1;
        if different > SHOWN {
            continue;
        }
        if let Some(before) = number
            .checked_sub(1)
            .and_then(|before| expected.get(before))
        {
            let _ = writeln!(text, "  line {number}:  {before}");
        }
        let _ = writeln!(text, "     perf: {}", left.unwrap_or(&"(the end)"));
        let _ = writeln!(text, "    rperf: {}", right.unwrap_or(&"(the end)"));
    }
    if different == 0 {
        return None;
    }
    let _ = writeln!(
        text,
        "  {different} of {longest} lines differ ({} of perf, {} of rperf)",
        expected.len(),
        actual.len()
    );
    Some(text)
}

#[test]
fn shows_what_differs_and_counts_the_rest() {
    assert_eq!(difference("a\nb\n", "a\nb\n"), None);
    let text = difference("a\nb\nc\n", "a\nx\n").expect("they differ");
    assert!(
        text.contains("line 1:  a\n     perf: b\n    rperf: x\n"),
        "{text}"
    );
    assert!(text.contains("perf: c\n    rperf: (the end)"), "{text}");
    assert!(text.contains("2 of 3 lines differ"), "{text}");
}

#[test]
fn accepts_few_lost_mappings() {
    let same = "\t10 f (/a.so)\n".repeat(LOST_OF - 1);
    let lost = "\t7f00 [unknown] ([unknown])\n";
    let known = "\td0 g+0x7 (/a.so)\n";
    let text = |odd: &str| format!("{same}{odd}");
    assert_eq!(difference(&text(lost), &text(known)), None);
    assert!(difference(&text(known), &text(lost)).is_some());
    assert!(difference(lost, known).is_some(), "one of few");
    let twice = |odd: &str| format!("{same}{odd}{odd}");
    assert!(difference(&twice(lost), &twice(known)).is_some());
}

#[test]
fn accepts_one_unnamed_address_for_each_object() {
    let perf = "t 10 [unknown] (/a.so)\nt 20 [unknown] (/a.so)\n";
    assert_eq!(
        difference(perf, "t 10 f+0x1 (/a.so)\nt 20 [unknown] (/a.so)\n"),
        None
    );
    for rperf in [
        "t 10 f+0x1 (/a.so)\nt 20 f+0x11 (/a.so)\n",
        "t 10 f+0x1 (/b.so)\nt 20 [unknown] (/a.so)\n",
        "t 11 f+0x1 (/a.so)\nt 20 [unknown] (/a.so)\n",
    ] {
        assert!(difference(perf, rperf).is_some(), "{rperf}");
    }
}
