//! Shell patterns for names of systems and events.

/// Whether `text` is a pattern and not a plain name.
#[must_use]
pub fn is_pattern(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether `pattern` covers all of `name`: `*` any run of bytes, `?` any byte, `[a-c]` one of a set, `[!a-c]` none of
/// it, `\` takes the next byte as it is. A bracket without its partner stands for itself.
#[must_use]
pub fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.as_bytes(), name.as_bytes());
    // Where to go on after a mismatch: behind the last star, which then takes one byte more.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            retry = Some((rest, name));
            continue;
        }
        let next = match (one(pattern, name.first().copied()), name) {
            (Some(rest), [_, after @ ..]) => Some((rest, after)),
            _ => None,
        };
        if let Some(next) = next {
            (pattern, name) = next;
            continue;
        }
        if pattern.is_empty() && name.is_empty() {
            return true;
        }
        match retry {
            Some((star, [_, after @ ..])) => {
                (pattern, name) = (star, after);
                retry = Some((star, after));
            }
            _ => return false,
        }
    }
}

/// The pattern behind its first element, if that takes `byte`.
fn one(pattern: &[u8], byte: Option<u8>) -> Option<&[u8]> {
    let byte = byte?;
    match pattern {
        [b'?', rest @ ..] => Some(rest),
        [b'\\', escaped, rest @ ..] => (*escaped == byte).then_some(rest),
        [b'[', inside @ ..] => match inside.iter().skip(1).position(|end| *end == b']') {
            Some(end) => {
                let (set, rest) = inside.split_at(end + 1);
                in_set(set, byte).then_some(rest.get(1..)?)
            }
            None => (byte == b'[').then_some(inside),
        },
        [plain, rest @ ..] => (*plain == byte).then_some(rest),
        [] => None,
    }
}

fn in_set(set: &[u8], byte: u8) -> bool {
    let (negated, mut set) = match set {
        [b'!', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    loop {
        set = match set {
            [first, b'-', last, rest @ ..] => {
                found |= (*first..=*last).contains(&byte);
                rest
            }
            [single, rest @ ..] => {
                found |= *single == byte;
                rest
            }
            [] => return found != negated,
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, tried in every way.
    fn naive(pattern: &[u8], name: &[u8]) -> bool {
        match (pattern, name) {
            ([], []) => true,
            ([b'*', rest @ ..], _) => (0..=name.len()).any(|taken| naive(rest, &name[taken..])),
            ([b'?', rest @ ..], [_, after @ ..]) => naive(rest, after),
            ([own, rest @ ..], [first, after @ ..]) => own == first && naive(rest, after),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn it_matches_as_defined(pattern in "[ab*?]{0,9}", name in "[ab]{0,9}") {
            let expected = naive(pattern.as_bytes(), name.as_bytes());
            prop_assert_eq!(matches(&pattern, &name), expected);
        }

        #[test]
        fn every_pattern_is_tried_without_harm(pattern in "[a\\\\\\[\\]!*é-]{0,12}", name in ".{0,12}") {
            let _either = matches(&pattern, &name);
        }
    }

    #[test]
    fn stars_take_as_much_as_they_must() {
        for pattern in ["*", "sched_*", "*switch", "s*_*h", "sched_switch*", "***h"] {
            assert!(matches(pattern, "sched_switch"), "{pattern}");
        }
        for pattern in ["", "sched_", "*swich", "s*_*x", "sched_switch?"] {
            assert!(!matches(pattern, "sched_switch"), "{pattern}");
        }
        assert!(matches("", "") && matches("*", ""));
    }

    #[test]
    fn sets_ranges_and_their_negation() {
        assert!(matches("sched_process_[ef]*", "sched_process_fork"));
        assert!(!matches("sched_process_[ef]*", "sched_process_wait"));
        assert!(matches("x[!a-c]", "xd") && !matches("x[!a-c]", "xb"));
        assert!(matches("x[]]", "x]") && matches("x[", "x["));
        assert!(matches(r"x\*", "x*") && !matches(r"x\*", "xy"));
    }

    #[test]
    fn many_stars_are_no_trap() {
        let name = "a".repeat(2000);
        assert!(!matches(&format!("{}b", "*a".repeat(500)), &name));
    }
}
