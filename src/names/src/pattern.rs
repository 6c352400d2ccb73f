//! Shell patterns for names.

/// Whether `text` is a pattern rather than a plain name: it contains `*`, `?` or `[`.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether `pattern` matches all of `name`: `*` matches any run of bytes, `?` any byte, `[a-c]` a byte of the set, and `[!a-c]` a
/// byte that is not in the set. `\` escapes the next byte, but is an ordinary byte in a set. A `]` at the start of a set is one
/// of its bytes. A `[` whose set has no end is literal, and so is a `\` at the end.
#[must_use]
pub fn matches_pattern(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    // The pattern after the last star, and the part of the name that was last compared with it. After a mismatch, the star
    // takes the first byte of that part, and the comparison starts again after it.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            retry = Some((rest, name));
            continue;
        }
        if let Some((byte, after)) = name.split_first()
            && let Some(rest) = match_element(pattern, *byte)
        {
            (pattern, name) = (rest, after);
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        match retry {
            Some((after_star, [_, after @ ..])) => {
                (pattern, name) = (after_star, after);
                retry = Some((after_star, after));
            }
            _ => return false,
        }
    }
}

/// The pattern after its first element (a byte, an escaped byte, `?` or a set), if that element matches `byte`.
fn match_element(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [b'[', inside @ ..] => match set_size(inside) {
            Some(size) => {
                // The `]` that ends the set is the first byte of `rest`.
                let (set, rest) = inside.split_at(size);
                in_set(set, byte).then_some(rest.get(1..)?)
            }
            None => (byte == b'[').then_some(inside),
        },
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

/// The size of the set in bytes, without the `]` that ends it; `None` if it has no end. `inside` is the pattern after the `[`. A
/// `]` at the start, also after `!`, does not end the set.
fn set_size(inside: &[u8]) -> Option<usize> {
    let start = usize::from(inside.first() == Some(&b'!'));
    let mut after_first = inside.iter().skip(start + 1);
    let distance = after_first.position(|byte| *byte == b']')?;
    Some(start + 1 + distance)
}

/// Whether `byte` matches a set, given without its brackets.
fn in_set(set: &[u8], byte: u8) -> bool {
    let (negated, mut set) = match set {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut contains_byte = false;
    loop {
        set = match set {
            [first, b'-', last, rest @ ..] => {
                contains_byte |= (*first..=*last).contains(&byte);
                rest
            }
            [single, rest @ ..] => {
                contains_byte |= *single == byte;
                rest
            }
            [] => return contains_byte != negated,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of `*` and `?`, by exhaustive search.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            ([b'?', rest @ ..], [_, after @ ..]) => naive(rest, after),
            ([plain, rest @ ..], [first, after @ ..]) => plain == first && naive(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn stars_and_question_marks_match_as_defined(pattern in "[ab*?]{0,9}", name in "[ab]{0,9}") {
            let expected = naive(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches_pattern(&pattern, &name), expected);
        }

        #[test]
        fn no_pattern_panics(pattern in "[a\\\\\\[\\]!*é-]{0,12}", name in ".{0,12}") {
            let _either = matches_pattern(&pattern, &name);
        }
    }

    #[test]
    fn stars_match_any_number_of_characters() {
        for pattern in ["*", "sched_*", "*switch", "s*_*h", "sched_switch*", "***h"] {
            assert!(matches_pattern(pattern, "sched_switch"), "{pattern}");
        }
        for pattern in ["", "sched_", "*swich", "s*_*x", "sched_switch?"] {
            assert!(!matches_pattern(pattern, "sched_switch"), "{pattern}");
        }
        assert!(matches_pattern("", "") && matches_pattern("*", ""));
    }

    #[test]
    fn sets_ranges_negation_and_escapes() {
        assert!(matches_pattern("sched_process_[ef]*", "sched_process_fork"));
        assert!(!matches_pattern(
            "sched_process_[ef]*",
            "sched_process_wait"
        ));
        assert!(matches_pattern("x[!a-c]", "xd") && !matches_pattern("x[!a-c]", "xb"));
        assert!(matches_pattern("x[]]", "x]") && matches_pattern("x[", "x["));
        assert!(matches_pattern("x[!]]", "xa") && !matches_pattern("x[!]]", "x]"));
        assert!(matches_pattern(r"x\*", "x*") && !matches_pattern(r"x\*", "xy"));
    }

    #[test]
    fn many_stars_are_tried_in_polynomial_time() {
        // With exponential time, the test would not end.
        let name = "a".repeat(2000);
        assert!(!matches_pattern(&format!("{}b", "*a".repeat(500)), &name));
    }
}
